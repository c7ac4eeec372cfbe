"""The audit: what was done, what was shown to whom, whether the chain holds, and all of it as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from recollect.model.audit import AuditVerification
from recollect.pipeline import View
from recollect.server.downloads import LinesResponse
from recollect.store.access_log import AccessBatch
from recollect.ui.routes.administration.asking import AUDIT, PAGE_SIZE, Cursor, shown
from recollect.ui.visit import Administering, page_router

router = page_router()

_Asked = Annotated[str, Query(max_length=500)]

#: What the audit records, for the list to choose from.
ACTIONS = (
    *("create_key", "rotate_key", "revoke_key", "log_in", "end_login", "end_logins"),
    *("erase", "erase_proof", "restore", "forget", "scrub", "reembed", "reembed_rollback", "access"),
)


@router.get(AUDIT.path)
async def audit(
    visit: Administering, action: _Asked = "", since: _Asked = "", until: _Asked = "", cursor: Cursor = None
) -> Response:
    """What was done, newest first."""
    page = await visit.run(
        lambda: visit.administration.audit.list(
            action=action or None, since=since or None, until=until or None, cursor=cursor or None, limit=PAGE_SIZE
        )
    )
    return shown(
        visit,
        AUDIT,
        "audit.html",
        entries=page,
        next_cursor=page.next_cursor,
        actions=ACTIONS,
        asked={"action": action, "since": since, "until": until},
    )


@router.get(f"{AUDIT.path}/accesses")
async def accesses(
    visit: Administering,
    actor: _Asked = "",
    document: _Asked = "",
    since: _Asked = "",
    until: _Asked = "",
    cursor: Cursor = None,
) -> Response:
    """What was asked and changed, and which documents were shown to whom, newest first."""
    number = int(document) if document.isdecimal() and 0 < len(document) < 19 else None
    page = await visit.run(
        lambda: visit.administration.audit.accesses(
            actor=actor or None,
            document=number,
            since=since or None,
            until=until or None,
            cursor=cursor or None,
            limit=PAGE_SIZE,
        )
    )
    return shown(
        visit,
        AUDIT,
        "accesses.html",
        accesses=page,
        next_cursor=page.next_cursor,
        asked={"actor": actor, "document": document, "since": since, "until": until},
    )


@router.get(f"{AUDIT.path}/check")
async def check(visit: Administering) -> Response:
    """Follow the chain, and hold the log of accesses against what the chain says of it."""
    chains, batches = await visit.run(_checked, visit.administration)
    return shown(
        visit,
        AUDIT,
        "audit_check.html",
        chains=chains.chains,
        checked=sum(batch.intact is not None for batch in batches),
        changed=[batch for batch in batches if batch.intact is False],
    )


@router.get(f"{AUDIT.path}/export")
async def export(visit: Administering, action: _Asked = "", since: _Asked = "", until: _Asked = "") -> Response:
    """As JSON Lines with its hashes, so that others can check it without the store."""
    headers = {"Content-Disposition": 'attachment; filename="audit.jsonl"'}
    return await visit.run(_exported, visit.administration, action, since, until, headers)


def _checked(view: View) -> tuple[AuditVerification, Sequence[AccessBatch]]:
    return view.audit.verify(), view.audit.verify_accesses()


def _exported(view: View, action: str, since: str, until: str, headers: Mapping[str, str]) -> Response:
    return LinesResponse(
        view.audit.export(action=action or None, since=since or None, until=until or None), headers=headers
    )
