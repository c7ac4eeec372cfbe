"""Copies of collections in memory that a test waits for."""

from __future__ import annotations

import time

from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.retrieval.resident.collections import ResidentCollections


def settled(copies: ResidentCollections) -> None:
    """Wait until everything that was to be loaded is, or was given up."""
    while copies._wanted:
        time.sleep(0.001)


def loaded(copies: ResidentCollections, scope: Scope, collection: Collection) -> bool:
    """Have a collection loaded, unless it is held; returns whether it is."""
    copies.find(scope, collection)
    settled(copies)
    return copies.copy_of(scope, collection) is not None
