"""A change of the model while threads search, ingest, delete and erase: nobody fails, and nothing wrong is found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.ingest import reembedding

NAMES = [f"{a}{b}{c}" for a in "bdfg" for b in "aeiou" for c in "lmnr"]
ROUNDS = 3


@pytest.fixture
def rag(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RAGPipeline]:
    monkeypatch.setattr(reembedding, "BATCH_CHUNKS", 8)
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn, "index_threshold": 30},
        embedding={"provider": "hashing", "dimensions": 64},
    )
    with RAGPipeline(config) as opened:
        opened.ingest(document(name) for name in NAMES[:60])
        yield opened


def document(name: str) -> Document:
    return Document(content=f"The {name} is kept in the {name} room of {name}.", source=name, title=name)


def at_once(*work: Callable[[], None]) -> None:
    """Run the first one, and the others again and again until it ends; what fails in any of them fails here."""
    over, failures = threading.Event(), []

    def again(one: Callable[[], None]) -> None:
        try:
            while not over.is_set():
                one()
        except Exception as exc:  # noqa: BLE001 - told by the test
            failures.append(exc)

    threads = [threading.Thread(target=again, args=(one,)) for one in work[1:]]
    for thread in threads:
        thread.start()
    try:
        work[0]()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert failures == []


def test_searches_and_writers_go_on_while_the_model_changes_back_and_forth(rag: RAGPipeline):
    stable, turns = NAMES[:40], iter(range(10**9))
    options = RetrievalOptions(mode="dense", top_k=3, use_cache=False)

    def change() -> None:
        for _ in range(ROUNDS):
            rag.spaces.reembed("hashing:96", samples=0, rest=0.0)
            rag.spaces.rollback()
            rag.spaces.drop()
        rag.spaces.reembed("hashing:96", samples=0, rest=0.0)

    def search() -> None:
        name = stable[next(turns) % len(stable)]
        assert rag.search(f"the {name} room", options).results[0].source == name

    def write() -> None:
        number = next(turns)
        name = NAMES[60 + number % 10]
        rag.ingest(Document(content=f"The {name} of version {number} stands in {name}.", source=name, title=name))

    def forget() -> None:
        name = NAMES[70 + next(turns) % 5]
        (stored,) = rag.ingest([document(name)])
        rag.documents.erase([stored.document_id])

    at_once(change, search, search, write, forget)
    assert rag.maintenance.check() == [] and rag.maintenance.verify(deep=True).clean
    for name in stable:
        assert rag.search(f"the {name} room", options).results[0].source == name
