"""``/v1/collections/{name}/documents`` and ``/v1/documents/{id}``: what is put in, changed and taken out over HTTP."""

from __future__ import annotations

import json

import pytest

from recollect import Document, Principal
from recollect.model.original import Original

LEAVE = "# Leave\n\nEvery employee has thirty days of annual leave.\n\n# Pay\n\nSalaries are paid on the twenty-fifth."


def put(client, **fields) -> dict:
    reply = client.post("/v1/collections/default/documents", json={"content": LEAVE, "source": "leave.md", **fields})
    assert reply.status_code == 201, reply.text
    return reply.json()


@pytest.fixture
def ada(rag, connect):
    """Somebody who reads what is not for the board, and may write nowhere."""
    who = Principal(user_id="ada", roles=("staff",))
    return connect(rag.keys.create("ada", scopes=["read", "write"], principal=who).secret)


@pytest.fixture
def reader(rag, connect):
    """A key of the store's owner that reads alone."""
    return connect(rag.keys.create("reader", scopes=["read"]).secret)


def test_a_text_is_stored_found_and_shown_as_it_was_given(client):
    given = {
        "title": "Leave and pay",
        "metadata": {"year": 2026},
        "tags": ["hr", "official"],
        "department": "hr",
        "event_time": "2026-01-31",
    }
    reply = client.post("/v1/collections/default/documents", json={"content": LEAVE, "source": "leave.md", **given})
    assert reply.status_code == 201, reply.text
    written = reply.json()
    assert (written["version"], written["status"]) == (1, "added")
    shown = client.get(reply.headers["location"])
    assert shown.headers["etag"] == '"1"'
    told = shown.json()
    assert {name: told[name] for name in ("title", "metadata", "tags", "department")} == {
        name: given[name] for name in ("title", "metadata", "tags", "department")
    }
    assert told["event_time"].startswith("2026-01-31T00:00")
    assert "content" not in told
    found = client.post("/v1/search", json={"query": "annual leave"}).json()["results"]
    assert found[0]["document_id"] == written["document_id"]
    assert put(client, **given)["status"] == "unchanged"
    assert put(client, content=LEAVE + "\n\nMore.")["status"] == "updated"


NO_TEXTS = [
    ({}, 422),
    ({"content": ""}, 400),
    ({"content": "  \n "}, 400),
    ({"content": "a\x00b"}, 422),
    ({"content": "x", "tag": ["misspelt"]}, 422),
    ({"content": "x", "event_time": "someday"}, 400),
    ({"content": "x", "event_time": "2026-02-01", "event_end": "2026-01-01"}, 400),
    ({"content": "x", "ttl": "-1d"}, 400),
    ({"content": "x", "permissions": ["nobody:x"]}, 400),
    ({"content": "x", "source": ""}, 422),
]


def test_texts_that_are_none(client):
    for body, status in NO_TEXTS:
        reply = client.post("/v1/collections/default/documents", json=body)
        assert reply.status_code == status, (body, reply.text)
        assert reply.headers["content-type"] == "application/problem+json"
    assert client.get("/v1/collections/default/documents").json()["items"] == []


def test_a_misspelt_collection_is_not_made(rag, client):
    assert client.post("/v1/collections/hrr/documents", json={"content": "x"}).status_code == 404
    assert client.post("/v1/collections/hrr/urls", json={"url": "https://example.com/"}).status_code == 404
    assert client.get("/v1/collections").json() == {"items": [], "next_cursor": None}
    rag.collections.create("hr")
    assert client.post("/v1/collections/hr/documents", json={"content": "x"}).status_code == 201


def test_lists_are_read_page_by_page_and_filtered(rag, client):
    rag.ingest(
        [
            Document(
                content=f"Text {n}", source=f"{n}.md", department="hr" if n % 2 else "it", tags=("even",) * (n % 2 == 0)
            )
            for n in range(7)
        ]
    )

    def listed(**query) -> list[str]:
        found, cursor = [], None
        while True:
            page = client.get(
                "/v1/collections/default/documents",
                params={**query, "limit": 2, **({"cursor": cursor} if cursor else {})},
            ).json()
            assert len(page["items"]) <= 2
            found += [one["source"] for one in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    names = [f"{n}.md" for n in range(7)]
    assert listed() == names
    assert listed(sort="newest") == names[::-1]
    assert listed(department="hr") == names[1::2]
    assert listed(tag="even") == names[::2]
    assert listed(tag=["even", "odd"]) == []
    assert listed(source="3.md") == ["3.md"]
    assert listed(source="manual") == names
    assert listed(status="embedded", sort="newest", tag="even") == names[::-2]
    assert listed(status="pending") == []
    rag.ingest_url("https://example.com/a", wait=False)
    assert listed(status="pending") == ["https://example.com/a"]
    assert listed(sort="newest")[0] == "https://example.com/a"
    assert listed(source="example.com") == ["https://example.com/a"]


def test_cursors_are_only_what_was_sent(client):
    for cursor in ("x", "IjEi", "W1tbW1tb", "é", "dHJ1ZQ", "LTE"):
        for path in ("/v1/collections/default/documents", "/v1/jobs"):
            reply = client.get(path, params={"cursor": cursor})
            assert reply.status_code == 400, reply.text
            assert "cursor" in reply.json()["detail"]


def test_what_a_document_says_is_read_in_parts(client):
    number = put(client)["document_id"]
    part = client.get(f"/v1/documents/{number}/content", params={"start": 2, "length": 5}).json()
    assert (part["text"], part["start_offset"], part["end_offset"], part["characters"]) == ("Leave", 2, 7, len(LEAVE))
    assert client.get(f"/v1/documents/{number}/content").json()["text"] == LEAVE
    assert client.get(f"/v1/documents/{number}/content", params={"start": 10**6}).status_code == 400
    assert client.get(f"/v1/documents/{number}/content", params={"length": 0}).status_code == 422
    headings = client.get(f"/v1/documents/{number}/outline").json()["headings"]
    assert [one["title"] for one in headings] == ["Leave", "Pay"]
    chunks = []
    cursor = None
    while True:
        query = {"limit": 1, **({"cursor": cursor} if cursor else {})}
        page = client.get(f"/v1/documents/{number}/chunks", params=query).json()
        chunks += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert [one["position"] for one in chunks] == list(range(len(chunks)))
    assert all(one["text"] == LEAVE[one["start_offset"] : one["end_offset"]] for one in chunks)


def test_versions_are_listed_and_compared(client):
    number = put(client)["document_id"]
    put(client, content=LEAVE.replace("thirty", "twenty"))
    assert [one["version"] for one in client.get(f"/v1/documents/{number}/history").json()["versions"]] == [1, 2]
    changed = client.get(f"/v1/documents/{number}/diff", params={"from": 1, "to": 2}).json()
    assert (changed["added"], changed["removed"]) == (1, 1)
    assert client.get(f"/v1/documents/{number}/diff").json() == changed
    assert client.get(f"/v1/documents/{number}/diff", params={"from": 7}).status_code == 404


def test_a_document_is_described_anew_and_keeps_what_it_says(rag, client):
    original = Original.of_bytes(b"As it came", name="leave.md", mime_type="text/markdown")
    rag.ingest(Document(content=LEAVE, source="leave.md", tags=("old",), metadata={"a": 1}, original=original))
    number = rag.documents.resolve(["leave.md"])[0]
    reply = client.put(f"/v1/documents/{number}", json={"metadata": {"b": 2}, "tags": ["new"]})
    assert reply.status_code == 200, reply.text
    assert (reply.json()["status"], reply.headers["etag"]) == ("updated", '"2"')
    shown = client.get(f"/v1/documents/{number}").json()
    assert (shown["metadata"], shown["tags"], shown["source"]) == ({"b": 2}, ["new"], "leave.md")
    assert client.get(f"/v1/documents/{number}/content").json()["text"] == LEAVE
    assert client.get(f"/v1/documents/{number}/original").content == b"As it came"
    found = client.post("/v1/search", json={"query": "annual leave", "tag": ["new"]}).json()["results"]
    assert [one["document_id"] for one in found][:1] == [number]
    # The same text again is not a change: what was said of it here stays.
    rag.ingest(Document(content=LEAVE, source="leave.md", tags=("old",), metadata={"a": 1}, original=original))
    assert client.get(f"/v1/documents/{number}").json()["tags"] == ["new"]
    again = client.put(f"/v1/documents/{number}", json={"metadata": {"b": 2}})
    assert (again.json()["status"], again.headers["etag"]) == ("unchanged", '"2"')
    assert client.put(f"/v1/documents/{number}", json={"title": "x", "content": "y"}).status_code == 422


def test_a_changed_document_is_not_changed_by_whoever_has_not_seen_that(client):
    number = put(client)["document_id"]
    tag = client.get(f"/v1/documents/{number}").headers["etag"]
    assert client.put(f"/v1/documents/{number}", json={"tags": ["a"]}, headers={"If-Match": tag}).status_code == 200
    for method, body in (("PUT", {"tags": ["b"]}), ("DELETE", None)):
        refused = client.request(method, f"/v1/documents/{number}", json=body, headers={"If-Match": tag})
        assert refused.status_code == 412
        assert refused.json()["type"] == "urn:recollect:problem:version-changed"
    now = client.get(f"/v1/documents/{number}")
    assert now.json()["tags"] == ["a"]
    for none in (f"W/{now.headers['etag']}", "2", '""', '"2', "garbage"):
        refused = client.delete(f"/v1/documents/{number}", headers={"If-Match": none})
        assert refused.status_code == 412, none
    several = f'"77", {now.headers["etag"]}'
    assert client.delete(f"/v1/documents/{number}", headers={"If-Match": several}).status_code == 204
    assert client.get(f"/v1/documents/{number}").status_code == 404
    assert client.delete(f"/v1/documents/{number}", headers={"If-Match": "*"}).status_code == 404


def test_what_has_not_changed_is_not_sent_again(client):
    number = put(client)["document_id"]
    tag = client.get(f"/v1/documents/{number}").headers["etag"]
    for given in (tag, f'W/{tag}, "9"', "*"):
        reply = client.get(f"/v1/documents/{number}", headers={"If-None-Match": given})
        assert (reply.status_code, reply.content, reply.headers["etag"]) == (304, b"", tag)
    put(client, content="Something else")
    assert client.get(f"/v1/documents/{number}", headers={"If-None-Match": tag}).status_code == 200


def test_the_original_is_downloaded_and_never_shown(rag, client):
    data = b"<script>alert(1)</script>" + bytes(range(256)) * 2_000
    name = 'ev"il\r\nX-Injected: 1/../\u202egpj.exe'
    original = Original.of_bytes(data, name=name, mime_type="text/html")
    number = rag.ingest(Document(content=LEAVE, source="page", original=original)).document_id
    reply = client.get(f"/v1/documents/{number}/original", headers={"Accept-Encoding": "gzip"})
    assert reply.content == data
    assert reply.headers["content-length"] == str(len(data))
    assert reply.headers["content-type"].startswith("text/html")
    assert reply.headers["content-disposition"].startswith("attachment;")
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in reply.headers["content-security-policy"] or "'none'" in reply.headers["content-security-policy"]
    assert "x-injected" not in reply.headers
    tag = reply.headers["etag"]
    assert client.get(f"/v1/documents/{number}/original", headers={"If-None-Match": tag}).status_code == 304
    size = len(data)
    for wanted, part in [
        ("bytes=0-9", data[:10]),
        ("bytes=262140-262150", data[262140:262151]),
        (f"bytes={size - 3}-", data[-3:]),
        ("bytes=-5", data[-5:]),
        (f"bytes=10-{size * 2}", data[10:]),
    ]:
        reply = client.get(f"/v1/documents/{number}/original", headers={"Range": wanted})
        assert (reply.status_code, reply.content) == (206, part)
        start = size - len(part) if wanted in {f"bytes={size - 3}-", "bytes=-5"} else int(wanted[6:].split("-")[0])
        assert reply.headers["content-range"] == f"bytes {start}-{start + len(part) - 1}/{size}"
    for ignored in ("bytes=5-2", "bytes=0-1,4-5", "lines=1-2", "bytes=a-b", "bytes=-"):
        reply = client.get(f"/v1/documents/{number}/original", headers={"Range": ignored})
        assert (reply.status_code, reply.content) == (200, data)
    for beyond in (f"bytes={size}-", "bytes=-0"):
        reply = client.get(f"/v1/documents/{number}/original", headers={"Range": beyond})
        assert (reply.status_code, reply.headers["content-range"]) == (416, f"bytes */{size}")
    changed = {"Range": "bytes=0-9", "If-Range": '"other"'}
    assert client.get(f"/v1/documents/{number}/original", headers=changed).status_code == 200
    plain = put(client)["document_id"]
    assert client.get(f"/v1/documents/{plain}/original").status_code == 404


def test_an_erased_document_leaves_a_receipt_and_nothing_else(client):
    number = put(client)["document_id"]
    reply = client.post(f"/v1/documents/{number}/erase", json={"reason": "asked for"})
    assert reply.status_code == 200, reply.text
    receipt = reply.json()
    assert (receipt["erased"], receipt["complete"], receipt["reason"]) == (1, True, "asked for")
    assert LEAVE[:20] not in reply.text
    for path in ("", "/history", "/content", "/chunks"):
        assert client.get(f"/v1/documents/{number}{path}").status_code == 404
    assert client.post(f"/v1/documents/{number}/erase", json={}).status_code == 404


def test_an_original_is_read_anew(rag, client):
    original = Original.of_bytes(b"# Heading\n\nOther words", name="a.md", mime_type="text/markdown")
    number = rag.ingest(Document(content=LEAVE, source="a.md", original=original)).document_id
    assert client.post(f"/v1/documents/{number}/reingest", json={}).json()["version"] == 2
    assert "Other words" in client.get(f"/v1/documents/{number}/content").json()["text"]
    assert client.post(f"/v1/documents/{number}/reingest", json={}).json()["status"] == "unchanged"
    plain = put(client)["document_id"]
    assert client.post(f"/v1/documents/{plain}/reingest", json={}).status_code == 404


def every_request(number: int) -> list[tuple[str, str, dict | None]]:
    reading = ["", "/content", "/chunks", "/outline", "/history", "/diff", "/original"]
    return [
        *[("GET", f"/v1/documents/{number}{path}", None) for path in reading],
        ("PUT", f"/v1/documents/{number}", {"tags": ["mine"]}),
        ("DELETE", f"/v1/documents/{number}", None),
        ("POST", f"/v1/documents/{number}/erase", {}),
        ("POST", f"/v1/documents/{number}/reingest", {}),
    ]


def test_other_tenants_and_numbers_that_are_none_find_nothing(rag, client, connect):
    rag.tenants.create("other")
    other = connect(rag.view(tenant="other").keys.create("other", scopes=["read", "write", "admin"]).secret)
    number = put(client)["document_id"]
    for missing in (number, number + 1_000, 2**63 - 1):
        for method, path, body in every_request(missing):
            reply = other.request(method, path, json=body)
            assert reply.status_code == 404, (method, path, reply.text)
            assert "leave" not in reply.text.lower()
    assert other.get("/v1/collections/default/documents").json()["items"] == []
    for bad in ("0", "-1", "x", str(2**63), "1.5", "%00", "1e3"):
        assert client.get(f"/v1/documents/{bad}").status_code in {404, 422}
    assert client.get(f"/v1/documents/{number}").json()["version"] == 1


def test_whoever_may_not_read_finds_nothing_and_whoever_may_not_write_changes_nothing(client, ada, reader):
    secret = put(client, permissions=["role:board"])["document_id"]
    shown = put(client, content="For everybody", source="all.md")["document_id"]
    for method, path, body in every_request(secret):
        assert ada.request(method, path, json=body).status_code == 404, (method, path)
    listed = ada.get("/v1/collections/default/documents").json()["items"]
    assert [one["document_id"] for one in listed] == [shown]
    for method, path, body in every_request(shown):
        if method != "GET":
            assert ada.request(method, path, json=body).status_code == 403, (method, path)
            assert reader.request(method, path, json=body).status_code == 403, (method, path)
    for sender in (ada, reader):
        assert sender.post("/v1/collections/default/documents", json={"content": "x"}).status_code == 403
        url = {"url": "https://example.com/"}
        assert sender.post("/v1/collections/default/urls", json=url).status_code == 403
    assert client.get("/v1/jobs").json()["items"] == []
    assert reader.get(f"/v1/documents/{secret}").status_code == 200
    assert ada.get("/v1/collections/hr/documents").status_code == 404


def test_a_page_is_asked_for_with_the_options_of_the_command(client):
    given = {
        "url": "https://example.com/a",
        "tag": ["web"],
        "headers": {"Authorization": "Bearer s3cret"},
        "force": True,
    }
    reply = client.post("/v1/collections/default/urls", json=given)
    assert reply.status_code == 202, reply.text
    job = reply.json()
    assert (job["kind"], job["status"], job["document"]) == ("ingest_url", "pending", "https://example.com/a")
    assert "s3cret" not in reply.text
    assert client.get(reply.headers["location"]).json() == job
    crawl = client.post(
        "/v1/collections/default/urls", json={"url": "https://example.com/", "crawl": True, "max_pages": 5}
    ).json()
    assert (crawl["kind"], crawl["arguments"]["crawl"]["max_pages"]) == ("crawl", 5)
    for bad, status in [
        ({"url": "file:///etc/passwd"}, 422),
        ({"url": "https://example.com/", "depth": 3}, 400),
        ({"url": "https://example.com/", "headers": {"Host": "internal"}}, 400),
        ({"url": "https://example.com/", "method": "TRACE"}, 422),
        ({"url": ""}, 422),
    ]:
        refused = client.post("/v1/collections/default/urls", json=bad)
        assert refused.status_code == status, (bad, refused.text)
    assert len(client.get("/v1/jobs").json()["items"]) == 2


def test_a_collection_is_described(rag, client, reader):
    rag.collections.create("hr")
    changed = client.patch("/v1/collections/hr", json={"description": "People"})
    assert changed.json()["description"] == "People"
    assert client.get("/v1/collections/hr").json() == changed.json()
    assert client.patch("/v1/collections/none", json={"description": "x"}).status_code == 404
    assert client.patch("/v1/collections/hr", json={"language": "de"}).status_code == 422
    assert reader.patch("/v1/collections/hr", json={"description": "x"}).status_code == 403


def test_a_body_that_is_no_json_is_a_problem(client):
    for content in (b"{", b"\xff\xfe", b"[" * 100_000, json.dumps("x").encode()):
        reply = client.post(
            "/v1/collections/default/documents", content=content, headers={"Content-Type": "application/json"}
        )
        assert reply.status_code in {400, 422}, reply.text
        assert reply.headers["content-type"] == "application/problem+json"


def test_collections_are_listed_page_by_page(client, rag, connect):
    """By name; those that do not exist for a caller leave no gaps and end no page."""
    names = [f"c{number}" for number in range(7)]
    for name in names:
        rag.view(collections=name).ingest("A text of its own.")

    def pages(one, **more) -> list[list[str]]:
        found, cursor = [], None
        while not found or cursor is not None:
            page = one.get("/v1/collections", params={**more, **({"cursor": cursor} if cursor else {})}).json()
            found.append([place["name"] for place in page["items"]])
            cursor = page["next_cursor"]
        return found

    assert pages(client, limit=3) == [names[:3], names[3:6], names[6:]]
    assert pages(client, limit=7) == pages(client) == [names]
    assert client.get("/v1/collections", params={"limit": 0}).status_code == 422
    assert client.get("/v1/collections", params={"cursor": "MQ"}).status_code == 400
    for name in names[1:6]:
        rag.view(collections=name).grants.set_collection(readers=["user:ada"])
    bob = connect(rag.keys.create("bob", principal=Principal(user_id="bob"), scopes="read").secret)
    assert pages(bob, limit=1) == [["c0"], ["c6"]]


def test_documents_with_ids_share_a_source(client):
    first, second = (put(client, source="chat", id=f"turn-{n}", content=f"Turn {n} of the talk.") for n in (1, 2))
    ids = [first["document_id"], second["document_id"]]
    listed = client.get("/v1/collections/default/documents", params={"source": "chat"}).json()["items"]
    assert [(one["source"], one["id"]) for one in listed] == [("chat", "turn-1"), ("chat", "turn-2")]
    found = client.post("/v1/search", json={"query": "talk", "source": ["chat"]}).json()["results"]
    assert {(one["source"], one["id"]) for one in found} == {("chat", "turn-1"), ("chat", "turn-2")}
    assert client.get("/v1/documents", params={"source": "turn-2"}).json()["document_id"] == ids[1]
    refused = client.get("/v1/documents", params={"source": "chat"})
    assert refused.status_code == 400 and "'turn-1', 'turn-2'" in refused.json()["detail"]
    assert client.get("/v1/documents", params={"source": "chat", "several": True}).json()["document_ids"] == ids
    moved = put(client, source="other", id="turn-1", content="Turn 1 of the talk.")
    assert (moved["document_id"], moved["version"]) == (ids[0], 2)
    assert client.get(f"/v1/documents/{ids[0]}").json()["source"] == "other"
    assert "id" not in client.get(f"/v1/documents/{put(client)['document_id']}").json()
    changed = client.post("/v1/grants", json={"change": "add", "who": ["role:hr"], "documents": ["chat"]})
    assert [one["document_id"] for one in changed.json()["documents"]] == ids[1:]
