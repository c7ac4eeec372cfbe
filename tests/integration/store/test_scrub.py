"""What was erased is in none of the database's files after a scrub, and it is said where that could not be proven."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from recollect import Document, RAGConfig, RAGPipeline, Turn
from recollect.config import TemporalConfig
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import StoreError, StoreUnavailableError
from recollect.model import Scope
from recollect.pipeline.upkeep import clean_up
from recollect.store import scrub
from recollect.store.scrub import _marks_in

PLANTED = [f"Planted{kind}Quelltal" for kind in ("Body", "Title", "Path", "Tag", "Data", "Turn", "Section", "Long")]
KEPT = "KeptWordsOfAnother"


@pytest.fixture
def own(data_dir_of_its_own: Path) -> Iterator[RAGPipeline]:
    """A pipeline on an embedded server of its own."""
    config = RAGConfig.load(storage={"data_dir": data_dir_of_its_own, "dsn": None}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        yield opened


def plant(rag: RAGPipeline) -> list[str]:
    body, title, path, tag, data, turn, section, long = PLANTED
    long_text = " ".join(f"{long} stands in row {number}." for number in range(400))
    for number in range(3):
        rag.ingest(
            Document(
                content=f"# {section}\n\nThe merger with {body} closes on the {number}th of October.\n\n{long_text}",
                source=f"{path}/{number}.md",
                title=f"{title} {number}",
                tags=(tag,),
                metadata={"who": {"is": data}},
            )
        )
    rag.ingest(Document(content=f"{KEPT} for everybody in the office.", source="other"))
    rag.view(session="chat").remember(
        [Turn(role="Ada", content=f"I live in {turn}."), Turn(role="Bob", content="I see.")]
    )
    rag.recall("Where do I live?")
    rag.memory.patterns.flush()
    assert rag.facts.consolidate(min_retrievals=1).added
    return [f"{path}/{number}.md" for number in range(3)]


def on_disk(folder: Path, strings: list[str]) -> dict[str, list[str]]:
    """Which strings stand in which files: no code of ours has a part in it."""
    found = {}
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            content = file.read_bytes()
            held = [string for string in strings if string.encode() in content]
            if held:
                found[str(file.relative_to(folder))] = held
    return found


def test_what_was_erased_is_in_no_file_after_a_scrub(own: RAGPipeline, data_dir_of_its_own: Path):
    sources = plant(own)
    with own.store.database.autocommit() as connection:
        connection.execute("ANALYZE; CHECKPOINT")
    assert own.memory.forget("chat", [1]) == 1
    own.documents.erase(sources[:1])
    with own.store.database.autocommit() as connection:
        connection.execute("VACUUM")
    # It takes no byte away, and a checkpoint only what stood nowhere but in a segment of the log that came to its end.
    assert {one for held in on_disk(data_dir_of_its_own, PLANTED).values() for one in held} >= set(PLANTED[:6])
    with own.store.database.autocommit() as connection:
        connection.execute("CHECKPOINT")
    assert {one for held in on_disk(data_dir_of_its_own, PLANTED).values() for one in held} >= set(PLANTED[:5])
    receipt = own.documents.erase(sources[1:], scrub=True)
    assert {one for held in on_disk(data_dir_of_its_own, [*PLANTED, KEPT]).values() for one in held} == {KEPT}
    done = receipt.scrub
    assert receipt.complete and done is not None and done.proven and done.found == {} and done.kept == ()
    assert done.strings >= 10 and done.log_segments >= 1 and done.files > 500 and done.relations > 100
    assert not any("Write-ahead" in line for line in receipt.remains)
    assert any("fewer than 7 words" in line for line in receipt.remains)
    assert own.maintenance.check() == [] and own.maintenance.verify().clean
    assert own.store.scrubber.due() == 0
    assert [one.source for one in own.retrieve("everybody in the office")] == ["other"]
    # Read by code of ours, the files show what is in them.
    (data_dir_of_its_own / "notes.txt").write_text(f"about {PLANTED[0]}", encoding="utf-8")
    found, _, _ = scrub._search(data_dir_of_its_own, [KEPT.encode(), PLANTED[0].encode()])
    assert found.keys() == on_disk(data_dir_of_its_own, [KEPT, PLANTED[0]]).keys() and found["notes.txt"] == 1


def test_of_another_server_nothing_is_claimed(pipeline: RAGPipeline):
    sources = plant(pipeline)
    receipt = pipeline.documents.erase(sources, scrub=True)
    done = receipt.scrub
    assert done is not None and not done.proven and (done.files, done.log_segments) == (0, None)
    assert receipt.complete and done.relations > 100
    assert pipeline.maintenance.scrub(look_for=[KEPT, "short"]).held == 1
    said = " ".join(receipt.remains)
    assert "Write-ahead log" in said and "nothing was proven" in said
    assert [one.action for one in pipeline.audit.list(limit=4)] == ["scrub", "scrub", "erase_proof", "erase"]


def test_a_row_that_somebody_still_sees_is_not_taken_for_gone(
    pipeline: RAGPipeline, dsn: str, monkeypatch: pytest.MonkeyPatch
):
    pipeline.ingest(Document(content="The merger closes on the ninth of October.", source="secret"))
    with psycopg.connect(dsn) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1 FROM pg_class LIMIT 1")
        pipeline.documents.erase(["secret"])
        monkeypatch.setattr(scrub, "_PATIENCE_SECONDS", 0.0)
        with pytest.raises(StoreError, match="still sees removed rows of"):
            pipeline.maintenance.scrub()
        monkeypatch.undo()
        timer = threading.Timer(0.5, reader.rollback)
        timer.start()
        assert pipeline.maintenance.scrub().complete
        timer.join()


def test_whoever_holds_a_table_is_named_and_two_do_not_scrub_at_once(
    pipeline: RAGPipeline, dsn: str, monkeypatch: pytest.MonkeyPatch
):
    with psycopg.connect(dsn) as holder:
        holder.execute("LOCK TABLE recollect.documents IN ACCESS SHARE MODE")
        monkeypatch.setattr(scrub, "_LOCK_SECONDS", 0.05)
        with pytest.raises(StoreUnavailableError, match="the table documents"):
            pipeline.maintenance.scrub()
    with psycopg.connect(dsn) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('recollect.scrub'), 0)")
        with pytest.raises(StoreUnavailableError, match="Another process is scrubbing"):
            pipeline.maintenance.scrub()
    assert pipeline.maintenance.scrub().complete


def test_a_clean_up_scrubs_once_enough_was_erased(pipeline: RAGPipeline):
    settings = TemporalConfig(scrub_after_erased=2)
    for number in range(2):
        pipeline.ingest(Document(content=f"The merger number {number} closes.", source=f"s{number}"))
        pipeline.documents.erase([f"s{number}"])
        clean_up(pipeline.store, settings, Scope())
        assert len(pipeline.audit.list(action="scrub")) == number


def test_an_erasure_stands_where_its_scrub_could_not_be_done(
    pipeline: RAGPipeline, dsn: str, monkeypatch: pytest.MonkeyPatch
):
    pipeline.ingest(Document(content="The merger closes on the ninth of October.", source="secret"))
    monkeypatch.setattr(scrub, "_LOCK_SECONDS", 0.05)
    with psycopg.connect(dsn) as holder:
        holder.execute("LOCK TABLE recollect.facts IN ACCESS SHARE MODE")
        with pytest.raises(StoreUnavailableError, match="recollect db scrub"):
            pipeline.documents.erase(["secret"], scrub=True)
    (kept,) = pipeline.audit.list(action="erase")
    assert kept.details["probe"]["found"] == {} and not pipeline.documents.list()


def test_how_much_was_erased_since_the_last_scrub(pipeline: RAGPipeline):
    for number in range(2):
        pipeline.ingest(Document(content=f"The merger number {number} closes.", source=f"s{number}"))
    assert pipeline.store.scrubber.due() == 0
    pipeline.documents.erase(["s0", "s1"])
    assert pipeline.store.scrubber.due() == 2
    pipeline.maintenance.scrub()
    assert pipeline.store.scrubber.due() == 0


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64])
def test_a_string_is_found_across_the_blocks_that_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int):
    monkeypatch.setattr(scrub, "_BLOCK_BYTES", size)
    (tmp_path / "file").write_bytes(b"x" * 13 + b"distinctive" + b"y" * 5 + b"other words")
    assert _marks_in(tmp_path / "file", [b"distinctive", b"other words", b"missing!"]) == (2, 40)
    assert _marks_in(tmp_path / "file", []) == (0, 40)
