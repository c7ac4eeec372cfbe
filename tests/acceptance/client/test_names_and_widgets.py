"""Conversations are called something and found by their words, and widgets get keys: over HTTP and by commands."""

from __future__ import annotations

import os

import httpx2
import pytest

from program import Recollect
from recollect import Document, Principal
from recollect.errors import NotFoundError, PermissionDeniedError, UsageError

KEPT = {name: value for name, value in os.environ.items() if not name.startswith(("RECOLLECT_", "FORCE_COLOR"))}
SITE = "https://intranet.example.com"


@pytest.fixture
def remote(served, tmp_path) -> Recollect:
    """Commands that know where the server is and nothing else."""
    return Recollect(tmp_path, {**KEPT, "RECOLLECT_SERVER": served.url, "HOME": str(tmp_path)})


def test_a_conversation_is_renamed_and_found_by_title_and_words(served, client, remote):
    client.view(session="plans").remember("We meet in Oslo on Friday.")
    assert client.memory.rename("plans", "Trip to Norway").title == "Trip to Norway"
    for words in ("norway", "OSLO"):
        assert [one.name for one in client.memory.list(text=words)] == ["plans"]
    assert [one.name for one in client.memory.list(text="norway", limit=1, offset=1)] == []
    listed = httpx2.get(f"{served.url}/v1/sessions", params={"text": "oslo"}).json()
    assert [one["title"] for one in listed["sessions"]] == ["Trip to Norway"]
    # What is searched are conversations: sessions with documents say nothing.
    assert (listed["document_sessions"], listed["next_cursor"]) == ([], None)
    shown = remote("sessions", "rename", "plans", "Friday", "--json").json
    assert (shown["session"], shown["title"]) == ("plans", "Friday")
    assert "'Friday'" in remote("sessions", "rename", "plans", "Friday").out
    assert "Friday" in remote("sessions", "list", "--search", "friday").out
    assert [one["session"] for one in remote("sessions", "list", "--search", "oslo", "--json").json["sessions"]] == [
        "plans"
    ]
    assert "No conversation holds that." in remote("sessions", "list", "--search", "nowhere").out
    assert "by its first words" in remote("sessions", "rename", "plans").out
    assert client.memory.get("plans").title is None
    for wrong, status in (("t" * 201, 422), ("", 422), (" ", 400)):
        assert httpx2.patch(f"{served.url}/v1/sessions/plans", json={"title": wrong}).status_code == status
    with pytest.raises(NotFoundError):
        client.memory.rename("none", "Title")


def test_nobody_renames_or_finds_what_others_have_said(served, client):
    keys = {
        name: client.keys.create(name, scopes=["read", "write"], principal=Principal(user_id=name)).secret
        for name in ("ann", "bob")
    }
    with served.client(keys["ann"]) as ann, served.client(keys["bob"]) as bob:
        ann.view(session="secret").remember("The launch is in Reykjavik.")
        assert [one.name for one in ann.memory.list(text="reykjavik")] == ["secret"]
        assert bob.memory.list(text="reykjavik") == []
        with pytest.raises(NotFoundError):
            bob.memory.rename("secret", "Mine")
        assert ann.memory.get("secret").title is None
    reader = client.keys.create("reader", principal=Principal(user_id="ann")).secret
    with served.client(reader) as one, pytest.raises(PermissionDeniedError):
        one.memory.rename("secret", "Title")


def test_pages_of_found_conversations_go_on_where_the_one_before_ended(served, client):
    for number in range(5):
        client.view(session=f"paged-{number}").remember(f"Zebrafinch {number}.")
    found, cursor = [], None
    while True:
        page = httpx2.get(
            f"{served.url}/v1/sessions",
            params={"text": "zebrafinch", "limit": 2, **({"cursor": cursor} if cursor else {})},
        ).json()
        found += [one["session"] for one in page["sessions"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == [f"paged-{number}" for number in (4, 3, 2, 1, 0)]


def test_chunks_are_asked_for_by_their_characters(served, client):
    text = "".join(f"## Part {number}\n\n{'Some words of it. ' * 60}\n\n" for number in range(5))
    number = client.ingest(Document(content=text, source="parts.md")).document_id
    every = client.contents.chunks(number)
    assert len(every) > 3
    middle = every[2]
    for start, end in ((middle.start_offset, middle.start_offset + 1), (middle.end_offset - 1, middle.end_offset)):
        found = client.contents.chunks(number, start=start, end=end)
        assert middle in found and [*found] == [
            one for one in every if one.start_offset < end and one.end_offset > start
        ]
    assert list(client.contents.each_chunk(number, start=every[-1].end_offset - 1)) == [every[-1]]
    assert not client.contents.chunks(number, start=len(text) + 10)
    refused = httpx2.get(f"{served.url}/v1/documents/{number}/chunks", params={"start": -1})
    assert refused.status_code == 422


def test_a_widget_gets_its_key_over_http_and_on_the_command_line(served, client, remote):
    made = client.keys.create_widget("intranet", collection="it", origins=[SITE], expires="30d")
    kept = client.keys.get(made.key.key_id)
    assert kept.widget is not None and (kept.widget.collection, kept.widget.origins) == ("it", (SITE,))
    assert kept == made.key and kept.principal == Principal()
    # It opens the widget and nothing else.
    assert httpx2.get(f"{served.url}/v1/me", headers={"X-API-Key": made.secret}).status_code == 401
    told = remote("keys", "create", "wiki", "--widget", "it", "--origin", SITE, "--as", "ann", "--json").json["key"]
    assert told["widget"] == {"collection": "it", "origins": [SITE]}
    assert told["principal"]["user_id"] == "ann"
    assert "its widget" in remote("keys", "list").out
    assert "--widget" in remote("keys", "create", "x", "--origin", SITE, status=2).err
    assert (
        "--scope" in remote("keys", "create", "x", "--widget", "it", "--origin", SITE, "--scope", "read", status=2).err
    )
    assert "https://" in remote("keys", "create", "x", "--widget", "it", "--origin", "http://intra", status=2).err
    for wrong in ([], ["ftp://x"], ["https://a.example/path"]):
        with pytest.raises(UsageError):
            client.keys.create_widget("x", collection="it", origins=wrong)
    with pytest.raises(NotFoundError):
        client.keys.create_widget("x", collection="nowhere", origins=[SITE])
    body = {"name": "x", "scopes": ["read", "write"], "widget": {"collection": "it", "origins": [SITE]}}
    assert httpx2.post(f"{served.url}/v1/keys", json=body).status_code == 400
    # Whoever is somebody in particular makes none: it would read as nobody.
    theirs = client.keys.create("kim", scopes=["read", "admin"], principal=Principal(user_id="kim")).secret
    with served.client(theirs) as kim, pytest.raises(PermissionDeniedError):
        kim.keys.create_widget("x", collection="it", origins=[SITE])


@pytest.mark.parametrize("name", ["hr/leave", "/", "with space/and ü", "100%2F", "..%2f..", "a//b"])
def test_a_name_with_a_slash_is_a_name_on_every_route(served, client, name, tmp_path):
    """Over real HTTP, where a path comes decoded: what has a slash in it is told from what stands below it."""
    client.collections.create(name, description="Its own.")
    client.collections.create(f"{name}-x")
    place = client.view(collections=name)
    stored = place.ingest(Document(content="Leave is thirty days.", source="leave/2026.md"))
    assert place.documents.get(stored.document_id).collection == name
    assert [one.source for one in place.documents.list()] == ["leave/2026.md"]
    assert client.collections.get(name).description == "Its own."
    assert client.collections.update(name, description="Told.").description == "Told."
    (tmp_path / "pump.md").write_text("Pumps are greased on Mondays.", encoding="utf-8")
    place.ingest(tmp_path / "pump.md")
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(place.collections.export_lines()), encoding="utf-8")
    assert client.view(collections=f"{name}-x").collections.import_file(lines).added == 2
    assert place.spaces.status().collection == name
    assert place.grants.of_collection().readers == ("*",)
    assert "thirty" in place.retrieve("How many days of leave?")[0].content
    client.view(session=name).remember("We met in Oslo.")
    assert [one.content for one in client.view(session=name).memory.turns(name)] == ["We met in Oslo."]
    client.memory.delete(name)
    client.collections.delete(f"{name}-x")
    client.collections.delete(name)
    with pytest.raises(NotFoundError):
        client.collections.get(name)


def test_a_slash_in_a_name_opens_no_other_door(served, client):
    client.collections.create("hr")
    client.collections.create("hr/documents")
    with httpx2.Client(base_url=served.url) as one:
        assert one.get("/v1/collections/hr%2Fdocuments").json()["name"] == "hr/documents"
        assert one.get("/v1/collections/hr%2fdocuments").json()["name"] == "hr/documents"
        assert "items" in one.get("/v1/collections/hr/documents").json()
        # A part of a path is none: what is encoded is a name, and a slash between parts stays one.
        assert one.get("/v1%2Fcollections/hr").status_code == 404
        assert one.get("/v1/collections%2Fhr").status_code == 404
        assert one.get("/v1/documents/1%2F..%2F2").status_code in {400, 404, 422}
        assert one.get("/v1/collections/hr%EF%B7%90documents").status_code == 400
        assert one.get("/v1/collections/hr%252Fdocuments").status_code == 404
        assert one.delete("/v1/collections/hr%2Fdocuments").status_code == 204
        assert one.get("/v1/collections/hr").status_code == 200
        told = one.get("/metrics").text
        assert 'route="/v1/collections/{name}"' in told
        assert ":named" not in told
    client.collections.delete("hr")
