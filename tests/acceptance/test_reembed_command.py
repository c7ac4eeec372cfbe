"""``recollect reembed``: another model for a collection, and what a person and a program are told of it."""

from __future__ import annotations

import time

import psycopg

CASES = """
cases:
  - name: leave
    query: how many days of annual leave
    must_have: [{source: hr/leave.md}]
  - name: pay
    query: when are salaries paid
    must_have: [{source: hr/pay.txt}]
"""


def test_a_model_is_compared_taken_and_given_back(recollect, office, tmp_path):
    recollect("ingest", office)
    before = recollect("query", "annual leave", "--json").json["results"]
    (tmp_path / "cases.yaml").write_text(CASES, encoding="utf-8")
    tried = recollect("reembed", "--model", "hashing:96", "--cases", "cases.yaml", "--no-switch", "--json").json
    assert set(tried) == {"collection", "from", "to", "embedded", "switched", "dropped", "comparison", "refused"}
    assert (tried["to"], tried["switched"]) == ({"model": "hashing:96", "dimensions": 96}, False)
    assert tried["comparison"]["of"] == "cases" and tried["comparison"]["queries"] == 2
    assert [one["name"] for one in tried["comparison"]["systems"]] == [tried["from"]["model"], "hashing:96"]
    status = recollect("reembed", "--status", "--json").json
    assert status["used"]["model"] == tried["from"]["model"]
    assert [(one["status"], one["filled"], one["total"]) for one in status["beside"]] == [("filling", 4, 4)]
    refused = recollect("reembed", "--model", "hashing:96", "--cases", "cases.yaml", "--min", "recall=1.1", status=1)
    assert "Not changed to it: recall is 1.000, below 1.1." in refused.err
    told = recollect("reembed", "--model", "hashing:96").out
    assert "It is used from now on." in told and "4 sampled questions" in told
    assert recollect("collections", "list", "--json").json["items"][0]["embedding_model"] == "hashing:96"
    assert "hashing:96" in recollect("reembed", "--status").out
    assert recollect("ingest", office, "--json").json["unchanged"] == 4
    assert recollect("reembed", "--rollback", "--json").json["switched"] is True
    assert recollect("query", "annual leave", "--json").json["results"] == before
    assert "Removed the vectors of hashing:96 (96)." in recollect("reembed", "--drop", "--yes").out
    assert "There is nothing beside" in recollect("reembed", "--drop").out


def test_what_makes_no_sense_is_refused(recollect, office):
    recollect("ingest", office)
    for wrong in ((), ("--model", "hashing:96", "--status"), ("--model", "hashing:96", "--min", "recall")):
        assert recollect("reembed", *wrong, status=2).err
    assert "already" in recollect("reembed", "--model", "hashing:64", status=2).err
    assert "There is no collection 'x'" in recollect("reembed", "-c", "x", "--model", "hashing:96", status=1).err
    assert "Nothing is kept" in recollect("reembed", "--rollback", status=1).err


def test_in_the_background_a_worker_goes_on_where_another_was_killed(recollect, office, dsn):
    recollect("ingest", office)
    recollect.environment["RECOLLECT_JOBS__HEARTBEAT_SECONDS"] = "0.1"
    # It rests for a thousand times as long as its one batch takes: there it is killed.
    asked = recollect("reembed", "--model", "hashing:96", "--samples", "0", "--pause", "1000", "--background", "--json")
    assert (asked.json["kind"], asked.json["status"], asked.json["collection"]) == ("reembed", "pending", "default")
    worker = recollect.start("worker")
    with psycopg.connect(dsn, autocommit=True) as connection:
        deadline = time.monotonic() + 60
        filled = "SELECT count(DISTINCT space_id) FROM recollect.chunk_vectors"
        while connection.execute(filled).fetchone() != (2,) and worker.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
    worker.kill()
    worker.communicate()
    assert "hashing:96 (96): being filled, 4 of 4 chunks." in recollect("reembed", "--status").out
    recollect("worker", "--until-empty")
    shown = recollect("jobs", "show", asked.json["job_id"], "--json").json
    assert (shown["status"], shown["result"]["switched"]) == ("succeeded", True)
    assert shown["stages"][-1] == {"name": "switch", "done": 1, "total": 1}
    status = recollect("reembed", "--status", "--json").json
    (kept,) = status["beside"]
    assert (status["used"]["model"], kept["status"], kept["kept_until"] > kept["since"]) == ("hashing:96", "kept", True)
    assert f"kept for --rollback until {kept['kept_until'][:10]}" in recollect("reembed", "--status").out
    assert "--background is for --model" in recollect("reembed", "--drop", "--background", status=2).err


def test_the_way_back_is_a_job_too_and_goes_one_way_however_often_it_runs(recollect, office, dsn):
    recollect("ingest", office)
    before = recollect("reembed", "--model", "hashing:96", "--samples", "0", "--json").json["from"]["model"]
    asked = recollect("reembed", "--rollback", "--background", "--json").json
    recollect("worker", "--until-empty")
    assert recollect("reembed", "--status", "--json").json["used"]["model"] == before
    # As where its worker was killed behind the change, before that was written down.
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE recollect.jobs SET status = 'failed' WHERE job_id = %s", [asked["job_id"]])
    recollect("jobs", "retry", asked["job_id"])
    recollect("worker", "--until-empty")
    shown = recollect("jobs", "show", asked["job_id"], "--json").json
    assert (shown["status"], shown["result"]["switched"], shown["result"]["embedded"]) == ("succeeded", True, 0)
    assert recollect("reembed", "--status", "--json").json["used"]["model"] == before
