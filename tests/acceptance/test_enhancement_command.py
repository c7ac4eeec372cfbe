"""Synonyms and acronyms, as a person at a terminal meets them."""

from __future__ import annotations

WORDS = ("--mode", "lexical", "--explain", "--json")


def sources(reply: dict) -> set[str]:
    return {result["source"] for result in reply["results"]}


def test_synonyms_of_a_collection_come_from_its_file(recollect, write):
    folder = write({"trust.txt": "If a trustee dies, the others choose a new one.\n", "fees.txt": "Fees are due.\n"})
    rules = folder.parent / "synonyms.txt"
    rules.write_text("# rules\nincapacitated => dies, unable to act\n", encoding="utf-8")
    settings = folder.parent / "recollect.toml"
    settings.write_text('[rag.retrieval.enhance.synonyms]\nlegal = "synonyms.txt"\n', encoding="utf-8")
    for collection in ("legal", "other"):
        recollect("ingest", folder, "--collection", collection)
    reply = recollect("query", "the trustee is incapacitated", "--collection", "legal", *WORDS).json
    assert reply["results"][0]["source"] == "trust.txt"
    assert reply["explain"]["enhancements"] == [
        "synonyms: applied (incapacitated → dies (×0.5); incapacitated → unable to act (×0.5))"
    ]
    assert sources(recollect("query", "incapacitated", "--collection", "legal", *WORDS).json) == {"trust.txt"}
    assert sources(recollect("query", "incapacitated", "--collection", "other", *WORDS).json) == set()

    rules.write_text("incapacitated =>\n", encoding="utf-8")
    failed = recollect("query", "incapacitated", "--collection", "legal", status=None)
    assert failed.status != 0
    assert "synonyms.txt:1" in failed.err


def test_acronyms_of_the_documents_need_no_setting(recollect, write):
    folder = write({"a.txt": "The Annual Percentage Rate (APR) is fixed.\n", "b.txt": "Our annual percentage rate.\n"})
    recollect("ingest", folder)
    reply = recollect("query", "apr", *WORDS).json
    assert sources(reply) == {"a.txt", "b.txt"}
    assert reply["explain"]["enhancements"] == ["acronyms: applied (APR → annual percentage rate (×0.8))"]
    people = recollect("query", "apr", "--mode", "lexical", "--explain").out
    assert "APR → annual percentage rate" in people
    (folder / "a.txt").unlink()
    recollect("ingest", folder, "--sync")
    assert sources(recollect("query", "apr", *WORDS).json) == set()


def test_a_collection_of_a_model_without_token_vectors_cannot_ask_for_them(recollect):
    refused = recollect("collections", "create", "tok", "--token-vectors", status=None)
    assert refused.status != 0
    assert "local embedding model" in refused.err
    made = recollect("collections", "create", "tok", "--json").json
    assert made["token_vectors"] is False
