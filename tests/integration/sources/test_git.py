"""A repository, read from Git's own server."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recollect import RAGPipeline
from recollect.errors import SourceError
from recollect.sources.git import Git

from .conftest import Repository


def sources(pipeline: RAGPipeline) -> set[str]:
    return {one.source for one in pipeline.documents.list(limit=1_000)}


def test_what_changes_in_a_repository_changes_in_the_store(pipeline: RAGPipeline, repository: Repository):
    repository.commit({"hr/leave.md": "# Leave\n\nAnnual leave is 30 days.\n", "parking.md": "# Parking\n\nSeven.\n"})
    name = pipeline.sources.add(repository.url).name
    report = pipeline.sources.refresh(name)
    assert (report.added, report.failed) == (2, 0)
    assert sources(pipeline) == {"hr/leave.md", "parking.md"}
    repository.commit({"hr/leave.md": None, "parking.md": "# Parking\n\nNine.\n", "new.md": "New"})
    report = pipeline.sources.refresh(name)
    assert (report.added, report.updated, report.unchanged, report.removed) == (1, 1, 0, 1)
    assert sources(pipeline) == {"new.md", "parking.md"}
    report = pipeline.sources.refresh(name)
    assert (report.added, report.updated, report.unchanged, report.removed) == (0, 0, 0, 0)


def test_copies_of_repositories_are_private_and_those_of_older_versions_become_so(
    pipeline: RAGPipeline, repository: Repository
):
    repository.commit({"secret.md": "# Secret\n\nThe launch is on Friday.\n"})
    name = pipeline.sources.add(repository.url).name
    folder = pipeline.config.storage.data_dir / "sources"
    umask = os.umask(0o022)
    try:
        pipeline.sources.refresh(name)
        mirror = next(folder.glob("*/repository.git"))
        assert open_to_others([folder, *folder.rglob("*")]) == []
        for older in (folder, mirror.parent):
            older.chmod(0o755)
        pipeline.sources.refresh(name)
        assert open_to_others([folder, mirror.parent]) == []
        folder.chmod(0o755)
        with RAGPipeline(pipeline.config) as opened:
            opened.collections.list()
        assert open_to_others([folder]) == []
    finally:
        os.umask(umask)


def open_to_others(paths: list[Path]) -> list[str]:
    return [str(path) for path in paths if stat.S_IMODE(path.lstat().st_mode) & 0o077]


def test_of_several_that_make_the_copy_at_once_all_have_the_same(tmp_path: Path):
    for number in range(5):
        folder = tmp_path / str(number) / "repository.git"
        several = [Git("https://host/a.git", folder, os.environ, seconds=60, most_bytes=10**6) for _ in range(6)]
        with ThreadPoolExecutor(len(several)) as pool:
            list(pool.map(Git.make, several))
        assert list(folder.parent.iterdir()) == [folder]
        assert {one.run("rev-parse", "--is-bare-repository") for one in several} == {b"true\n"}


def test_what_is_no_repository_is_replaced_by_one(tmp_path: Path):
    folder = tmp_path / "repository.git"
    folder.mkdir()
    (folder / "HEAD").write_text("ref: nothing")
    git = Git("https://host/a.git", folder, os.environ, seconds=60, most_bytes=10**6)
    git.make()
    assert git.run("rev-parse", "--is-bare-repository") == b"true\n"


def test_a_file_that_the_copy_has_lost_is_an_error_of_the_source_and_others_are_read(tmp_path: Path):
    git = Git("https://host/a.git", tmp_path / "repository.git", os.environ, seconds=60, most_bytes=10**6)
    git.make()
    number = git.run("hash-object", "-w", "--stdin", stdin=b"One").decode().strip()
    for _ in range(2):
        assert git.blob(number) == b"One"
        with pytest.raises(SourceError, match="its copy on this machine cannot be read"):
            git.blob("0" * 40)
    git.close()
