"""``recollect ask``: an answer with citations, or the passages that may help."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.text import Text

from recollect.answer.readable import pieces_of
from recollect.cli._access import AccessOptions
from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._searching import EVERYWHERE, Explain, SearchOptions, SessionOptions, TimeOptions, vain
from recollect.cli._terminal import inline_markup, one_line, plain, print_indented, shortened, show_notes
from recollect.cli.providers import mention_models_once
from recollect.cli.query import place
from recollect.errors import UsageError
from recollect.model import Answer
from recollect.model.search_options import validate
from recollect.pipeline import models
from recollect.replies.retrieval import shown_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from recollect.config import RAGConfig
    from recollect.model import Citation, RetrievalOptions
    from recollect.model.answer import Nearest, ShownPassage
    from recollect.pipeline import View
    from recollect.pipeline.answering import AskEvent

_QUOTE_CHARACTERS = 300
# Of sentences that the sources do not support.
_UNSUPPORTED = "bold red"
_MARKER = re.compile(r"\[\d+\]")
_ROW = re.compile(r"\| .+ \|")


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "ask", collection=True, remote=True)(_ask)


def _ask(
    ctx: CommandContext,
    search: SearchOptions,
    times: TimeOptions,
    access: AccessOptions,
    where: SessionOptions,
    *,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A question, in plain words.")],
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Answer from every collection together, or all that --as may read.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER/NAME", help="The language model that answers; extractive: none, quotes."),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Print each sentence as soon as it is checked, also into a pipe.")
    ] = False,
    explain: Explain = False,
) -> int:
    """Answer a question from the documents, with citations and passages that may help."""
    if everywhere and (where.in_session is not None or where.with_ or ctx.names_collection):
        raise UsageError("--everywhere goes with neither --session, --with nor --collection.")
    if stream and ctx.json:
        raise UsageError("--json prints one document at the end: leave --stream out.")
    principal, search = access.asker(search)
    config = with_model(ctx.config, model)
    options, as_of = times.confine(search.retrieval(config, explain=explain)), times.moment()
    validate(text, options)
    seen = {"collections": EVERYWHERE} if everywhere else where.where(ctx)
    with ctx.view(config, principal=principal, as_of=as_of, **seen) as view:
        if ctx.json:
            answer = _whole(view.ask_stream(text, options))
            warnings = vain(view, options) if answer.outcome == "none" else []
            ctx.emit(shown_answer(answer, explain=explain, warnings=warnings))
        else:
            answer = _streamed(ctx, view, text, options, at_once=stream)
            show_answer(ctx, answer, told=stream and not ctx.out.is_terminal, explain=explain)
            mention_models_once(ctx)
            for warning in [*answer.warnings, *(vain(view, options) if answer.outcome == "none" else [])]:
                ctx.note(warning)
            if explain:
                timings = ", ".join(f"{stage} {ms:,.0f} ms" for stage, ms in answer.timings_ms.items())
                ctx.out.print(timings, style="dim")
    return 0


def with_model(config: RAGConfig, model: str | None) -> RAGConfig:
    """The settings with another language model, where one is named by ``--model``.

    Raises:
        UsageError: It is neither the configured one's name nor ``provider/name``, or there is no such provider.
    """
    if model is None or model == config.answer.model:
        return config

    return models.with_model(config, model)


def _streamed(
    ctx: CommandContext, view: View, question: str, options: RetrievalOptions, *, at_once: bool = False
) -> Answer:
    pieces = view.ask_stream(question, options)
    if at_once and not ctx.out.is_terminal:
        return _printed(ctx, pieces)
    return shown_as_it_comes(ctx, pieces, live=ctx.config.answer.provider != "extractive")


def shown_as_it_comes(ctx: CommandContext, events: Iterable[AskEvent], *, live: bool) -> Answer:
    """The answer; its sentences, each one checked, are shown in a terminal while the rest is waited for."""
    if not live or not ctx.out.is_terminal:
        return _whole(events)
    shown = Text()
    with Live(shown, console=ctx.out, transient=True, vertical_overflow="ellipsis") as display:
        for event in events:
            if isinstance(event, Answer):
                return event
            if isinstance(event, str):
                shown.append(plain(event))
                display.update(shown)
    raise AssertionError("a stream ends with the answer")


def _printed(ctx: CommandContext, pieces: Iterator[str | Answer]) -> Answer:
    """The answer, its sentences written one after the other, for whoever reads the pipe."""
    for piece in pieces:
        if isinstance(piece, Answer):
            ctx.out.print()
            return piece
        ctx.out.print(plain(piece), end="", soft_wrap=True)
        ctx.out.file.flush()
    raise AssertionError("a stream ends with the answer")


def _whole(events: Iterable[AskEvent]) -> Answer:
    *_, answer = events
    assert isinstance(answer, Answer), "a stream ends with the answer"
    return answer


def show_answer(ctx: CommandContext, answer: Answer, *, told: bool = False, explain: bool = False) -> None:
    """The answer, where its text was not ``told`` already, then what it rests on, or the passages that may help.

    Args:
        ctx: The command's.
        answer: To a question.
        told: Whether its text was printed.
        explain: Whether what came nearest is shown with its probability, where it is no answer.
    """
    if not told:
        ctx.out.print(_marked(answer))
    # An answer that was quoted is its quotes.
    show_sources(ctx, answer, quotes=answer.model is not None)
    _show_unsupported(ctx, answer)
    if explain and answer.nearest is not None:
        _show_nearest(ctx, answer.nearest)


def show_sources(ctx: CommandContext, answer: Answer, *, quotes: bool = True) -> None:
    """Where each citation stands, and (``quotes``) what it quotes; and each passage, its highlighted part bold."""
    for citation in answer.citations:
        _show_place(ctx, citation, last_page=citation.last_page)
        if quotes:
            quote = inline_markup(f"“{shortened(citation.quote, _QUOTE_CHARACTERS)}”")
            quote.stylize_before("dim")
            print_indented(ctx.out, quote, by=4)
        show_notes(ctx.out, citation.notes)
    if answer.citations and answer.passages:
        ctx.out.print("\nMore from the documents:", style="dim")
    for passage in answer.passages:
        _show_place(ctx, passage)
        print_indented(ctx.out, _highlighted(passage), by=4)
        show_notes(ctx.out, passage.notes)


def _show_place(ctx: CommandContext, shown: Citation | ShownPassage, *, last_page: int | None = None) -> None:
    ctx.out.print()
    head = Text(f"[{shown.marker}] ", style="bold green")
    head.append_text(place(shown.source, shown.section, shown.page, last_page, given_id=shown.id))
    if shown.server is not None:
        head.append(f"  {one_line(shown.server)}", "magenta not bold")
    ctx.out.print(head, soft_wrap=not ctx.out.is_terminal)


def _highlighted(passage: ShownPassage) -> Text:
    """The passage; nothing but what is highlighted is bold, and rows of tables go without the bars around them."""
    text = Text()
    for piece, is_highlighted in pieces_of(passage):
        text.append(inline_markup(plain(piece)).plain, "bold" if is_highlighted else None)
    lines = text.split(allow_blank=True)
    return Text("\n").join(line[2:-2] if _ROW.fullmatch(line.plain) else line for line in lines)


def _show_unsupported(ctx: CommandContext, answer: Answer) -> None:
    """What the sources do not support, and why: behind the citations, so that it is read last and remembered."""
    for at, sentence in enumerate(answer.unsupported):
        if not at:
            ctx.out.print()
            removed = sentence.start_offset is None
            ctx.out.print(
                "Left out, not supported by the sources:" if removed else "Not supported by the sources:",
                style=_UNSUPPORTED,
            )
        shown = Text(f"“{shortened(plain(sentence.text), _QUOTE_CHARACTERS)}”")
        print_indented(ctx.out, shown.append(f"  ({plain(sentence.detail)})", "dim"), by=4)


def _show_nearest(ctx: CommandContext, nearest: Nearest) -> None:
    evidence = nearest.evidence
    head = Text("Nearest: ", style="dim")
    head.append_text(place(evidence.source, evidence.section, evidence.page, evidence.last_page, given_id=evidence.id))
    why = f"{nearest.probability:.0%} likely to answer it, {nearest.threshold:.0%} needed"
    if nearest.missing_identifier:
        why = "a name or number of the question stands nowhere"
    ctx.out.print()
    ctx.out.print(head.append(f"  ({why})", "dim not bold"))
    quote = inline_markup(f"“{shortened(evidence.quote, _QUOTE_CHARACTERS)}”")
    quote.stylize_before("dim")
    print_indented(ctx.out, quote, by=4)


def _marked(answer: Answer) -> Text:
    """The answer's text; what the sources do not support stands out, also where there are no colours."""
    shown, done = Text(), 0
    for sentence in answer.unsupported:
        if sentence.start_offset is None or sentence.end_offset is None:
            continue
        shown.append_text(inline_markup(plain(answer.text[done : sentence.start_offset])))
        flagged = inline_markup(plain(answer.text[sentence.start_offset : sentence.end_offset]))
        flagged.stylize(_UNSUPPORTED)
        shown.append_text(flagged.append(" (?)", _UNSUPPORTED))
        done = sentence.end_offset
    shown.append_text(inline_markup(plain(answer.text[done:])))
    shown.stylize_before("yellow" if answer.refused else "none")
    shown.highlight_regex(_MARKER, "bold green")
    return shown
