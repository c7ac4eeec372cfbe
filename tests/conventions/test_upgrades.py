"""Every schema that was released opens in this version, with what people do with a store. As a program: keeps today's.

`tests/data/stores` has a small store of every schema: its functions and its rows. The frozen migrations make its
tables. A new migration comes with a store of its own, which this program writes, and the older stores stay as they are.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import psycopg
import pytest

from recollect import Document, Principal, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError
from recollect.model.original import Original
from recollect.store import sql
from recollect.store.backup import backup
from recollect.store.migrate import code_schema_version, replace_schema
from recollect.store.restore import restore

STORES = Path(__file__).resolve().parents[1] / "data/stores"
OLD, NEW = "Leave is thirty days a year.", "Leave is thirty-one days a year."
SECRET, BOARD = "Salaries are paid on the 25th.", "The board meets in Oslo."
CLERK, STRANGER = Principal(user_id="ann", roles=("clerk",)), Principal(user_id="sam")


def opened(dsn: str, folder: Path) -> RAGPipeline:
    config = RAGConfig.load(storage={"data_dir": folder / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    return RAGPipeline(config, embedder=HashingEmbedder(dimension=16))


def test_the_present_schema_has_a_store():
    newest = STORES / f"{code_schema_version():04}.sql"
    assert newest.exists(), f"run: python tests/conventions/{Path(__file__).name}"


@pytest.fixture(params=sorted(STORES.glob("*.sql")), ids=lambda file: file.stem)
def rag(
    request: pytest.FixtureRequest, clone: Callable[..., AbstractContextManager[str]], tmp_path: Path
) -> Iterator[RAGPipeline]:
    with clone("template0") as dsn:
        load(dsn, request.param)
        with opened(dsn, tmp_path) as view:
            yield view


def load(dsn: str, file: Path) -> None:
    """Make the store that a file holds."""
    functions, rows = file.read_text(encoding="utf-8").split("-- Rows\n")
    with psycopg.connect(dsn) as connection:
        replace_schema(connection, int(file.stem))
        connection.execute("SET LOCAL search_path = recollect, public; SET LOCAL check_function_bodies = off")
        connection.execute("TRUNCATE tenants CASCADE; SET LOCAL session_replication_role = replica")
        connection.execute(rows)
        connection.execute(functions)


def test_it_is_searched_read_and_asked_for_what_was_known(rag: RAGPipeline):
    assert rag.maintenance.check() == []
    assert rag.maintenance.verify(deep=True).clean
    assert rag.retrieve("How many days of leave?")[0].content == NEW
    assert rag.view(as_of=moment(rag)).retrieve("How many days of leave?")[0].content == OLD
    assert [one.chunk_count for one in rag.documents.history("hr/leave.md").versions] == [1, 1]
    assert rag.documents.diff("hr/leave.md", from_version=1, to_version=2).added == 1
    assert rag.contents.original(rag.documents.get("upload.txt").document_id).read() == b"Uploads are kept."
    with pytest.raises(NotFoundError):
        rag.documents.get("gone.md")
    rag.documents.restore("gone.md", 1)
    assert rag.documents.get("gone.md").content == "It was deleted."


def moment(rag: RAGPipeline):
    return rag.documents.history("hr/leave.md").versions[0].known_from


def test_who_may_read_what_stays(rag: RAGPipeline):
    words = "salaries and meetings in Oslo"
    assert {one.source for one in rag.view(principal=CLERK).retrieve(words)} >= {"hr/pay.md"}
    assert "hr/pay.md" not in {one.source for one in rag.view(principal=STRANGER).retrieve(words)}
    board = rag.view(tenant="acme", collections="board")
    assert [one.content for one in board.retrieve(words)] == [BOARD]
    assert BOARD not in {one.content for one in rag.retrieve(words)}
    told = rag.view(session="talk").recall("Where do I live?")
    assert any("Rome" in one.episode.content for one in told)


def test_it_goes_on_and_moves(rag: RAGPipeline, tmp_path: Path, dsn: str):
    rag.ingest(Document(content="Leave is forty days a year.", source="hr/leave.md"))
    assert len(rag.documents.history("hr/leave.md").versions) == 3
    file = tmp_path / "all.jsonl"
    file.write_text("".join(rag.collections.export_lines(originals=True)), encoding="utf-8")
    copy = rag.view(collections="copy")
    assert copy.collections.import_file(file).failed == 0
    assert sorted(one.source for one in copy.documents.list()) == sorted(one.source for one in rag.documents.list())
    assert "hr/pay.md" not in {one.source for one in copy.view(principal=STRANGER).documents.list()}
    backup(rag.config.storage.dsn.get_secret_value(), tmp_path / "all.backup")
    restore(dsn, tmp_path / "all.backup", force=True)
    with opened(dsn, tmp_path) as restored:
        assert restored.maintenance.verify().clean
        assert restored.retrieve("How many days of leave?")[0].content == "Leave is forty days a year."


def fill(rag: RAGPipeline) -> None:
    """Something of most that a store can hold."""
    rag.ingest(Document(content=OLD, source="hr/leave.md", tags=("hr",), metadata={"year": 2026}))
    rag.ingest(Document(content=NEW, source="hr/leave.md", tags=("hr",), metadata={"year": 2027}))
    rag.ingest(Document(content=SECRET, source="hr/pay.md", permissions=("role:clerk", "!user:eve")))
    rag.ingest(Document(content="It ends.", source="end.md", ttl="36500d"))
    rag.ingest(Document(content="It was deleted.", source="gone.md"))
    rag.documents.delete(["gone.md"])
    (job,) = rag.jobs.upload(Original.of_bytes(b"Uploads are kept.", name="upload.txt", mime_type="text/plain"))
    rag.jobs.wait(job.job_id)
    talk = rag.view(session="talk", user="ann")
    talk.remember("I live in Rome.")
    rag.recall("Where do I live?")
    rag.facts.consolidate(min_retrievals=1)
    rag.tenants.create("acme")
    acme = rag.view(tenant="acme", collections="board")
    acme.ingest(Document(content=BOARD, source="board.md"))
    acme.grants.set_collection(readers=["role:board"], owners=["user:chair"])


def dumped(dsn: str) -> str:
    """The rows of a store, without what migrations put there themselves."""
    from recollect.store._server_account import installation

    command = [installation() / "bin" / "pg_dump", "--dbname", dsn, "--schema", "recollect", "--data-only", "--inserts"]
    left_out = ("--exclude-table", "recollect.schema_migrations", "--load-via-partition-root")
    text = subprocess.run([*command, *left_out], capture_output=True, text=True, check=True).stdout
    kept = (
        line for line in text.splitlines() if line and not re.match(r"--|\\|SET |SELECT pg_catalog.set_config", line)
    )
    return "".join(f"{line}\n" for line in kept)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from recollect.store.embedded import EmbeddedServer
    from server import data_directory

    STORES.mkdir(exist_ok=True)
    with data_directory() as folder, EmbeddedServer(folder) as server:
        with opened(server, folder) as filled:
            fill(filled)
        whole = "\n".join([*sql.routines(), "-- Rows", dumped(server)])
        (STORES / f"{code_schema_version():04}.sql").write_text(whole, encoding="utf-8")
