"""``recollect sources`` as it is typed."""

from __future__ import annotations

import pytest

from program import Recollect


def test_a_folder_is_added_refreshed_listed_and_removed(recollect: Recollect):
    folder = recollect.folder / "docs"
    folder.mkdir()
    (folder / "leave.md").write_text("# Leave\n\nAnnual leave is 30 days.\n", encoding="utf-8")
    added = recollect("sources", "add", folder, "--every", "1h", "--json").json["refreshed"]
    assert added[0]["added"] == 1
    (folder / "new.md").write_text("Something new", encoding="utf-8")
    assert "1 added" in " ".join(recollect("sources", "refresh").out.split())
    (source,) = recollect("sources", "list", "--json").json["items"]
    assert (source["connector"], source["state"], source["documents"]) == ("directory", "fresh", 2)
    assert "directory" in recollect("sources", "list").out
    queued = recollect("sources", "refresh", "--background", "--json").json["jobs"]
    assert queued[0]["kind"] == "refresh_source"
    assert recollect("sources", "remove", source["name"], "--json").json == {"documents": 2}
    assert recollect("query", "annual leave", "--json").json["results"] == []


def test_what_is_wrong_is_said_and_no_secret_repeated(recollect: Recollect):
    refused = recollect("sources", "add", "s3://bucket", "--set", "secret_key=very-secret", status=2)
    assert "env:NAME" in refused.err and "very-secret" not in refused.err
    assert "very-secret" not in recollect("sources", "add", "s3://bucket", "--set", "=very-secret", status=2).err
    recollect("sources", "add", "nowhere", status=2)
    recollect("sources", "refresh", "nowhere", status=1)
    recollect("sources", "remove", "nowhere", "--keep", "--erase", status=2)
    added = recollect("sources", "add", "https://127.0.0.1/a.git", "--no-refresh", "--json").json
    assert added["state"] == "new"
    told = recollect("sources", "refresh", "--json", status=1)
    assert "loopback" in told.json["error"]["message"]


REFUSED = {
    "a loopback address": ["https://127.0.0.1/a.git"],
    "a site on the machine": ["http://127.0.0.1:9/"],
    "no such variable": ["imaps://ann@mail.example.org", "--set", "password=env:NOT_SET"],
    "a repository by its path": ["file:///srv/handbook.git"],
    "a rule without grants": ["https://git.example.org/a.git", "--grants", "nonsense"],
    "an interval": ["docs", "--every", "-5m"],
    "a setting of a folder": ["docs", "--set", "depth=3"],
}


@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_registers_nothing(recollect: Recollect, arguments: list[str]):
    (recollect.folder / "docs").mkdir()
    told = recollect("sources", "add", *arguments, "--collection", "hr", status=None)
    assert told.status in {1, 2} and told.err
    assert recollect("sources", "list", "--everywhere", "--json").json["items"] == []
    assert recollect("collections", "list", "--json").json["items"] == []


def test_a_first_refresh_that_fails_leaves_what_was_there(recollect: Recollect):
    (recollect.folder / "docs").mkdir()
    recollect("collections", "create", "hr")
    recollect("sources", "add", "https://127.0.0.1/a.git", "--no-refresh", "-c", "hr")
    assert "remove it first" in recollect("sources", "add", "https://127.0.0.1/a.git", "-c", "hr", status=1).err
    told = recollect("sources", "add", "https://127.0.0.1/b.git", "-c", "hr", status=1)
    assert "was not added" in told.err
    sources = recollect("sources", "list", "-c", "hr", "--json").json["items"]
    assert [source["name"] for source in sources] == ["https://127.0.0.1/a.git"]
    assert len(recollect("collections", "list", "--json").json["items"]) == 1


def test_metadata_of_a_source_is_carried_filtered_by_refreshed_and_exported(recollect: Recollect):
    folder = recollect.folder / "docs"
    folder.mkdir()
    (folder / "leave.md").write_text("# Leave\n\nAnnual leave is 30 days.\n", encoding="utf-8")
    given = ("--metadata", "project=alpine", "--metadata", "year=2025")
    recollect("sources", "add", folder, *given)
    assert recollect("sources", "list", "--json").json["items"][0]["metadata"] == {"project": "alpine", "year": 2025}

    def found(*condition: str) -> set[str]:
        return {hit["source"] for hit in recollect("query", "annual leave", *condition, "--json").json["results"]}

    assert found("--where", "project=alpine") == {"leave.md"}
    assert found("--where", "project=other") == set()
    assert found("--filter", '{"metadata.year": {"gte": 2025}}') == {"leave.md"}
    (folder / "leave.md").write_text("# Leave\n\nAnnual leave is 31 days.\n", encoding="utf-8")
    (folder / "new.md").write_text("Annual leave is new.", encoding="utf-8")
    recollect("sources", "refresh")
    assert found("--where", "project=alpine") == {"leave.md", "new.md"}
    (folder / "more.md").write_text("Annual leave and more.", encoding="utf-8")
    recollect("ingest", folder, "--sync")
    assert found("--where", "project=alpine") == {"leave.md", "new.md", "more.md"}
    recollect("export", "all.jsonl")
    recollect("import", "all.jsonl", "--collection", "copy")
    assert found("--where", "project=alpine", "-c", "copy") == {"leave.md", "new.md", "more.md"}


def test_metadata_of_a_source_that_changes_reaches_its_documents(recollect: Recollect):
    folder = recollect.folder / "docs"
    folder.mkdir()
    (folder / "leave.md").write_text("Annual leave is 30 days.", encoding="utf-8")
    recollect("ingest", folder)
    report = recollect("sources", "add", folder, "--metadata", "project=alpine", "--json").json["refreshed"][0]
    assert report["updated"] == 1
    assert recollect("sources", "refresh", "--json").json["refreshed"][0]["unchanged"] == 1
    refused = recollect("sources", "add", folder, "--name", "x", "--metadata", "project", status=2)
    assert "--metadata takes KEY=VALUE" in refused.err
