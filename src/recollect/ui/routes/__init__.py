"""The routes of the pages, one module an area."""

from recollect.ui.routes import (
    administration,
    bench,
    chat,
    dashboard,
    documents,
    home,
    library,
    library_sources,
    widget,
)

AREA_ROUTERS = (
    home.router,
    chat.router,
    library.router,
    library_sources.router,
    documents.router,
    bench.router,
    dashboard.router,
    administration.router,
    widget.router,
)
