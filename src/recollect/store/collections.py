"""Collections: what they are, and the counters and statistics that change with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, LiteralString

from psycopg.types.json import Jsonb

from recollect.errors import ConflictError, NotFoundError, UsageError
from recollect.model import Scope
from recollect.model.arguments import did_you_mean
from recollect.model.collection import Collection, CollectionNotes
from recollect.store.database import Database, Repository, rows
from recollect.store.embedding_cache import drop_unowned
from recollect.store.indexes import drop_indexes
from recollect.store.rights import RightsResolver, not_a_writer
from recollect.store.sql import queries

if TYPE_CHECKING:
    from collections.abc import Sequence


_SQL = queries("collections")

MAX_NAME_LENGTH = 200

# The last one is the caller's, not the collection's.
_STORED = tuple(Collection.__dataclass_fields__)[:-1]


_LOOK_UP: LiteralString = f"{_SQL['with_text']} ({_SQL['get']}) p"


def _collection(row: Sequence[Any]) -> Collection:
    stored = dict(zip(_STORED, row, strict=True))
    return Collection(**{**stored, "languages": tuple(stored["languages"])})


class CollectionRepository:
    """Reads and writes collections.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rights = RightsResolver(database)

    def get(self, scope: Scope, name: str) -> Collection:
        """One collection, as the scope's principal sees it.

        Raises:
            NotFoundError: The scope's tenant has no collection of that name, or none that the principal may read.
        """
        found = self.find(scope, name)
        if found is None:
            raise self.missing(scope, name)
        return found

    def missing(self, scope: Scope, name: str) -> NotFoundError:
        """The error for a collection that does not exist for the scope's principal."""
        return NotFoundError(
            f"There is no collection {name[:100]!r}.{self.like(scope, name)} `recollect collections list` lists "
            "them; `recollect ingest` and `recollect collections create` make new ones."
        )

    def like(self, scope: Scope, name: str) -> str:
        """Return a question that names a similar collection that the scope's principal sees; empty: there is none."""
        return did_you_mean(name, (one.name for one in self.list_all(scope)))

    def find(self, scope: Scope, name: str) -> Collection | None:
        """One collection, as the scope's principal sees it; None where it does not exist for them."""
        found = self.look_up(scope, name)
        return None if found is None else found[0]

    def look_up(self, scope: Scope, name: str) -> tuple[Collection, str] | None:
        """As `find`, with the row as text: as long as it is the same, so is the collection."""
        params = {"tenant_id": scope.tenant_id, "name": name, "session": scope.session}
        found = self._database.read(scope, _LOOK_UP, params)
        if not found:
            return None
        *stored, record = found[0]
        collection = self._seen(scope, _collection(stored))
        return None if collection is None else (collection, record)

    def list_all(self, scope: Scope, *, hidden: bool = False) -> list[Collection]:
        """Every collection of the tenant that exists for the scope's principal, by name; ``hidden``: sessions' too."""
        return [as_shown(collection) for collection in self._listed(scope, hidden=hidden)]

    def page(self, scope: Scope, *, after: str, limit: int) -> list[Collection]:
        """As `list_all`, so many at most behind a name."""
        found: list[Collection] = []
        while len(found) < limit:
            wanted = limit - len(found)
            names, seen = self._behind(scope, after, wanted)
            found += map(as_shown, seen)
            if len(names) < wanted:
                break
            # Those that do not exist for the principal leave room for others.
            after = names[-1]
        return found

    def searchable(self, scope: Scope) -> list[Collection]:
        """Every collection of the tenant that exists for the scope's principal, by name, as `get` gives each.

        Raises:
            TenantSuspendedError: The tenant is suspended.
        """
        return self._listed(scope, active=True)

    def _listed(self, scope: Scope, *, hidden: bool = False, active: bool = False) -> list[Collection]:
        _, seen = self._behind(scope, "", None, hidden=hidden, active=active)
        return seen

    def _behind(
        self, scope: Scope, after: str, limit: int | None, *, hidden: bool = False, active: bool = False
    ) -> tuple[list[str], list[Collection]]:
        """The names of collections behind one, and of these the collections that exist for the scope's principal."""
        params = {"tenant_id": scope.tenant_id, "hidden": hidden, "active": active, "after": after, "limit": limit}
        found = [_collection(row) for row in self._database.run(scope, _SQL["list_all"], params)]
        seen = (self._seen(scope, one) for one in found)
        return [one.name for one in found], [one for one in seen if one is not None]

    def require_writer(self, scope: Scope, collection: Collection) -> None:
        """Refuse a principal who may not change what is in a collection.

        Raises:
            PermissionDeniedError: The principal is neither an owner nor a writer of it.
        """
        if not self._rights.rights(scope, collection.collection_id, collection.revision_id).writes:
            raise not_a_writer(collection.name)

    def _seen(self, scope: Scope, collection: Collection) -> Collection | None:
        if scope.principal is None:
            return collection
        rights = self._rights.rights(scope, collection.collection_id, collection.revision_id)
        if not rights.reads:
            return None
        return collection if rights.everything else self._confined(scope, collection, rights.access_ids)

    def _confined(self, scope: Scope, collection: Collection, access_ids: tuple[int, ...]) -> Collection:
        documents, chunks = self._rights.count(scope, collection.collection_id, collection.revision_id, access_ids)
        return replace(collection, access_ids=access_ids, document_count=documents, chunk_count=chunks)

    def changed_rights(self, scope: Scope, collection: Collection) -> Collection | None:
        """What a principal has to search again, because what they may read of it changed while they searched.

        Args:
            scope: With a principal.
            collection: As they saw it before the search.

        Returns:
            None: all that the search could find was theirs to read. Otherwise the collection as it is to them now,
            confined to lists that they may read, so that nothing that is stored meanwhile comes between.

        Raises:
            NotFoundError: It does not exist for them any more.
        """
        if self._rights.revision(scope, collection.collection_id) == collection.revision:
            return None
        now = self.get(scope, collection.name)
        rights = self._rights.rights(scope, now.collection_id, now.revision_id)
        same = now.collection_id == collection.collection_id and collection.access_ids is not None
        if same and set(collection.access_ids or ()) <= set(rights.access_ids):
            return None
        return self._confined(scope, now, rights.access_ids)

    def create(
        self,
        scope: Scope,
        name: str,
        *,
        embedding_model: str,
        embedding_dimension: int,
        language: str = "auto",
        chunking: Mapping[str, Any] | None = None,
        description: str = "",
        token_vectors: bool = False,
        embedding_spec: Mapping[str, Any] | None = None,
    ) -> Collection:
        """Make a new, empty collection.

        Raises:
            ConflictError: The tenant has one of that name.
            UsageError: The name is empty, too long or holds control characters.
            NotFoundError: There is no such tenant.
        """
        _require_name(name)
        with self._database.transaction(scope) as connection:
            params: dict[str, Any] = {
                "tenant_id": scope.tenant_id,
                "name": name,
                "description": description,
                "embedding_model": embedding_model,
                "embedding_dimension": embedding_dimension,
                "language": language,
                "chunking": Jsonb(dict(chunking or {})),
                "token_vectors": token_vectors,
                "embedding_spec": None if embedding_spec is None else Jsonb(dict(embedding_spec)),
            }
            if not rows(connection, _SQL["tenant"], params):
                raise NotFoundError(f"There is no tenant {scope.tenant_id}.")
            made = rows(connection, _SQL["create"], params)
            if not made:
                raise ConflictError(f"There is a collection {name!r} already.")
            connection.execute(_SQL["create_state"], {"tenant_id": scope.tenant_id, "collection_id": made[0][0]})
        return self.get(scope, name)

    def keep_similarities(self, scope: Scope, model: str, similarities: tuple[float, float]) -> None:
        """Keep where a model's similarities lie with the tenant's collections of that model; waits for nobody.

        Args:
            scope: The tenant.
            model: The model, as embedders name it.
            similarities: The mean similarity of unrelated texts, and of questions and their answers.
        """
        params = {"tenant_id": scope.tenant_id, "model": model, "similarities": Jsonb(similarities)}
        self._database.run(scope, _SQL["keep_similarities"], params)

    def delete(self, scope: Scope, name: str) -> None:
        """Remove a collection with every document, version and chunk in it, physically.

        Cached embeddings go with it, unless another collection has the same texts.

        Raises:
            NotFoundError: The tenant has no collection of that name.
        """
        with self._database.transaction(scope) as connection:
            gone = rows(connection, _SQL["delete"], {"tenant_id": scope.tenant_id, "name": name})
            if not gone:
                raise NotFoundError(f"There is no collection {name!r}. `recollect collections list` shows them.")
            drop_unowned(connection, scope)
        # Afterwards: dropped inside, it would keep every reader of every collection waiting.
        drop_indexes(self._database, scope, gone[0][0])

    def ensure_reference_length(self, scope: Scope, collection: Collection, estimate: float) -> float:
        """The frozen average length of the collection; ``estimate`` becomes it where there is none yet."""
        if collection.reference_length is not None:
            return collection.reference_length
        params = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection.collection_id,
            "reference_length": max(estimate, 1.0),
        }
        found = self._database.run(scope, _SQL["set_reference_length"], params)
        if not found:
            raise NotFoundError(f"The collection {collection.name!r} was deleted meanwhile.")
        return float(found[0][0])

    def describe(
        self, scope: Scope, name: str, description: str, *, check: Callable[[Collection], object] | None = None
    ) -> None:
        """Say something else of a collection.

        Args:
            scope: Whose.
            name: Of the collection.
            description: What is said.
            check: Told the collection as it is, which nobody describes until this has; what it raises changes nothing.

        Raises:
            NotFoundError: The tenant has no collection of that name.
        """
        params = {"tenant_id": scope.tenant_id, "name": name, "description": description}
        with self._database.transaction(scope) as connection:
            if check is not None:
                connection.execute(_SQL["hold"], params)
                for row in rows(connection, _SQL["get"], {**params, "session": None}):
                    check(_collection(row))
            changed = rows(connection, _SQL["describe"], params)
        if not changed:
            raise NotFoundError(f"There is no collection {name!r}. `recollect collections list` shows them.")

    def set_refusal(self, scope: Scope, name: str, refusal: Mapping[str, Any] | None) -> None:
        """Keep when answers from a collection are refused.

        Args:
            scope: Whose collection.
            name: Of the collection.
            refusal: JSON-serialisable parameters; None: back to the built-in rule.

        Raises:
            NotFoundError: The tenant has no collection of that name.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "name": name,
            "refusal": None if refusal is None else Jsonb(dict(refusal)),
        }
        changed = self._database.run(scope, _SQL["set_refusal"], params)
        if not changed:
            raise NotFoundError(f"There is no collection {name!r}. `recollect collections list` shows them.")

    def refresh_term_stats(self, scope: Scope, collection: Collection) -> bool:
        """Recount the lexical statistics, and the planner's where the store has grown by half.

        Returns:
            False where another session is doing so already.
        """
        params = {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id}
        with self._database.transaction(scope) as connection:
            ((refreshed, lags),) = rows(connection, _SQL["refresh_term_stats"], params)
        if refreshed and lags:
            # An embedded server seldom lives long enough for autovacuum to do it. Outside the transaction, because its
            # locks would make a concurrent index build and this session wait for one another.
            with self._database.autocommit() as connection:
                connection.execute(_SQL["analyze"])
        return bool(refreshed)


def as_shown(collection: Collection) -> Collection:
    """A collection without what counts things that its reader may not read as well, and their changes."""
    if collection.access_ids is None:
        return collection
    return replace(
        collection,
        revision=0,
        stats_chunks=0,
        stats_terms=0,
        stats_pending=0,
        reference_length=None,
        indexed=False,
    )


def _require_name(name: str) -> None:
    if not name.strip() or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise UsageError(
            f"A collection's name is 1 to {MAX_NAME_LENGTH} printable characters, not {name[:50]!r}. Choose another."
        )


# What is noted of collections: words of programs, and when they were last used, where they expire without.


_NOTES = queries("collection_notes")

_BATCH = 500


class CollectionNoteRepository(Repository):
    """Reads and writes what is noted of collections."""

    def all(self, scope: Scope) -> Mapping[int, CollectionNotes]:
        """What is noted of the tenant's collections, by their numbers; most have nothing."""
        found = self._database.run(scope, _NOTES["all"], {"tenant_id": scope.tenant_id})
        names = CollectionNotes.__dataclass_fields__
        return {row[0]: CollectionNotes(**dict(zip(names, row[1:], strict=True))) for row in found}

    def note(
        self, scope: Scope, collection_id: int, *, metadata: Mapping[str, str] | None, idle_days: int | None
    ) -> None:
        """Write something on a collection; see `Collections.note`."""
        params = {
            **_of(scope, collection_id),
            "metadata": None if metadata is None else Jsonb(dict(metadata)),
            "idle_days": idle_days,
        }
        self._database.run(scope, _NOTES["note"], params)

    def use(self, scope: Scope, collection_id: int) -> None:
        """Count that a collection is used, where that matters."""
        self._database.run(scope, _NOTES["use"], _of(scope, collection_id))

    def expire(self, scope: Scope, close: Callable[[Scope, Sequence[int]], object]) -> int:
        """Close the documents of collections that nobody has used for so long; returns of how many collections.

        Args:
            scope: Whose.
            close: Closes documents by their numbers.
        """
        with self._database.transaction(scope) as connection:
            connection.execute(_NOTES["count_searches"], {"tenant_id": scope.tenant_id})
            idle = [row[0] for row in rows(connection, _NOTES["idle"], {"tenant_id": scope.tenant_id})]
        for collection_id in idle:
            # Between two batches it may be found empty; it has expired when the last one is closed.
            while documents := self._current(scope, collection_id):
                close(scope, documents)
            self._database.run(scope, _NOTES["expire"], _of(scope, collection_id))
        return len(idle)

    def _current(self, scope: Scope, collection_id: int) -> list[int]:
        found = self._database.run(scope, _NOTES["current_documents"], {**_of(scope, collection_id), "limit": _BATCH})
        return [row[0] for row in found]


def _of(scope: Scope, collection_id: int) -> dict[str, int]:
    return {"tenant_id": scope.tenant_id, "collection_id": collection_id}
