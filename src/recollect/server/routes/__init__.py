"""Routes, one file a subject, each with the bodies of its requests."""

from recollect.server.routes import collections, conversations, documents, operation, people, retrieval, uploads

#: Everything under ``/v1``.
RESOURCES = (
    retrieval.router,
    collections.router,
    documents.router,
    uploads.router,
    conversations.router,
    operation.jobs,
    people.router,
    operation.router,
)
