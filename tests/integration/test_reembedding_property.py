"""Searches, ingests, deletions, erasures, grants and questions to the past between the steps of changes of the model.

Each search is compared with what the texts and the model that should be in use say.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from hostile import EFFORT
from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.chunking.registry import make_chunker
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ConflictError, NotFoundError, UsageError
from recollect.ingest import reembedding
from recollect.ingest.prepare import searchable_text, with_neighbours
from recollect.model.scope import Scope

DIMENSIONS = (16, 24, 40)
EMBEDDERS = {f"hashing:{one}": HashingEmbedder(one) for one in DIMENSIONS}
NUMBERS = itertools.count()
WORDS = [f"word{letter}" for letter in "abcdefgh"]
SOURCES = st.sampled_from(["one", "two", "three", "four"])
MODELS = st.sampled_from(list(EMBEDDERS))
PARAGRAPHS = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), min_size=1, max_size=4, unique=True
)
QUERIES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join)
BOB = Principal(user_id="bob")
CHUNKING = {"strategy": "paragraph", "min_size": 1, "max_size": 100}
CHUNKER = make_chunker(**CHUNKING)


@pytest.fixture
def rag(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RAGPipeline]:
    monkeypatch.setattr(reembedding, "BATCH_CHUNKS", 2)
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn, "index_threshold": 6},
        embedding={"provider": "hashing", "dimensions": DIMENSIONS[0]},
        chunking=CHUNKING,
    )
    with RAGPipeline(config) as opened:
        yield opened


@dataclass
class Version:
    paragraphs: list[str]
    begun: datetime
    ended: datetime | None = None


@dataclass
class Stored:
    """A document: its versions, and whether Bob may read it."""

    document_id: int
    versions: list[Version]
    bobs: bool

    def known(self, moment: datetime | None) -> list[str]:
        if moment is None:
            return [] if self.versions[-1].ended else self.versions[-1].paragraphs
        for one in self.versions:
            if one.begun <= moment and (one.ended is None or moment < one.ended):
                return one.paragraphs
        return []


class Killed(BaseException):
    """The process is gone: nothing of its Python runs any more, and its connections are closed."""


class Changes(RuleBasedStateMachine):
    def __init__(self, rag: RAGPipeline) -> None:
        super().__init__()
        self.rag, self.name = rag, f"c{next(NUMBERS)}"
        rag.collections.ensure(self.name)
        self.view = rag.view(collections=self.name)
        self.used, self.filling, self.kept = f"hashing:{DIMENSIONS[0]}", None, None
        self.stored: dict[str, Stored] = {}
        self.moments: list[datetime] = []

    # What is written

    @initialize(texts=st.lists(PARAGRAPHS, min_size=5, max_size=5))
    def begin(self, texts: list[list[str]]) -> None:
        """Something current, something past, something closed, and something that is not Bob's."""
        for source, paragraphs in zip(("one", "two", "three", "one"), texts, strict=False):
            self.store(source, paragraphs)
        self.delete("two")
        self.grant("three", bobs=False)

    @rule(source=SOURCES, paragraphs=PARAGRAPHS)
    def store(self, source: str, paragraphs: list[str]) -> None:
        (result,) = self.view.ingest([Document(content="\n\n".join(paragraphs), source=source, title="t")])
        now = self._now()
        known = self.stored.setdefault(source, Stored(result.document_id, [], bobs=True))
        if result.status == "unchanged":
            return
        if known.versions and known.versions[-1].ended is None:
            known.versions[-1].ended = now
        known.versions.append(Version(paragraphs, now))

    @rule(source=SOURCES)
    def delete(self, source: str) -> None:
        known = self.stored.get(source)
        if known and known.versions[-1].ended is None:
            assert self.view.documents.delete([known.document_id]) == 1
            known.versions[-1].ended = self._now()

    @rule(source=SOURCES)
    def erase(self, source: str) -> None:
        if source in self.stored:
            self.view.documents.erase([self.stored.pop(source).document_id])

    @rule(source=SOURCES, bobs=st.booleans())
    def grant(self, source: str, bobs: bool) -> None:
        if source in self.stored:
            self.view.grants.add(
                "user:bob" if bobs else "user:ann", documents=self.stored[source].document_id, only=True
            )
            self.stored[source].bobs = bobs

    # What becomes of the model

    @rule(model=MODELS, batches=st.integers(0, 3))
    def fill_a_bit_and_be_killed(self, model: str, batches: int) -> None:
        left = itertools.count(batches, -1)

        def kill(_: object) -> None:
            if next(left) <= 0:
                raise Killed

        self._reembed(model, kill)

    @rule(model=MODELS, switch=st.booleans())
    def reembed(self, model: str, switch: bool) -> None:
        self._reembed(model, None, switch=switch)

    @rule()
    def roll_back(self) -> None:
        if self.kept is None:
            with pytest.raises(NotFoundError):
                self.view.spaces.rollback()
            return
        assert self.view.spaces.rollback().switched
        self.used, self.kept = self.kept, self.used

    @rule()
    def drop(self) -> None:
        dropped = {space.model for space in self.view.spaces.drop()}
        assert dropped == {model for model in (self.kept, self.filling) if model}
        self.kept = self.filling = None

    def _reembed(self, model: str, on_progress, *, switch: bool = True) -> None:
        def change():
            return self.view.spaces.reembed(model, samples=0, rest=0.0, switch=switch, on_progress=on_progress)

        if model == self.used:
            with pytest.raises(UsageError, match="already"):
                change()
            return
        if self.kept != model and self.filling not in {None, model}:
            with pytest.raises(ConflictError, match="half embedded"):
                change()
            return
        if self.kept != model:
            self.filling, self.kept = model, None
        try:
            report = change()
        except Killed:
            return
        assert report.switched == switch
        if switch:
            self.filling = None if self.filling == model and self.kept != model else self.filling
            self.used, self.kept = model, self.used

    # What is found

    @rule(query=QUERIES, bob=st.booleans())
    def search(self, query: str, bob: bool) -> None:
        self._compare(query, bob=bob, moment=None)

    @precondition(lambda self: self.moments)
    @rule(query=QUERIES, data=st.data())
    def ask_the_past(self, query: str, data: st.DataObject) -> None:
        self._compare(query, bob=False, moment=data.draw(st.sampled_from(self.moments)))

    def _compare(self, query: str, *, bob: bool, moment: datetime | None) -> None:
        options = RetrievalOptions(
            mode="dense", top_k=200, candidates=200, collapse_duplicates=False, rerank="none", use_cache=True
        )
        view = self.view.view(principal=BOB if bob else None, as_of=moment)
        found = {(one.source, one.content): one.similarity for one in view.search(query, options).results}
        assert found == pytest.approx(self._expected(query, bob=bob, moment=moment), abs=2e-3)

    def _expected(self, query: str, *, bob: bool, moment: datetime | None) -> dict[tuple[str, str], float]:
        embedder = EMBEDDERS[self.used]
        asked = embedder.embed_query(query)
        expected: dict[tuple[str, str], float] = {}
        for source, stored in self.stored.items():
            paragraphs = stored.known(moment)
            if not paragraphs or (bob and not stored.bobs):
                continue
            document = Document(content="\n\n".join(paragraphs), title="t")
            chunks = CHUNKER.chunk(document)
            vectors = with_neighbours(embedder.embed_documents([searchable_text(document, one) for one in chunks]))
            scores = (vectors @ asked).tolist()
            expected |= {(source, one.text): score for one, score in zip(chunks, scores, strict=True)}
        return expected

    def _now(self) -> datetime:
        with self.rag.store.database.transaction(Scope()) as connection:
            (now,) = connection.execute("SELECT clock_timestamp()").fetchone()
        self.moments.append(now.astimezone(UTC))
        return self.moments[-1]

    def teardown(self) -> None:
        for query in ("worda", "wordb wordc"):
            for bob in (False, True):
                self._compare(query, bob=bob, moment=None)
            for moment in self.moments[:4]:
                self._compare(query, bob=False, moment=moment)
        status = self.view.spaces.status()
        assert status.used.model == self.used
        assert {one.status: one.model for one in status.beside} == {
            name: model for name, model in (("filling", self.filling), ("kept", self.kept)) if model
        }
        found = [check for check in self.view.maintenance.verify(deep=True).checks if check.found]
        assert found == []


def test_whatever_happens_during_changes_of_the_model_searches_are_right(rag: RAGPipeline):
    run_state_machine_as_test(
        lambda: Changes(rag),
        settings=settings(
            max_examples=5 * EFFORT, stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
