"""Routes, one file a resource."""

from recollect.server.routes import (
    audit,
    chat,
    collections,
    contents,
    documents,
    feedback,
    grants,
    jobs,
    keys,
    logins,
    memory,
    retrieval,
    sessions,
    status,
    streams,
    tenants,
    uploads,
)

#: Everything under ``/v1``.
RESOURCES = (
    retrieval.router,
    collections.router,
    documents.router,
    uploads.router,
    contents.router,
    sessions.router,
    chat.router,
    streams.router,
    memory.router,
    feedback.router,
    jobs.router,
    tenants.router,
    grants.router,
    keys.router,
    logins.router,
    audit.router,
    status.router,
)
