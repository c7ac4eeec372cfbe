"""Where the administration begins: its parts, and what each is for."""

from __future__ import annotations

from starlette.responses import Response

from recollect.ui.navigation import ADMINISTRATION
from recollect.ui.page_route import page_router
from recollect.ui.routes.administration.asking import Administering, shown

router = page_router()


@router.get(ADMINISTRATION.path)
async def overview(visit: Administering) -> Response:
    """The parts."""
    return shown(visit, None, "overview.html")
