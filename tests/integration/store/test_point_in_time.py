"""Point-in-time recovery as the guide describes it: a base backup, the archive, and a moment to go back to."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from replication import Server, initialise, new_server, programs
from server import reachable_folder

GUIDE = (Path(__file__).resolve().parents[3] / "docs/how-to/running.md").read_text(encoding="utf-8")


@contextmanager
def opened(server: Server) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(storage={"dsn": server.dsn()}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        yield rag


def guides(setting: str, folders: dict[str, Path]) -> str:
    """What the guide sets, in the test's folders."""
    found = re.search(rf"{setting} = '([^']+)'", re.sub(r"\s*\n\s*", " ", GUIDE))
    assert found is not None
    text = found[1]
    for name, folder in folders.items():
        text = text.replace(f"/{name}/", f"{folder}/")
    return text


@pytest.fixture
def server() -> Iterator[Server]:
    with reachable_folder() as root:
        made = new_server(root / "server", programs(root))
        initialise(made)
        yield made
        if made.running:
            made.stop()


def test_a_store_is_brought_back_to_a_moment(server: Server):
    folders = {name: new_server(server.folder.parent / name, server).folder for name in ("archive", "base")}
    archive = guides("archive_command", folders)
    server.configure(archive_mode="on", archive_command=archive)
    server.start()
    with opened(server) as rag:
        rag.ingest(Document(content="Annual leave is thirty days.", source="before.md"))
        (command,) = re.findall(r"^\$ pg_basebackup (.*?)\s+#", GUIDE, re.MULTILINE)
        arguments = command.replace("/base/$(date +%F)", str(folders["base"] / "monday")).split()
        server.run("pg_basebackup", *arguments, "-d", server.dsn())
        rag.ingest(Document(content="Fees are due in May.", source="between.md"))
        moment = server.ask("SELECT clock_timestamp()::text")
        rag.ingest(Document(content="This was a mistake.", source="after.md"))
        rag.documents.erase(["before.md"])
        server.ask("SELECT pg_switch_wal()")
    server.stop("fast")

    recovered = new_server(server.folder.parent / "recovered", server)
    data = shutil.copytree(folders["base"] / "monday", recovered.folder / "pg")
    recovered.configure(
        restore_command=guides("restore_command", folders), recovery_target_time=str(moment), archive_mode="off"
    )
    (data / "recovery.signal").touch()
    recovered.owned(data)
    recovered.start()
    try:
        # It waits where it was told to, to be looked at.
        assert recovered.ask("SELECT count(*) FROM recollect.documents") == 2
        recovered.ask("SELECT pg_wal_replay_resume()")
        while recovered.ask("SELECT pg_is_in_recovery()"):
            pass
        with opened(recovered) as rag:
            assert {one.source for one in rag.retrieve("annual leave fees mistake")} == {"before.md", "between.md"}
            assert rag.maintenance.verify().clean
            rag.ingest(Document(content="Work goes on.", source="next.md"))
    finally:
        recovered.stop()
