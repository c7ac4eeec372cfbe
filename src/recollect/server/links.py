"""Links of the OpenAPI document: what a reply tells is what the paths of other operations ask for.

A program that reads the document follows what it has made: from the collection to its documents, to their contents, to
their end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_METHODS = ("get", "post", "put", "patch", "delete")
_PARAMETER = re.compile(r"\{([^}]+)\}")

#: By an operation: where its reply, or its request, tells what paths call by these names.
TOLD: dict[str, Mapping[str, str]] = {
    "POST /v1/collections": {"name": "$response.body#/name", "vector_store_id": "$response.body#/name"},
    "GET /v1/collections": {"name": "$response.body#/collections/0/name"},
    "POST /v1/collections/{name}/documents": {
        "name": "$request.path.name",
        "document_id": "$response.body#/document_id",
        "vector_store_id": "$request.path.name",
        "file": "$response.body#/document_id",
    },
    "GET /v1/collections/{name}/documents": {"document_id": "$response.body#/documents/0/document_id"},
    "GET /v1/documents": {"document_id": "$response.body#/document_id"},
    "POST /v1/collections/{name}/spaces": {"name": "$request.path.name", "job_id": "$response.body#/job_id"},
    "POST /v1/collections/{name}/spaces/rollback": {"job_id": "$response.body#/job_id"},
    "POST /v1/collections/{name}/contexts": {"job_id": "$response.body#/job_id"},
    "POST /v1/sources/refresh": {"job_id": "$response.body#/job_id"},
    "POST /v1/collections/{name}/files": {"job_id": "$response.body#/jobs/0/job_id"},
    "POST /v1/collections/{name}/urls": {"job_id": "$response.body#/job_id"},
    "POST /v1/search": {"document_id": "$response.body#/results/0/document_id"},
    "GET /v1/jobs": {"job_id": "$response.body#/items/0/job_id"},
    "POST /v1/sessions": {"session": "$response.body#/session"},
    "POST /v1/sessions/{session}/turns": {"session": "$response.body#/session"},
    "POST /v1/chat": {"session": "$request.body#/session"},
    "POST /v1/ask": {"stream": "$response.header.Recollect-Stream"},
    "GET /v1/sessions": {"session": "$response.body#/sessions/0/session"},
    "GET /v1/facts": {"fact": "$response.body#/facts/0/fact"},
    "POST /v1/tenants": {"tenant": "$response.body#/name"},
    "GET /v1/tenants": {"tenant": "$response.body#/tenants/0/name"},
    "POST /v1/keys": {"key_id": "$response.body#/key/key_id"},
    "GET /v1/keys": {"key_id": "$response.body#/keys/0/key_id"},
    "GET /v1/logins": {"login_id": "$response.body#/items/0/login_id"},
    "POST /v1/vector_stores": {"vector_store_id": "$response.body#/id", "name": "$response.body#/name"},
    "GET /v1/vector_stores": {"vector_store_id": "$response.body#/data/0/id"},
    "GET /v1/vector_stores/{vector_store_id}/files": {
        "vector_store_id": "$request.path.vector_store_id",
        "file": "$response.body#/data/0/id",
    },
    "POST /v1/vector_stores/{vector_store_id}/file_batches": {
        "vector_store_id": "$request.path.vector_store_id",
        "batch": "$response.body#/id",
    },
    "GET /v1/files": {"file": "$response.body#/data/0/id"},
    "GET /v1/models": {"model": "$response.body#/data/0/id"},
}


def add_links(document: Mapping[str, Any]) -> None:
    """Have the document's replies say which operations go on with what they tell."""
    operations = dict(_operations(document))
    for source, told in TOLD.items():
        if source not in operations:
            continue
        links = {
            target["operationId"]: {
                "operationId": target["operationId"],
                "parameters": {name: told[name] for name in sorted(asked_for(name_of))},
            }
            for name_of, target in operations.items()
            if name_of != source and asked_for(name_of) and asked_for(name_of) <= told.keys()
        }
        responses = operations[source]["responses"]
        responses[next(status for status in responses if status.startswith("2"))]["links"] = links


def asked_for(operation: str) -> set[str]:
    """The parameters of an operation's path."""
    return set(_PARAMETER.findall(operation))


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if method in methods:
                yield f"{method.upper()} {path}", methods[method]
