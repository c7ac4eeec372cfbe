"""How a test case is searched."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.evaluation.cases import CaseSearch
    from recollect.model import RetrievalOptions


def options_of(asked: CaseSearch, given: RetrievalOptions) -> RetrievalOptions:
    """The options of a case's search: those given, with its number of passages and narrowed by its filters.

    Its departments and sources stand in place of those given, where it names any; everything else must hold as well.
    """
    filters = asked.filters
    wholes = [whole for whole in (given.filters, filters.where) if whole]
    return replace(
        given,
        top_k=asked.top_k or given.top_k,
        department=filters.department or given.department,
        source=filters.source or given.source,
        tags=(*given.tags, *filters.tags),
        metadata_filters={**given.metadata_filters, **filters.metadata},
        filters={"and": wholes} if len(wholes) > 1 else next(iter(wholes), None),
    )
