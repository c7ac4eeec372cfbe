"""A rare word finds the passages that hold it, whatever the embedding model thinks of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.retrieval import search
from resident import settled

COMMON = [f"common{letter}" for letter in "abcdefghijklmnopqrst"]
RARE = ("QBR-77", "zelkova", "Mbeki")


@pytest.fixture
def rag(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    with opened(dsn, tmp_path, monkeypatch, resident=request.param == "resident") as made:
        yield made


@contextmanager
def opened(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, resident: bool) -> Iterator[RAGPipeline]:
    monkeypatch.setattr(search, "LOADED_AFTER", 0)
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        retrieval={"resident_memory_mb": 256 if resident else 0, "cache_entries": 0},
    )
    with RAGPipeline(config) as made:
        made.ingest(documents())
        made.search("anything")
        if resident:
            settled(made._at.assembly.searcher.held)
        yield made


def documents() -> list[Document]:
    """200 documents of common words; each rare word stands in three of them, of which none is about it."""
    rng = random.Random(28)
    texts = [" ".join(rng.choices(COMMON, k=30)) for _ in range(200)]
    for place, word in enumerate(RARE):
        for number in (place, 50 + place, 100 + place):
            texts[number] += f" {word} " + " ".join(rng.choices(COMMON, k=10))
    texts += [f"{' '.join(rng.choices(COMMON, k=20))} {form}" for form in ("deploying", "deploys", "deploy", "deploys")]
    return [
        Document(content=text, source=f"{number}.txt", department="hr" if number >= 100 else "it")
        for number, text in enumerate(texts)
    ]


def where(word: str) -> set[str]:
    return {one.source for one in documents() if word in one.content.split()}


@pytest.mark.parametrize("rag", ["database", "resident"], indirect=True)
@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
def test_a_rare_word_is_found(rag: RAGPipeline, mode: str):
    for word in RARE:
        for query in (word, word.lower()):
            reply = rag.search(query, RetrievalOptions(mode=mode, explain=True))
            assert {one.source for one in reply.results[:3]} == where(word)
            assert [one.score for one in reply.results] == sorted((one.score for one in reply.results), reverse=True)
        for question in (f"What is {word}?", f"Who knows {word} commona?"):
            assert rag.search(question, RetrievalOptions(mode=mode)).results[0].source in where(word)
    # Of the same word in other forms, the one that was asked for comes first.
    for form in ("deploying", "deploys", "deploy", "Deploy"):
        found = [one.source for one in rag.search(form, RetrievalOptions(mode=mode)).results]
        assert set(found[: len(where(form.lower()))]) == where(form.lower())
        assert set(found[:4]) == where("deploying") | where("deploys") | where("deploy")


@pytest.mark.parametrize("rag", ["resident"], indirect=True)
def test_memory_and_database_say_the_same(rag: RAGPipeline, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    queries = [*RARE, "deploys", "deploying", *(f"{word} {common}" for word in RARE for common in COMMON[:5])]
    options = RetrievalOptions(explain=True)
    moved = 0
    with opened(dsn, tmp_path, monkeypatch, resident=False) as database:
        for query in queries:
            replies = [one.search(query, options) for one in (rag, database)]
            assert replies[0].paths["lexical"] == "resident" != replies[1].paths["lexical"]
            orders = [[(one.source, one.explain.moved_from) for one in reply.results] for reply in replies]
            assert orders[0] == orders[1]
            moved += any(rank is not None for _, rank in orders[0])
    assert moved


@pytest.mark.parametrize("rag", ["database"], indirect=True)
def test_it_says_what_was_moved(rag: RAGPipeline):
    moved = [
        (one.rank, one.explain.moved_from)
        for word in RARE
        for one in rag.search(word, RetrievalOptions(explain=True)).results
        if one.explain.moved_from is not None
    ]
    assert moved
    assert all(rank < before for rank, before in moved)


@pytest.mark.parametrize("rag", ["database"], indirect=True)
def test_who_asks_still_moves_the_order(rag: RAGPipeline):
    asker = Principal(department="hr")
    plain = [one.department for one in rag.search("zelkova").results[:3]]
    own = [one.department for one in rag.view(principal=asker).search("zelkova").results[:3]]
    assert sorted(plain) == ["hr", "it", "it"]
    assert own[0] == "hr"
