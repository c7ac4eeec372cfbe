"""Whether the server lives, and whether it can do its work: for whoever supervises it, without a credential."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from typing_extensions import TypedDict

from recollect.server.dependencies import Asking
from recollect.server.problems import documented

router = APIRouter(tags=["health"])


class Health(TypedDict):
    """That it is well."""

    status: Literal["ok"]


@router.get("/healthz", summary="Whether the process answers")
async def healthz() -> Health:
    """Says nothing of the database: a server that waits for its database is not helped by being started anew."""
    return {"status": "ok"}


@router.get("/readyz", summary="Whether requests can be answered", responses=documented(503))
async def readyz(service: Asking) -> Health:
    """Asks the database for one row."""
    await run_in_threadpool(service.rag.store.database.ping)
    return {"status": "ok"}
