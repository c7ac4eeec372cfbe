"""The tenants of a store: made, listed, suspended, limited, exported and erased."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from recollect.errors import ConflictError, UsageError
from recollect.ingest.records import to_line
from recollect.model import Scope
from recollect.model.arguments import checked
from recollect.model.page import Page, name_at
from recollect.model.tenant import (
    Isolation,
    PersonalDataPolicy,
    Sharing,
    Tenant,
    TenantErasure,
    TenantExport,
    TenantQuota,
)
from recollect.operations.declaring import implements
from recollect.operations.people import TenantOperations
from recollect.pipeline.collections import Collections
from recollect.pipeline.standpoint import Group
from recollect.store.catalogue import read_isolation
from recollect.store.collections import CollectionRepository
from recollect.store.export import ExportRepository
from recollect.store.tenants import TenantRowRepository

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.model.original import Original
    from recollect.store.store import Store
    from recollect.store.tenants import TenantDirectory


@implements(TenantOperations)
@checked
class Tenants(Group, TenantOperations):
    """The tenants of a store; see `recollect.View`."""

    def create(self, name: str, *, quota: TenantQuota | None = None) -> Tenant:
        """Make a tenant: somebody whose knowledge no other tenant sees.

        Args:
            name: Of it alone, and no number; at most 100 printable characters.
            quota: How much it may store; None: any amount.

        Raises:
            UsageError: The name or a quota is not valid.
            ConflictError: There is one of that name.
            IsolationError: The database would not keep it apart from the tenant that there is.
        """
        return self._with_shared(self._repository.create(name, quota=quota or TenantQuota()))

    @override
    def get(self, tenant: int | str) -> Tenant:
        return self._with_shared(self._repository.get(tenant))

    def change(self, tenant: int | str, decide: Callable[[Tenant], Tenant]) -> Tenant:
        """Change a tenant as it is: nobody changes it between the look and the change.

        Args:
            tenant: By number or name.
            decide: Given the tenant, gives it with another status, quota or policy; what it raises changes nothing.

        Raises:
            NotFoundError: There is none.
            UsageError: A quota is negative.
        """
        return self._with_shared(self._repository.change(tenant, decide))

    def suspend(self, tenant: int | str) -> Tenant:
        """From now on the tenant can neither be searched nor written to (`TenantSuspendedError`); it keeps what it has.

        What is under way goes on to its end.

        Raises:
            NotFoundError: There is none.
        """
        return self.change(tenant, lambda now: replace(now, status="suspended"))

    def resume(self, tenant: int | str) -> Tenant:
        """Take a suspension back.

        Raises:
            NotFoundError: There is no such tenant.
        """
        return self.change(tenant, lambda now: replace(now, status="active"))

    def set_quota(self, tenant: int | str, quota: TenantQuota) -> Tenant:
        """Say how much a tenant may store; what it has already stays, even where it is more.

        Writers that would go beyond it get a `QuotaExceededError`, however many of them write at the same time.

        Raises:
            NotFoundError: There is no such tenant.
            UsageError: A quota is negative.
        """
        return self.change(tenant, lambda now: replace(now, quota=quota))

    def set_pii(self, tenant: int | str, policy: PersonalDataPolicy | None) -> Tenant:
        """Say what becomes of personal data in the documents and conversations that a tenant stores from now on.

        What is stored already stays as it is; `Documents.reread` and the next ingest of a file apply the policy to it.

        Args:
            tenant: By number or name.
            policy: ``off``: nobody looks for it; ``tag``: documents have counts of it; ``redact``: it is taken out
                before anything is stored; ``refuse``: nothing that has any is stored (`PersonalDataError`). None: as
                configured (``[rag.privacy] pii``).

        Raises:
            NotFoundError: There is no such tenant.
        """
        return self.change(tenant, lambda now: replace(now, pii=policy))

    def export(self, tenant: int | str, folder: Path | str) -> TenantExport:
        """Write everything of a tenant into a new folder: documents with vectors, conversations, originals, every row.

        ``tenant.json`` in it says what is where.

        Raises:
            NotFoundError: There is no such tenant.
            ConflictError: There is something in the folder already.
            UsageError: The folder cannot be written.
        """
        found = self._repository.get(tenant)
        try:
            return export_tenant(self._at.store, found, Path(folder))
        except OSError as exc:
            raise UsageError(f"Cannot write the export to {str(folder)!r}: {exc.strerror or exc}.") from exc

    @override
    def share(self, tenant: int | str, collection: str, reader: int | str) -> Sharing:
        self._collections(tenant).share(collection, reader)
        return Sharing(tenant=str(tenant), collection=collection, reader=str(reader), shared=True)

    @override
    def unshare(self, tenant: int | str, collection: str, reader: int | str) -> Sharing:
        self._collections(tenant).unshare(collection, reader)
        return Sharing(tenant=str(tenant), collection=collection, reader=str(reader), shared=False)

    def _collections(self, tenant: int | str) -> Collections:
        return Collections(replace(self._at, tenant=tenant))

    @override
    def erase(self, tenant: int | str, *, reason: str | None = None) -> TenantErasure:
        receipt = self._repository.erase(tenant, actor=self._at.actor, reason=reason)
        self._at.assembly.searcher.forget()
        return receipt

    def isolation(self) -> Isolation:
        """Whether the database itself keeps tenants apart, or statements alone."""
        return read_isolation(self._at.store.database)

    @override
    def list(self, *, cursor: str | None = None, limit: int = 100) -> Page[Tenant]:
        found = self._repository.page(after=name_at(cursor) or "", limit=limit + 1)
        return Page.of(found, limit, lambda tenant: tenant.name)

    def _with_shared(self, tenant: Tenant) -> Tenant:
        return replace(tenant, shared_with_it=tuple(self._collections(tenant.tenant_id).shared()))

    @property
    def _repository(self) -> TenantDirectory:
        self._at.require_owner()
        return self._at.store.tenants


# A tenant in a folder: documents with their vectors, conversations, and every other row that is kept of it.


_MANIFEST = "tenant.json"


def export_tenant(store: Store, tenant: Tenant, folder: Path) -> TenantExport:
    """Write everything of a tenant into a new folder.

    ``collections/`` holds the current documents with chunks and vectors, in the form of ``recollect import``;
    ``conversations/`` the turns, in the form of ``recollect remember --file``; ``originals/`` the files that documents
    were read from, where they are kept; ``tables/`` every row of every table as
    it is stored, past versions and receipts included, but those that follow from others (`store.tenants.DERIVED`);
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
