"""``recollect sources`` as it is typed."""

from __future__ import annotations

from program import Recollect


def test_a_folder_is_added_refreshed_listed_and_removed(recollect: Recollect):
    folder = recollect.folder / "docs"
    folder.mkdir()
    (folder / "leave.md").write_text("# Leave\n\nAnnual leave is 30 days.\n", encoding="utf-8")
    added = recollect("sources", "add", folder, "--every", "1h", "--json").json["refreshed"]
    assert added[0]["documents"]["added"] == 1
    (folder / "new.md").write_text("Something new", encoding="utf-8")
    assert "1 added" in " ".join(recollect("sources", "refresh").out.split())
    (source,) = recollect("sources", "list", "--json").json["sources"]
    assert (source["connector"], source["state"], source["documents"]) == ("directory", "fresh", 2)
    assert "directory" in recollect("sources", "list").out
    queued = recollect("sources", "refresh", "--background", "--json").json["jobs"]
    assert queued[0]["kind"] == "refresh_source"
    assert recollect("sources", "remove", source["name"], "--json").json == {"removed": source["name"], "closed": 2}
    assert recollect("query", "annual leave", "--json").json["results"] == []


def test_what_is_wrong_is_said_and_no_secret_repeated(recollect: Recollect):
    refused = recollect("sources", "add", "s3://bucket", "--set", "secret_key=very-secret", status=2)
    assert "env:NAME" in refused.err and "very-secret" not in refused.err
    assert "very-secret" not in recollect("sources", "add", "s3://bucket", "--set", "=very-secret", status=2).err
    recollect("sources", "add", "nowhere", status=2)
    recollect("sources", "refresh", "nowhere", status=1)
    recollect("sources", "remove", "nowhere", "--keep", "--erase", status=2)
    added = recollect("sources", "add", "https://127.0.0.1/a.git", "--no-refresh", "--json").json["source"]
    assert added["state"] == "new"
    told = recollect("sources", "refresh", "--json", status=1)
    assert "loopback" in told.json["error"]["message"]
