"""What is remembered of an answer beside its text, so that a conversation can be shown again as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.errors import NotFoundError
from recollect.pipeline.search import label

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recollect.model import Answer, PassageNote
    from recollect.model.answer import Citation
    from recollect.pipeline.standpoint import Standpoint

#: In the metadata of an answer's turn: what it cites.
SOURCES = "rag_sources"
#: In the same place: what else is known of it.
ANSWER = "rag_answer"


def facts_of(answer: Answer, at: Standpoint, *, model: str | None) -> dict[str, Any]:
    """What the turn of an answer keeps: where it looks things up, and what was found to be wrong with it.

    Nothing of a document's text is in it: whoever may not read the document any more is not shown it here either.

    Args:
        answer: To a question.
        at: Where it was asked.
        model: What was to write it; None: what is configured.
    """
    versions = _Versions(at)
    notes = {str(one.marker): [_note(note) for note in one.notes] for one in answer.citations if one.notes}
    kept: dict[str, Any] = {
        "refused": answer.refused,
        "model": answer.model,
        "characters": len(answer.text),
        "asked": {
            "collections": list(at.collections or ()),
            "as_of": None if at.as_of is None else at.as_of.isoformat(),
            "model": model,
        },
    }
    if answer.unsupported:
        kept["unsupported"] = [[one.start_offset, one.end_offset, one.reason] for one in answer.unsupported]
    if answer.rewritten_question is not None:
        kept["rewritten_question"] = answer.rewritten_question
    if answer.nearest is not None:
        kept["nearest"] = {
            **_place(answer.nearest.evidence, versions),
            "probability": round(answer.nearest.probability, 4),
            "threshold": answer.nearest.threshold,
            "missing_identifier": answer.nearest.missing_identifier,
        }
    if notes:
        kept["notes"] = notes
    return {SOURCES: [{"marker": one.marker, **_place(one, versions)} for one in answer.citations], ANSWER: kept}


class _Versions:
    """The versions that documents were read in, each looked up once."""

    def __init__(self, at: Standpoint) -> None:
        self._at = at
        self._known: dict[int, int | None] = {}

    @property
    def session(self) -> str | None:
        """The session that was searched, alone or with collections."""
        return self._at.session

    def of(self, document_id: int) -> int | None:
        """The version of a document; None: it is gone."""
        if document_id not in self._known:
            at = self._at
            try:
                self._known[document_id] = at.store.documents.get(at.scope, document_id).version
            except NotFoundError:  # it went while the answer was written
                self._known[document_id] = None
        return self._known[document_id]


def _place(citation: Citation, versions: _Versions) -> dict[str, Any]:
    """Where a quote stands; offsets are of the version that it was read in."""
    version = None if citation.server is not None else versions.of(citation.document_id)
    place: dict[str, Any] = {
        "source": citation.source,
        "document_id": citation.document_id,
        "version": version,
        "start_offset": citation.start_offset,
        "end_offset": citation.end_offset,
    }
    more: Mapping[str, Any] = {"section": citation.section, "page": citation.page, "collection": citation.collection}
    if citation.server is not None:
        more = {**more, "server": citation.server}
    elif version is None and citation.collection is None and versions.session is not None:
        # A document of the session, which was searched alone: collections know nothing of it.
        more = {**more, "collection": label(versions.session)}
    return place | {name: value for name, value in more.items() if value is not None}


def _note(note: PassageNote) -> dict[str, Any]:
    return {"kind": note.kind, "at": None if note.at is None else note.at.isoformat(), "source": note.source}
