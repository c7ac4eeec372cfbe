"""Chunkers, rerankers and retrievers of somebody's own, by name."""

from __future__ import annotations

import math
from importlib import metadata

import pytest

from recollect import Document, Principal, RAGConfig, RAGPipeline, RetrievalOptions, RetrievedContext
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ConfigurationError, PluginError, UsageError
from recollect.model import Chunk
from recollect.retrieval.rerank.base import Candidate

TEXT = "Annual leave is thirty days.\nSalaries are paid on the 25th.\nThe office closes at six.\n"


class Lines:
    """Cuts at line breaks, so many lines a chunk."""

    def __init__(self, *, lines: int = 1) -> None:
        self.lines = lines

    def chunk(self, document: Document) -> list[Chunk]:
        pieces, chunks, start = document.content.splitlines(keepends=True), [], 0
        for at in range(0, len(pieces), self.lines):
            text = "".join(pieces[at : at + self.lines])
            chunks.append(Chunk(text=text, position=len(chunks), start_offset=start, end_offset=start + len(text)))
            start += len(text)
        return chunks


class Backwards:
    def rerank(self, query: str, candidates: list[Candidate]) -> list[float]:
        return [-one.score for one in candidates]


def passage(content: str, **given) -> RetrievedContext:
    values = {
        "rank": 1,
        "score": 1.0,
        "content": content,
        "chunk_id": 7,
        "document_id": 7,
        "title": "Board",
        "source": "board",
        "section": None,
        "page": None,
        "start_offset": 0,
        "end_offset": len(content),
        "metadata": {},
    }
    return RetrievedContext(**values | given)


class Board:
    def retrieve(self, query: str, options: RetrievalOptions) -> list[RetrievedContext]:
        return [passage(f"{query}: answered {number} of {options.top_k}") for number in range(100)]


PARTS = {"chunkers": {"lines": Lines}, "rerankers": {"backwards": Backwards()}, "retrievers": {"board": Board}}


@pytest.fixture
def opened(dsn, tmp_path):
    made = []

    def opening(*, file: str = "", **parts) -> RAGPipeline:
        path = tmp_path / "recollect.toml"
        path.write_text(file)
        storage = {"data_dir": tmp_path / "unused", "dsn": dsn}
        config = RAGConfig.load(path, storage=storage, embedding={"provider": "hashing"})
        made.append(RAGPipeline(config, embedder=HashingEmbedder(), **parts))
        return made[-1]

    yield opening
    for one in made:
        one.close()


@pytest.fixture
def installed(monkeypatch):
    """Entry points of another package."""

    def install(group: str, name: str, value: object) -> None:
        class Point:
            def __init__(self) -> None:
                self.name, self.value = name, "company_parts:Part"

            def load(self):
                if isinstance(value, Exception):
                    raise value
                return value

        own = metadata.entry_points
        monkeypatch.setattr(
            metadata, "entry_points", lambda **at: [*own(**at), *([Point()] if at.get("group") == group else [])]
        )

    return install


def test_parts_are_named_in_python(opened):
    rag = opened(**PARTS)
    rag.collections.create("cut", chunking={"strategy": "lines", "lines": 2})
    cut = rag.view(collections="cut")
    assert cut.ingest(Document(content=TEXT, source="a.md")).chunk_count == 2
    assert dict(cut.collections.get("cut").chunking) == {"strategy": "lines", "algorithm": 1, "lines": 2}
    plain = cut.search("annual salaries office", RetrievalOptions(rerank="none"))
    moved = cut.search("annual salaries office", RetrievalOptions(rerank="backwards", explain=True))
    assert moved.reranked and moved.explain.reranker == "backwards"
    assert [one.chunk_id for one in moved.results] == [one.chunk_id for one in plain.results][::-1]
    found = rag.search("who", RetrievalOptions(mode="board", top_k=3))
    assert (found.mode, [one.content for one in found.results]) == (
        "board",
        ["who: answered 0 of 3", "who: answered 1 of 3", "who: answered 2 of 3"],
    )
    assert [one.rank for one in found.results] == [1, 2, 3]
    assert "who: answered 0 of" in rag.context("who", RetrievalOptions(mode="board")).text


def test_parts_are_named_in_the_settings(opened):
    rag = opened(
        file='[rag.chunking]\nstrategy = "lines"\nlines = 3\n[rag.retrieval]\nrerank = "backwards"\nmode = "board"\n',
        **PARTS,
    )
    assert rag.ingest(Document(content=TEXT, source="a.md")).chunk_count == 1
    assert rag.search("who").mode == "board"
    assert rag.search("leave", RetrievalOptions(mode="hybrid", explain=True)).explain.reranker == "backwards"


def test_a_chunker_that_is_unchanged_leaves_documents_alone(opened):
    rag = opened(file='[rag.chunking]\nstrategy = "lines"\n', **PARTS)
    rag.ingest(Document(content=TEXT, source="a.md"))
    again = opened(file='[rag.chunking]\nstrategy = "lines"\n', **PARTS)
    assert again.ingest(Document(content=TEXT, source="a.md")).status == "unchanged"


def test_entry_points_declare_parts(opened, installed):
    installed("recollect.chunkers", "lines", Lines)
    installed("recollect.rerankers", "backwards", Backwards)
    installed("recollect.retrievers", "board", Board)
    rag = opened(file='[rag.chunking]\nstrategy = "lines"\n[rag.retrieval]\nrerank = "backwards"\n')
    assert rag.ingest(Document(content=TEXT, source="a.md")).chunk_count == 3
    assert rag.search("leave", RetrievalOptions(explain=True)).explain.reranker == "backwards"
    assert rag.search("who", RetrievalOptions(mode="board")).results[0].source == "board"


def test_what_cannot_be_plugged_in_is_refused_when_the_pipeline_is_made(opened):
    for parts, message in [
        ({"chunkers": {"recursive": Lines}}, "chunking strategy 'recursive' of its own"),
        ({"rerankers": {"consensus": Backwards}}, "reranker 'consensus' of its own"),
        ({"rerankers": {"none": Backwards}}, "reranker 'none' of its own"),
        ({"retrievers": {"hybrid": Board}}, "retriever 'hybrid' of its own"),
        ({"chunkers": {"mine": object()}}, "'mine' cannot be used: object has no chunk"),
        ({"rerankers": {"mine": Lines}}, "'mine' cannot be used: Lines has no rerank"),
        ({"retrievers": {"mine": Lines()}}, "'mine' cannot be used: Lines has no retrieve"),
        ({"retrievers": {" ": Board}}, "name of a retriever"),
    ]:
        with pytest.raises(UsageError, match=message):
            opened(**parts)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ('[rag.chunking]\nstrategy = "mine"\n', "rag.chunking: There is no chunking strategy 'mine'"),
        ('[rag.retrieval]\nrerank = "mine"\n', "rag.retrieval.rerank: There is no reranker 'mine'"),
        (
            '[rag.retrieval]\nmode = "mine"\n',
            "rag.retrieval.mode: There is no retriever 'mine'; there are board, dense",
        ),
        ('[rag.chunking]\nstrategy = "lines"\nwidth = 3\n', "no parameter 'width'; it has lines"),
    ],
)
def test_what_is_configured_and_does_not_exist_is_refused_when_the_pipeline_is_made(opened, file, message):
    with pytest.raises(ConfigurationError, match=message):
        opened(file=file, **PARTS)


def test_names_that_do_not_exist_are_refused_before_a_search(opened):
    rag = opened()
    with pytest.raises(UsageError, match="There is no reranker 'nope'"):
        rag.search("leave", RetrievalOptions(rerank="nope"))
    with pytest.raises(UsageError, match="There is no retriever 'nope'; there are dense, hybrid, lexical"):
        rag.search("leave", RetrievalOptions(mode="nope"))


@pytest.mark.parametrize("broken", [ImportError("no module named company"), object()])
def test_an_entry_point_that_is_broken_is_named(opened, installed, broken):
    installed("recollect.rerankers", "mine", broken)
    with pytest.raises(PluginError, match=r"reranker 'mine'.*(cannot be imported: ImportError|has no rerank)"):
        opened().search("leave", RetrievalOptions(rerank="mine"))


def cutting(change):
    """A chunker whose chunks are changed."""

    class Changed(Lines):
        def chunk(self, document: Document) -> list[Chunk]:
            return change(super().chunk(document)) if "bad" in document.content else super().chunk(document)

    return Changed()


def raising(_):
    raise ZeroDivisionError("by zero")


def moved(chunks):
    one = chunks[1]
    return [
        chunks[0],
        Chunk(text=one.text, position=1, start_offset=one.start_offset + 1, end_offset=one.end_offset + 1),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (raising, "failed on 'b.md': ZeroDivisionError: by zero"),
        (moved, r"gave wrong chunks on 'b.md': chunk 1 \(\d+ to \d+\) does not hold"),
        (lambda chunks: chunks[:-1], r"characters from \d+ on are in no chunk"),
        (lambda chunks: chunks[::-1], "chunk 0 .* out of order"),
        (lambda _: ["text"], "number 0 is no Chunk, but str"),
        (lambda _: None, "TypeError"),
        (lambda chunks: [], "characters from 0 on are in no chunk"),
    ],
)
def test_a_chunker_that_fails_is_named_and_nothing_is_lost(opened, tmp_path, change, message):
    rag = opened(file='[rag.chunking]\nstrategy = "mine"\n', chunkers={"mine": cutting(change)})
    rag.ingest(Document(content="Old leave: twenty days.\nOld line.\n", source="b.md"))
    with pytest.raises(PluginError, match=f"chunking strategy 'mine' .*{message}"):
        rag.ingest(Document(content="A bad line.\nNext line.\nLast line.\n", source="b.md"))
    assert "twenty" in rag.retrieve("old leave")[0].content
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "bad.md").write_text("bad one\nbad two\nbad three\n")
    (folder / "good.md").write_text("A good line on parking.\n")
    report = rag.ingest(folder)
    (error,) = report.errors
    assert error.path.endswith("bad.md") and "'mine'" in error.error
    assert "parking" in rag.retrieve("parking")[0].content


def scoring(give):
    class Scoring:
        def rerank(self, query, candidates):
            return give(candidates)

    return Scoring()


@pytest.mark.parametrize(
    "give",
    [
        raising,
        lambda candidates: [math.nan for _ in candidates],
        lambda candidates: [1.0],
        lambda candidates: None,
        lambda candidates: ["high" for _ in candidates],
    ],
)
def test_a_reranker_that_fails_is_named_and_nothing_is_lost(opened, give):
    rag = opened(rerankers={"mine": scoring(give)})
    rag.ingest([Document(content=line, source=f"{line}.md") for line in TEXT.splitlines()])
    plain = rag.search("leave salaries", RetrievalOptions(rerank="none"))
    reply = rag.search("leave salaries", RetrievalOptions(rerank="mine"))
    assert [one.chunk_id for one in reply.results] == [one.chunk_id for one in plain.results]
    assert reply.reranked is False and reply.warnings == (
        "The reranker 'mine' failed: the passages are in the order before it.",
    )
    assert plain.warnings == ()


@pytest.mark.parametrize(
    ("give", "message"),
    [
        (raising, "failed: ZeroDivisionError: by zero"),
        (lambda _: None, "no list of passages, but NoneType"),
        (lambda _: ["text"], "no RetrievedContext, but str"),
        (lambda _: [passage("a", relevance=math.nan)], "relevance does not lie between"),
        (lambda _: [passage("a", relevance=2.0)], "relevance does not lie between"),
        (lambda _: [passage("a", score=math.inf)], "score is no finite number"),
        (lambda _: [passage("abc", end_offset=2)], "its offsets, 0 to 2, are not those of its 3 characters"),
        (lambda _: [passage("a", source=None)], "source is no str"),
    ],
)
def test_a_retriever_that_fails_is_named(opened, give, message):
    class Mine:
        def retrieve(self, query, options):
            return give(query)

    rag = opened(retrievers={"mine": Mine()})
    with pytest.raises(PluginError, match=f"The retriever 'mine' .*{message}"):
        rag.search("leave", RetrievalOptions(mode="mine"))


def test_a_retriever_answers_for_somebody_only_if_it_is_told_for_whom(opened):
    class Scoped:
        def retrieve(self, query, options, *, scope):
            return [passage(f"for {scope.principal.user_id if scope.principal else 'the owner'}")]

    rag = opened(retrievers={"board": Board(), "scoped": Scoped()})
    ada = rag.view(principal=Principal(user_id="ada"))
    with pytest.raises(UsageError, match="'board' knows neither who asks"):
        ada.search("x", RetrievalOptions(mode="board"))
    with pytest.raises(UsageError, match="'board' knows neither who asks"):
        rag.view(as_of="1d").search("x", RetrievalOptions(mode="board"))
    assert ada.search("x", RetrievalOptions(mode="scoped")).results[0].content == "for ada"
    assert rag.search("x", RetrievalOptions(mode="scoped")).results[0].content == "for the owner"
