"""A tenant in a folder: documents with their vectors, conversations, and every other row that is kept of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import ConflictError
from recollect.ingest.records import to_line
from recollect.model import Scope
from recollect.model.tenant import TenantExport

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.model.original import Original
    from recollect.model.tenant import Tenant
    from recollect.store.store import Store

_MANIFEST = "tenant.json"


def export_tenant(store: Store, tenant: Tenant, folder: Path) -> TenantExport:
    """Write everything of a tenant into a new folder.

    ``collections/`` holds the current documents with chunks and vectors, in the form of ``recollect import``;
    ``conversations/`` the turns, in the form of ``recollect remember --file``; ``originals/`` the files that documents
    were read from, where they are kept; ``tables/`` every row of every table as
    it is stored, past versions and receipts included, but those that follow from others (`store.tenant_rows.DERIVED`);
    ``tenant.json`` says what is where. Each file is of one moment, or of a document's; all of them are where the tenant
    was suspended before. A suspended tenant can be exported.

    Raises:
        ConflictError: There is something in the folder already.
        OSError: The folder or a file cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConflictError(f"{str(folder)!r} is not an empty folder: name a new one.")
    # No-one else of this machine: these are a tenant's documents.
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    from recollect.store.collections import CollectionRepository
    from recollect.store.export import ExportRepository
    from recollect.store.tenant_rows import TenantRowRepository

    scope, database = Scope(tenant_id=tenant.tenant_id), store.caretaking
    exports, stored = ExportRepository(database), TenantRowRepository(database)
    collections = CollectionRepository(database).list_all(scope)
    files: dict[str, str] = {}
    documents: dict[str, int] = {}
    for collection in collections:
        files[collection.name] = _file("collections", len(documents), collection.name)
        documents[collection.name] = _write(
            folder / files[collection.name], map(to_line, exports.documents(scope, collection))
        )
    turns: dict[str, int] = {}
    spoken: list[dict[str, str | None]] = []
    for session_id, name, user in stored.conversations(scope):
        file = _file("conversations", len(spoken), name)
        spoken.append({"session": name, "user": user, "file": file})
        turns[name] = turns.get(name, 0) + _write(folder / file, stored.turns(scope, session_id))
    originals = [
        {"file": _kept(folder, number, original), "name": original.name, "sha256": original.file_hash.hex()}
        for number, original in enumerate(stored.originals(scope))
    ]
    counts = {
        table: _write(folder / "tables" / f"{table}.jsonl", stored.lines(scope, table))
        for table in stored.tables(scope)
    }
    manifest = _manifest(tenant, collections, files, spoken, originals, sorted(counts))
    (folder / _MANIFEST).write_text(manifest + "\n", encoding="utf-8")
    return TenantExport(
        tenant_id=tenant.tenant_id, name=tenant.name, folder=folder, documents=documents, turns=turns, rows=counts
    )


def _file(kind: str, number: int, name: str) -> str:
    """Names are anything printable; a file's begins with its number and holds what no file system minds."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:40]
    return f"{kind}/{number + 1:04}{'-' if words else ''}{words}.jsonl"


def _kept(folder: Path, number: int, original: Original) -> str:
    """Write an original, under a name that no file system minds."""
    words = re.sub(r"[^A-Za-z0-9.]+", "-", original.name).strip("-.")[-60:]
    file = f"originals/{number + 1:04}{'-' if words else ''}{words}"
    path = folder / file
    path.parent.mkdir(mode=0o700, exist_ok=True)
    original.save(path)
    return file


def _write(path: Path, lines: Iterable[str]) -> int:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for count, line in enumerate(lines, start=1):  # noqa: B007 - the last number is how many there are
            file.write(f"{line}\n")
    return count


def _manifest(
    tenant: Tenant,
    collections: Sequence[Collection],
    files: dict[str, str],
    spoken: list[dict[str, str | None]],
    originals: list[dict[str, str]],
    tables: list[str],
) -> str:
    manifest = {
        "tenant": {
            "tenant_id": tenant.tenant_id,
            "name": tenant.name,
            "status": tenant.status,
            "created_at": tenant.created_at.isoformat(),
            **asdict(tenant.quota),
        },
        "exported_at": datetime.now(UTC).isoformat(),
        "collections": [
            {
                "name": collection.name,
                "description": collection.description,
                "embedding_model": collection.embedding_model,
                "embedding_dimension": collection.embedding_dimension,
                "language": collection.language,
                "chunking": dict(collection.chunking),
                "file": files[collection.name],
            }
            for collection in collections
        ],
        "conversations": spoken,
        "originals": originals,
        "tables": [{"table": name, "file": f"tables/{name}.jsonl"} for name in tables],
    }
    return json.dumps(manifest, ensure_ascii=False, indent=2)
