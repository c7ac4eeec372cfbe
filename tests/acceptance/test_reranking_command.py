"""How many passages a hosted reranker sees and how many are shown: by default, from a file, and by options."""

from __future__ import annotations

import pytest

from contracts.wire_formats import cohere
from contracts.wire_formats.server import ModelServer
from program import Recollect


@pytest.fixture
def server():
    wire = cohere.Reranking()
    wire.texts = lambda path, body: body["documents"]
    server = ModelServer(wire)
    yield server
    server.close()


@pytest.fixture
def pumps(recollect, write, server):
    """A hundred and ten notes, each a passage of its own; their words and vectors are those of the question."""
    write({f"{number}.txt": f"The pump {number} leaked in May.\n" for number in range(110)})
    recollect("ingest", "docs")
    hosted = {"PROVIDER": "cohere", "BASE_URL": server.base_url, "API_KEY": "k", "SEARCH_PRICE": "2"}
    settings = {f"RECOLLECT_RERANKING__{name}": value for name, value in hosted.items()}
    return Recollect(recollect.folder, {**recollect.environment, **settings})


def test_fifty_for_five_and_what_is_configured_or_given_in_their_place(pumps, server):
    def asked(*given: str) -> tuple[int, int]:
        server.requests.clear()
        reply = pumps("query", "Which pump leaked in May?", "--no-collapse", *given, "--json").json
        return sum(len(request.body["documents"]) for request in server.requests), len(reply["results"])

    assert asked() == (50, 5)
    assert asked("--rerank-candidates", "12") == (12, 5)
    assert asked("--top-k", "3") == (50, 3)
    # More than each way of searching would contribute.
    assert asked("--rerank-candidates", "105", "--top-k", "7") == (105, 7)
    assert asked("--rerank", "none") == (0, 5)
    assert asked("--rerank", "consensus", "--rerank-candidates", "10")[0] == 0
    (pumps.folder / "recollect.toml").write_text("[rag.reranking]\ncandidates = 80\ntop_k = 2\n", encoding="utf-8")
    assert asked() == (80, 2)
    assert asked("--rerank-candidates", "20", "--top-k", "4") == (20, 4)
    requests = pumps("requests", "list", "--kind", "rerank", "--json").json["items"]
    costs = {one["inputs"]: one["cost"] for one in requests}
    assert costs[50] == pytest.approx(0.002), "one search of fifty passages, at two for a thousand"


def test_other_rerankers_of_the_file_see_what_it_says(recollect, write):
    write({f"{number}.txt": f"The pump {number} leaked in May.\n" for number in range(70)})
    recollect("ingest", "docs")
    settings = "[rag.retrieval]\nrerank = 'bm25'\nrerank_candidates = 64\ntop_k = 40\n"
    (recollect.folder / "recollect.toml").write_text(settings, encoding="utf-8")
    found = recollect("query", "Which pump leaked in May?", "--no-collapse", "--explain", "--json").json["results"]
    assert len(found) == 40 and all("rerank_score" in one["explain"] for one in found)
    few = recollect(
        "query", "Which pump leaked?", "--no-collapse", "--rerank-candidates", "9", "--explain", "--json"
    ).json
    assert sum("rerank_score" in one["explain"] for one in few["results"]) == 9
