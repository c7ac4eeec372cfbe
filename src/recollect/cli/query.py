"""``recollect query``: the passages that answer a question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._access import AccessOptions
from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._searching import (
    EVERYWHERE,
    Explain,
    SearchOptions,
    SessionOptions,
    TimeOptions,
    language_of,
    told_besides,
    vain,
)
from recollect.cli._terminal import show_notes
from recollect.errors import UsageError
from recollect.model.search_options import validate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.text import Text

    from recollect.cli._terminal import Highlighter
    from recollect.context import AssembledContext
    from recollect.model import Principal, ReplyExplain, RetrievalOptions, RetrievedContext, SearchExplain, SearchReply
    from recollect.pipeline import View


_SNIPPET_LINES = 3


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "query", collection=True, remote=True)(_query)


def _query(
    ctx: CommandContext,
    search: SearchOptions,
    budget: ContextOptions,
    times: TimeOptions,
    access: AccessOptions,
    where: SessionOptions,
    *,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to look for, in plain words.")],
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Search every collection together, or all that --as may read.")
    ] = False,
    explain: Explain = False,
) -> int:
    """Find the passages that answer a question."""
    budget.require_consistent(explain=explain)
    if everywhere and (budget.context or where.in_session is not None or where.with_ or ctx.names_collection):
        raise UsageError("--everywhere goes with neither --context nor --session, --with and --collection.")

    principal, search = access.asker(search)
    options = replace(times.confine(search.retrieval(ctx.config, explain=explain)), outline=ctx.json)
    as_of = times.moment()
    validate(text, options)
    seen = {"collections": EVERYWHERE} if everywhere else where.where(ctx)
    embeds = (options.mode or ctx.config.retrieval.mode) != "lexical"
    with ctx.view(principal=principal, as_of=as_of, embeds=embeds, **seen) as view:
        if budget.context:
            shown = view.context(
                text, options, token_budget=budget.token_budget, max_context_length=budget.max_context_length
            )
            warnings = [] if shown.blocks else vain(view, options)
            shown = replace(shown, warnings=told_besides(shown.warnings, warnings))
            show_context(ctx, text, shown, collection=view.standpoint.searched_name, warnings=warnings)
            return 0
        reply = view.search(text, options)
        warnings = [] if reply.results else vain(view, options)
        reply = replace(reply, warnings=told_besides(reply.warnings, warnings))
        if ctx.json:
            ctx.emit(replace(reply, warnings=(*reply.warnings, *warnings)))
        else:
            for warning in reply.warnings:
                ctx.note(warning)
            _show(ctx, view, reply, nothing=warnings or [_nothing(options, principal, as_of)])
    return 0


def place(
    source: str, section: str | None, page: int | None, last_page: int | None = None, *, given_id: str | None = None
) -> Text:
    """Where something stands, for people: source (id of its document) › section, page."""
    from rich.text import Text

    from recollect.cli._terminal import one_line

    shown = Text(one_line(source), style="bold cyan")
    if given_id is not None:
        shown.append(f" ({one_line(given_id)})", "cyan not bold")
    for title in (section or "").split(" > "):
        if title.strip():
            shown.append(" › ", "dim").append(one_line(title), "cyan not bold")
    if page is not None:
        pages = f"{page}" if last_page in {page, None} else f"{page}–{last_page}"
        shown.append(f", p. {pages}", "dim not bold")
    return shown


def _show(ctx: CommandContext, view: View, reply: SearchReply, *, nothing: list[str]) -> None:
    from recollect.cli._terminal import Highlighter, plain
    from recollect.languages import AUTO, language_of_text
    from recollect.retrieval.analysis import Analyzer

    if not reply.results:
        ctx.out.print(plain("\n".join(nothing)), soft_wrap=True)
        _show_explanation(ctx, reply)
        return
    language = language_of(view)
    highlighter = Highlighter(reply.query, Analyzer(language_of_text(reply.query) if language == AUTO else language))
    for result in reply.results:
        _show_result(ctx, result, highlighter)
    total = reply.timings_ms.get("total", 0.0)
    paths = "".join(f", {retriever} {path}" for retriever, path in reply.paths.items())
    count = len(reply.results)
    ctx.out.print(f"{count:,} passage{'' if count == 1 else 's'} in {total:,.0f} ms ({reply.mode}{paths})", style="dim")
    _show_explanation(ctx, reply)


def _nothing(options: RetrievalOptions, principal: Principal | None, as_of: datetime | None) -> str:
    if principal is not None:
        return "Nothing found in what this user may read. Try other words, or fewer filters."
    limits = (
        ("--min-score", options.min_score),
        ("--min-similarity", options.similarity_threshold),
        ("--min-relevance", options.min_relevance),
    )
    given = [name for name, value in limits if value]
    if as_of is not None:
        given.append("--as-of")
    if given:
        return f"Nothing found. Try other words, fewer filters, or without {' and '.join(given)}."
    return "Nothing found. Try other words, or fewer filters."


def _show_explanation(ctx: CommandContext, reply: SearchReply) -> None:
    """What was done with the query, a line for each kind of thing; nothing where nobody asked."""
    from rich.text import Text

    from recollect.cli._terminal import one_line, print_indented

    if reply.explain is None:
        return
    for name, told in _explanation_lines(reply, reply.explain):
        line = Text(f"{name:<10}", style="dim bold").append(one_line(told), "dim not bold")
        print_indented(ctx.out, line, by=0)


def _explanation_lines(reply: SearchReply, explain: ReplyExplain) -> list[tuple[str, str]]:
    terms = ", ".join(f"{term} {weight:.2f}" if weight else f"{term} (nowhere)" for term, weight in explain.terms)
    weights = f"weights by rarity: {terms}" if terms else "the query has none that count"
    lines = [("words", "not looked up: the filter keeps nothing" if explain.filter_kept == 0 else weights)]
    if explain.filter_kept is not None:
        lines.append(("filter", _filter_line(explain)))
    lines += [("enhanced", note) for note in explain.enhancements]
    if explain.reranker is not None:
        reason = f"{explain.reranker} had no say: {explain.rerank_reason or 'there was nothing to order'}"
        lines.append(("reranker", explain.reranker if reply.reranked else reason))
    if explain.dropped:
        lines.append(("left out", ", ".join(f"{count:,} {reason}" for reason, count in explain.dropped.items())))
    lines.append(("exact", "yes" if reply.exact else "no: an index or a bound left something open"))
    stages = ((stage, ms) for stage, ms in reply.timings_ms.items() if stage != "total")
    lines.append(("time", ", ".join(f"{stage} {ms:,.1f} ms" for stage, ms in stages)))
    return lines


def _filter_line(explain: ReplyExplain) -> str:
    kept, removed = explain.filter_kept or 0, explain.filter_removed or 0
    parts = "; ".join(f"{condition}: {count:,}" for condition, count in explain.removed_by)
    by = f"; each condition alone would remove: {parts}" if parts else ""
    return f"keeps {kept:,} document{'' if kept == 1 else 's'}, removes {removed:,}{by}"


def _show_result(ctx: CommandContext, result: RetrievedContext, highlighter: Highlighter) -> None:
    from rich.text import Text

    from recollect.cli._terminal import one_line, print_indented

    head = Text(f"{result.rank:>2}  ", style="bold")
    head.append_text(place(result.source, result.section, result.page, given_id=result.id))
    if result.server is not None:
        head.append(f"  {one_line(result.server)}", "magenta")
    if result.collection is not None:
        head.append(f"  {one_line(result.collection)}", "magenta not bold")
    if result.relevance is not None:
        head.append(f"  {result.relevance:.0%} relevant", "green not bold")
    ctx.out.print(head, soft_wrap=not ctx.out.is_terminal)
    width = max(40, ctx.out.width - 6)
    if result.table_header is not None:
        print_indented(ctx.out, Text(one_line(result.table_header), style="dim"), by=4)
    snippet = highlighter.snippet(result.content, length=_SNIPPET_LINES * width)
    print_indented(ctx.out, snippet, by=4)
    if result.also_in:
        others = ", ".join(dict.fromkeys(one.source for one in result.also_in))
        print_indented(ctx.out, Text(one_line(f"also in {others}"), style="dim"), by=4)
    show_notes(ctx.out, result.notes)
    if result.explain is not None:
        print_indented(ctx.out, Text(_explained(result, result.explain), style="dim"), by=4)
    ctx.out.print()


def _explained(result: RetrievedContext, explain: SearchExplain) -> str:
    dense, lexical = explain.dense, explain.lexical
    return ", ".join(
        [
            f"score {result.score:.3f}",
            f"meaning: rank {dense.rank}, similarity {dense.score:.3f}" if dense else "meaning: not found",
            f"words: rank {lexical.rank}, BM25 {lexical.score:.2f}" if lexical else "words: not found",
            *([] if explain.coverage is None else [f"{explain.coverage:.0%} of the words"]),
            f"fused {explain.fused_score:.3f}",
            *([] if explain.rerank_score is None else [f"reranker {explain.rerank_score:.3f}"]),
            *([] if explain.moved_from is None else [f"moved up from rank {explain.moved_from} for its words"]),
            *([] if explain.preference is None else [f"who asks × {explain.preference:.3g}"]),
        ]
    )


# ``recollect query --context``: what a language model would be shown, for other programs to show it.


_PANEL = "Context"


@dataclass(frozen=True, kw_only=True)
class ContextOptions:
    """Whether passages are printed as a prompt's context, and how long it may be."""

    context: Annotated[
        bool,
        typer.Option(
            "--context", help="Print numbered passages for a prompt, within a budget.", rich_help_panel=_PANEL
        ),
    ] = False
    token_budget: Annotated[
        int | None, typer.Option(min=1, help="Tokens of the context at most.", rich_help_panel=_PANEL)
    ] = None
    max_context_length: Annotated[
        int | None, typer.Option(min=1, help="Characters of the context at most.", rich_help_panel=_PANEL)
    ] = None

    def require_consistent(self, *, explain: bool) -> None:
        """Raises UsageError where a limit is given, and no context is wanted, or ranks are to be explained of one."""
        if self.context and explain:
            raise UsageError(
                "--explain says how passages came to their ranks, which a context leaves out: one of both."
            )
        if not self.context and (self.token_budget or self.max_context_length):
            name = "--token-budget" if self.token_budget else "--max-context-length"
            raise UsageError(f"{name} limits a context: give --context with it.")


def show_context(
    ctx: CommandContext, question: str, context: AssembledContext, *, collection: str, warnings: Sequence[str] = ()
) -> None:
    """Print a context: its text alone on standard output, what is to be known about it beside it."""
    from recollect.cli._terminal import plain

    if ctx.json:
        from recollect.replies.contexts import assembled_context_json

        ctx.emit(assembled_context_json(question, context, collection=collection, warnings=warnings))
        return
    if context.text:
        # A terminal would obey what a document holds; a file or a pipe gets the text as it is.
        shown = plain(context.text) if ctx.out.is_terminal else context.text
        ctx.out.out(shown, highlight=False)
    count = len(context.blocks)
    omitted = f", {context.omitted:,} more found no room" if context.omitted else ""
    for warning in [*context.warnings, *warnings]:
        ctx.note(warning)
    ctx.note(f"{count:,} passage{'' if count == 1 else 's'}, {context.token_count:,} tokens{omitted}")
