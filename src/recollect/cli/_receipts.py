"""Receipts of what was removed for good: one list for documents and for conversations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from recollect.cli._session import Session
    from recollect.model.audit import AuditRecord

ReceiptLimit = Annotated[int, typer.Option(min=1, max=10_000, help="Receipts at most.")]
BeforeReceipt = Annotated[int | None, typer.Option(min=1, help="Only receipts before this one: the next page.")]


def show_receipts(
    session: Session,
    action: str,
    *,
    limit: int,
    before: int | None,
    describe: Callable[[AuditRecord], str],
    nothing: str,
) -> int:
    """Print the receipts of one kind of removal, newest first.

    Args:
        session: Where, and in which form.
        action: As the audit names it.
        limit: Receipts at most.
        before: Only receipts before this one; None: from the newest.
        describe: What was removed, in a few words.
        nothing: What to say where there are none.
    """
    with session.pipeline() as rag:
        records = rag.list_audit(action=action, limit=limit, before=before)
    if session.json:
        receipts = [
            {"receipt_id": one.audit_id, "erased_at": one.at.isoformat(), "erased_by": one.actor, **one.details}
            for one in records
        ]
        session.emit({"receipts": receipts})
        return 0
    for one in records:
        session.out.print(f"{one.audit_id}  {one.at:%Y-%m-%d %H:%M:%S}  {one.actor}  {describe(one)}", highlight=False)
    if not records:
        session.out.print(nothing)
    return 0
