"""A collection's change to another embedding model: searched, written to and erased from meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ConflictError, ModelChangedError, NotFoundError, UsageError
from recollect.ingest.reembedding import SpaceFiller
from recollect.model import RetrievalOptions, Scope
from recollect.store.spaces import BEGINNING

LONG = "\n\n".join(
    f"# Rule {number}\n\n" + f"The rule of number {number} says what is done on day {number}. " * 25
    for number in range(6)
)
TEXTS = {
    "leave.md": "# Leave\n\nAnnual leave is 30 days a year.\n\n# Sickness\n\nTell your manager on the first day.",
    "rules.md": LONG,
    "vpn.md": "# VPN\n\nThe VPN client is installed on every laptop.",
}
VECTORS = (
    "SELECT v.uri, c.position, x.embedding::text FROM chunk_vectors x JOIN chunks c USING (tenant_id, chunk_id) "
    "JOIN document_versions v ON v.version_id = c.version_id JOIN collections p ON p.space_id = x.space_id "
    "WHERE p.name = %s ORDER BY v.uri, c.position"
)


@pytest.fixture
def rag(pipeline: RAGPipeline) -> RAGPipeline:
    pipeline.ingest([Document(content=text, source=source) for source, text in TEXTS.items()])
    return pipeline


def rows(rag: RAGPipeline, query: str, *params: object) -> list[tuple]:
    with rag.store.database.transaction(Scope()) as connection:
        return connection.execute(query, params).fetchall()


def found(rag: RAGPipeline, query: str, **view) -> list[tuple[str, float]]:
    reply = rag.view(**view).search(query, rag.default_options())
    return [(one.source, round(one.similarity, 3)) for one in reply.results]


def test_a_collection_changes_to_another_model_and_back(rag: RAGPipeline):
    before = found(rag, "how many days of leave")
    report = rag.spaces.reembed("hashing:96")
    assert (report.switched, report.embedded) == (True, rows(rag, "SELECT count(*) FROM chunks")[0][0])
    place = rag.store.collections.get(Scope(), "default")
    assert (place.embedding_model, place.embedding_dimension) == ("hashing:96", 96)
    after = found(rag, "how many days of leave")
    assert {source for source, _ in after} == {source for source, _ in before}
    assert rag.maintenance.check() == [] and rag.maintenance.verify(deep=True).clean
    back = rag.spaces.rollback()
    assert (back.switched, back.embedded) == (True, 0)
    assert found(rag, "how many days of leave") == before
    (kept,) = rag.spaces.drop()
    assert (kept.model, kept.status) == ("hashing:96", "kept")
    assert rows(rag, "SELECT count(DISTINCT space_id) FROM chunk_vectors") == [(1,)]
    with pytest.raises(NotFoundError, match="Nothing is kept"):
        rag.spaces.rollback()
    assert rag.maintenance.verify(deep=True).clean


def test_vectors_are_those_of_an_ingest_with_the_model(rag: RAGPipeline, monkeypatch):
    monkeypatch.setattr("recollect.ingest.reembedding.BATCH_CHUNKS", 3)
    rag.spaces.reembed("hashing:96")
    rag.collections.create("fresh")
    fresh = rag.view(collections="fresh")
    fresh.spaces.reembed("hashing:96")
    fresh.ingest([Document(content=text, source=source) for source, text in TEXTS.items()])
    assert len(rows(rag, VECTORS, "fresh")) > 6
    assert rows(rag, VECTORS, "default") == rows(rag, VECTORS, "fresh")


def test_what_is_unchanged_stays_so_after_a_change_of_the_model(rag: RAGPipeline):
    rag.spaces.reembed("hashing:96")
    again = rag.ingest([Document(content=text, source=source) for source, text in TEXTS.items()])
    assert {one.status for one in again} == {"unchanged"}


def test_an_interrupted_filling_goes_on_where_it_was(rag: RAGPipeline, monkeypatch):
    monkeypatch.setattr("recollect.ingest.reembedding.BATCH_CHUNKS", 2)

    def stop(state):
        if state.filled >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rag.spaces.reembed("hashing:96", on_progress=stop)
    (half,) = rag.spaces.status().beside
    assert (half.status, half.filled) == ("filling", 4)
    with pytest.raises(ConflictError, match="half embedded with 'hashing:96'"):
        rag.spaces.reembed("hashing:48")
    assert rag.maintenance.check() == [] and rag.maintenance.verify(deep=True).clean
    report = rag.spaces.reembed("hashing:96")
    assert (report.after.space_id, report.embedded) == (half.space_id, half.total - 4)
    assert rag.maintenance.verify(deep=True).clean


def test_without_the_switch_nothing_changes_but_the_comparison_is_told(rag: RAGPipeline):
    before = rag.store.collections.get(Scope(), "default")
    report = rag.spaces.reembed("hashing:96", switch=False)
    assert not report.switched and report.comparison.of == "samples"
    assert rag.store.collections.get(Scope(), "default") == before
    figures = report.comparison.figures()
    assert figures["found@10"] == 1.0 and 0 < figures["overlap@10"] <= 1
    refused = rag.spaces.reembed("hashing:96", minimum={"mrr": 1.1})
    assert not refused.switched and refused.refused == (f"mrr is {figures['mrr']:.3f}, below 1.1",)
    assert rag.store.collections.get(Scope(), "default") == before
    with pytest.raises(UsageError, match="no figure 'recoll'"):
        rag.spaces.reembed("hashing:96", minimum={"recoll": 1})
    assert rag.spaces.reembed("hashing:96", minimum={"mrr": 0.0}).switched


def test_one_reembeds_a_collection_at_a_time(rag: RAGPipeline):
    place = rag.store.collections.get(Scope(), "default")
    with (
        rag.store.spaces.claim(Scope(), place.collection_id, place.name),
        pytest.raises(ConflictError, match="by another process"),
    ):
        rag.spaces.reembed("hashing:96")
    assert rag.spaces.reembed("hashing:96").switched


def test_the_next_change_removes_what_was_kept(rag: RAGPipeline):
    rag.spaces.reembed("hashing:96")
    (first,) = rag.spaces.status().beside
    report = rag.spaces.reembed("hashing:48")
    assert [space.space_id for space in report.dropped] == [first.space_id]
    assert [one.model for one in rag.spaces.status().beside] == ["hashing:96"]
    # To the one that is kept it is a way back: nothing is embedded.
    report = rag.spaces.reembed("hashing:96")
    assert (report.embedded, report.dropped) == (0, ())


def test_the_same_model_and_an_unknown_one_are_refused(rag: RAGPipeline):
    mine = rag.store.collections.get(Scope(), "default").embedding_model
    with pytest.raises(UsageError, match="already"):
        rag.spaces.reembed(mine)
    with pytest.raises(UsageError):
        rag.spaces.reembed("a-model", provider="nobody")
    assert rag.spaces.status().beside == ()


class Hooked(HashingEmbedder):
    """Does something else when it is first asked a question, as others do meanwhile."""

    hook = None

    def embed_query(self, text: str) -> np.ndarray:
        hook, self.hook = self.hook, None
        if hook is not None:
            hook()
        return super().embed_query(text)


@pytest.fixture
def hooked(dsn: str, tmp_path: Path) -> Iterator[RAGPipeline]:
    embedder = Hooked(64)
    with RAGPipeline(RAGConfig(storage={"dsn": dsn}, embedding={"provider": "hashing"}), embedder=embedder) as rag:
        rag.ingest([Document(content=text, source=source) for source, text in TEXTS.items()])
        yield rag


@pytest.mark.parametrize("mode", ["dense", "hybrid", "lexical"])
def test_a_search_that_began_before_a_space_was_dropped_begins_anew(hooked: RAGPipeline, mode: str):
    def change() -> None:
        hooked.spaces.reembed("hashing:96")
        hooked.spaces.drop()

    hooked.embedder.hook = change
    options = RetrievalOptions(mode=mode, similarity_threshold=0.0, use_cache=False)
    reply = hooked.search("how many days of leave", options)
    assert reply.results[0].source == "leave.md"
    assert hooked.store.collections.get(Scope(), "default").embedding_model == "hashing:96"
    assert hooked.search("how many days of leave", options).results == reply.results


def test_a_search_that_began_before_the_change_finds_its_space(hooked: RAGPipeline):
    options = RetrievalOptions(use_cache=False)
    before = hooked.search("how many days of leave", options)
    hooked.embedder.hook = lambda: hooked.spaces.reembed("hashing:96")
    during = hooked.search("how many days of leave", options)
    assert [one.chunk_id for one in during.results] == [one.chunk_id for one in before.results]


def test_documents_that_were_embedded_before_the_change_are_embedded_again(rag: RAGPipeline, monkeypatch):
    monkeypatch.setattr("recollect.ingest.documents.BATCH_DOCUMENTS", 2)

    def documents() -> Iterator[Document]:
        for number in range(12):
            if number == 5:
                rag.spaces.reembed("hashing:96", samples=0)
            if number == 9:
                rag.spaces.rollback()
            yield Document(content=f"Document {number} is about the number {number}.", source=f"n{number}")

    assert {one.status for one in rag.ingest(documents())} == {"added"}
    assert rag.maintenance.verify(deep=True).clean
    mine = rag.store.collections.get(Scope(), "default")
    for number in range(12):
        best = rag.search(f"about the number {number}", RetrievalOptions(mode="dense")).results[0]
        assert best.source == f"n{number}", mine.embedding_model


def test_erasing_deleting_and_rights_act_on_every_space(rag: RAGPipeline):
    rag.spaces.reembed("hashing:96")
    ids = {one.source: one.document_id for one in rag.documents.list()}
    rag.documents.erase([ids["leave.md"]])
    rag.documents.delete([ids["vpn.md"]])
    rag.grants.add("user:ann", documents=ids["rules.md"], only=True)
    assert rag.maintenance.verify(deep=True).clean
    spaces = rows(
        rag,
        "SELECT space_id, count(*), count(*) FILTER (WHERE known_to < 'infinity') FROM chunk_vectors GROUP BY space_id",
    )
    assert len(spaces) == 2 and len({row[1:] for row in spaces}) == 1 and spaces[0][2] == 1


def test_a_change_that_finds_too_much_missing_fills_first(rag: RAGPipeline):
    (scope, place) = Scope(), rag.store.collections.get(Scope(), "default")
    space = rag.store.spaces.begin(scope, place, model="hashing:96", dimension=96, spec=None)
    assert not rag.store.spaces.switch(scope, space, complete=lambda _: [], most=0, action="reembed", actor="test")
    assert not rag.store.spaces.switch(scope, space, complete=lambda _: [], most=1000, action="reembed", actor="test")
    assert rag.store.collections.get(scope, "default").space_id == place.space_id


def test_vectors_of_a_space_that_was_dropped_are_not_stored(rag: RAGPipeline):
    scope, place = Scope(), rag.store.collections.get(Scope(), "default")
    spaces = rag.store.spaces
    space = spaces.begin(scope, place, model="hashing:96", dimension=96, spec=None)
    filler = SpaceFiller(spaces, scope=scope, space=space, embedder=HashingEmbedder(96))
    vectors = filler.embedded(spaces.lacking(scope, space, after=BEGINNING, limit=5))
    spaces.drop(scope, space)
    with pytest.raises(ModelChangedError):
        spaces.add(scope, space, vectors)
    assert rows(rag, "SELECT DISTINCT space_id FROM chunk_vectors") == [(place.space_id,)]


def test_what_an_erasure_took_is_not_embedded(rag: RAGPipeline):
    scope, place = Scope(), rag.store.collections.get(Scope(), "default")
    spaces = rag.store.spaces
    space = spaces.begin(scope, place, model="hashing:96", dimension=96, spec=None)
    filler = SpaceFiller(spaces, scope=scope, space=space, embedder=HashingEmbedder(96), cached=HashingEmbedder(96))
    vectors = filler.embedded(spaces.lacking(scope, space, after=BEGINNING, limit=100))
    (erased,) = [one.document_id for one in rag.documents.list() if one.source == "leave.md"]
    rag.documents.erase([erased])
    assert 0 < spaces.add(scope, space, vectors) < len(vectors)
    assert rag.maintenance.check() == [] and rag.maintenance.verify(deep=True).clean


def test_a_kept_space_has_its_faults_found_and_removed(rag: RAGPipeline):
    rag.spaces.reembed("hashing:96")
    (kept,) = rag.spaces.status().beside
    with rag.store.database.transaction(Scope()) as connection:
        connection.execute(
            "UPDATE chunk_vectors SET known_to = now() WHERE space_id = %s AND chunk_id %% 2 = 0", [kept.space_id]
        )
        connection.execute(
            "UPDATE chunk_vectors SET embedding = '[1,0]' WHERE space_id = %s AND chunk_id %% 3 = 0",
            [kept.space_id],
        )
    report = rag.maintenance.verify(repair=True)
    assert {check.name for check in report.checks if check.found} == {"stray_vectors", "stale_vector_copies"}
    assert report.clean
    back = rag.spaces.rollback()
    assert back.embedded > 0 and rag.maintenance.verify(deep=True).clean
