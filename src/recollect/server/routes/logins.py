"""``/v1/logins``: who is logged in with a browser."""

from __future__ import annotations

from fastapi import APIRouter

from recollect.operations.logins import LoginOperations
from recollect.server.bound import bind

router = APIRouter(tags=["people and rights"])
bind(router, LoginOperations, lambda view: view.logins)
