"""Repositories and servers that mean harm, and branches that are rewritten."""

from __future__ import annotations

import pytest

from recollect import RAGPipeline
from recollect.errors import SourceError
from recollect.sources import git

from .conftest import Repository


def add(pipeline: RAGPipeline, repository: Repository, **settings: object) -> str:
    return pipeline.sources.add(repository.url, settings=settings).name


def stored(pipeline: RAGPipeline) -> dict[str, int]:
    return {one.source: one.version for one in pipeline.documents.list(limit=1_000)}


def test_a_branch_that_was_rewritten_is_compared_all_the_same(pipeline: RAGPipeline, repository: Repository):
    repository.commit({"a.md": "One", "b.md": "Two", "c.md": "Three"})
    name = add(pipeline, repository)
    pipeline.sources.refresh(name)
    repository.commit({"a.md": "One", "b.md": "Another", "d.md": "Four"}, anew=True)
    report = pipeline.sources.refresh(name)
    assert (report.added, report.updated, report.unchanged, report.removed) == (1, 1, 0, 1)
    # The copy of this machine is gone, and with it the last commit: every file is named, none is stored again.
    for folder in (pipeline.config.storage.data_dir / "sources").iterdir():
        for inner in sorted(folder.rglob("*"), reverse=True):
            inner.rmdir() if inner.is_dir() else inner.unlink()
    repository.commit({"a.md": "One", "b.md": "Another", "e.md": "Five"}, anew=True)
    report = pipeline.sources.refresh(name)
    assert (report.added, report.updated, report.unchanged, report.removed) == (1, 0, 2, 1)
    assert stored(pipeline) == {"a.md": 1, "b.md": 2, "e.md": 1}


def test_links_submodules_pointers_and_odd_names_lead_nowhere(pipeline: RAGPipeline, repository: Repository, tmp_path):
    (tmp_path / "secret.md").write_text("The secret", encoding="utf-8")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    repository.commit({"a.md": "One", "big.md": pointer, ".gitattributes": "*.md filter=evil\n"})
    link = repository.git("hash-object", "-w", "--stdin", stdin=str(tmp_path / "secret.md").encode()).strip()
    blob = repository.git("hash-object", "-w", "--stdin", stdin=b"Escaped").strip()
    commit = repository.git("rev-parse", "main").strip()
    tree = "".join(
        f"{mode} {number}\t{name}\0"
        for mode, number, name in (
            ("120000 blob", link, "link.md"),
            ("160000 commit", commit, "module.md"),
            ("100644 blob", blob, "--upload-pack=x.md"),
            ("100644 blob", blob, "new\nline.md"),
        )
    )
    listed = repository.git("ls-tree", "-z", "main")
    number = repository.git("mktree", "-z", stdin=(listed + tree).encode()).strip()
    made = repository.git("-c", "user.name=x", "-c", "user.email=x@x", "commit-tree", number, "-m", "odd").strip()
    repository.git("update-ref", "refs/heads/main", made)
    report = pipeline.sources.refresh(add(pipeline, repository))
    assert set(stored(pipeline)) == {"a.md", "--upload-pack=x.md", "new\nline.md"}
    assert report.skip_reasons["left_out"] == 1


def test_the_servers_hooks_and_configuration_run_nothing_here(pipeline: RAGPipeline, repository: Repository, tmp_path):
    repository.commit({"a.md": "One"})
    name = add(pipeline, repository)
    pipeline.sources.refresh(name)
    (mirror,) = (pipeline.config.storage.data_dir / "sources").glob("*/repository.git")
    mark = tmp_path / "mark"
    # Even somebody who can write into the copy runs nothing with its hooks.
    (mirror / "hooks").mkdir(exist_ok=True)
    for hook in ("reference-transaction", "post-merge", "pre-auto-gc"):
        (mirror / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {mark}\n", encoding="utf-8")
        (mirror / "hooks" / hook).chmod(0o755)
    repository.commit({"b.md": "Two"})
    assert pipeline.sources.refresh(name).added == 1
    assert not mark.exists()


def test_a_redirection_is_not_followed_and_a_wrong_password_is_said_so(
    pipeline: RAGPipeline, repository: Repository, git_server, monkeypatch
):
    repository.commit({"a.md": "One"})
    name = repository.folder.name
    git_server.passwords[name] = "right"
    monkeypatch.setenv("GIT_TOKEN", "wrong-and-secret")
    source = add(pipeline, repository, token="env:GIT_TOKEN")
    with pytest.raises(SourceError, match="does not accept the credentials") as refused:
        pipeline.sources.refresh(source)
    assert "wrong-and-secret" not in str(refused.value) and not refused.value.retryable
    monkeypatch.setenv("GIT_TOKEN", "right")
    assert pipeline.sources.refresh(source).added == 1
    git_server.moved.add(name)
    asked = len(git_server.asked)
    with pytest.raises(SourceError, match=r"redirects, which is not followed|Git failed"):
        pipeline.sources.refresh(source)
    assert len(git_server.asked) == asked
    assert stored(pipeline) == {"a.md": 1}


def test_a_repository_that_is_too_large_or_has_no_such_branch_is_refused(pipeline: RAGPipeline, repository: Repository):
    import random

    repository.commit({"a.md": "One", "noise.bin": random.Random(1).randbytes(300_000)})
    source = add(pipeline, repository, max_repository_bytes=100_000)
    with pytest.raises(SourceError, match="larger than max_repository_bytes"):
        pipeline.sources.refresh(source)
    other = pipeline.sources.add(repository.url, name="other", settings={"branch": "nowhere"}).name
    with pytest.raises(SourceError, match="no such branch"):
        pipeline.sources.refresh(other)
    assert stored(pipeline) == {}


def test_a_server_that_is_gone_closes_nothing(pipeline: RAGPipeline, repository: Repository, git_server, monkeypatch):
    repository.commit({"a.md": "One"})
    source = add(pipeline, repository)
    pipeline.sources.refresh(source)
    repository.folder.rename(repository.folder.with_suffix(".away"))
    with pytest.raises(SourceError):
        pipeline.sources.refresh(source)
    assert stored(pipeline) == {"a.md": 1} and pipeline.sources.get(source).state == "error"


def test_git_is_told_nothing_of_this_process(monkeypatch, tmp_path):
    program = git.Git("x", tmp_path, {"PATH": "/bin", "GIT_DIR": "/etc", "SECRET": "x"}, seconds=5, most_bytes=1_000)
    environment = program._env(None)
    assert "SECRET" not in environment and environment["GIT_DIR"] == "."
    assert environment["GIT_CONFIG_NOSYSTEM"] == "1" and environment["GIT_ALLOW_PROTOCOL"] == "none"


@pytest.mark.parametrize("url", ["http://169.254.169.254/a.git", "http://127.0.0.1:1/a.git", "ssh://git@10.0.0.1/a"])
def test_addresses_are_checked_before_anything_is_contacted(dsn: str, tmp_path, url: str):
    from recollect import RAGConfig
    from recollect.embedding.hashing import HashingEmbedder

    config = RAGConfig.load(storage={"data_dir": tmp_path / "data", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        name = rag.sources.add(url, connector="git").name
        with pytest.raises(SourceError, match=r"address|private|loopback|metadata"):
            rag.sources.refresh(name)
