"""Where the administration begins: its parts put together, and the page that says what each is for."""

from __future__ import annotations

from starlette.responses import Response

from recollect.ui.page_route import page_router
from recollect.ui.routes.administration import audit, grants, models, people, tenants
from recollect.ui.routes.administration.asking import Administering, shown
from recollect.ui.visit import ADMINISTRATION

router = page_router()


@router.get(ADMINISTRATION.path)
async def overview(visit: Administering) -> Response:
    """The parts."""
    return shown(visit, None, "overview.html")


for _one in (people, grants, audit, models, tenants):
    router.include_router(_one.router)
