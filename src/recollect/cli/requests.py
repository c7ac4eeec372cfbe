"""``recollect requests``: what was asked of providers of models, what it took and what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from recollect.cli._bound import bind
from recollect.cli._terminal import one_line
from recollect.operations.people import RequestOperations

if TYPE_CHECKING:
    from recollect.cli._command_context import CommandContext
    from recollect.model.page import Page
    from recollect.model.requests import LoggedRequest, RequestTotals

app = typer.Typer(
    help="What was asked of providers of models, what it took and what it cost; never what it said.",
    no_args_is_help=True,
)


def _listed(ctx: CommandContext, requests: Page[LoggedRequest]) -> None:
    for one in requests:
        ctx.out.print(one_line(_line(one)), soft_wrap=True)
    if not requests:
        ctx.out.print("Nothing was asked of a provider, or it is past its retention.")


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


def _summed(ctx: CommandContext, totals: list[RequestTotals]) -> None:
    for one in totals:
        ctx.out.print(one_line(_total(one)), soft_wrap=True)
    if not totals:
        ctx.out.print("Nothing was asked of a provider, or it is past its retention.")


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


bind(
    app,
    "requests",
    RequestOperations,
    lambda view: view.audit,
    {"requests": _listed, "request_totals": _summed},
    names={"requests": "list", "request_totals": "stats"},
    tenant=lambda _: None,
)
