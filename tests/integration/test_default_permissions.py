"""A company's departments, protected by a few lines of configuration."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from recollect import Document, Principal, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ConfigurationError, NotFoundError
from recollect.model.principal import Permissions
from recollect.pipeline.persona_audit import _Engine

HR, IT = Principal(user_id="hanna", department="hr"), Principal(user_id="ines", department="it")
MANAGER = Principal(user_id="mia", roles=("HRManager",), department="board")
CHIEF, STRANGER = Principal(user_id="carl", roles=("Executive",)), Principal(user_id="sam")
PAGE = Path(__file__).parents[2] / "docs/how-to/permissions.md"


def lines_of_the_page() -> dict[str, object]:
    """The five lines that the page gives."""
    (block,) = (
        one for one in re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL) if "role_departments" in one
    )
    assert len([line for line in block.splitlines() if line]) == 5
    return dict(tomllib.loads(block)["rag"]["access"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("hr/pay.txt", "it/servers.txt", "open.txt"):
        file = tmp_path / "company" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"The handbook says this of {name}.")
    return tmp_path / "company"


def opened(dsn: str, tmp_path: Path, **access: object) -> RAGPipeline:
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"}, access=access
    )
    return RAGPipeline(config, embedder=HashingEmbedder())


def seen(rag: RAGPipeline, who: Principal | None) -> list[str]:
    """What is found, which must be what is listed, counted and exported."""
    found = sorted({one.source for one in rag.view(principal=who).retrieve("handbook says")})
    assert sorted(one.source for one in rag.view(principal=who).documents.list()) == found
    assert rag.view(principal=who).maintenance.status().total_documents == len(found)
    assert len(list(rag.view(principal=who).collections.export_lines())) == len(found)
    return found


def test_departments_and_the_roles_that_read_them(dsn: str, tmp_path: Path, folder: Path):
    with opened(dsn, tmp_path, **lines_of_the_page()) as rag:
        report = rag.ingest(folder)
        assert (report.added, report.failed) == (3, 0)
        expected = {
            HR: ["hr/pay.txt"],
            IT: ["it/servers.txt"],
            MANAGER: ["hr/pay.txt"],
            CHIEF: ["hr/pay.txt", "it/servers.txt"],
            STRANGER: [],
            None: ["hr/pay.txt", "it/servers.txt", "open.txt"],
        }
        rights = _Engine(rag, None).rights(None)
        from recollect.evaluation.persona_audit import may_read

        for who, sources in expected.items():
            assert seen(rag, who) == sources
            if who is not None:
                assert sorted(one.source for one in rights.documents if may_read(who, one, rights)) == sources
        with pytest.raises(NotFoundError):
            rag.view(principal=HR).why_not("handbook", "it/servers.txt")
        assert "servers" not in rag.view(principal=HR).context("handbook servers").text
        # A role's rule reads; it neither writes nor is denied in the department's name.
        rag.grants.set_collection(writers=["department:hr"])
        rag.grants.deny("department:hr", documents="hr/pay.txt")
        assert (seen(rag, HR), seen(rag, MANAGER)) == ([], ["hr/pay.txt"])
        rag.grants.deny("user:mia", documents="hr/pay.txt")
        assert seen(rag, MANAGER) == []
        # Nobody becomes everybody by his department's name.
        assert seen(rag, Principal(user_id="eve", department="*")) == []


def test_another_default_reaches_those_that_had_it_and_no_others(dsn: str, tmp_path: Path, folder: Path):
    with opened(dsn, tmp_path) as rag:
        rag.ingest(folder)
        rag.grants.add("user:sam", documents="it/servers.txt", only=True)
        assert seen(rag, STRANGER) == ["hr/pay.txt", "it/servers.txt", "open.txt"]
        before = {one.source: one.version for one in rag.documents.list()}
    for default, hanna, sam in (
        ("department", ["hr/pay.txt"], ["it/servers.txt"]),
        (("user:sam", "!user:hanna"), [], ["hr/pay.txt", "it/servers.txt", "open.txt"]),
        ("everyone", ["hr/pay.txt", "open.txt"], ["hr/pay.txt", "it/servers.txt", "open.txt"]),
        ("department", ["hr/pay.txt"], ["it/servers.txt"]),
    ):
        with opened(dsn, tmp_path, default_permissions=default) as rag:
            assert rag.ingest(folder).unchanged == 3
            assert (seen(rag, HR), seen(rag, STRANGER)) == (hanna, sam)
            assert {one.source: one.version for one in rag.documents.list()} == before
            assert rag.maintenance.check() == []
    with opened(dsn, tmp_path, default_permissions="department") as rag:
        # What was changed by hand is nobody's default any more.
        rag.grants.add("user:sam", documents="hr/pay.txt")
        (folder / "hr" / "pay.txt").write_text("The handbook says something else of pay.")
        rag.ingest(folder)
        assert seen(rag, STRANGER) == ["hr/pay.txt", "it/servers.txt"]
    with opened(dsn, tmp_path, default_permissions="everyone") as rag:
        rag.ingest(folder)
        assert rag.grants.of_documents("hr/pay.txt")[0].permissions == Permissions(grants=("department:hr", "user:sam"))
        assert seen(rag, HR) == ["hr/pay.txt", "open.txt"]


def test_whoever_stores_reads_it_whatever_the_default(dsn: str, tmp_path: Path, folder: Path):
    with opened(dsn, tmp_path, default_permissions="department") as rag:
        rag.collections.ensure()
        rag.grants.set_collection(writers=["user:sam"])
        for expected in ("added", "unchanged"):
            report = rag.view(principal=STRANGER).ingest(folder)
            assert getattr(report, expected) == 3
        assert len(seen(rag, STRANGER)) == 3 and seen(rag, HR) == ["hr/pay.txt"]
        rag.ingest(Document(content="The handbook says hello.", source="api.md", department="hr"))
        rag.ingest(Document(content="The handbook says this to all.", source="all.md", permissions=("*",)))
        assert seen(rag, HR) == ["all.md", "api.md", "hr/pay.txt"] and seen(rag, IT) == ["all.md", "it/servers.txt"]


def test_settings_that_name_nobody_are_refused():
    for access in (
        {"default_permissions": ["hr"]},
        {"role_departments": {"Boss": [""]}},
        {"default_permissions": "all"},
    ):
        with pytest.raises(ConfigurationError):
            RAGConfig.load(access=access)
