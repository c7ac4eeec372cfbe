"""Time, as a person meets it: searches of the past, histories, receipts, expiries."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest


def now() -> str:
    """A moment between two commands."""
    time.sleep(0.01)
    moment = datetime.now(UTC).isoformat()
    time.sleep(0.01)
    return moment


@pytest.fixture
def changed(recollect, office):
    """A folder whose leave policy changed; gives the moment before it did."""
    recollect("ingest", office)
    moment = now()
    (office / "hr/leave.md").write_text("# Leave\n\n## Annual leave\n\nEvery employee has 33 days of annual leave.\n")
    recollect("ingest", office)
    return moment


def contents(recollect, *options: object) -> str:
    found = recollect("query", "How many days of annual leave?", "--json", *options).json["results"]
    return " ".join(one["content"] for one in found)


def test_the_past_answers_as_it_was(recollect, changed):
    assert "33 days" in contents(recollect) and "30 days" not in contents(recollect)
    assert "30 days" in contents(recollect, "--as-of", changed)
    assert contents(recollect, "--as-of", "2020-01-01") == ""
    asked = recollect("ask", "How many days of annual leave?", "--as-of", changed, "--json").json
    assert "33" not in asked["answer"]
    assert "30 days" in recollect("query", "annual leave", "--context", "--as-of", changed).out


def test_ranges_of_times(recollect):
    lines = [
        {"content": f"leave in {year}", "source": f"{year}", "event_time": f"{year}-06-01T00:00:00"}
        for year in (2020, 2021, 2022)
    ]
    lines += [
        {"content": "leave for long", "source": "long", "event_time": "2019-01-01T00:00:00Z",
         "event_end": "2021-01-01T00:00:00Z"},
        {"content": "leave some day", "source": "undated"},
    ]  # fmt: skip
    (recollect.folder / "d.jsonl").write_text("\n".join(map(json.dumps, lines)))
    recollect("import", "d.jsonl")

    def sources(*options: str) -> set[str]:
        return {one["source"] for one in recollect("query", "leave", "--json", *options).json["results"]}

    assert sources() == {"2020", "2021", "2022", "long", "undated"}
    assert sources("--event-from", "2021") == {"2021", "2022", "long"}
    assert sources("--event-to", "2021") == {"2020", "long"}
    assert sources("--event-from", "2021-01-02", "--event-to", "2022-06-01") == {"2021"}
    assert sources("--event-window", "3y", "--as-of", "2030") == set()
    assert sources("--event-window", "100d") == set()
    assert sources("--ingested-from", "1h") == {"2020", "2021", "2022", "long", "undated"}
    assert sources("--ingested-to", "1h") == set()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--as-of", "soon"], "--as-of must be a time such as 2026-01-31"),
        (["--event-window", "7"], "event_window must be a length of time"),
        (["--event-from", "2022", "--event-to", "2021"], "must begin before it ends"),
        (["--ingested-to", "31.12.2025"], "ingestion_time_range must be a time"),
    ],
)
@pytest.mark.parametrize("command", ["query", "ask"])
def test_what_is_no_time_is_refused_before_anything_is_opened(recollect, command, options, said):
    outcome = recollect(command, "leave", *options, "--dsn", "postgresql://127.0.0.1:1/none", status=2)
    assert said in outcome.err


def test_history_diff_and_restore(recollect, changed):
    history = recollect("documents", "history", "hr/leave.md", "--json").json
    assert [one["version"] for one in history["versions"]] == [1, 2]
    assert history["versions"][1]["known_to"] is None
    assert recollect("history", "hr/leave.md", "--json").json == history
    assert "now" in recollect("documents", "history", "hr/leave.md").out
    shown = recollect("documents", "diff", "hr/leave.md").out
    assert "-Every employee has 30 days" in shown and "+Every employee has 33 days" in shown
    assert recollect("documents", "diff", "hr/leave.md", "--from", 2, "--to", 1, "--json").json["added"] == 1
    assert "as version 3" in recollect("documents", "restore", "hr/leave.md", 1).out
    assert "30 days" in contents(recollect)
    assert "already" in recollect("documents", "restore", "hr/leave.md", 3).out
    assert "has no version 7" in recollect("documents", "restore", "hr/leave.md", 7, status=1).err


def test_how_the_evidence_changed(recollect, changed):
    diff = recollect("diff", "How many days of annual leave?", "--from", changed, "--json").json
    ((before, after),) = [pair for pair in diff["changed"] if pair[1]["source"] == "hr/leave.md"]
    assert "30 days" in before["content"] and "33 days" in after["content"]
    assert all(0 < one["relevance"] <= 1 for one in (before, after))
    shown = recollect("diff", "How many days of annual leave?", "--from", changed).out
    assert "- Every employee has 30 days" in shown and "+ Every employee has 33 days" in shown


def test_an_erasure_has_a_receipt_that_quotes_nothing(recollect, office):
    recollect("ingest", office)
    receipt = recollect("documents", "erase", "hr/pay.txt", "--yes", "--reason", "asked for", "--json").json
    assert (receipt["erased"], receipt["complete"], receipt["reason"]) == (1, True, "asked for")
    assert receipt["counts"]["chunks"] >= 1 and "alaries" not in json.dumps(receipt)
    (kept,) = recollect("documents", "receipts", "--json").json["receipts"]
    assert kept["salt"] == receipt["salt"] and kept["probe"]["found"] == {}
    assert recollect("documents", "receipts").out.startswith(str(receipt["receipt_id"]))
    shown = recollect("documents", "erase", "readme.txt", "--yes").out
    assert "nothing is left" in shown and "Backups" in shown
    recollect("documents", "history", "hr/pay.txt", status=1)


def test_what_expires_is_not_found_and_cleaned_up(recollect, office):
    recollect("ingest", office / "hr", "--ttl", "1s", "--tag", "draft")
    recollect("ingest", office / "it", "--ttl", "1s", "--tag", "legal")
    time.sleep(1.1)
    assert contents(recollect, "--tag", "draft") == "" != contents(recollect, "--tag", "legal")
    recollect("documents", "ttl", "errors.md", "1s")
    time.sleep(1.1)
    assert recollect("cleanup", "--json").json == {"expired": 1, "sessions_ended": 0, "partitions_dropped": []}
    assert recollect("cleanup").out == "0 documents expired.\n"
    assert contents(recollect) == ""
    assert "must be a length of time" in recollect("ingest", office, "--ttl", "soon", status=2).err
