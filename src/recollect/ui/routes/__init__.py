"""The routes of the pages, one module an area."""

from recollect.ui.routes import bench, chat, dashboard, documents, library, library_sources, widget
from recollect.ui.routes.administration import asking, audit, models, people, tenants

AREA_ROUTERS = (
    chat.router,
    library.router,
    library_sources.router,
    documents.router,
    bench.router,
    dashboard.router,
    asking.router,
    people.router,
    audit.router,
    models.router,
    tenants.router,
    widget.router,
)
