"""Receipts of what was removed for good: one list for documents and for conversations."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.model.page import MOST_OF_A_PAGE, cursor_at, every

if TYPE_CHECKING:
    from recollect.cli._command_context import CommandContext
    from recollect.model.audit import AuditRecord

ReceiptLimit = Annotated[int, typer.Option(min=1, max=10_000, help="Receipts at most.")]
BeforeReceipt = Annotated[int | None, typer.Option(min=1, help="Only receipts before this one: the next page.")]


def show_receipts(
    ctx: CommandContext,
    action: str,
    *,
    limit: int,
    before: int | None,
    describe: Callable[[AuditRecord], str],
    nothing: str,
) -> int:
    """Print the receipts of one kind of removal, newest first.

    Args:
        ctx: Where, and in which form.
        action: As the audit names it.
        limit: Receipts at most.
        before: Only receipts before this one; None: from the newest.
        describe: What was removed, in a few words.
        nothing: What to say where there are none.
    """
    with ctx.view() as view:
        cursor = None if before is None else cursor_at(before)
        records = list(
            islice(every(view.audit.list, action=action, cursor=cursor, limit=min(limit, MOST_OF_A_PAGE)), limit)
        )
    if ctx.json:
        receipts = [
            {"receipt_id": one.audit_id, "erased_at": one.at.isoformat(), "erased_by": one.actor, **one.details}
            for one in records
        ]
        ctx.emit({"receipts": receipts})
        return 0
    for one in records:
        ctx.out.print(f"{one.audit_id}  {one.at:%Y-%m-%d %H:%M:%S}  {one.actor}  {describe(one)}", highlight=False)
    if not records:
        ctx.out.print(nothing)
    return 0
