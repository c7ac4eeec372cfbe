"""``/v1/stats``, ``/v1/cleanup`` and ``/v1/requests``: what the store holds, and what providers were asked."""

from __future__ import annotations

from fastapi import APIRouter

from recollect.operations.audit import RequestOperations
from recollect.operations.maintenance import MaintenanceOperations
from recollect.server.bound import bind

router = APIRouter(tags=["operation"])
bind(router, MaintenanceOperations, lambda view: view.maintenance)
bind(router, RequestOperations, lambda view: view.audit)
