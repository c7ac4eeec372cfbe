"""What happens in the child of a ``fork``.

The child has one thread, and copies of everything else: of locks that other threads held and nobody releases, of
thread pools without threads, and of connections that are still the parent's. So what holds any of these is renewed in
the child before anything else runs there, and what belongs to the parent is neither used nor closed.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Protocol, TypeVar
from weakref import WeakSet


class Renewable(Protocol):
    """Holds locks, threads, connections or sessions that a child must not share."""

    def renew_in_child(self) -> None:
        """Called in the child, where no other thread runs: make it as though nothing had been opened yet."""


_Kind = TypeVar("_Kind", bound=type)

_whole = threading.RLock()
_renewables: WeakSet[Renewable] = WeakSet()
_classes: list[type] = []


def renew_in_children(renewable: Renewable) -> None:
    """Renew an object in the child of every fork from now on, as long as it lives."""
    _listen()
    _renewables.add(renewable)


def computes_properties(kind: _Kind) -> _Kind:
    """A decorator for classes with a `cached_property`, which has one lock for all objects before Python 3.12."""
    _classes.append(kind)
    return kind


def leave_to_parent(*belongings: object) -> None:
    """Never finalise what belongs to the parent: that would end its sessions, or wait for threads that are not here."""
    for one in belongings:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


@contextmanager
def undivided() -> Iterator[None]:
    """No fork happens within: an import that a thread is at would never end in the child, nor let another begin."""
    _listen()
    with _whole:
        yield


def _renew() -> None:
    _whole.release()
    for kind in _classes:
        for value in vars(kind).values():
            if isinstance(value, cached_property) and hasattr(value, "lock"):
                value.lock = threading.RLock()
    for renewable in list(_renewables):
        renewable.renew_in_child()


@cache
def _listen() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_whole.acquire, after_in_parent=_whole.release, after_in_child=_renew)
