"""Folders that are read under names of their own: what they hold is theirs by that name."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect import RAGPipeline
from recollect.errors import ConflictError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    (made / "hr").mkdir(parents=True)
    (made / "a.md").write_text("# One", encoding="utf-8")
    (made / "hr/pay.md").write_text("# Pay", encoding="utf-8")
    return made


def origins(rag: RAGPipeline) -> dict[str, str]:
    return {one.source: one.origin for one in rag.documents.list(limit=100)}


def sources(rag: RAGPipeline) -> dict[str, int]:
    return {one.name: one.documents for one in rag.sources.list()}


def test_documents_are_the_sources_by_its_name(pipeline: RAGPipeline, folder: Path):
    pipeline.sources.add(str(folder), name="handbook")
    assert pipeline.sources.refresh("handbook").added == 2
    assert origins(pipeline) == {"a.md": "handbook", "hr/pay.md": "handbook"}
    assert sources(pipeline) == {"handbook": 2}
    # Whoever reads the folder, or a part of it, in another way meets the same documents.
    assert pipeline.ingest(folder).unchanged == 2
    assert pipeline.ingest(folder / "hr").unchanged == 1
    assert pipeline.ingest(folder / "hr" / "pay.md").unchanged == 1
    (folder / "a.md").rename(folder / "b.md")
    assert pipeline.sources.refresh("handbook").removed == 1
    assert origins(pipeline) == {"b.md": "handbook", "hr/pay.md": "handbook"}
    assert pipeline.sources.remove("handbook") == 2
    assert origins(pipeline) == {}


def test_what_was_stored_under_the_path_becomes_the_sources(pipeline: RAGPipeline, folder: Path):
    """As `add` with a name did once, and as an ingest before it does."""
    pipeline.ingest(folder)
    before = {one.source: one.document_id for one in pipeline.documents.list()}
    pipeline.sources.add(str(folder), name="handbook")
    report = pipeline.sources.refresh("handbook")
    assert (report.added, report.updated, report.removed) == (0, 0, 0)
    assert {one.source: one.document_id for one in pipeline.documents.list()} == before
    assert sources(pipeline) == {"handbook": 2}


def test_a_folder_around_it_takes_it_over(pipeline: RAGPipeline, folder: Path):
    pipeline.sources.add(str(folder), name="handbook")
    pipeline.sources.refresh("handbook")
    ids = {one.document_id for one in pipeline.documents.list()}
    assert pipeline.ingest(folder.parent).added == 0
    assert {one.document_id for one in pipeline.documents.list()} == ids
    assert set(origins(pipeline)) == {"docs/a.md", "docs/hr/pay.md"}
    assert pipeline.sources.refresh("handbook").unchanged == 2


def test_a_folder_is_one_source(pipeline: RAGPipeline, folder: Path):
    pipeline.sources.add(str(folder), name="handbook")
    for name in ("other", None):
        with pytest.raises(ConflictError, match="'handbook' is that folder already"):
            pipeline.sources.add(str(folder), name=name)
    with pytest.raises(ConflictError, match="remove it first"):
        pipeline.sources.add(str(folder), name="handbook")
    assert sources(pipeline) == {"handbook": 0}


def test_a_name_that_is_another_folders_path_leads_nowhere_else(pipeline: RAGPipeline, folder: Path, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.md").write_text("# Other", encoding="utf-8")
    pipeline.sources.add(str(folder), name=str(other))
    assert pipeline.sources.refresh(str(other)).added == 2
    assert pipeline.ingest(other).added == 1
    assert set(origins(pipeline)) == {"a.md", "hr/pay.md", "x.md"}
