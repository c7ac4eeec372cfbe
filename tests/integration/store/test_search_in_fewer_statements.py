"""What searches read in one statement, or not again, is what they read in several."""

from __future__ import annotations

import pytest

from recollect import Document, RAGPipeline
from recollect.model import Scope
from recollect.model.outline import Heading, PageSpan
from recollect.store.search import SearchRepository

HEADED = (
    "# One\n\nFirst words.\n\n## Two\n\nSecond words.\n\n### Three\n\nThird words, many of them.\n\n"
    "# Four\n\nLast words."
)


@pytest.fixture
def filled(pipeline: RAGPipeline) -> RAGPipeline:
    pipeline.collections.create("headed", chunking={"strategy": "hierarchical", "size": 16, "parent_max_size": 64})
    for collection in ("default", "headed"):
        view = pipeline.view(collections=collection)
        view.ingest(Document(content=HEADED, source="headed.md", mime_type="text/markdown"))
        view.ingest(Document(content="Plain words without any heading.", source="plain.txt"))
        view.ingest(
            Document(
                content="Page one here. Page two here. Page three here.",
                source="paged.pdf",
                pages=(PageSpan(1, 0, 15), PageSpan(2, 15, 30), PageSpan(3, 30, 46)),
                headings=(Heading(1, "Beginning", 0, 8), Heading(2, "End", 30, 38)),
            )
        )
    return pipeline


def test_passages_with_outlines_are_passages_and_outlines(filled: RAGPipeline):
    search, scope = filled.store.search, Scope()
    chunk_ids = [one for one in range(1, 200) if one in search.passages(scope, [one])]
    assert len(chunk_ids) > 8
    plain = search.passages(scope, chunk_ids)
    outlined = search.passages(scope, chunk_ids, outlined=True)
    spans = [(row.version_id, row.start_offset, row.end_offset) for row in plain.values()]
    outlines = search.outlines(scope, spans)
    assert any(one.headings for one in outlines.values()) and any(one.pages for one in outlines.values())
    assert outlined == {
        chunk_id: row._replace(outline=outlines[row.version_id, row.start_offset, row.end_offset])
        for chunk_id, row in plain.items()
    }
    assert search.passages(Scope(tenant_id=1), [10**9], outlined=True) == {}


def test_frequencies_are_those_of_the_last_count(filled: RAGPipeline):
    store, scope, view = filled.store, Scope(), filled.view(collections="default")

    def compared() -> dict[int, int]:
        place = store.collections.get(scope, "default")
        with store.database.transaction(scope) as connection:
            rows = connection.execute(
                "SELECT lexeme, document_frequency FROM recollect.term_stats WHERE collection_id = %s",
                [place.collection_id],
            ).fetchall()
        lexemes = [*(row[0] for row in rows), 4711]
        remembered = store.search.document_frequencies(scope, place, lexemes)
        assert remembered == store.search.document_frequencies(scope, place, lexemes)
        assert remembered == SearchRepository(store.database).document_frequencies(scope, place, lexemes) == dict(rows)
        return remembered

    before = compared()
    view.ingest([Document(content=f"Words number {n}, and more words.", source=f"{n}.txt") for n in range(9)])
    store.collections.refresh_term_stats(scope, store.collections.get(scope, "default"))
    after = compared()
    assert max(after.values()) == max(before.values()) + 9
    view.documents.erase(["1.txt"])
    store.collections.refresh_term_stats(scope, store.collections.get(scope, "default"))
    assert max(compared().values()) == max(after.values()) - 1
