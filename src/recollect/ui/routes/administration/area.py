"""The parts of the area put together."""

from recollect.ui.page_route import page_router
from recollect.ui.routes.administration import (
    audit,
    grants,
    keys,
    logins,
    models,
    overview,
    people,
    policies,
    tenants,
)

router = page_router()
for _one in (overview, keys, people, logins, grants, policies, audit, models, tenants):
    router.include_router(_one.router)
