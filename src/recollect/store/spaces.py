"""The vector spaces of collections: the one that searches use, and those beside it, filled, used and dropped.

A space is filled while searches use another. It holds the rows of every version, so that a moment of the past is found
in it too; whatever closes versions, moves them to other access lists or erases them acts on the rows of all spaces. A
collection changes to another space in one transaction, in which nobody writes to it and no chunk lacks a vector there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

import numpy as np
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from recollect.errors import ConflictError, ModelChangedError, NotFoundError, StoreError
from recollect.model import Scope
from recollect.model.space import Space
from recollect.store.connections import translated_errors
from recollect.store.database import Connection, Repository, connect, rows
from recollect.store.embedding_cache import keep_embeddings
from recollect.store.indexes import drop_space_indexes, holds
from recollect.store.logs import record
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.store.search import Floats

_SQL = queries("spaces")
_WRITER = queries("writer")

#: Where a version's first chunk begins: nothing is before it.
BEGINNING = (0, -1)

# Rows that are looked through in one transaction when a space is dropped.
_DROPPED_AT_ONCE = 20_000

_CLAIM: LiteralString = "SELECT pg_try_advisory_lock(hashtext('recollect.reembed'), %s)"
_RELEASE: LiteralString = "SELECT pg_advisory_unlock(hashtext('recollect.reembed'), %s)"


@dataclass(frozen=True, slots=True)
class EmbeddedText:
    """A chunk with what is embedded of it.

    Attributes:
        key: The hash of what an ingest embedded of it.
        passage: What late interaction reads of it, where that is wanted; else empty.
        lacks: Whether it lacks a vector; else it stands beside one that does.
    """

    version_id: int
    position: int
    chunk_id: int
    key: bytes
    document_id: int
    title: str
    section: Sequence[str]
    text: str
    metadata: Mapping[str, Any]
    context: str
    passage: str
    lacks: bool


@dataclass(frozen=True, slots=True)
class NewVector:
    """A chunk's vector in a space.

    Attributes:
        alone: What the model made of the chunk's text alone, for the cache; None: it is not to be cached.
        tokens: Its packed token vectors, in a collection that stores them.
    """

    chunk: EmbeddedText
    vector: Floats
    alone: Floats | None = None
    tokens: bytes | None = None


class SpaceRepository(Repository):
    """Reads and changes the spaces of collections."""

    def beside(self, scope: Scope, collection_id: int) -> list[Space]:
        """The spaces of a collection beside the one that it uses."""
        return [Space(*row) for row in self._database.run(scope, _SQL["beside"], _of(scope, collection_id))]

    def used(self, scope: Scope, collection_id: int) -> Space:
        """The space that a collection uses.

        Raises:
            NotFoundError: The collection was deleted.
        """
        return _one(self._database.run(scope, _SQL["used"], _of(scope, collection_id)))

    @contextmanager
    def claim(self, scope: Scope, collection_id: int, name: str) -> Iterator[None]:  # noqa: ARG002 - of no other tenant
        """Keep everybody else from re-embedding a collection; whoever is killed lets go of it.

        Raises:
            ConflictError: Somebody is at it.
            StoreError: There is a connection pooler in between.
        """
        if not self._database.has_sessions():
            raise StoreError(
                "Nothing is re-embedded through a connection pooler, because that holds a lock. Let dsn name "
                "the server itself; application_dsn may name the pooler."
            )
        # Beside the pools, whose few connections indexes are built with.
        with translated_errors(), connect(self._database.dsn) as connection:
            if not holds(connection, _CLAIM, collection_id):
                raise ConflictError(
                    f"The collection {name!r} is being embedded anew by another process: wait for it, or "
                    "end it. recollect reembed --status says how far it is."
                )
            try:
                yield
            finally:
                if not connection.closed:
                    connection.execute(_RELEASE, [collection_id])

    def begin(
        self, scope: Scope, collection: Collection, *, model: str, dimension: int, spec: Mapping[str, Any] | None
    ) -> Space:
        """The space of a model that is to be filled: a new one, or the one that was begun.

        Raises:
            ConflictError: One of another model was begun.
        """
        params = _of(scope, collection.collection_id) | {
            "embedding_model": model,
            "embedding_dimension": dimension,
            "embedding_spec": None if spec is None else Jsonb(dict(spec)),
        }
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["begin"], params)
            found = [Space(*row) for row in rows(connection, _SQL["beside"], params)]
        (filling,) = [space for space in found if space.status == "filling"]
        if (filling.model, filling.dimension) != (model, dimension):
            raise ConflictError(
                f"The collection {collection.name!r} is half embedded with {filling.model!r}: finish that (--model), "
                "or give it up with --drop."
            )
        return filling

    def counts(self, scope: Scope, space: Space) -> tuple[int, int]:
        """How many chunks the collection has, those of past versions included, and how many have a vector there."""
        total, filled = self._database.run(scope, _SQL["counts"], _in(scope, space))[0]
        return total, filled

    def lacking(
        self, scope: Scope, space: Space, *, after: tuple[int, int], limit: int, passages: bool = False
    ) -> list[EmbeddedText]:
        """The next chunks that have no vector in a space, with the chunks before and after each.

        Args:
            scope: Whose.
            space: Where.
            after: A version and a position: only chunks behind it.
            limit: How many at most, without those beside them.
            passages: Whether to read what late interaction reads of each.

        Returns:
            By version and position.
        """
        with self._database.transaction(scope) as connection:
            return self._lacking(connection, scope, space, after, limit, passages=passages)

    def add(self, scope: Scope, space: Space, vectors: Sequence[NewVector]) -> int:
        """Store vectors, in one transaction, of the chunks that are there still and say the same; returns how many.

        Raises:
            ModelChangedError: The space was dropped meanwhile.
            NotFoundError: The collection was deleted meanwhile.
        """
        params = _in(scope, space)
        with self._database.transaction(scope) as connection:
            if not rows(connection, _WRITER["hold_collection"], params):
                raise _deleted()
            if not rows(connection, _SQL["hold_space"], params):
                raise ModelChangedError("The vector space was dropped while it was being filled.")
            document_ids = list({new.chunk.document_id for new in vectors})
            connection.execute(_SQL["hold_documents"], params | {"document_ids": document_ids})
            # A statement of its own, after the lock: what it copies of the versions is what they say now.
            return _add(connection, scope, space, vectors)

    def switch(
        self,
        scope: Scope,
        space: Space,
        *,
        complete: Callable[[Sequence[EmbeddedText]], Sequence[NewVector]],
        most: int,
        action: str,
        actor: str,
        passages: bool = False,
    ) -> bool:
        """Have a collection use another space from now on, and keep the one before.

        Nobody writes to the collection meanwhile; searches go on.

        Args:
            scope: Whose.
            space: That is to be used.
            complete: Embeds the last chunks that lack a vector there.
            most: How many these may be.
            action: What the audit calls it.
            actor: Who asks for it.
            passages: Whether ``complete`` is given what late interaction reads of each chunk.

        Returns:
            False where more chunks lack a vector: nothing was changed.

        Raises:
            ModelChangedError: The space was dropped meanwhile.
            NotFoundError: The collection was deleted meanwhile.
        """
        params = _in(scope, space)
        with self._database.transaction(scope) as connection:
            before = _one(rows(connection, _SQL["hold_alone"], params))
            # Statements of their own, after the lock: their snapshots hold what it waited for.
            lacking = self._lacking(connection, scope, space, BEGINNING, most + 1, passages=passages)
            if sum(one.lacks for one in lacking) > most:
                return False
            _add(connection, scope, space, complete(lacking))
            # Looked for again only where there was something: it takes a microsecond or six a chunk, and writers wait.
            if lacking and self._lacking(connection, scope, space, BEGINNING, 1):
                return False
            if not rows(connection, _SQL["take"], params):
                raise ModelChangedError("The vector space was dropped before the collection could change to it.")
            connection.execute(_SQL["keep"], params)
            spec = None if space.spec is None else Jsonb(dict(space.spec))
            made = {"embedding_model": space.model, "embedding_dimension": space.dimension, "embedding_spec": spec}
            connection.execute(_SQL["use"], params | made)
            connection.execute(_SQL["leave_copies"], params)
            connection.execute(_SQL["touch"], params)
            details = {"collection": space.collection_id, "from": before.model, "to": space.model}
            record(connection, scope, action=action, actor=actor, details=details)
        return True

    def drop(self, scope: Scope, space: Space) -> None:
        """Remove a space that is not used, with its vectors and indexes; what was interrupted is begun again.

        Searches that know the space begin anew.
        """
        params = _in(scope, space)
        with self._database.transaction(scope) as connection:
            # Whoever copies rows of the space holds the collection: afterwards they see that it is being dropped.
            connection.execute(_SQL["hold_alone"], params)
            connection.execute(_SQL["give_up"], params)
        after: int | None = 0
        while after is not None:
            with self._database.transaction(scope) as connection:
                found = rows(connection, _SQL["stretch"], params | {"after": after, "rows": _DROPPED_AT_ONCE})
                until = found[0][0] if found else None
                for remove in ("remove_vectors", "remove_tokens"):
                    connection.execute(_SQL[remove], params | {"after": after, "until": until})
            after = until
        drop_space_indexes(self._database, space.space_id)
        self._database.run(scope, _SQL["remove"], params)

    def drop_previous(self, scope: Scope, *, days: int) -> int:
        """Remove the spaces that are kept for the way back longer than some days; returns how many.

        Collections that somebody is re-embedding are passed over, and behind a pooler, where nobody could tell, all.
        """
        if not self._database.has_sessions():
            return 0
        found = self._database.run(scope, _SQL["previous"], {"tenant_id": scope.tenant_id, "days": days})
        dropped = 0
        for collection_id, name in found:
            with suppress(ConflictError), self.claim(scope, collection_id, name):
                # Looked up again: meanwhile the collection may have gone back to it, or the time may have begun anew.
                with self._database.transaction(scope) as connection:
                    params = {"tenant_id": scope.tenant_id, "days": days}
                    over = {row[0] for row in rows(connection, _SQL["previous"], params)}
                for space in self.beside(scope, collection_id) if collection_id in over else ():
                    if space.status == "kept":
                        self.drop(scope, space)
                        dropped += 1
        return dropped

    def sample(self, scope: Scope, collection: Collection, *, limit: int) -> list[tuple[int, str, list[str], str]]:
        """Some current chunks, chosen by hash: their ids, titles, sections and texts."""
        with self._database.transaction(scope) as connection:
            params = _of(scope, collection.collection_id) | {"limit": limit}
            return [(row[0], row[1], row[2], row[3]) for row in rows(connection, _SQL["sample"], params)]

    @staticmethod
    def _lacking(
        connection: Connection,
        scope: Scope,
        space: Space,
        after: tuple[int, int],
        limit: int,
        *,
        passages: bool = False,
    ) -> list[EmbeddedText]:
        behind = {"version_id": after[0], "position": after[1], "limit": limit}
        found = rows(connection, _SQL["lacking"], _in(scope, space) | behind)
        if not found:
            return []
        stretches = _stretches([(row[0], row[1]) for row in found])
        version_ids, firsts, lasts = (list(column) for column in zip(*stretches, strict=True))
        params = {"version_ids": version_ids, "firsts": firsts, "lasts": lasts, "passages": passages}
        lacking = {(row[0], row[1]) for row in found}
        texts = rows(connection, _SQL["texts"], _in(scope, space) | params)
        return [EmbeddedText(*(*row, (row[0], row[1]) in lacking)) for row in texts]


def _add(connection: Connection, scope: Scope, space: Space, vectors: Sequence[NewVector]) -> int:
    if not vectors:
        return 0
    params = _in(scope, space) | {
        "chunk_ids": [new.chunk.chunk_id for new in vectors],
        "hashes": [new.chunk.key for new in vectors],
        "embeddings": [HalfVector(np.asarray(new.vector)) for new in vectors],
    }
    added = {row[0] for row in rows(connection, _SQL["add_vectors"], params)}
    packed = {new.chunk.chunk_id: new.tokens for new in vectors if new.tokens is not None}
    if own := {chunk_id: tokens for chunk_id, tokens in packed.items() if chunk_id in added}:
        connection.execute(_SQL["add_tokens"], params | {"added": list(own), "packed": list(own.values())})
    # Of what is there alone: an embedding goes with the last chunk of its text.
    cacheable = {new.chunk.key: new.alone for new in vectors if new.alone is not None and new.chunk.chunk_id in added}
    keep_embeddings(connection, scope, space.model, cacheable)
    return len(added)


def _stretches(wanted: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Chunks, by version and position, with those beside them: as stretches of a version, of which none overlap."""
    found: list[tuple[int, int, int]] = []
    for version_id, position in wanted:
        if found and found[-1][0] == version_id and position - 1 <= found[-1][2] + 1:
            found[-1] = (version_id, found[-1][1], position + 1)
        else:
            found.append((version_id, position - 1, position + 1))
    return found


def _of(scope: Scope, collection_id: int) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, "collection_id": collection_id}


def _in(scope: Scope, space: Space) -> dict[str, Any]:
    return _of(scope, space.collection_id) | {"space_id": space.space_id}


def _one(found: Sequence[Sequence[Any]]) -> Space:
    if not found:
        raise _deleted()
    return Space(*found[0])


def _deleted() -> NotFoundError:
    return NotFoundError("The collection was deleted meanwhile.")


def require_same_space(collection: Collection, space_id: int) -> None:
    """Refuse vectors that were made for another space than the one that a held collection uses.

    Args:
        collection: As it was when they were made.
        space_id: What its row says, under its lock.

    Raises:
        ModelChangedError: They differ.
    """
    if space_id != collection.space_id:
        raise ModelChangedError(
            f"The embedding model of the collection {collection.name!r} was changed meanwhile, and nothing of this "
            "batch was stored: try again."
        )
