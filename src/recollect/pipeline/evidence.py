"""How the evidence for a question changed between two moments."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from recollect.errors import UsageError
from recollect.model.history import EvidenceDiff, MovedEvidence
from recollect.model.time import Moment, read_time
from recollect.pipeline.search import search

if TYPE_CHECKING:
    from recollect.model import RetrievalOptions, RetrievedContext
    from recollect.pipeline.standpoint import Standpoint

# Two passages of one document that have less in common than this are two passages, not one that changed.
_SAME_PASSAGE = 0.4
# Comparing takes time with the product of the lengths; the beginning tells as much.
_COMPARED_CHARACTERS = 2_000


def diff_evidence(
    at: Standpoint,
    question: str,
    *,
    from_time: Moment,
    to_time: Moment | None,
    options: RetrievalOptions | None,
) -> EvidenceDiff:
    """See `recollect.pipeline.documents.Documents.diff_evidence`."""
    scope = at.present()
    now = datetime.now(UTC)
    start = read_time(from_time, now=now, name="from_time")
    end = now if to_time is None else read_time(to_time, now=now, name="to_time")
    if start == end:
        raise UsageError("The two moments are the same: nothing can have changed between them.")
    given = at.answering(options)
    # Copies stand in for one another from one moment to the next: what is compared is what is there.
    collapse = given.collapse_duplicates or False
    given = replace(given, collapse_duplicates=collapse, outline=True, relevance_floor=True)
    before, after = (search(replace(at, as_of=moment), question, given).results for moment in (start, end))
    pairs = match_passages(before, after)
    history = at.store.history
    kept_before = {old.chunk_id for old, _ in pairs}
    kept_after = {new.chunk_id for _, new in pairs}
    went = [one for one in before if one.chunk_id not in kept_before]
    came = [one for one in after if one.chunk_id not in kept_after]
    known_then = history.known_at(scope, _versions(came), start)
    known_now = history.known_at(scope, _versions(went), end)
    return EvidenceDiff(
        question=question,
        collection=", ".join(at.names),
        from_time=start,
        to_time=end,
        came=tuple(MovedEvidence(passage=one, outranked=one.version_id in known_then) for one in came),
        went=tuple(MovedEvidence(passage=one, outranked=one.version_id in known_now) for one in went),
        stayed=tuple(new for old, new in pairs if old.content == new.content),
        changed=tuple((old, new) for old, new in pairs if old.content != new.content),
    )


def match_passages(
    before: Sequence[RetrievedContext], after: Sequence[RetrievedContext]
) -> list[tuple[RetrievedContext, RetrievedContext]]:
    """The passages that are each other's at two moments, in the order of ``after``; no passage is used twice.

    Passages of one document belong together that read the same; of the others, those that have most in common.

    Args:
        before: Found at the one moment.
        after: Found at the other.
    """
    free_before, free_after = list(before), list(after)
    pairs: list[tuple[RetrievedContext, RetrievedContext]] = []
    alike = [
        (_alikeness(old, new), -j, -i)
        for i, old in enumerate(before)
        for j, new in enumerate(after)
        if old.document_id == new.document_id
    ]
    used_before: set[int] = set()
    used_after: set[int] = set()
    for likeness, j, i in sorted(alike, reverse=True):
        if likeness < _SAME_PASSAGE or -i in used_before or -j in used_after:
            continue
        used_before.add(-i)
        used_after.add(-j)
        pairs.append((free_before[-i], free_after[-j]))
    return sorted(pairs, key=lambda pair: pair[1].rank)


def _alikeness(old: RetrievedContext, new: RetrievedContext) -> float:
    """From 0 (nothing in common) to 2 (one and the same chunk)."""
    if old.content == new.content:
        return 2.0 if old.chunk_id == new.chunk_id else 1.5
    texts = (old.content[:_COMPARED_CHARACTERS].split(), new.content[:_COMPARED_CHARACTERS].split())
    return difflib.SequenceMatcher(None, *texts, autojunk=False).ratio()


def _versions(passages: Iterable[RetrievedContext]) -> list[int]:
    return [one.version_id for one in passages if one.version_id is not None]
