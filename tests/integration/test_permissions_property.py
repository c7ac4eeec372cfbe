"""Random principals, grants, denials and changes between searches, against what brute force says may be found."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import EFFORT
from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError
from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.retrieval import lexical, search, sql_candidates
from recollect.retrieval.resident.collections import ResidentCollections
from resident import settled

EMBEDDER = HashingEmbedder(16)
WORDS = [f"word{letter}" for letter in "abcdefgh"]
NUMBERS = itertools.count()
EVERYTHING = {"top_k": 200, "candidates": 200, "collapse_duplicates": False, "rerank": "none"}

TOKENS = st.sampled_from(
    ["*", "user:ann", "user:bob", "role:boss", "role:clerk", "department:hr", "department:it", "group:g1", "group:g2"]
)
LISTS = st.lists(TOKENS, max_size=3).map(lambda given: tuple(sorted(set(given))))
PRINCIPALS = st.builds(
    Principal,
    user_id=st.sampled_from([None, "ann", "bob", "eve"]),
    roles=st.lists(st.sampled_from(["boss", "clerk"]), max_size=2).map(tuple),
    department=st.sampled_from([None, "hr", "it"]),
    groups=st.lists(st.sampled_from(["g1", "g2"]), max_size=2).map(tuple),
)
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join), min_size=1, max_size=3)


@pytest.fixture(params=["compared one by one", "through the indexes", "from memory"])
def rag(request, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn, "index_threshold": 1},
        embedding={"provider": "hashing"},
        chunking={"strategy": "paragraph"},
        retrieval={"resident_memory_mb": 100 if request.param == "from memory" else 0},
    )
    if request.param == "from memory":
        monkeypatch.setattr(search, "LOADED_AFTER", 0)
        monkeypatch.setattr(ResidentCollections, "find", held_first(ResidentCollections.find))
    if request.param == "through the indexes":
        monkeypatch.setattr(sql_candidates, "EXACT_FILTER_CHUNKS", -1)
        monkeypatch.setattr(lexical, "SCANNED_COLLECTION_CHUNKS", 0)
    with RAGPipeline(config, embedder=EMBEDDER) as opened:
        yield opened


def held_first(find):
    """Searches find what the copy says from the first one on, not once it has been loaded in the background."""

    def found(held: ResidentCollections, scope: Scope, collection: Collection):
        find(held, scope, collection)
        settled(held)
        generation = find(held, scope, collection)
        assert generation is not None
        return generation

    return found


def tokens_of(principal: Principal) -> set[str]:
    return {
        "*",
        *([f"user:{principal.user_id}"] if principal.user_id else []),
        *([f"department:{principal.department}"] if principal.department else []),
        *(f"role:{role}" for role in principal.roles),
        *(f"group:{group}" for group in principal.groups),
    }


@dataclass
class Oracle:
    """What the rules say, without a database: who owns and reads the collection, and each document's own list."""

    owners: tuple[str, ...] = ()
    readers: tuple[str, ...] = ("*",)
    default: tuple[set[str], set[str]] = field(default_factory=lambda: ({"*"}, set()))
    own: dict[str, tuple[set[str], set[str]] | None] = field(default_factory=dict)

    def exists_for(self, principal: Principal) -> bool:
        mine = tokens_of(principal)
        return bool(mine & {*self.owners, *self.readers})

    def readable(self, principal: Principal) -> set[str]:
        mine = tokens_of(principal)
        if mine & set(self.owners):
            return set(self.own)
        if not mine & set(self.readers):
            return set()
        lists = {source: own or self.default for source, own in self.own.items()}
        return {source for source, (grants, denials) in lists.items() if mine & grants and not mine & denials}

    def change(self, source: str | None, *, add=(), deny=(), remove=(), only=False) -> None:
        grants, denials = (self.default if source is None else self.own[source]) or self.default
        changed = ((set() if only else grants - set(remove)) | set(add), denials | set(deny))
        if source is None:
            self.default = changed
        elif changed != (grants, denials):
            self.own[source] = changed


class World:
    """A collection and its oracle, changed together."""

    def __init__(self, rag: RAGPipeline) -> None:
        # No name is much like another one, so that nobody is asked whether they meant one that they may read.
        self.rag, self.name, self.oracle = rag, chr(0x4E00 + next(NUMBERS)) * 5, Oracle()
        rag.collections.ensure(self.name)

    def store(self, source: str, paragraphs: list[str], permissions: tuple[str, ...] | None) -> None:
        text = "\n\n".join(paragraphs)
        given = permissions or None
        self.rag.view(collections=self.name).ingest(
            Document(content=text, source=source, permissions=given), force=True
        )
        old = self.oracle.own.get(source)
        if given is not None:
            grants, denials = old or self.oracle.default
            told = {token for token in given if not token.startswith("!")}
            denied = {token[1:] for token in given if token.startswith("!")}
            if not told and "*" in denied:  # nobody is granted anything, which is no denial
                grants, denied = set(), denied - {"*"}
            self.oracle.own[source] = (told or grants, denials | denied)
        else:
            self.oracle.own.setdefault(source, None)

    def id_of(self, source: str) -> int:
        found = self.rag.view(collections=self.name).documents.list()
        return next(one.document_id for one in found if one.source == source)

    def index(self) -> None:
        assert self.rag.store.dense_indexer.build(Scope(), self.name) is not False

    def chunks(self, sources: set[str]) -> dict[int, tuple[str, np.ndarray]]:
        place = self.rag.store.collections.get(Scope(), self.name)
        with self.rag.store.database.transaction(Scope()) as connection:
            rows = connection.execute(
                "SELECT x.chunk_id, v.uri, x.embedding FROM chunk_vectors x JOIN document_versions v "
                "USING (tenant_id, version_id) WHERE x.space_id = %s AND x.known_to = 'infinity'",
                (place.space_id,),
            ).fetchall()
        return {row[0]: (row[1], np.asarray(row[2].to_numpy(), np.float32)) for row in rows if row[1] in sources}

    def check(self, principal: Principal, query: str) -> None:
        readable = self.oracle.readable(principal)
        seen = [place for place in self.rag.view(principal=principal).collections.list() if place.name == self.name]
        if not self.oracle.exists_for(principal):
            with pytest.raises(NotFoundError) as hidden:
                self.rag.view(collections=self.name, principal=principal).search(query)
            with pytest.raises(NotFoundError) as missing:
                self.rag.view(collections="absent", principal=principal).search(query)
            assert str(hidden.value).replace(self.name, "absent") == str(missing.value)
            with pytest.raises(NotFoundError) as mistyped:
                self.rag.view(collections=f"{self.name}s", principal=principal).search(query)
            assert str(mistyped.value).replace(f"{self.name}s", "absent") == str(missing.value)
            assert seen == []
            return
        chunks = self.chunks(readable)
        vector = EMBEDDER.embed_query(query)
        similar = {chunk_id: float(embedding @ vector) for chunk_id, (_, embedding) in chunks.items()}
        everything = self.rag.view(collections=self.name).search(
            query, RetrievalOptions(mode="lexical", use_cache=False, **EVERYTHING)
        )
        allowed = [(one.chunk_id, one.score) for one in everything.results if one.source in readable]
        # Twice, so that the second may come from the cache, and must not be what another was told.
        for _ in range(2):
            self.require_found(principal, query, similar, allowed)
        assert seen[0].document_count == len(readable) and seen[0].chunk_count == len(chunks)
        assert {
            one.source for one in self.rag.view(collections=self.name, principal=principal).documents.list()
        } == readable

    def require_found(
        self, principal: Principal, query: str, similar: dict[int, float], allowed: list[tuple[int, float]]
    ) -> None:
        replies = {
            mode: self.rag.view(collections=self.name, principal=principal).search(
                query, RetrievalOptions(mode=mode, explain=True, **EVERYTHING)
            )
            for mode in ("dense", "lexical", "hybrid")
        }
        found = {mode: {one.chunk_id for one in reply.results} for mode, reply in replies.items()}
        assert found["dense"] == found["hybrid"] == set(similar)
        assert [one.score for one in replies["dense"].results] == pytest.approx(
            sorted(similar.values(), reverse=True), abs=2e-3
        )
        assert [(one.chunk_id, one.score) for one in replies["lexical"].results] == [
            (chunk_id, pytest.approx(score)) for chunk_id, score in allowed
        ]
        assert all(weight <= np.log(1 + len(similar) + 0.5) + 1 for _, weight in replies["lexical"].explain.terms)


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=8 * EFFORT, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nobody_finds_less_or_more_than_he_may_read(rag: RAGPipeline, data: st.DataObject):
    world = World(rag)
    for number in range(data.draw(st.integers(2, 5), label="documents")):
        given = data.draw(st.none() | LISTS | LISTS.map(lambda some: tuple("!" + one for one in some)), label="given")
        world.store(f"d{number}", data.draw(TEXTS, label="text"), given)
    world.index()
    principals = data.draw(st.lists(PRINCIPALS, min_size=1, max_size=3), label="principals")
    for _ in range(data.draw(st.integers(1, 5), label="rounds")):
        query = data.draw(st.sampled_from(WORDS), label="query")
        for principal in principals:
            world.check(principal, query)
        _change(world, data)
    for principal in principals:
        world.check(principal, "worda wordb")


def _change(world: World, data: st.DataObject) -> None:
    view, oracle = world.rag.view(collections=world.name), world.oracle
    source = data.draw(st.sampled_from(sorted(oracle.own)), label="source")
    some = data.draw(LISTS.filter(bool), label="tokens")
    match data.draw(st.sampled_from(["grant", "deny", "revoke", "only", "default", "place", "store"]), label="change"):
        case "grant":
            view.grants.add(some, documents=world.id_of(source))
            oracle.change(source, add=some)
        case "deny":
            view.grants.deny(some, documents=world.id_of(source))
            oracle.change(source, deny=some)
        case "revoke":
            view.grants.remove(some, documents=world.id_of(source))
            oracle.change(source, remove=some)
        case "only":
            several = sorted({source, *data.draw(st.lists(st.sampled_from(sorted(oracle.own)), max_size=3))})
            view.grants.add(some, documents=[world.id_of(one) for one in several], only=True)
            for one in several:
                oracle.change(one, add=some, only=True)
        case "default":
            view.grants.add(some, only=True, default=True)
            oracle.change(None, add=some, only=True)
        case "place":
            oracle.owners, oracle.readers = data.draw(LISTS, label="owners"), data.draw(LISTS, label="readers")
            view.grants.set_collection(owners=oracle.owners, readers=oracle.readers)
        case "store":
            given = data.draw(st.none() | LISTS, label="given")
            world.store(data.draw(st.sampled_from([source, "new"])), data.draw(TEXTS), given)
