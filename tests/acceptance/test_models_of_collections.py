"""The command line with collections of several embedding models."""

from __future__ import annotations

import psycopg
import pytest

from program import Recollect


@pytest.fixture
def of_dimensions(recollect):
    def of_dimensions(dimensions: int, **more: str) -> Recollect:
        own = {"RECOLLECT_EMBEDDING__DIMENSIONS": str(dimensions), **more}
        return Recollect(recollect.folder, {**recollect.environment, **own})

    return of_dimensions


def test_collections_keep_their_models_and_are_searched_together(of_dimensions, tmp_path):
    (tmp_path / "pumps.md").write_text("The pump in Bremen leaked in May.\n", encoding="utf-8")
    (tmp_path / "leave.md").write_text("Leave in Lyon takes thirty days.\n", encoding="utf-8")
    (tmp_path / "more.md").write_text("The pump in Porto was replaced.\n", encoding="utf-8")
    of_dimensions(32)("ingest", "pumps.md", "--collection", "pumps")
    later = of_dimensions(48)
    later("ingest", "leave.md", "--collection", "leave")
    later("ingest", "more.md", "--collection", "pumps")
    listed = {one["name"]: one["embedding_model"] for one in later("collections", "list", "--json").json["items"]}
    assert listed == {"pumps": "hashing:32", "leave": "hashing:48"}
    for mode in ("hybrid", "dense", "lexical"):
        found = later("query", "pump leave", "--everywhere", "--mode", mode, "--json").json["results"]
        assert {one["source"] for one in found} == {"pumps.md", "leave.md", "more.md"}
    assert "Bremen" in later("ask", "Where did the pump leak in May?", "--collection", "pumps").out


def test_a_collection_whose_model_cannot_be_made_says_what_to_do(of_dimensions, dsn, tmp_path):
    (tmp_path / "pumps.md").write_text("The pump in Bremen leaked in May.\n", encoding="utf-8")
    of_dimensions(32)("ingest", "pumps.md")
    # As one that was made with a key that is gone.
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "UPDATE recollect.collections SET embedding_model = 'cohere/embed-v4.0:1536', "
            """embedding_spec = '{"provider": "cohere", "model": "embed-v4.0", "dimensions": 1536}'"""
        )
    for command in (("query", "pump"), ("ingest", "pumps.md", "--force")):
        refused = of_dimensions(32)(*command, status=2)
        assert "CO_API_KEY" in refused.err and "recollect reembed --collection default --model" in refused.err
    assert "Bremen" in of_dimensions(32)("query", "pump", "--mode", "lexical").out
