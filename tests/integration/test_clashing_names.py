"""Documents of several roots with the same path: their sources begin with the root's name, and can be named by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect import Document, RAGPipeline, RetrievalOptions
from recollect.errors import NotFoundError, UsageError
from recollect.model import Principal


def folder(path: Path, **files: str) -> Path:
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / f"{name}.md").write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def roots(pipeline: RAGPipeline, tmp_path: Path) -> RAGPipeline:
    """Three folders with a ``README.md`` each, two of them with the same name, and another file."""
    pipeline.ingest(folder(tmp_path / "api", README="The gateway listens on port 8080.", guide="The gateway restarts."))
    pipeline.ingest(folder(tmp_path / "old" / "web", README="The gateway listens on port 7070."))
    pipeline.ingest(folder(tmp_path / "new" / "web", README="The gateway listens on port 9090."))
    return pipeline


def found(view, query: str = "gateway port", **options) -> dict[str, str]:
    return {one.source: one.content for one in view.retrieve(query, RetrievalOptions(mode="lexical", **options))}


def test_results_and_citations_tell_the_root_where_names_clash(roots: RAGPipeline):
    assert found(roots) == {
        "api/README.md": "The gateway listens on port 8080.",
        "old/web/README.md": "The gateway listens on port 7070.",
        "new/web/README.md": "The gateway listens on port 9090.",
        "guide.md": "The gateway restarts.",
    }
    assert found(roots, outline=True, merge_adjacent=True, neighbours=1).keys() == found(roots).keys()
    answer = roots.ask("On which port does the gateway listen?")
    assert answer.citations
    assert {one.source for one in answer.citations} <= found(roots).keys() - {"guide.md"}


def test_that_name_names_the_document(roots: RAGPipeline):
    for name, text in found(roots).items():
        assert roots.documents.get(name).content == text
        assert found(roots, source=(name,)) == {name: text}
    with pytest.raises(UsageError, match=r"Say which, by id, or as '(api|old/web|new/web)/README.md'"):
        roots.documents.get("README.md")
    with pytest.raises(NotFoundError):
        roots.documents.get("api/guide.md")
    assert roots.documents.delete(["api/README.md"]) == 1
    assert found(roots).keys() == {"old/web/README.md", "new/web/README.md", "guide.md"}
    assert roots.documents.delete(["old/web/README.md"]) == 1
    assert found(roots).keys() == {"README.md", "guide.md"}


def test_a_path_that_reads_like_the_name_of_another_is_refused(roots: RAGPipeline):
    roots.ingest(Document(content="The gateway has a copy.", source="api/README.md"))
    with pytest.raises(UsageError, match=r"Several documents are named 'api/README\.md'"):
        roots.documents.delete(["api/README.md"])


def test_a_name_that_clashes_with_what_the_caller_cannot_read_stays_as_it_is(roots: RAGPipeline):
    roots.grants.add("user:eve", documents=["old/web/README.md", "new/web/README.md"], only=True)
    assert found(roots.view(principal=Principal(user_id="ann"))).keys() == {"README.md", "guide.md"}
    assert "api/README.md" in found(roots.view(principal=Principal(user_id="eve")))


def test_names_of_different_collections_do_not_clash(pipeline: RAGPipeline, tmp_path: Path):
    for name in ("one", "two"):
        pipeline.view(collections=name).ingest(folder(tmp_path / name, README=f"The gateway of {name}."))
    assert [one.source for one in pipeline.view(collections="*").retrieve("gateway")] == ["README.md"] * 2
