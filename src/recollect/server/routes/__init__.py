"""Routes, one file a resource."""

from recollect.server.routes import collections, retrieval

#: Everything under ``/v1``.
RESOURCES = (retrieval.router, collections.router)
