"""Exports, imports, backups and upgrades while other processes write, and when they are killed in the middle."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest

from hostile import EFFORT
from recollect import Document, Principal, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.model.original import Original
from recollect.store.backup import backup
from recollect.store.catalogue import differences
from recollect.store.migrate import code_schema_version, migrate, replace_schema
from recollect.store.restore import restore

STRANGER = Principal(user_id="sam")
COUNT = 20  # documents: three batches of the processes below
ROWS = Path(__file__).resolve().parents[2] / "data/rows_0001.sql"
OPEN = """
import sys
from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.ingest import documents as flow
flow.BATCH_DOCUMENTS = 8
config = RAGConfig.load(storage={"data_dir": "unused", "dsn": sys.argv[1]}, embedding={"provider": "hashing"})
rag = RAGPipeline(config, embedder=HashingEmbedder()).view(collections=sys.argv[2])
"""
WRITE = """
import itertools
for number in itertools.count():
    rag.ingest([Document(content=f"Note {one} says {number}. " * 9, source=f"note-{one}") for one in range(6)])
    rag.documents.delete([f"note-{number % 6}"])
    print(number, flush=True)
"""
IMPORT = """
from pathlib import Path
print(rag.collections.import_file(Path(sys.argv[3]), on_progress=lambda told: print(told.done, flush=True)).failed)
"""
INGEST = """
from pathlib import Path
print("begun", flush=True)
while True:
    rag.ingest(Path(sys.argv[3]), force=True)
"""
MIGRATE = "import sys; from recollect.store.migrate import migrate; print(migrate(sys.argv[1]).schema_version)"


@contextmanager
def running(code: str, *arguments: str, lines: int = 1) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that has printed some lines; killed at the end."""
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for _ in range(lines):
            assert process.stdout.readline(), "it has ended"
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("handbook")
    for number in range(COUNT):
        (folder / f"{number}.md").write_text(f"Secret {number}. " * 20, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def lines(
    handbook: Path, clone: Callable[..., AbstractContextManager[str]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """An export of the handbook, which clerks alone may read; beside it one of a collection closed to others too."""
    folder = tmp_path_factory.mktemp("export")
    with clone() as dsn:
        config = RAGConfig.load(storage={"data_dir": folder, "dsn": dsn}, embedding={"provider": "hashing"})
        with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
            rag.ingest(handbook, permissions=["role:clerk"])
            (folder / "lines.jsonl").write_text("".join(rag.collections.export_lines()), encoding="utf-8")
            rag.grants.set_collection(readers=["role:clerk"])
            (folder / "closed.jsonl").write_text("".join(rag.collections.export_lines()), encoding="utf-8")
    return folder / "lines.jsonl"


def test_an_import_that_is_killed_while_its_folder_is_ingested_is_completed(
    pipeline: RAGPipeline, dsn: str, handbook: Path, lines: Path
):
    pipeline.collections.create("to")
    with running(OPEN + INGEST, dsn, "to", str(handbook)):
        for batches in (1, 2):
            with running(OPEN + IMPORT, dsn, "to", str(lines), lines=batches):
                pass
    to = pipeline.view(collections="to")
    assert to.collections.import_file(lines).failed == 0
    assert to.ingest(handbook).failed == 0
    assert len(to.documents.list(limit=1_000)) == COUNT
    assert not to.view(principal=STRANGER).documents.list()
    assert pipeline.maintenance.verify().clean and pipeline.maintenance.check() == []


def test_two_imports_of_a_file_at_once_store_everything_once(pipeline: RAGPipeline, dsn: str, lines: Path):
    command = [sys.executable, "-c", OPEN + IMPORT, dsn, "to", str(lines.with_name("closed.jsonl"))]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0].split()[-1] for process in both] == ["0", "0"]
    to = pipeline.view(collections="to")
    assert len(to.documents.list(limit=1_000)) == COUNT
    assert to.grants.of_collection().readers == ("role:clerk",)
    assert pipeline.maintenance.verify().clean


def test_exports_while_others_write_hold_whole_documents(pipeline: RAGPipeline, dsn: str, tmp_path: Path):
    with running(OPEN + WRITE, dsn, "busy", lines=2):
        for number in range(2 * EFFORT):
            lines = [json.loads(line) for line in pipeline.view(collections="busy").collections.export_lines()]
            file = tmp_path / "busy.jsonl"
            file.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
            copy = pipeline.view(collections=f"copy-{number}")
            assert copy.collections.import_file(file).added == len(lines)
            assert {one.source for one in copy.documents.list()} == {line["source"] for line in lines}
            assert all(line["chunks"] for line in lines)
    assert pipeline.maintenance.verify().clean


def test_a_document_that_is_erased_while_it_is_exported_is_left_out_or_whole(pipeline: RAGPipeline, tmp_path: Path):
    upload = (Original.of_bytes(f"Note {n}.".encode(), name=f"{n}.txt", mime_type="text/plain") for n in range(5))
    for job in pipeline.jobs.upload(list(upload)):
        pipeline.jobs.wait(job.job_id)
    lines = pipeline.collections.export_lines(originals=True)
    exported = [next(lines)]
    pipeline.documents.erase(["2.txt", "3.txt"])
    exported += lines
    (tmp_path / "lines.jsonl").write_text("".join(exported), encoding="utf-8")
    report = pipeline.view(collections="copy").collections.import_file(tmp_path / "lines.jsonl")
    assert report.failed == 0, report.errors


def test_an_export_goes_on_when_the_collection_gets_another_model(pipeline: RAGPipeline, tmp_path: Path):
    pipeline.ingest([Document(content=f"Note {number}.", source=str(number)) for number in range(40)])
    lines = pipeline.collections.export_lines()
    exported = [next(lines)]
    pipeline.spaces.reembed("hashing:96")
    pipeline.ingest(Document(content="It came later.", source="later"))
    exported += lines
    assert {json.loads(line)["source"] for line in exported} == {*map(str, range(40)), "later"}
    (tmp_path / "lines.jsonl").write_text("".join(exported), encoding="utf-8")
    assert pipeline.view(collections="copy").collections.import_file(tmp_path / "lines.jsonl").added == 41


def test_backups_of_a_store_that_others_import_into_are_of_one_moment(
    dsn: str, lines: Path, tmp_path: Path, clone: Callable[..., AbstractContextManager[str]]
):
    with (
        running(OPEN + IMPORT, dsn, "to", str(lines)),
        running(OPEN + WRITE, dsn, "busy", lines=1),
    ):
        backup(dsn, tmp_path / "one.backup")
    with clone() as other:
        restore(other, tmp_path / "one.backup")
        config = RAGConfig.load(storage={"data_dir": tmp_path, "dsn": other}, embedding={"provider": "hashing"})
        with RAGPipeline(config, embedder=HashingEmbedder()) as restored:
            assert restored.maintenance.verify().clean and restored.maintenance.check() == []
            to = restored.view(collections="to")
            assert not to.view(principal=STRANGER).documents.list()
            assert to.collections.import_file(lines).failed == 0
            assert len(to.documents.list(limit=1_000)) == COUNT


def test_a_restore_that_is_killed_leaves_the_store_as_it_was(pipeline: RAGPipeline, dsn: str, tmp_path: Path):
    pipeline.ingest(Document(content="Before.", source="a"))
    backup(dsn, tmp_path / "one.backup")
    pipeline.ingest(Document(content="Behind.", source="b"))
    code = (
        "import sys; from pathlib import Path; from recollect.store import restore\n"
        "def killed(connection): print('loaded', flush=True); sys.stdin.read()\n"
        "restore.complete_schema = killed\n"
        "restore.restore(sys.argv[1], Path(sys.argv[2]), force=True)"
    )
    pipeline.close()
    with running(code, dsn, str(tmp_path / "one.backup")):
        pass
    with RAGPipeline(pipeline.config, embedder=HashingEmbedder()) as again:
        assert sorted(one.source for one in again.documents.list()) == ["a", "b"]
        assert again.maintenance.verify().clean


def test_upgrades_that_are_killed_are_completed(clone: Callable[..., AbstractContextManager[str]]):
    with clone("template0") as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            replace_schema(connection, 1)
            connection.execute("SET search_path = recollect, public")
            connection.execute(ROWS.read_text(encoding="utf-8"))
            connection.execute("RESET search_path")
            reached = [1]
            # Whoever holds a lock on the migrations' table has an upgrade wait in the middle, where it is killed.
            for _ in range(1 + EFFORT):
                with psycopg.connect(dsn) as holder, running(f"print(flush=True); {MIGRATE}", dsn):
                    holder.execute("LOCK TABLE recollect.schema_routines")
                reached.append(connection.execute("SELECT max(version) FROM recollect.schema_migrations").fetchone()[0])
            assert reached == sorted(reached)
        both = [subprocess.Popen([sys.executable, "-c", MIGRATE, dsn], stdout=subprocess.PIPE, text=True) for _ in "ab"]
        assert [process.communicate()[0].strip() for process in both] == [str(code_schema_version())] * 2
        with psycopg.connect(dsn) as connection:
            assert differences(connection) == []
        assert migrate(dsn).applied == ()
