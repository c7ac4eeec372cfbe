"""Routes, one file a resource."""

from recollect.server.routes import (
    audit,
    collections,
    feedback,
    grants,
    memory,
    retrieval,
    sessions,
    status,
    tenants,
)

#: Everything under ``/v1``.
RESOURCES = (
    retrieval.router,
    collections.router,
    sessions.router,
    memory.router,
    feedback.router,
    tenants.router,
    grants.router,
    audit.router,
    status.router,
)
