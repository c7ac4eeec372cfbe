"""Folders into the store: what becomes of each file, run after run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.documents.walk import SkippedFile
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, ProviderError, StoreError, UsageError
from recollect.ingest import folder as folder_module
from recollect.ingest.report import IngestProgress, IngestReport
from recollect.model import Scope
from unit.documents.made_bombs import document, pdf_stream


class CountingEmbedder(HashingEmbedder):
    """Counts the texts it embeds, and fails where it is told to."""

    def __init__(self):
        super().__init__()
        self.texts = 0
        self.fail_at: int | None = None

    def embed_documents(self, texts):
        self.texts += len(texts)
        if self.fail_at is not None and self.texts >= self.fail_at:
            raise ProviderError("out of order", provider="test")
        return super().embed_documents(texts)


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def rag(dsn: str, embedder: CountingEmbedder, tmp_path: Path):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn})
    with RAGPipeline(config, embedder=embedder) as opened:
        yield opened


def fill(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return fill(
        tmp_path / "docs", {"a.txt": "alpha words", "hr/b.md": "# B\n\nbeta words", "it/deep/c.txt": "gamma words"}
    )


def tally(report: IngestReport) -> tuple[int, int, int, int, int]:
    return report.added, report.updated, report.unchanged, report.removed, report.failed


def current(rag: RAGPipeline) -> dict[str, str | None]:
    return {one.source: one.department for one in rag.documents.list(limit=10_000)}


def test_the_first_folder_is_the_department_and_unchanged_files_cost_nothing(rag, embedder, docs):
    assert tally(rag.ingest(docs)) == (3, 0, 0, 0, 0)
    assert current(rag) == {"a.txt": None, "hr/b.md": "hr", "it/deep/c.txt": "it"}
    embedded = embedder.texts
    assert tally(rag.ingest(docs)) == (0, 0, 3, 0, 0)
    (docs / "a.txt").touch()
    assert tally(rag.ingest(Path(str(docs)))) == (0, 0, 3, 0, 0)
    assert embedder.texts == embedded
    (docs / "a.txt").write_text("other words")
    assert tally(rag.ingest(docs)) == (0, 1, 2, 0, 0)
    # Forced: stored anew, yet from the cache of embeddings.
    embedded = embedder.texts
    assert tally(rag.ingest(docs, force=True)) == (0, 3, 0, 0, 0)
    assert embedder.texts == embedded
    assert rag.maintenance.check() == []


def test_sync_closes_what_disappeared_and_nothing_else(rag, docs):
    rag.ingest("given by hand")
    rag.ingest(docs)
    (docs / "hr/b.md").rename(docs / "hr/renamed.md")
    (docs / "it/deep/c.txt").unlink()
    assert tally(rag.ingest(docs)) == (1, 0, 1, 0, 0)
    assert tally(rag.ingest(docs / "it", sync=True)) == (0, 0, 0, 1, 0)
    assert tally(rag.ingest(docs, sync=True)) == (0, 0, 2, 1, 0)
    assert {"a.txt", "hr/renamed.md"} < set(current(rag))
    for file in docs.rglob("*.*"):
        file.unlink()
    assert tally(rag.ingest(docs, sync=True)) == (0, 0, 0, 2, 0)
    assert len(current(rag)) == 1
    fill(docs, {"a.txt": "alpha words"})
    assert tally(rag.ingest(docs, sync=True)) == (1, 0, 0, 0, 0)
    assert rag.maintenance.check() == []


def test_what_cannot_be_looked_into_is_not_gone(rag, docs, monkeypatch):
    rag.ingest(docs)
    walk = folder_module.walk

    def closed_to_us(roots, **options):
        for file in walk(roots, **options):
            if file.source == "it/deep/c.txt":
                yield SkippedFile(docs / "it", "it", "unreadable", "cannot be opened: Permission denied")
            elif file.source == "a.txt":
                yield SkippedFile(docs / "a.txt", "a.txt", "unreadable", "may not be read")
            else:
                yield file

    monkeypatch.setattr(folder_module, "walk", closed_to_us)
    report = rag.ingest(docs, sync=True)
    assert tally(report) == (0, 0, 1, 0, 2)
    assert len(current(rag)) == 3
    monkeypatch.setattr(
        folder_module, "walk", lambda roots, **_: iter([SkippedFile(docs, ".", "unreadable", "cannot be opened")])
    )
    assert tally(rag.ingest(docs, sync=True)) == (0, 0, 0, 0, 1)
    assert len(current(rag)) == 3


def test_links_are_not_followed_unless_asked_and_what_came_through_them_stays(rag, docs, tmp_path):
    outside = fill(tmp_path / "outside", {"secret.txt": "passwords of others", "more/notes.txt": "their notes"})
    (docs / "theirs").symlink_to(outside, target_is_directory=True)
    (docs / "hr" / "secret.txt").symlink_to(outside / "secret.txt")
    report = rag.ingest(docs)
    assert tally(report) == (3, 0, 0, 0, 0)
    assert report.skip_reasons == {"link": 2}
    report = rag.ingest(docs, follow_links=True)
    assert tally(report) == (3, 0, 3, 0, 0)
    assert {"theirs/secret.txt", "theirs/more/notes.txt", "hr/secret.txt"} < set(current(rag))
    # What is behind a link is not known, so it is not gone; without the link it is.
    assert tally(rag.ingest(docs, sync=True)) == (0, 0, 3, 0, 0)
    (docs / "theirs").unlink()
    assert tally(rag.ingest(docs, sync=True)) == (0, 0, 3, 2, 0)
    assert "hr/secret.txt" in current(rag)


def test_lock_files_and_minified_scripts_are_left_out_of_folders_and_told(rag, docs):
    fill(
        docs,
        {"web/package-lock.json": '{"name": "a"}', "web/app.js": "let a = 1;" * 400, "web/main.js": "let a = 1;\n"},
    )
    report = rag.ingest(docs)
    assert tally(report) == (4, 0, 0, 0, 0)
    assert report.skip_reasons == {"generated": 2}
    assert "web/main.js" in current(rag)
    assert tally(rag.ingest(docs / "web/package-lock.json")) == (1, 0, 0, 0, 0)


def test_files_that_explode_cost_an_error_each_and_stop_nothing(dsn, docs, tmp_path):
    bombs = {"a.docx": document(250_000), "b.pdf": pdf_stream(20_000_000), "it/c.docx": document(8_000)}
    for name, data in bombs.items():
        (docs / name).write_bytes(data)
    limits = {"parse_memory_bytes": 64 << 20, "max_characters": 20_000}
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, ingest=limits)
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        report = rag.ingest(docs)
    assert tally(report) == (3, 0, 0, 0, 3)
    said = {Path(error.path).name: error.error for error in report.errors}
    assert said["a.docx"].endswith("MiB of memory to parse (rag.ingest.parse_memory_bytes)")
    assert said["b.pdf"].endswith("MiB of memory to parse (rag.ingest.parse_memory_bytes)")
    assert said["c.docx"] == "gives more than 20,000 characters (rag.ingest.max_characters)"


def test_a_root_that_is_missing_changes_nothing(rag, docs):
    rag.ingest(docs)
    with pytest.raises(NotFoundError, match="nowhere"):
        rag.ingest([docs, docs / "nowhere"], sync=True)
    assert len(current(rag)) == 3


def test_the_same_file_by_any_path_is_the_same_document(rag, docs, tmp_path, monkeypatch):
    assert tally(rag.ingest(docs / "hr" / "b.md")) == (1, 0, 0, 0, 0)
    first = rag.documents.get("b.md").document_id
    # The folder around it takes it over, and it has a department from then on.
    assert tally(rag.ingest(docs)) == (2, 1, 0, 0, 0)
    assert rag.documents.get("hr/b.md").document_id == first
    assert current(rag) == {"a.txt": None, "hr/b.md": "hr", "it/deep/c.txt": "it"}
    (tmp_path / "link").symlink_to(docs)
    monkeypatch.chdir(docs)
    for paths in (
        [docs / "hr"], [docs / "hr" / "b.md"], ["hr"], ["."], [tmp_path / "link"], [tmp_path / "link" / "hr" / "b.md"],
        [docs, docs / "hr", "hr/b.md", docs],
    ):  # fmt: skip
        report = rag.ingest([Path(path) for path in paths], sync=True)
        assert (report.added, report.updated, report.removed, report.failed) == (0, 0, 0, 0), paths
    assert len(current(rag)) == 3
    # Inside a larger folder still, it is taken over once more.
    assert tally(rag.ingest(tmp_path)) == (0, 3, 0, 0, 0)
    assert tally(rag.ingest(tmp_path, sync=True)) == (0, 0, 3, 0, 0)
    assert rag.maintenance.check() == []


def test_a_document_under_two_sources_is_held_once_after_the_next_run(rag, docs):
    """As two processes leave it that begin at once, one on a folder, the other on a folder inside it."""
    rag.ingest(docs)
    rename = "UPDATE sources SET name = %s WHERE name = %s"
    with rag.store.database.transaction(Scope()) as connection:
        connection.execute(rename, ("/elsewhere", str(docs)))
    rag.ingest(docs / "hr")
    with rag.store.database.transaction(Scope()) as connection:
        connection.execute(rename, (str(docs), "/elsewhere"))
    assert set(current(rag)) == {"a.txt", "b.md", "hr/b.md", "it/deep/c.txt"}
    assert tally(rag.ingest(docs)) == (0, 0, 3, 1, 0)
    assert set(current(rag)) == {"a.txt", "hr/b.md", "it/deep/c.txt"}
    assert rag.maintenance.check() == []


def test_names_that_are_no_text(rag, docs):
    (docs / "hr" / os.fsdecode(b"caf\xe9.txt")).write_bytes(b"latin words")
    report = rag.ingest(docs)
    assert tally(report) == (4, 0, 0, 0, 0)
    assert "hr/caf\\xe9.txt" in current(rag)
    assert tally(rag.ingest(docs, sync=True)) == (0, 0, 4, 0, 0)


def test_a_file_that_fails_is_reported_and_stops_nothing(rag, docs):
    (docs / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (docs / "empty.txt").write_bytes(b"")
    report = rag.ingest(docs)
    assert (report.added, report.failed) == (3, 2)
    assert {Path(error.path).name for error in report.errors} == {"broken.pdf", "empty.txt"}
    assert all(error.error for error in report.errors)


def test_progress_comes_to_the_total_in_order(rag, docs):
    told: list[IngestProgress] = []
    rag.ingest(docs, on_progress=told.append)
    files = [one for one in told if one.stage == "files"]
    assert [one.done for one in files] == sorted(one.done for one in files)
    assert files[-1].done == files[-1].total == 3
    assert told[-1].stage == "statistics"


def many(root: Path, count: int) -> Path:
    return fill(root, {f"{n % 7}/{n}.txt": f"document number {n} about topic {n % 13}\n" * 3 for n in range(count)})


def test_an_embedder_that_fails_in_the_middle_loses_nothing_that_was_stored(rag, embedder, tmp_path):
    root = many(tmp_path / "many", 200)
    embedder.fail_at = 100
    with pytest.raises(ProviderError, match="out of order"):
        rag.ingest(root)
    stored = len(current(rag))
    assert 0 < stored < 200
    assert rag.maintenance.check() == []
    embedder.fail_at = None
    assert tally(rag.ingest(root)) == (200 - stored, 0, stored, 0, 0)


def test_a_callback_that_interrupts_leaves_whole_documents(rag, tmp_path):
    root = many(tmp_path / "many", 200)

    def stop(progress: IngestProgress) -> None:
        if progress.done > 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rag.ingest(root, on_progress=stop)
    assert rag.maintenance.check() == []
    assert rag.ingest(root).failed == 0
    assert len(current(rag)) == 200


def test_a_collection_deleted_in_the_middle_is_said(rag, tmp_path):
    root = many(tmp_path / "many", 300)

    def delete(progress: IngestProgress) -> None:
        if progress.done and any(place.name == "doomed" for place in rag.collections.list()):
            rag.collections.delete("doomed")

    with pytest.raises((NotFoundError, StoreError), match="doomed"):
        rag.view(collections="doomed").ingest(root, on_progress=delete)


CHILD = """
import sys
from pathlib import Path
from recollect import RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.ingest import documents as flow
config = RAGConfig.load(storage={"dsn": sys.argv[1], "data_dir": "/nonexistent"})
flow.BATCH_DOCUMENTS = 8
holds_at = int(sys.argv[3])

def tell(progress):
    print(progress.done, flush=True)
    if progress.done >= holds_at:
        sys.stdin.readline()

with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
    print("ready", flush=True)
    sys.stdin.readline()
    report = rag.ingest(Path(sys.argv[2]), on_progress=tell)
    print("added", report.added, "failed", report.failed)
"""


def child(dsn: str, root: Path, *, holds_at: int = 10_000) -> subprocess.Popen[str]:
    """A process that is ready to ingest a folder; once so many files are done it waits for its standard input."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", CHILD, dsn, str(root), str(holds_at)], **pipes)
    assert process.stdout.readline() == "ready\n", process.communicate()
    return process


def test_two_processes_on_one_folder_leave_no_doubles(rag, dsn, tmp_path):
    root = many(tmp_path / "many", 80)
    running = [child(dsn, root) for _ in range(2)]
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    outputs = [process.communicate()[0].splitlines()[-1].split() for process in running]
    assert sum(int(words[1]) for words in outputs) == 80
    assert [words[3] for words in outputs] == ["0", "0"]
    assert len(rag.documents.list(limit=1000)) == len(current(rag)) == 80
    assert rag.maintenance.check() == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_at_any_moment_the_next_run_completes(rag, dsn, tmp_path, how):
    root = many(tmp_path / "many", 320)
    # It goes on while it is killed, but never to the end, however long this process takes to get there.
    process = child(dsn, root, holds_at=240)
    process.stdin.write("\n")
    process.stdin.flush()
    target = random.randrange(1, 160)
    while int(process.stdout.readline()) < target:
        pass
    process.send_signal(how)
    process.communicate()
    assert process.returncode != 0
    # The server notices a killed client at its next statement.
    deadline = time.monotonic() + 10
    while rag.maintenance.check() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert rag.maintenance.check() == []
    report = rag.ingest(root)
    assert report.added + report.unchanged == 320
    assert report.added >= 320 - 240 and report.unchanged
    assert rag.maintenance.check() == []


# The peak of a process starts with what its parent had when it was forked, unless it is set back.
MEMORY = """
import re, sys
from pathlib import Path
from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder

def peak_mebibytes():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024

config = RAGConfig.load(storage={"dsn": sys.argv[1], "data_dir": "/nonexistent"}, embedding={"cache": False})
with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
    rag.ingest("warm up")
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_mebibytes()
    rag.ingest(Document(content=f"document {n} " * 400, source=f"{n}") for n in range(500))
    print(peak_mebibytes() - before, len(rag.maintenance.check()))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="a process cannot set its peak back here")
def test_memory_does_not_grow_with_the_number_of_documents(dsn: str):
    done = subprocess.run([sys.executable, "-c", MEMORY, dsn], capture_output=True, text=True, check=True)
    mebibytes, findings = map(int, done.stdout.split())
    assert findings == 0
    assert mebibytes < 12, mebibytes


def test_statistics_are_fresh_after_an_ingest(rag, docs):
    rag.ingest(docs)
    place = rag.store.collections.get(Scope(), "default")
    assert (place.stats_pending, place.stats_chunks) == (0, place.chunk_count)


BAD = [
    ({"metadata": {"x": object()}}, "metadata"),
    ({"metadata": {"x": float("nan")}}, "metadata"),
    ({"metadata": {(1, 2): 1}}, "metadata"),
    ({"source": "x" * 3000}, "source"),
    ({"tags": ("t" * 3000,)}, "tag"),
    ({"tags": "abc"}, "tags"),
    ({"department": "d" * 3000}, "department"),
    ({"content": " \n "}, "no text"),
    ({"content": b"bytes"}, "must be text"),
]


def test_documents_that_cannot_be_stored_are_refused_with_a_reason(rag):
    for fields, words in BAD:
        with pytest.raises(UsageError, match=words):
            rag.ingest(Document(**{"content": "text", **fields}))
        assert rag.maintenance.check() == []


def test_characters_that_cannot_be_stored_are_replaced_everywhere(rag):
    bad = "a\0b\udcffc"
    rag.ingest(
        Document(
            content=bad,
            source=bad,
            title=bad,
            metadata={bad: [bad, {"k": bad}]},
            tags=(bad,),
            department=bad,
            mime_type=bad,
        )
    )
    good = "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"
    record = rag.documents.get(good)
    assert (record.content, record.title, record.tags, record.department) == (good, good, (good,), good)
    assert record.metadata == {good: [good, {"k": good}]}
    assert rag.retrieve("abc", RetrievalOptions(department=(good,)))[0].source == good
    assert rag.ingest(Document(content=bad, source=bad)).version >= 1
