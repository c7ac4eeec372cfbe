"""A repository, read from Git's own server."""

from __future__ import annotations

from recollect import RAGPipeline

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
