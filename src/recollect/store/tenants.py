"""The tenants of a store: made, listed, suspended, limited, exported, erased, and what they let one another read."""

from __future__ import annotations

import graphlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, LiteralString

from psycopg import sql
from psycopg.rows import TupleRow

from recollect.errors import ConflictError, NotFoundError, StoreError, UsageError
from recollect.model import DEFAULT_TENANT_ID, Scope
from recollect.model.arguments import whole_number
from recollect.model.original import Original
from recollect.model.tenant import (
    PersonalDataPolicy,
    SharedCollection,
    Tenant,
    TenantErasure,
    TenantIdentity,
    TenantQuota,
)
from recollect.store.catalogue import require_isolation
from recollect.store.database import Connection, Repository, rows
from recollect.store.files import stored_pieces
from recollect.store.indexes import drop_indexes
from recollect.store.logs import begin_anew, record
from recollect.store.sql import queries

_SQL = queries("tenants")


MAX_NAME_LENGTH = 100


MAX_QUOTA = 2**62


# An erasure waits so long for what is under way when its tenant is suspended.
_WAIT_SECONDS = 60.0


_WAIT_STEP_SECONDS = 0.05


_REMAINS = (
    "The database's files and its write-ahead log keep the bytes of removed rows, which no query reads, until they are "
    "written over. Neither VACUUM nor a checkpoint does that; `recollect db scrub` does.",
    "Backups and exports made before hold the tenant until they are deleted: recollect knows of none of them.",
)


class TenantDirectory(Repository):
    """The tenants of a store, for those who look after it: it works as the schema's owner, whom no tenant binds."""

    def create(self, name: str, *, quota: TenantQuota) -> Tenant:
        """Make a tenant.

        Raises:
            UsageError: The name is empty, too long, a number, or holds control characters; or a quota is negative.
            ConflictError: There is one of that name.
            IsolationError: The database would not keep it apart from the tenant that there is.
        """
        _require_name(name)
        require_isolation(self._database)
        params = {"name": name, **_quota_params(quota)}
        with self._database.autocommit() as connection:
            while not rows(connection, _SQL["create"], params):
                if rows(connection, _SQL["named"], params)[0][0]:
                    raise ConflictError(f"There is a tenant {name!r} already. `recollect tenants list` shows them.")
        return self.get(name)

    def page(self, *, after: str = "", limit: int = 100) -> list[Tenant]:
        """Tenants by name, without the bytes of their texts; ``after`` is the last name of the page before."""
        with self._database.autocommit() as connection:
            return [_tenant(row) for row in rows(connection, _SQL["page"], {"after": after, "limit": limit})]

    def get(self, tenant: int | str) -> Tenant:
        """One tenant, by number or name.

        Raises:
            NotFoundError: There is none.
        """
        with self._database.autocommit() as connection:
            found = rows(connection, _SQL["one"], _key(tenant))
        if not found:
            raise _missing(tenant)
        return _tenant(found[0])

    def identity(self, tenant: int | str) -> TenantIdentity:
        """The number and the name of a tenant, of which one is given.

        Raises:
            NotFoundError: There is none.
        """
        with self._database.autocommit() as connection:
            found = rows(connection, _SQL["identity"], _key(tenant))
        if not found:
            raise _missing(tenant)
        return TenantIdentity(*found[0])

    def number(self, tenant: int | str) -> int:
        """The number of a tenant of a number or a name.

        Raises:
            NotFoundError: There is none.
        """
        return self.identity(tenant).tenant_id

    def change(self, tenant: int | str, decide: Callable[[Tenant], Tenant]) -> Tenant:
        """Change a tenant as it is: nobody changes it between the look and the change.

        Args:
            tenant: By number or name.
            decide: Given the tenant, gives it with another status, quota or policy; what it raises changes nothing.

        Raises:
            NotFoundError: There is none.
            UsageError: A quota is negative.
        """
        with self._database.autocommit() as connection, connection.transaction():
            connection.execute(_SQL["hold"], _key(tenant))
            found = rows(connection, _SQL["one"], _key(tenant))
            if not found:
                raise _missing(tenant)
            now = _tenant(found[0])
            wanted, key = decide(now), {"tenant_id": now.tenant_id}
            if wanted.quota != now.quota:
                connection.execute(_SQL["set_quota"], key | _quota_params(wanted.quota))
            if wanted.pii != now.pii:
                connection.execute(_SQL["set_pii"], key | {"pii": wanted.pii})
            if wanted.status != now.status:
                connection.execute(_SQL["set_status"], key | {"status": wanted.status})
        return self.get(now.tenant_id)

    def privacy(self, scope: Scope) -> tuple[PersonalDataPolicy | None, bytes]:
        """What becomes of personal data in what the scope's tenant stores, and the salt of its names.

        Raises:
            NotFoundError: There is no such tenant.
        """
        found = self._database.read(scope, _SQL["privacy"], {"tenant_id": scope.tenant_id})
        if not found:
            raise NotFoundError(f"There is no tenant {scope.tenant_id}.")
        return found[0][0], bytes(found[0][1])

    def erase(self, tenant: int | str, *, actor: str, reason: str | None = None) -> TenantErasure:
        """Remove a tenant with every row of it in every table, and its vector indexes.

        The tables are those of the catalogue that have a tenant, so that none is forgotten. The tenant is suspended
        first; where the erasure is interrupted, it stays so, nothing is gone, and erasing it again does the work. What
        is left is the receipt in the audit and the head of its chain, under a number that no tenant has ever again.

        Args:
            tenant: By number or name.
            actor: Who asks, for the receipt.
            reason: Why, for the receipt; None: nothing is said.

        Raises:
            NotFoundError: There is no such tenant.
            UsageError: It is the default tenant, which a store always has.
            StoreError: Something of it was still under way after a minute.
        """
        found = self.get(tenant)
        if found.tenant_id == DEFAULT_TENANT_ID:
            raise UsageError(
                f"The tenant {found.name!r} is the store's own and stays. Its collections can be deleted one by one: "
                "recollect collections delete NAME"
            )
        self.change(found.tenant_id, lambda now: replace(now, status="suspended"))
        scope = Scope(tenant_id=found.tenant_id)
        key = {"tenant_id": found.tenant_id}
        with self._database.autocommit() as connection, connection.transaction():
            _wait_until_alone(connection, found)
            collection_ids = [row[0] for row in rows(connection, _SQL["collection_ids"], key)]
            # First: what the deletion of versions notes there goes with their collections.
            tables = sorted(tables_in_order(connection), key=lambda table: table != "collection_changes")
            counts = {table: _delete(connection, table, found.tenant_id) for table in tables if table != "audit_heads"}
            details = {"name": found.name, "reason": reason, "rows": counts}
            begin_anew(connection, scope)
            receipt_id, erased_at = record(connection, scope, action="erase_tenant", actor=actor, details=details)
        # Outside: within the transaction it would keep every reader of every collection waiting.
        indexes = sum(drop_indexes(self._database, scope, collection_id) for collection_id in collection_ids)
        return TenantErasure(
            receipt_id=receipt_id,
            tenant_id=found.tenant_id,
            name=found.name,
            erased_at=erased_at,
            erased_by=actor,
            reason=reason,
            rows=counts,
            indexes=indexes,
            remains=_REMAINS,
        )


class ShareRepository(Repository):
    """Which collections tenants let one another read."""

    def share(self, scope: Scope, name: str, *, reader_id: int) -> bool:
        """Let another tenant read a collection of the scope's tenant; returns whether it could not before.

        Raises:
            UsageError: The reader is the tenant itself.
        """
        if reader_id == scope.tenant_id:
            raise UsageError("A tenant reads its own collections anyway: name another one.")
        return self._change(scope, _SQL["share"], name, reader_id)

    def unshare(self, scope: Scope, name: str, *, reader_id: int) -> bool:
        """Keep another tenant from a collection again; returns whether it could read it."""
        return self._change(scope, _SQL["unshare"], name, reader_id)

    def shared_with(self, scope: Scope) -> list[SharedCollection]:
        """What other tenants let the scope's tenant read, by tenant and name."""
        found = self._database.read(scope, _SQL["shared_with"], {"tenant_id": scope.tenant_id})
        return [
            SharedCollection(tenant_id=row[0], tenant_name=row[1], collection=row[2], active=row[3]) for row in found
        ]

    def readers(self, scope: Scope, collection_id: int) -> list[str]:
        """The names of the tenants that may read a collection of the scope's tenant."""
        params = {"tenant_id": scope.tenant_id, "collection_id": collection_id}
        return [row[0] for row in self._database.read(scope, _SQL["readers"], params)]

    def _change(self, scope: Scope, statement: LiteralString, name: str, reader_id: int) -> bool:
        params = {"tenant_id": scope.tenant_id, "name": name, "reader_id": reader_id}
        return bool(self._database.run(scope, statement, params))


def tables_in_order(connection: Connection) -> list[str]:
    """Every table with rows of tenants, each before those that it refers to, so that nothing is left hanging."""
    found: dict[str, Sequence[str]] = {row[0]: row[1] for row in rows(connection, _SQL["tables"])}
    # What refers comes first: the order of what is depended on, backwards.
    order = list(graphlib.TopologicalSorter(found).static_order())
    return [name for name in reversed(order) if name in found]


def _wait_until_alone(connection: Connection, tenant: Tenant) -> None:
    # Asked for again and again rather than waited for: behind a lock that waits, the tenant's own would queue.
    deadline = time.monotonic() + _WAIT_SECONDS
    while not rows(connection, _SQL["alone"], {"tenant_id": tenant.tenant_id})[0][0]:
        if time.monotonic() > deadline:
            raise StoreError(
                f"Something of the tenant {tenant.name!r} is still under way after {_WAIT_SECONDS:.0f} s. It is "
                "suspended, so nothing new begins: erase it again when that has ended."
            )
        time.sleep(_WAIT_STEP_SECONDS)


def _delete(connection: Connection, table: str, tenant_id: int) -> int:
    statement = sql.SQL("DELETE FROM {} WHERE tenant_id = %s").format(sql.Identifier(table))
    return connection.execute(statement, (tenant_id,)).rowcount


def _require_name(name: str) -> None:
    if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable() or name.strip() != name:
        raise UsageError(
            f"A tenant's name is 1 to {MAX_NAME_LENGTH} printable characters without blanks around them, not "
            f"{name[:50]!r}. Choose another."
        )
    if name.isdecimal():
        raise UsageError(f"{name!r} is a number, and tenants have numbers already: choose a name that is none.")


def _quota_params(quota: TenantQuota) -> dict[str, int | None]:
    values: dict[str, int | None] = asdict(quota)
    for name, value in values.items():
        if value is not None and not 0 <= value <= MAX_QUOTA:
            raise UsageError(f"{name} must be from 0 to {MAX_QUOTA}, or none for no limit; not {value!r}.")
    return values


def _key(tenant: int | str) -> dict[str, int | str | None]:
    """A name that is a number is the tenant of that number: no name is one."""
    number = tenant if isinstance(tenant, int) else whole_number(tenant) if tenant.isascii() else None
    within = number is not None and abs(number) < 2**31
    return {"tenant_id": number if within else None, "name": tenant if number is None else None}


def _missing(tenant: int | str) -> NotFoundError:
    return NotFoundError(
        f"There is no tenant {tenant!r}. `recollect tenants list` shows them, `recollect tenants create` makes one."
    )


def _tenant(row: TupleRow) -> Tenant:
    tenant_id, name, status, created_at, documents, chunks, of_bytes, pii, *used = row
    return Tenant(
        tenant_id=tenant_id,
        name=name,
        status=status,
        created_at=created_at,
        quota=TenantQuota(max_documents=documents, max_chunks=chunks, max_bytes=of_bytes),
        documents=used[0],
        chunks=used[1],
        pii=pii,
        bytes=used[2] if len(used) > 2 else None,
    )


# What a tenant has, table by table, as plain lines; the tables are found in the catalogue.


_ORIGINALS = queries("originals")


#: Tables whose rows follow from others: they are made anew wherever documents and turns are stored.
DERIVED = frozenset(
    {
        "chunk_lexical",
        "chunk_token_vectors",
        "chunk_vectors",
        "collection_changes",
        "embedding_cache",
        "episode_lexical",
        "session_terms",
        "term_stats",
        "version_bands",
    }
)


#: Tables that are exported as files, not as lines.
IN_FILES = frozenset({"original_pieces"})


#: Columns that are not exported: credentials of jobs, with contents that are on their way, and hashes of keys.
WITHHELD = ("withheld", "secret_hash", "previous_hash")


_PAGE_ROWS = 500


class TenantRowRepository(Repository):
    """Reads everything of a tenant.

    Args:
        database: The store's connections; those of a caretaker read what a suspended tenant has too.
    """

    def tables(self, scope: Scope) -> list[str]:
        """Every table that may hold something of the tenant, but those that follow from others and `IN_FILES`."""
        with self._database.transaction(scope) as connection:
            return sorted(set(tables_in_order(connection)) - DERIVED - IN_FILES)

    def lines(self, scope: Scope, table: str) -> Iterator[str]:
        """The tenant's rows of a table, each as a JSON object, all of one moment, in bounded memory."""
        statement = sql.SQL("SELECT (to_jsonb(t) - %s::text[])::text FROM {} t WHERE tenant_id = %s").format(
            sql.Identifier(table)
        )
        with self._database.transaction(scope) as connection, connection.cursor(name="export") as cursor:
            cursor.itersize = _PAGE_ROWS
            cursor.execute(statement, (list(WITHHELD), scope.tenant_id))
            for row in cursor:
                yield row[0]

    def conversations(self, scope: Scope) -> list[tuple[int, str, str | None]]:
        """The numbers, names and users of the tenant's conversations, in order."""
        return [(row[0], row[1], row[2]) for row in self._found(scope, _SQL["sessions"], {})]

    def turns(self, scope: Scope, session_id: int) -> Iterator[str]:
        """The turns of a conversation, in order, as lines that `recollect.memory.turn_files.read_turns` reads."""
        for external_id, role, content, at, metadata in self._found(scope, _SQL["turns"], {"session_id": session_id}):
            turn = {"id": external_id, "role": role, "content": content, "at": at and at.isoformat()}
            yield json.dumps({**turn, "metadata": metadata}, ensure_ascii=False)

    def originals(self, scope: Scope) -> Iterator[Original]:
        """The kept originals of the tenant's documents, each once, by the name that it has first."""
        after = b""
        while page := self._found(scope, _ORIGINALS["named_page"], {"after": after, "limit": _PAGE_ROWS}):
            for file_hash, byte_count, name, mime_type in page:
                opened = stored_pieces(self._database, scope, bytes(file_hash), byte_count)
                yield Original(
                    name=name, mime_type=mime_type, byte_count=byte_count, file_hash=bytes(file_hash), opened=opened
                )
            after = page[-1][0]

    def _found(self, scope: Scope, statement: LiteralString, params: dict[str, Any]) -> list[TupleRow]:
        return self._database.run(scope, statement, {"tenant_id": scope.tenant_id, **params})
