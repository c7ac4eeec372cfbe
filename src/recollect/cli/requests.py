"""``recollect requests``: what was asked of providers of models, what it took and what it cost."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._terminal import one_line
from recollect.replies.requests import request_list_json, request_stats_json

if TYPE_CHECKING:
    from recollect.model.requests import LoggedRequest, RequestTotals

app = typer.Typer(
    help="What was asked of providers of models, what it took and what it cost; never what it said.",
    no_args_is_help=True,
)


class _Kind(StrEnum):
    EMBED = "embed"
    RERANK = "rerank"
    ANSWER = "answer"


_Since = Annotated[str | None, typer.Option(metavar="TIME", help="Only of this time or later.")]
_Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only before this time.")]


def _list(
    ctx: CommandContext,
    *,
    kind: Annotated[_Kind | None, typer.Option(help="Only of this kind.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only those without a usable answer.")] = False,
    since: _Since = None,
    until: _Until = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Requests at most.")] = 100,
    before: Annotated[int | None, typer.Option(min=1, help="Only requests before this id: the next page.")] = None,
) -> int:
    """List requests to providers, newest first."""
    with ctx.view() as view:
        found = view.audit.requests(
            kind=None if kind is None else kind.value,
            failed=failed,
            since=since,
            until=until,
            before=before,
            limit=limit + 1,
        )
    page, more = found[:limit], len(found) > limit
    if ctx.json:
        ctx.emit(request_list_json(page, more=more))
        return 0
    for one in page:
        ctx.out.print(one_line(_line(one)), soft_wrap=True)
    if not page:
        ctx.out.print("Nothing was asked of a provider, or it is past its retention.")
    if more:
        ctx.note(f"There are more: recollect requests list --before {page[-1].request_id}")
    return 0


def _line(one: LoggedRequest) -> str:
    about = "about " if one.tokens_estimated else ""
    tokens = f"{about}{one.input_tokens:,} tokens" + (f" + {one.output_tokens:,}" if one.output_tokens else "")
    outcome = "ok" if one.success else f"{one.error}{f' (HTTP {one.status})' if one.status else ''}"
    attempts = f", {one.attempts} attempts" if one.attempts > 1 else ""
    cost = "" if one.cost is None else f"  {one.cost:.6f}"
    return (
        f"{one.request_id}  {one.at:%Y-%m-%d %H:%M:%S}  {one.kind}  {one.provider}/{one.model}  {one.inputs:,} inputs, "
        f"{tokens}  {one.milliseconds:,.0f} ms{attempts}  {outcome}{cost}"
    )


def _stats(ctx: CommandContext, *, since: _Since = None, until: _Until = None) -> int:
    """Sum requests to providers up, by kind and model."""
    with ctx.view() as view:
        totals = view.audit.request_totals(since=since, until=until)
    if ctx.json:
        ctx.emit(request_stats_json(totals))
        return 0
    for one in totals:
        ctx.out.print(one_line(_total(one)), soft_wrap=True)
    if not totals:
        ctx.out.print("Nothing was asked of a provider, or it is past its retention.")
    return 0


def _total(one: RequestTotals) -> str:
    took = (
        ""
        if one.mean_milliseconds is None
        else f", {one.mean_milliseconds:,.0f} ms (95 %: {one.p95_milliseconds:,.0f})"
    )
    failures = f", {one.failures:,} failed" if one.failures else ""
    written = f" + {one.output_tokens:,}" if one.output_tokens else ""
    cost = "" if one.cost is None else f", cost {one.cost:.4f}"
    return (
        f"{one.kind}  {one.provider}/{one.model}  {one.requests:,} requests{failures}, {one.input_tokens:,}{written} "
        f"tokens{took}{cost}"
    )


command(app, "list", remote=True)(_list)
command(app, "stats", remote=True)(_stats)
