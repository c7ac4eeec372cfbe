"""``recollect ask``: an answer with citations, or a refusal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli._access import AccessOptions
from recollect.cli._notes import notes_as_json, show_notes
from recollect.cli._options import CollectionOption, Explain, SearchOptions, command
from recollect.cli._searching import SessionOptions, vain
from recollect.cli._session import Session, argument_text
from recollect.cli._time import TimeOptions
from recollect.cli.query import place, rounded, with_warnings
from recollect.model import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from rich.text import Text

    from recollect.cli._searching import Searched
    from recollect.model import RetrievalOptions
    from recollect.model.answer import Nearest

_QUOTE_CHARACTERS = 300
_MARKER = re.compile(r"\[\d+\]")


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "ask")(_ask)


def _ask(
    session: Session,
    collection: CollectionOption,  # noqa: ARG001 - the session knows it
    search: SearchOptions,
    times: TimeOptions,
    access: AccessOptions,
    where: SessionOptions,
    *,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A question, in plain words.")],
    explain: Explain = False,
) -> int:
    """Answer a question from the documents, with citations, or say that they hold no answer."""
    from recollect.retrieval.validation import validate

    principal, search = access.asker(search)
    settings, passages = session.config.retrieval, session.config.answer.passages
    given = search.retrieval(mode=settings.mode, top_k=passages, fusion=settings.fusion, explain=explain)
    options, as_of = times.confine(given), times.moment()
    question = argument_text(text)
    validate(question, options)
    with session.pipeline() as rag:
        searched = where.searched(session, rag, principal)
        if session.json:
            answer = _whole(searched.ask_stream(question, options, as_of=as_of))
            warnings = vain(searched, options, as_of=as_of) if answer.refused else []
            session.emit(with_warnings(as_json(answer, explain=explain), warnings))
        else:
            answer = _streamed(session, searched, question, options, as_of=as_of)
            show_answer(session, answer)
            for warning in vain(searched, options, as_of=as_of) if answer.refused else []:
                session.note(warning)
            if explain:
                timings = ", ".join(f"{stage} {ms:,.0f} ms" for stage, ms in answer.timings_ms.items())
                session.out.print(timings, style="dim")
    return 0


def as_json(answer: Answer, *, explain: bool = False) -> dict[str, Any]:
    """The answer as ``--json`` prints it; ``explain`` adds what came nearest to a refusal's answer."""
    names = (
        *("marker", "document_id", "source", "department", "section", "page", "last_page"),
        *("start_offset", "end_offset", "quote"),
    )
    document: dict[str, Any] = {
        "question": answer.question,
        "answer": answer.text,
        "refused": answer.refused,
        "citations": [
            {
                **{name: getattr(citation, name) for name in names},
                **({"notes": notes_as_json(citation.notes)} if citation.notes else {}),
            }
            for citation in answer.citations
        ],
        "timings_ms": rounded(answer.timings_ms),
    }
    if explain and answer.refused:
        nearest = answer.nearest
        document["nearest"] = nearest and {
            **{name: getattr(nearest.evidence, name) for name in names[1:]},
            "probability": round(nearest.probability, 4),
            "threshold": nearest.threshold,
            "missing_identifier": nearest.missing_identifier,
        }
    return document


def _streamed(
    session: Session, searched: Searched, question: str, options: RetrievalOptions, *, as_of: datetime | None
) -> Answer:
    """The answer; a language model's words are shown as they come, until the citations are checked."""
    from rich.live import Live
    from rich.text import Text

    from recollect.cli._terminal import plain

    pieces = searched.ask_stream(question, options, as_of=as_of)
    if session.config.answer.provider == "extractive" or not session.out.is_terminal:
        return _whole(pieces)
    shown = Text()
    with Live(shown, console=session.out, transient=True, vertical_overflow="ellipsis") as live:
        for piece in pieces:
            if isinstance(piece, Answer):
                return piece
            shown.append(plain(piece))
            live.update(shown)
    raise AssertionError("a stream ends with the answer")


def _whole(pieces: Iterator[str | Answer]) -> Answer:
    *_, answer = pieces
    assert isinstance(answer, Answer), "a stream ends with the answer"
    return answer


def show_answer(session: Session, answer: Answer) -> None:
    """The answer, then what it rests on."""
    from rich.text import Text

    from recollect.cli._terminal import inline_markup, print_indented, shortened

    session.out.print(_marked(answer.text, refused=answer.refused))
    if answer.nearest is not None:
        _show_nearest(session, answer.nearest)
    for citation in answer.citations:
        session.out.print()
        head = Text(f"[{citation.marker}] ", style="bold green")
        head.append_text(place(citation.source, citation.section, citation.page, citation.last_page))
        session.out.print(head, soft_wrap=not session.out.is_terminal)
        quote = inline_markup(f"“{shortened(citation.quote, _QUOTE_CHARACTERS)}”")
        quote.stylize_before("dim")
        print_indented(session.out, quote, by=4)
        show_notes(session, citation.notes)


def _show_nearest(session: Session, nearest: Nearest) -> None:
    from rich.text import Text

    from recollect.cli._terminal import inline_markup, print_indented, shortened

    evidence = nearest.evidence
    head = Text("Nearest, but not enough: ", style="dim")
    head.append_text(place(evidence.source, evidence.section, evidence.page, evidence.last_page))
    why = f"{nearest.probability:.0%} likely to answer it, {nearest.threshold:.0%} needed"
    if nearest.missing_identifier:
        why = "a name or number of the question stands nowhere"
    session.out.print()
    session.out.print(head.append(f"  ({why})", "dim not bold"))
    quote = inline_markup(f"“{shortened(evidence.quote, _QUOTE_CHARACTERS)}”")
    quote.stylize_before("dim")
    print_indented(session.out, quote, by=4)


def _marked(text: str, *, refused: bool) -> Text:
    from recollect.cli._terminal import inline_markup, plain

    shown = inline_markup(plain(text).strip())
    shown.stylize_before("yellow" if refused else "none")
    shown.highlight_regex(_MARKER, "bold green")
    return shown
