"""What keeps a document out of the results is named, and what is advised works."""

from __future__ import annotations

import re
from ast import literal_eval
from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import EFFORT
from recollect import Document, RAGPipeline, RetrievalOptions
from recollect.errors import NotFoundError, UsageError
from recollect.model.filter import EVERY_FIELD, FIELDS
from recollect.model.why_not import WhyNot, WhyNotStage

TOPICS = ("turbine", "gearbox", "rotor", "mast", "cable")
LEAVE = "Annual leave is thirty days a year. It is requested two weeks ahead from the head of the team."


@pytest.fixture
def filled(pipeline: RAGPipeline) -> RAGPipeline:
    pipeline.collections.create("default", chunking={"strategy": "paragraph", "min_size": 10, "max_size": 200})
    pipeline.ingest(
        [
            Document(
                content=f"The {topic} number {number} of the plant is inspected every {number + 2} months.\n\n"
                f"Faults of the {topic} number {number} are reported to station {number}.",
                source=f"plant/{topic}-{number}.txt",
                title=f"{topic.title()} {number}",
                department="plant",
                tags=("manual",),
                metadata={"year": 2000 + number},
            )
            for number in range(8)
            for topic in TOPICS
        ]
        + [
            Document(content=LEAVE, source="hr/leave.txt", title="Leave rules", department="hr"),
            Document(content=LEAVE, source="archive/leave.txt", title="Old leave rules", department="archive"),
        ]
    )
    return pipeline


def stage(told: WhyNot, name: str) -> WhyNotStage:
    (found,) = [stage for stage in told.stages if stage.stage == name]
    return found


def names(told: WhyNot) -> list[str]:
    return [stage.stage for stage in told.stages]


def blamed(told: WhyNot) -> list[str]:
    return [stage.stage for stage in told.stages if not stage.passed]


def test_a_result_is_said_to_be_one(filled: RAGPipeline):
    query, options = "turbine number 3 months", RetrievalOptions(top_k=3)
    results = filled.retrieve(query, options)
    for result in results:
        told = filled.why_not(query, result.document_id, options)
        assert told.found and told.rank is not None
        assert told.rank == min(other.rank for other in results if other.document_id == result.document_id)
        assert told.verdict == f"{result.source} is result {told.rank} of 3."
        assert (told.document.source, told.document.title) == (result.source, result.title)
        assert names(told) == [
            *("document", "permissions", "expiry", "dense", "lexical", "candidates", "fusion", "rerank", "top_k")
        ]


_ADVICE = re.compile(
    r"(?:(?P<change>Leave mmr_lambda out|Switch collapse_duplicates off|Lower similarity_threshold to "
    r"(?P<limit>[-\d.]+)) and raise|Raise) top_k to (?P<wanted>[\d,]+)"
)


@settings(max_examples=12 * EFFORT, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.sampled_from(["turbine number 3", "faults reported to station 5", "annual leave", "nothing of the kind"]),
    document=st.sampled_from(["turbine-3.txt", "cable-7.txt", "hr/leave.txt", "archive/leave.txt"]),
    top_k=st.integers(1, 12),
    candidates=st.sampled_from([None, 1, 5]),
    mode=st.sampled_from(["hybrid", "dense", "lexical"]),
    rerank=st.sampled_from([None, "none", "bm25"]),
    collapse=st.sampled_from([None, False]),
    similarity=st.sampled_from([None, 0.3]),
    mmr=st.sampled_from([None, 0.2]),
)
def test_it_is_found_by_the_inquiry_exactly_when_it_is_found_by_the_search(
    filled: RAGPipeline, query: str, document: str, similarity: float | None, mmr: float | None, collapse, **given
):
    options = RetrievalOptions(similarity_threshold=similarity, mmr_lambda=mmr, collapse_duplicates=collapse, **given)
    told = filled.why_not(query, document, options)
    ranks = [r.rank for r in filled.retrieve(query, options) if r.document_id == told.document.document_id]
    assert told.rank == min(ranks, default=None)
    assert told.found == bool(ranks)
    decided = [name for name in blamed(told) if name not in {"dense", "lexical", "rerank"}]
    assert len(decided) == (0 if told.found else 1), told
    advised = _ADVICE.search(told.verdict)
    if advised:
        change = advised["change"] or ""
        wider = RetrievalOptions(
            similarity_threshold=float(advised["limit"]) if advised["limit"] else similarity,
            mmr_lambda=None if change.startswith("Leave") else mmr,
            collapse_duplicates=False if change.startswith("Switch") else collapse,
            **{**given, "top_k": int(advised["wanted"].replace(",", ""))},
        )
        assert filled.why_not(query, document, wider).found


def test_a_filter_is_named_with_the_documents_own_value_and_the_rest_goes_on_without_it(filled: RAGPipeline):
    options = RetrievalOptions(
        department=("plant",),
        tags=("manual",),
        metadata_filters={"year": 2003},
        filters={"title": {"contains": "Leave"}, "or": [{"language": "de"}, {"source_type": "web"}]},
    )
    told = filled.why_not("annual leave", "hr/leave.txt", options)
    assert not told.found and told.rank is None
    kept = stage(told, "filter")
    assert not kept.passed
    assert [(one["condition"], one["passed"]) for one in kept.numbers["conditions"]] == [
        ("department = 'plant'", False),
        ("tags contains 'manual'", False),
        ("metadata.year = 2003", False),
        ("title contains 'Leave'", True),
        ("language = 'de' or source_type = 'web'", False),
    ]
    assert "department = 'plant' excludes it: its department is 'hr'" in kept.detail
    assert "tags contains 'manual' excludes it: it has no tags" in kept.detail
    assert "metadata.year = 2003 excludes it: it has no metadata.year" in kept.detail
    assert "its language is 'en', its source_type is 'manual'" in kept.detail
    # What it meets still holds: no other document has such a title.
    assert stage(told, "dense").detail.endswith("rank 1 of 1 chunk")
    assert "Without that it would be result 1 of 1." in told.verdict


def test_a_reason_names_the_value_by_which_a_filter_on_that_field_finds_the_document(pipeline: RAGPipeline):
    pipeline.ingest(
        [
            Document(content="Annual leave is asked for in writing.", source="bare.txt"),
            Document(
                content="Annual leave is thirty days.",
                source="full.txt",
                title="Leave",
                department="hr",
                language="en",
                tags=("rule", "old"),
                metadata={"year": 2003},
                event_time=datetime(2026, 1, 31, tzinfo=UTC),
            ),
        ]
    )
    others = {"number": 2**62, "moment": "1900-01-01"}
    for field, document in product([*FIELDS, "metadata.year"], ["bare.txt", "full.txt"]):
        kind = EVERY_FIELD[field.partition(".")[0]].kind
        excluding = RetrievalOptions(filters={field: others.get(kind, "something else")})
        told = stage(pipeline.why_not("leave", document, excluding), "filter")
        reason = told.detail.partition(" excludes it: ")[2]
        if reason == f"it has no {field}":
            finding = [{field: {"exists": False}}]
        else:
            text = reason.removeprefix(f"its {field} is ")
            value = text if kind == "moment" else literal_eval(text)
            finding = [{field: {"contains": name}} for name in value] if kind == "names" else [{field: value}]
        found = pipeline.search("leave", RetrievalOptions(filters={"and": finding}))
        assert document in [result.source for result in found.results], reason


def test_a_range_of_times_is_named_with_the_documents_own_times(pipeline: RAGPipeline):
    pipeline.ingest([Document(content="Annual leave.", source="a.txt", event_time=datetime(2026, 1, 31, tzinfo=UTC))])
    years = RetrievalOptions(event_time_range=("2030-01-01", None), ingestion_time_range=(None, "2020-01-01"))
    whole = pipeline.why_not("annual leave", "a.txt", years)
    told = stage(whole, "filter")
    assert whole.verdict.endswith("Without that it would be result 1 of 1.")
    recent = pipeline.why_not("annual leave", "a.txt", RetrievalOptions(event_window="1h"))
    assert recent.verdict.endswith("Without that it would be result 1 of 1.")
    assert "its event_end is 2026-01-31T00:00:00+00:00" in told.detail
    assert "known_from < 2020-01-01T00:00:00+00:00 excludes it: its known_from is 2" in told.detail


def test_ranks_of_the_arms_reach_beyond_the_candidates(filled: RAGPipeline):
    query, options = "turbine number 3 inspected", RetrievalOptions(top_k=1, candidates=1)
    everything = RetrievalOptions(top_k=100, candidates=100, explain=True, collapse_duplicates=False, rerank="none")
    for mode in ("dense", "lexical"):
        for target in ("plant/gearbox-3.txt", "plant/turbine-5.txt"):
            whole = filled.retrieve(query, RetrievalOptions(**{**_fields(everything), "mode": mode}))
            expected = next(result for result in whole if result.source == target)
            found = stage(filled.why_not(query, target, options), mode)
            assert found.numbers["rank"] == expected.rank
            assert found.numbers["score"] == pytest.approx(expected.score, abs=1e-4)
            assert found.passed == (expected.rank <= 1)
    told = filled.why_not("turbine number 3 inspected", "cable-5.txt", options)
    assert blamed(told)[-1] == "candidates"
    assert "neither retriever has it among its best 1" in told.verdict


def _fields(options: RetrievalOptions) -> dict:
    return {name: getattr(options, name) for name in options.__dataclass_fields__}


def test_the_words_that_a_document_lacks_are_named_as_they_were_written(filled: RAGPipeline):
    told = filled.why_not("inspected turbines zebra", "gearbox-3.txt")
    terms = {word["written"]: word for word in stage(told, "lexical").numbers["terms"]}
    assert {written: (word["present"], word["weight"] is not None) for written, word in terms.items()} == {
        "inspected": (True, True),
        "turbines": (False, True),
        "zebra": (False, False),
    }
    assert "no document has zebra" in stage(told, "lexical").detail
    # Where there are texts in two languages, a word is looked up as each of them has it.
    text = "Die Anlage wird jedes Jahr geprüft, und der Bericht geht an die Leitung des Hauses."
    filled.ingest(Document(content=text, source="bericht.txt", language="de"))
    mixed = stage(filled.why_not("inspected turbines zebra", "gearbox-3.txt"), "lexical")
    assert mixed.detail.endswith("no document has zebra")
    nothing = filled.why_not("zebra", "gearbox-3.txt", RetrievalOptions(mode="lexical"))
    assert "shares no word" in stage(nothing, "lexical").detail
    assert "dense" not in names(nothing) and not nothing.found


def test_thresholds_say_their_value_and_what_would_do(filled: RAGPipeline):
    options = RetrievalOptions(similarity_threshold=0.99, top_k=5)
    told = filled.why_not("annual leave days", "hr/leave.txt", options)
    short = stage(told, "similarity_threshold")
    assert not short.passed and names(told)[-1] == "similarity_threshold"
    advised = float(re.search(r"Lower similarity_threshold to ([\d.]+)", told.verdict)[1])
    assert advised <= short.numbers["value"] < 0.99
    assert filled.why_not("annual leave days", "hr/leave.txt", RetrievalOptions(similarity_threshold=advised)).found
    low = filled.why_not("annual leave days", "hr/leave.txt", RetrievalOptions(min_score=2.0))
    assert blamed(low) == ["min_score"] and stage(low, "min_score").numbers["limit"] == 2.0


def test_a_copy_is_named_by_what_stands_for_it(filled: RAGPipeline):
    shown = filled.retrieve("annual leave days", RetrievalOptions(top_k=1))[0].source
    hidden = ({"hr/leave.txt", "archive/leave.txt"} - {shown}).pop()
    told = filled.why_not("annual leave days", hidden)
    assert blamed(told) == ["duplicates"]
    assert stage(told, "duplicates").numbers["source"] == shown
    assert f"it says the same as {shown}" in told.verdict
    assert "Switch collapse_duplicates off, and it is result 2." in told.verdict


def test_what_cannot_be_found_at_all_is_said_at_once(filled: RAGPipeline):
    filled.collections.create("other")
    elsewhere = filled.view(collections="other").why_not("annual leave", "hr/leave.txt")
    assert names(elsewhere) == ["document"] and not elsewhere.found
    assert "in the collection 'default', and 'other' was searched" in elsewhere.verdict
    filled.documents.delete(["hr/leave.txt"])
    closed = filled.why_not("annual leave", "hr/leave.txt")
    assert names(closed) == ["document"]
    assert "was closed on" in closed.verdict and stage(closed, "document").numbers["known_to"]
    filled.documents.erase(["hr/leave.txt"]).counts["documents"]
    with pytest.raises(NotFoundError, match="never ingested, or it has been erased"):
        filled.why_not("annual leave", "hr/leave.txt")


def test_documents_are_meant_by_id_source_title_and_path(filled: RAGPipeline):
    wanted = filled.documents.get("hr/leave.txt").document_id
    for name in (wanted, str(wanted), "hr/leave.txt", "./hr/leave.txt", "leave RULES", "/srv/docs/hr/leave.txt"):
        assert filled.why_not("annual leave", name).document.document_id == wanted
    with pytest.raises(UsageError, match="say which by id"):
        filled.why_not("annual leave", "leave.txt")
    # One that can be found comes before one that was closed.
    filled.documents.delete(["archive/leave.txt"])
    assert filled.why_not("annual leave", "leave.txt").document.document_id == wanted
    for hostile in ("'; DROP TABLE documents; --", "%", "", str(2**70), "\u05d0"):
        with pytest.raises(NotFoundError):
            filled.why_not("annual leave", hostile)
    with pytest.raises(UsageError, match="NUL"):
        filled.why_not("annual leave", "\0")


def test_a_bad_query_is_refused_before_anything_runs(filled: RAGPipeline):
    with pytest.raises(UsageError, match="empty"):
        filled.why_not(" ", "hr/leave.txt")
    with pytest.raises(UsageError, match="Did you mean 'department'"):
        filled.why_not("leave", "hr/leave.txt", RetrievalOptions(filters={"departement": "hr"}))
    with pytest.raises(NotFoundError, match="nowhere"):
        filled.view(collections="nowhere").why_not("leave", "hr/leave.txt")


def test_permissions_and_expiry_are_told_as_searches_treat_them(filled: RAGPipeline):
    told = filled.why_not("annual leave", "hr/leave.txt")
    assert stage(told, "permissions").numbers == {"permissions": ["*"]}
    assert stage(told, "expiry").numbers == {"expires_at": None}
    with filled.store.database.autocommit() as connection:
        connection.execute("UPDATE document_versions SET expires_at = '2020-01-01'")
    filled.grants.add("role:board", documents="hr/leave.txt", only=True)
    told = filled.why_not("annual leave", "hr/leave.txt", RetrievalOptions(collapse_duplicates=False))
    assert "expired on 2020-01-01" in stage(told, "expiry").detail
    assert "board" in stage(told, "permissions").detail
    # The owner of the store reads everything, and nothing closed it.
    assert told.found


def test_another_tenants_documents_do_not_exist(filled: RAGPipeline):
    with filled.store.database.autocommit() as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (2, 'two')")
    filled.view(tenant=2).collections.create("default")
    with pytest.raises(NotFoundError):
        filled.view(tenant=2).why_not("annual leave", "hr/leave.txt")


def test_beyond_what_a_search_lists_the_rank_by_words_is_counted(filled: RAGPipeline, monkeypatch: pytest.MonkeyPatch):
    query = "faults turbine number 3 reported"
    exact = stage(filled.why_not(query, "mast-6.txt"), "lexical").numbers
    assert exact["exact"] is True and exact["rank"] > 5
    monkeypatch.setattr("recollect.retrieval.why_not.MAX_TOP_K", 5)
    counted = stage(filled.why_not(query, "mast-6.txt", RetrievalOptions(candidates=5, top_k=5)), "lexical")
    assert counted.numbers["exact"] is False and "rank about" in counted.detail
    # Chunks of equal scores share a rank where ranks are counted.
    assert 5 < counted.numbers["rank"] <= exact["rank"]
    assert counted.numbers["score"] == exact["score"]


def test_the_conditions_that_stay_are_those_that_the_document_meets(filled: RAGPipeline):
    told = filled.why_not(
        "turbine number 3",
        "turbine-3.txt",
        RetrievalOptions(source=("plant/cable-1.txt", "nowhere"), department=("plant",), tags=("manual", "red")),
    )
    assert stage(told, "filter").detail.count("excludes it") == 2
    # The department and the first tag still hold.
    left = sum(record.chunk_count for record in filled.documents.list(department="plant"))
    assert stage(told, "dense").detail.endswith(f"of {left} chunks")
    by_origin = filled.why_not("turbine number 3", "turbine-3.txt", RetrievalOptions(source=("manual",)))
    assert stage(by_origin, "filter").passed
