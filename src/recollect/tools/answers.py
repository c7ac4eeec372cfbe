"""The tool that answers from the documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.model import Answer, RetrievalOptions
from recollect.tools.base import report
from recollect.tools.documents import beside_a_conversation, options_of, shortened

if TYPE_CHECKING:
    from recollect.model import Citation, Outcome, ShownPassage
    from recollect.pipeline.view import View
    from recollect.tools.results import Room

# Characters of a quote, and of a sentence that is told as unsupported: `read` gives the whole of either.
_QUOTE = 400

_NOTES: dict[Outcome, list[str]] = {
    "answer": [],
    "passages": [
        "No exact answer was found. Judge these passages yourself and claim no more than they say; where they do not "
        "answer the question, say so. Do not answer from memory."
    ],
    "none": ["The documents hold no answer, as far as was searched. Say so; do not answer from memory."],
}
_UNSUPPORTED = "The sources do not support what stands under unsupported: do not rely on it."
_CUT = "Cut to fit: ask for less at a time."


@beside_a_conversation
def ask(view: View, room: Room, *, question: str, **narrowing: object) -> dict[str, Any]:
    """An answer with citations, the passages that may help, or neither."""
    answer = _answer(view, question, options_of(narrowing))
    told: dict[str, Any] = {
        "answer": "",
        "outcome": answer.outcome,
        "refused": answer.refused,
        "generated_by": answer.model,
        "citations": [],
        "passages": [],
        "unsupported": [],
    }
    told["answer"] = room.cut(answer.text, told)
    room.take(told)
    notes = [*_NOTES[answer.outcome]]
    citations = (_cited(one) for one in answer.citations)
    unsupported = (
        {"text": one.text[:_QUOTE], "reason": one.reason, "detail": one.detail[:_QUOTE]} for one in answer.unsupported
    )
    whole = len(told["answer"]) == len(answer.text)
    # What must not be relied on is told before what can be.
    passages = map(_passage, answer.passages)
    for name, items in (("unsupported", unsupported), ("citations", citations), ("passages", passages)):
        for item in items:
            if not room.take(item):
                whole = False
                break
            told[name].append(item)
    if answer.unsupported:
        notes.append(_UNSUPPORTED)
    if not whole:
        notes.append(_CUT)
    return told | ({"note": " ".join(notes)} if notes else {})


def _answer(view: View, question: str, options: RetrievalOptions) -> Answer:
    """The answer; each sentence of it is told as soon as it is checked."""
    for event in view.ask_events(question, options):
        if isinstance(event, Answer):
            return event
        if isinstance(event, str) and event.strip():
            report(event.strip())
    raise AssertionError("a stream ends with the answer")


def _cited(one: Citation) -> dict[str, Any]:
    return _place(one) | {
        "quote": one.quote if len(one.quote) <= _QUOTE else one.quote[:_QUOTE] + "…",
        **({} if one.support is None else {"support": round(one.support, 2)}),
    }


def _passage(one: ShownPassage) -> dict[str, Any]:
    return _place(one) | {
        "text": one.text,
        "highlights": [{"start_offset": part.start_offset, "end_offset": part.end_offset} for part in one.highlights],
    }


def _place(one: Citation | ShownPassage) -> dict[str, Any]:
    told = {
        "marker": one.marker,
        "document_id": one.document_id,
        "source": shortened(one.source),
        "id": shortened(one.id),
        "collection": one.collection,
        "server": one.server,
        "section": shortened(one.section),
        "page": one.page,
        "start_offset": one.start_offset,
        "end_offset": one.end_offset,
        "warnings": [shortened(note.text) for note in one.notes[:3]] or None,
    }
    return {name: value for name, value in told.items() if value is not None}
