"""Originals of documents: kept once, given out as they came, read anew, gone with the last version that has them."""

from __future__ import annotations

import hashlib
import json
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from recollect import Document, Principal, RAGConfig, RAGPipeline
from recollect.documents.reader import read_bytes
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import (
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    QuotaExceededError,
    RecollectError,
    StoreError,
    UsageError,
)
from recollect.llm.scripted import ScriptedChatModel
from recollect.model.document_session import SessionConfig
from recollect.model.original import PIECE_BYTES, Original
from recollect.model.tenant import TenantQuota

PAGE = b"<html><head><title>Leave</title></head><body><h1>Leave</h1><p>Thirty days a year.</p></body></html>"


def upload(text: str = "Thirty days of leave a year.", name: str = "leave.txt", data: bytes | None = None) -> Document:
    raw = text.encode() if data is None else data
    return replace(
        Document(content=text, source=name, file_hash=hashlib.sha256(raw).digest()),
        original=Original.of_bytes(raw, name=name, mime_type="text/plain"),
    )


def kept(dsn: str) -> tuple[int, int, int]:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM recollect.originals), (SELECT count(*) FROM recollect.original_pieces),"
            " (SELECT count(*) FROM recollect.version_originals)"
        ).fetchone()
    assert row is not None
    return row


def test_an_upload_is_given_out_as_it_came(pipeline: RAGPipeline, tmp_path: Path):
    written = pipeline.ingest(read_bytes(PAGE, name="leave.html"))
    original = pipeline.contents.original(written.document_id)
    assert (original.name, original.mime_type, original.byte_count) == ("leave.html", "text/html", len(PAGE))
    assert original.read() == PAGE
    original.save(tmp_path / "copy.html")
    assert (tmp_path / "copy.html").read_bytes() == PAGE
    with pytest.raises(ConflictError):
        original.save(tmp_path / "copy.html")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".original")] == []


def test_what_was_given_as_text_has_none(pipeline: RAGPipeline):
    written = pipeline.ingest("Only a text.")
    with pytest.raises(NotFoundError, match="was not kept"):
        pipeline.contents.original(written.document_id)
    with pytest.raises(NotFoundError, match="no document"):
        pipeline.contents.original(written.document_id + 1)


@pytest.mark.parametrize(("keep", "of_upload", "of_folder"), [("never", 0, 0), ("uploads", 1, 0), ("always", 1, 1)])
def test_the_configuration_says_whose_originals_are_kept(
    dsn: str, tmp_path: Path, keep: str, of_upload: int, of_folder: int
):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "rules.md").write_text("# Rules\n\nNo smoking.\n")
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        ingest={"keep_originals": keep},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        rag.ingest(upload())
        assert kept(dsn)[0] == of_upload
        rag.ingest(folder)
        assert kept(dsn)[0] == of_upload + of_folder
        if of_folder:
            document = rag.documents.get("rules.md").document_id
            assert rag.contents.original(document).read() == b"# Rules\n\nNo smoking.\n"


def test_equal_bytes_are_kept_once_and_go_with_the_last_document(pipeline: RAGPipeline, dsn: str):
    first = pipeline.ingest(upload(name="a.txt")).document_id
    second = pipeline.ingest(upload(name="b.txt")).document_id
    assert kept(dsn) == (1, 1, 2)
    assert pipeline.documents.erase([first]).counts["originals"] == 0
    assert pipeline.contents.original(second).read() == b"Thirty days of leave a year."
    receipt = pipeline.documents.erase([second])
    assert (receipt.counts["originals"], receipt.complete) == (1, True)
    assert kept(dsn) == (0, 0, 0)


def test_history_has_the_original_of_each_version(pipeline: RAGPipeline, dsn: str):
    written = pipeline.ingest(upload("The first text."))
    moment = pipeline.documents.history(written.document_id).versions[0].known_from
    pipeline.ingest(upload("The second text."))
    assert pipeline.contents.original(written.document_id).read() == b"The second text."
    assert pipeline.view(as_of=moment).contents.original(written.document_id).read() == b"The first text."
    pipeline.documents.restore(written.document_id, 1)
    assert pipeline.contents.original(written.document_id).read() == b"The first text."
    assert kept(dsn) == (2, 2, 3)


def test_an_unchanged_text_in_other_bytes_has_the_latest_original(pipeline: RAGPipeline, dsn: str):
    document = pipeline.ingest(upload("Same words.", data=b"Same words.")).document_id
    assert pipeline.ingest(upload("Same words.", data=b"Same words.\r\n")).status == "unchanged"
    assert pipeline.contents.original(document).read() == b"Same words.\r\n"
    assert kept(dsn) == (1, 1, 1)
    with_text_alone = pipeline.ingest(Document(content="Same words.", source="leave.txt"))
    assert with_text_alone.status == "unchanged"
    assert kept(dsn) == (1, 1, 1)


def test_originals_go_with_collections_sessions_and_tenants(pipeline: RAGPipeline, dsn: str):
    pipeline.view(collections="other").ingest(upload())
    pipeline.collections.delete("other")
    assert kept(dsn) == (0, 0, 0)
    pipeline.sessions.create("mine", SessionConfig(max_documents=1, when_full="oldest"))
    session = pipeline.view(session="mine")
    session.ingest(upload("One."))
    session.ingest(upload("Two.", name="two.txt"))
    assert kept(dsn) == (1, 1, 1)
    pipeline.sessions.end("mine")
    assert kept(dsn) == (0, 0, 0)
    pipeline.tenants.create("acme")
    pipeline.view(tenant="acme").ingest(upload())
    receipt = pipeline.tenants.erase("acme")
    assert (receipt.rows["originals"], receipt.rows["original_pieces"], receipt.rows["version_originals"]) == (1, 1, 1)
    assert kept(dsn) == (0, 0, 0)


def test_nobody_is_given_what_they_may_not_read(pipeline: RAGPipeline):
    secret = pipeline.ingest(replace(upload(), permissions=("role:hr",))).document_id
    guest = pipeline.view(principal=Principal(user_id="ann"))
    with pytest.raises(NotFoundError, match="no document"):
        guest.contents.original(secret)
    with pytest.raises(NotFoundError):
        guest.documents.reread(secret)
    reader = pipeline.view(principal=Principal(user_id="bob", roles=("hr",)))
    assert reader.contents.original(secret).read()
    with pytest.raises(PermissionDeniedError):
        reader.documents.reread(secret)
    pipeline.tenants.create("acme")
    with pytest.raises(NotFoundError):
        pipeline.view(tenant="acme").contents.original(secret)


def test_originals_count_as_bytes_of_the_tenant(pipeline: RAGPipeline, dsn: str):
    pipeline.tenants.create("acme", quota=TenantQuota(max_bytes=1_000))
    acme = pipeline.view(tenant="acme")
    acme.ingest(upload("Short.", data=b"x" * 500))
    assert pipeline.tenants.get("acme").bytes == 506
    with pytest.raises(QuotaExceededError):
        acme.ingest(upload("Long.", name="long.txt", data=b"y" * 500))
    with pytest.raises(QuotaExceededError):
        acme.ingest(upload("Short.", data=b"z" * 5_000))
    assert kept(dsn) == (1, 1, 1)


def test_a_large_original_is_never_whole_in_memory(pipeline: RAGPipeline, tmp_path: Path):
    size = 24 * PIECE_BYTES + 17
    large = tmp_path / "large.bin"
    with large.open("wb") as file:
        for number in range(size // 1_024 + 1):
            file.write(number.to_bytes(4) * 256)
        file.truncate(size)
    pipeline.ingest("Warm.")
    original = Original.of_file(large, mime_type="application/octet-stream")
    tracemalloc.start()
    try:
        written = pipeline.ingest(Document(content="A large file.", source="large", original=original))
        pipeline.contents.original(written.document_id).save(tmp_path / "out.bin")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert hashlib.sha256((tmp_path / "out.bin").read_bytes()).digest() == original.file_hash
    assert peak < 12 * PIECE_BYTES


def test_a_file_that_changes_on_its_way_is_refused_whole(pipeline: RAGPipeline, dsn: str, tmp_path: Path):
    path = tmp_path / "log.txt"
    path.write_bytes(b"before")
    original = Original.of_file(path, mime_type="text/plain")
    path.write_bytes(b"after!")
    with pytest.raises(UsageError, match="changed while it was stored"):
        pipeline.ingest(Document(content="A log.", source="log.txt", original=original))
    assert kept(dsn) == (0, 0, 0)
    assert not pipeline.documents.list()


def test_what_breaks_off_in_the_middle_leaves_nothing(pipeline: RAGPipeline, dsn: str):
    def pieces() -> Iterator[bytes]:
        yield b"x" * PIECE_BYTES
        raise OSError(28, "No space left on device")

    original = Original(name="a", mime_type="b", byte_count=9 * PIECE_BYTES, file_hash=b"h" * 32, opened=pieces)
    with pytest.raises((OSError, RecollectError)):
        pipeline.ingest(Document(content="A text.", source="a", original=original))
    assert kept(dsn) == (0, 0, 0)
    assert not pipeline.documents.list()


def test_writers_of_the_same_bytes_and_erasers_meet_without_losing_any(pipeline: RAGPipeline, dsn: str):
    failures: list[RecollectError] = []
    pipeline.ingest("Warm.")

    def work(number: int) -> None:
        try:
            for turn in range(6):
                name = f"{number}-{turn}.txt"
                written = pipeline.ingest([upload("One.", name=name), upload("Two.", name=f"x{name}")])
                if turn % 2:
                    pipeline.documents.erase([one.document_id for one in written])
        except RecollectError as exc:
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert kept(dsn) == (2, 2, 18)
    for entry in pipeline.contents.list(name=".txt"):
        assert pipeline.contents.original(entry.document_id).read() in {b"One.", b"Two."}


def test_verify_finds_damaged_and_lone_originals(pipeline: RAGPipeline, dsn: str):
    document = pipeline.ingest(upload()).document_id
    assert not [check for check in pipeline.maintenance.verify().checks if check.found]
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE recollect.original_pieces SET data = 'other'")
        connection.execute("INSERT INTO recollect.originals (tenant_id, file_hash, byte_count) VALUES (1, '\\x00', 0)")
    report = pipeline.maintenance.verify(repair=True)
    assert [(check.name, check.found, check.repaired) for check in report.checks if check.found] == [
        ("originals", 2, 1)
    ]
    with pytest.raises(StoreError, match="damaged"):
        pipeline.contents.original(document).read()


def test_a_document_is_read_anew(pipeline: RAGPipeline):
    uploaded = read_bytes(PAGE, name="leave.html")
    written = pipeline.ingest(
        replace(uploaded, content="Badly read.", headings=(), title="Given", tags=("hr",), metadata={"team": "people"})
    )
    pipeline.grants.add("role:hr", documents=written.document_id)
    anew = pipeline.documents.reread(written.document_id)
    assert (anew.status, anew.version) == ("updated", 2)
    record = pipeline.documents.get(written.document_id)
    assert "Thirty days a year." in (record.content or "")
    assert (record.title, record.tags) == ("Given", ("hr",))
    assert record.metadata["team"] == "people"
    assert "role:hr" in str(pipeline.grants.of_documents(written.document_id))
    assert pipeline.documents.reread(written.document_id).status == "unchanged"
    assert pipeline.documents.reread(written.document_id, force=True).version == 3
    assert pipeline.contents.original(written.document_id).read() == PAGE


def test_the_owner_reads_anew_what_a_writer_stored(pipeline: RAGPipeline):
    pipeline.collections.ensure("default")
    pipeline.grants.set_collection(writers=["user:ann"])
    ann = pipeline.view(principal=Principal(user_id="ann"))
    written = ann.ingest(replace(read_bytes(PAGE, name="leave.html"), content="Badly read."))
    assert pipeline.documents.reread(written.document_id).version == 2
    assert ann.documents.reread(written.document_id, force=True).version == 3
    assert len(pipeline.documents.list()) == 1


def test_an_export_of_a_tenant_holds_its_originals(pipeline: RAGPipeline, tmp_path: Path):
    pipeline.ingest(upload(name="../../etc/pass wd.txt", data=b"\x00raw\xff"))
    pipeline.tenants.export("default", tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "tenant.json").read_text())
    (entry,) = manifest["originals"]
    assert entry["name"] == "../../etc/pass wd.txt"
    assert entry["sha256"] == hashlib.sha256(b"\x00raw\xff").hexdigest()
    assert (tmp_path / "out" / entry["file"]).read_bytes() == b"\x00raw\xff"
    assert not (tmp_path / "out" / "tables" / "original_pieces.jsonl").exists()


def test_an_export_and_an_import_give_the_same_store(pipeline: RAGPipeline, tmp_path: Path):
    page = "# Leave\n\nThirty days a year.\n\n# Pay\n\nOn the twenty-fifth."
    config = pipeline.config.model_copy(
        update={"ingest": pipeline.config.ingest.model_copy(update={"contextualise": "openai/m"})}
    )
    model = ScriptedChatModel("Leave and pay of the office, thirty days.")
    with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=model) as rag:
        rag.ingest(read_bytes(page.encode(), name="leave.md"))
        rag.ingest(upload("A plain note.", name="note.txt", data=b"A plain note.\r\n"))
        rag.maintenance.write_contexts()
        assert len(model.calls) == 3, "one for each of the two sections, which are chunks, and one for the note"
        file = tmp_path / "all.jsonl"
        file.write_text("".join(rag.collections.export_lines(originals=True)), encoding="utf-8")
        other = rag.view(collections="other")
        assert (other.collections.import_file(file).added, len(model.calls)) == (2, 3)
        assert "".join(other.collections.export_lines(originals=True)) == file.read_text(encoding="utf-8")
        numbers = {one.source: one.document_id for one in other.documents.list()}
        assert other.contents.original(numbers["leave.md"]).read() == page.encode()
        assert other.contents.original(numbers["note.txt"]).read() == b"A plain note.\r\n"
        assert [one.title for one in other.contents.outline(numbers["leave.md"]).headings] == ["Leave", "Pay"]
        assert other.maintenance.estimate_contexts().chunks == 0, "what is situated is not asked for again"
        assert other.collections.import_file(file).unchanged == 2
        assert rag.maintenance.verify().clean
        assert '"original"' not in "".join(rag.collections.export_lines())


def test_a_line_that_holds_something_else_than_it_says_is_refused(pipeline: RAGPipeline, tmp_path: Path):
    for broken, said in [
        ({"original": {"name": "a", "mime_type": "t", "sha256": "00", "data": "QQ=="}}, "not the one of its hash"),
        ({"original": {"name": "a", "mime_type": "t", "sha256": "00", "data": "Q"}}, "base64"),
        ({"headings": [[1, "A", 0, 99]]}, "outside its content"),
        ({"pages": [[1, 5, 2]]}, "outside its content"),
        ({"pages": [[1, 0, 2, "eJxj"]]}, "is not what lines of a page are packed to"),
        ({"pages": [[1, 0, 2, [[0, 9999, 0, 0, 0, 0]]]]}, "outside its content"),
    ]:  # fmt: skip
        file = tmp_path / "bad.jsonl"
        file.write_text(json.dumps({"content": "A note.", "source": "a", **broken}), encoding="utf-8")
        report = pipeline.collections.import_file(file)
        assert (report.added, report.failed) == (0, 1)
        assert said in report.errors[0].error
