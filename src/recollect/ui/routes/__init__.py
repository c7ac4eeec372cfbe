"""The routes of the pages, one module an area."""

from recollect.ui.routes import (
    administration,
    bench,
    chat,
    dashboard,
    document_access,
    document_changes,
    document_source,
    documents,
    home,
    library,
    library_adding,
    library_documents,
    library_sources,
    widget,
)

AREA_ROUTERS = (
    home.router,
    chat.router,
    library.router,
    library_documents.router,
    library_adding.router,
    library_sources.router,
    documents.router,
    document_source.router,
    document_access.router,
    document_changes.router,
    bench.router,
    dashboard.router,
    administration.router,
    widget.router,
)
