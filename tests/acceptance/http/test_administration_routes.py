"""``/v1/tenants``, ``/v1/grants``, ``/v1/audit``, ``/v1/requests``, ``/v1/stats``: for whom, and what they change."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from recollect import Document, Principal


@pytest.fixture
def filled(rag):
    rag.ingest(
        [
            Document(content="Leave is thirty days.", source="leave.md", title="Leave", department="hr"),
            Document(content="Pumps are greased.", source="pump.md", title="Pump"),
        ]
    )
    return rag


@pytest.fixture
def other(filled, connect):
    """The owner of another tenant, with every scope but that of the operator."""
    filled.tenants.create("acme")
    return connect(filled.view(tenant="acme").keys.create("acme", scopes=["read", "write", "admin"]).secret)


def test_a_tenant_is_made_limited_suspended_and_erased(filled, client, other):
    made = client.post("/v1/tenants", json={"name": "fresh", "quota": {"max_documents": 10}})
    assert made.status_code == 201, made.text
    assert made.json()["quota"] == {"max_documents": 10, "max_chunks": None, "max_bytes": None}
    assert client.post("/v1/tenants", json={"name": "fresh"}).status_code == 409
    shown = client.get("/v1/tenants/fresh")
    assert shown.json()["shared_with_it"] == []
    assert client.get(f"/v1/tenants/{made.json()['tenant_id']}").json() == shown.json()

    changed = client.patch("/v1/tenants/fresh", json={"quota": {"max_chunks": 5}, "pii": "redact"})
    assert changed.json()["quota"] == {"max_documents": 10, "max_chunks": 5, "max_bytes": None}
    assert changed.json()["pii"] == "redact"
    client.patch("/v1/tenants/fresh", json={"pii": None, "quota": {"max_documents": None}})
    assert client.get("/v1/tenants/fresh").json()["pii"] is None
    assert client.get("/v1/tenants/fresh").json()["quota"]["max_documents"] is None

    assert client.patch("/v1/tenants/acme", json={"status": "suspended"}).json()["status"] == "suspended"
    assert other.post("/v1/search", json={"query": "leave"}).status_code == 403
    client.patch("/v1/tenants/acme", json={"status": "active"})
    assert other.post("/v1/search", json={"query": "leave"}).status_code == 200

    receipt = client.delete("/v1/tenants/fresh", params={"reason": "asked for"}).json()
    assert (receipt["name"], receipt["reason"], receipt["erased_by"]) == ("fresh", "asked for", "local")
    assert client.get("/v1/tenants/fresh").status_code == 404
    assert client.delete("/v1/tenants/default").status_code == 400


def test_tenants_are_listed_page_by_page_by_name(filled, client):
    for number in range(4):
        filled.tenants.create(f"t{number}")
    first = client.get("/v1/tenants", params={"limit": 3}).json()
    rest = client.get("/v1/tenants", params={"limit": 3, "cursor": first["next_cursor"]}).json()
    names = [one["name"] for one in (*first["items"], *rest["items"])]
    assert names == ["default", "t0", "t1", "t2", "t3"]
    assert rest["next_cursor"] is None
    assert client.get("/v1/tenants", params={"cursor": "MQ"}).status_code == 400


def test_what_was_changed_meanwhile_is_not_changed_again(filled, client, other):
    read = client.get("/v1/tenants/acme")
    tag = {"If-Match": read.headers["etag"]}
    changed = client.patch("/v1/tenants/acme", json={"quota": {"max_documents": 1}}, headers=tag)
    assert changed.status_code == 200
    late = client.patch("/v1/tenants/acme", json={"quota": {"max_documents": 9}}, headers=tag)
    assert late.status_code == 412
    assert late.headers["content-type"] == "application/problem+json"
    assert client.get("/v1/tenants/acme").json()["quota"]["max_documents"] == 1
    # What the change replied with is a tag for the next one; several and * are taken as HTTP has them.
    again = {"If-Match": f'"other", {changed.headers["etag"]}'}
    assert client.patch("/v1/tenants/acme", json={"status": "active"}, headers=again).status_code == 200
    assert client.patch("/v1/tenants/acme", json={"status": "active"}, headers={"If-Match": "*"}).status_code == 200
    weak = {"If-Match": f"W/{changed.headers['etag']}"}
    assert client.patch("/v1/tenants/acme", json={"status": "active"}, headers=weak).status_code == 412


@pytest.mark.parametrize(
    ("url", "locked", "changes"),
    [
        ("/v1/tenants/acme", "tenants", [{"quota": {"max_documents": 1}}, {"quota": {"max_documents": 2}}]),
        ("/v1/grants", "collections", [{"owner": ["user:ann"]}, {"owner": ["user:bob"]}]),
        ("/v1/collections/default", "collections", [{"description": "One."}, {"description": "Two."}]),
    ],
)
def test_of_two_who_change_the_same_at_once_one_is_told(filled, client, other, dsn, url, locked, changes):
    tag = {"If-Match": client.get(url).headers["etag"]}
    with (
        ThreadPoolExecutor(2) as pool,
        psycopg.connect(dsn) as holder,
        psycopg.connect(dsn, autocommit=True) as watcher,
    ):
        # Both come to the row while somebody holds it, so that both have looked by then who look before they lock.
        holder.execute(f"SELECT FROM recollect.{locked} FOR UPDATE")
        replies = [pool.submit(client.patch, url, json=change, headers=tag) for change in changes]
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        while watcher.execute(waiting).fetchone() != (2,):
            pass
        holder.rollback()
        assert sorted(reply.result().status_code for reply in replies) == [200, 412]


def test_who_may_read_documents_is_said_and_counts_at_once(filled, client, connect):
    key = filled.keys.create("bob", scopes=["read"], principal=Principal(user_id="bob")).secret
    bob, seen = connect(key), {"query": "leave pumps", "mode": "lexical"}

    def found() -> set[str]:
        return {one["source"] for one in bob.post("/v1/search", json=seen).json()["results"]}

    assert found() == {"leave.md", "pump.md"}
    only = {"change": "add", "who": ["role:hr"], "documents": ["leave.md"], "only": True}
    told = client.post("/v1/grants", json=only).json()
    assert (told["changed"], told["documents"][0]["grants"]) == (1, ["role:hr"])
    assert found() == {"pump.md"}
    client.post("/v1/grants", json={"change": "add", "who": ["user:bob"], "documents": ["leave.md"]})
    assert found() == {"leave.md", "pump.md"}
    client.post("/v1/grants", json={"change": "deny", "who": ["user:bob"], "documents": ["leave.md"]})
    assert found() == {"pump.md"}
    client.post("/v1/grants", json={"change": "remove", "who": ["!user:bob"], "documents": ["leave.md"]})
    assert found() == {"leave.md", "pump.md"}
    listed = client.get("/v1/grants/documents", params={"document": ["leave.md", "pump.md"]}).json()["documents"]
    assert [(one["source"], one["inherited"]) for one in listed] == [("leave.md", False), ("pump.md", True)]
    by_default = client.post("/v1/grants", json={"change": "deny", "who": ["user:bob"], "default": True}).json()
    assert by_default["collection"]["default"]["denials"] == ["user:bob"]
    origin = filled.documents.list()[0].origin
    of_source = client.post("/v1/grants", json={"change": "add", "who": ["user:eve"], "source": origin})
    assert of_source.json() == {"changed": 2}


def test_who_owns_a_collection_is_said_once_it_is_known(filled, client):
    read = client.get("/v1/grants")
    assert read.json()["owners"] == []
    tag = {"If-Match": read.headers["etag"]}
    changed = client.patch("/v1/grants", json={"owner": ["user:ann"]}, headers=tag)
    assert (changed.json()["owners"], changed.json()["readers"]) == (["user:ann"], read.json()["readers"])
    assert client.patch("/v1/grants", json={"owner": []}, headers=tag).status_code == 412
    assert client.get("/v1/grants").headers["etag"] == changed.headers["etag"]
    assert client.get("/v1/grants", params={"collection": "none"}).status_code == 404


def test_a_change_of_rights_that_is_none_is_refused(filled, client):
    before = client.get("/v1/grants").json()
    for body in (
        {"change": "add", "who": ["role:hr"]},
        {"change": "add", "who": ["role:hr"], "default": True, "documents": ["leave.md"]},
        {"change": "deny", "who": ["role:hr"], "default": True, "only": True},
        {"change": "add", "who": ["nonsense"], "default": True},
        {"change": "add", "who": [], "default": True},
        {"change": "take", "who": ["role:hr"], "default": True},
        {"change": "add", "who": ["role:hr"], "documents": ["none.md"]},
        {"change": "add", "who": ["role:hr"], "documents": [10**30]},
        {"change": "add", "who": ["role:hr"], "documents": ["9" * 30]},
        {"change": "add", "who": ["role:hr"], "documents": [-1]},
    ):
        reply = client.post("/v1/grants", json=body)
        assert reply.status_code in {400, 404, 422}, (body, reply.text)
        assert client.get("/v1/grants").json() == before


def test_the_audit_is_listed_verified_and_exported(filled, client, other):
    for source in ("leave.md", "pump.md"):
        filled.documents.erase(filled.documents.resolve([source]))
    first = client.get("/v1/audit", params={"action": "erase", "limit": 1}).json()
    second = client.get("/v1/audit", params={"action": "erase", "limit": 1, "cursor": first["next_cursor"]}).json()
    numbers = [one["number"] for one in (*first["items"], *second["items"])]
    assert numbers == sorted(numbers, reverse=True) and len(numbers) == 2
    assert second["next_cursor"] is None
    chain = client.get("/v1/audit/verification").json()
    assert chain["intact"] and [one["tenant_id"] for one in chain["chains"]] == [1]
    with client.stream("GET", "/v1/audit/export") as reply:
        assert reply.headers["content-type"].startswith("application/jsonl")
        lines = [json.loads(line) for line in reply.iter_lines()]
    for line in lines:
        text = bytes.fromhex(line["previous_hash"]) + line["content"].encode()
        assert hashlib.sha256(text).hexdigest() == line["hash"]
    assert client.get("/v1/audit", params={"since": "soonish"}).status_code == 400
    assert client.get("/v1/audit/export", params={"since": "soonish"}).status_code == 400
    # Of another tenant there is nothing.
    assert all(one["action"] != "erase" for one in other.get("/v1/audit").json()["items"])


def test_what_the_store_holds_and_what_providers_were_asked(filled, client, connect, other):
    told = client.get("/v1/stats").json()
    assert (told["total_documents"], told["departments"]["hr"]) == (2, 1)
    assert told["database_bytes"] > 0
    assert client.get("/v1/stats", params={"collection": "none"}).status_code == 404
    key = filled.keys.create("bob", scopes=["read"], principal=Principal(user_id="bob")).secret
    assert connect(key).get("/v1/stats").json()["database_bytes"] == 0
    assert other.get("/v1/stats").json()["total_documents"] == 0
    assert client.get("/v1/requests").json() == {"items": [], "next_cursor": None}
    assert client.get("/v1/requests/stats").json() == {"models": []}
    assert client.get("/v1/requests", params={"kind": "none"}).status_code == 422


def test_a_path_says_every_method_that_it_is_for(client):
    for path, methods in (("/v1/tenants/x", "DELETE, GET, HEAD, PATCH"), ("/v1/feedback", "DELETE, GET, HEAD, POST")):
        refused = client.put(path, json={})
        assert (refused.status_code, refused.headers["allow"]) == (405, methods)


def test_each_is_for_whom_it_is_for(filled, connect):
    reader = connect(filled.keys.create("reader", scopes=["read", "write"]).secret)
    admin = connect(filled.keys.create("admin", scopes=["read", "write", "admin"]).secret)
    for method, path in (
        ("GET", "/v1/grants"),
        ("GET", "/v1/grants/documents?document=leave.md"),
        ("POST", "/v1/grants"),
        ("PATCH", "/v1/grants"),
        ("GET", "/v1/audit"),
        ("GET", "/v1/audit/verification"),
        ("GET", "/v1/audit/export"),
        ("GET", "/v1/requests"),
        ("GET", "/v1/requests/stats"),
    ):
        body = {"change": "add", "who": ["*"], "default": True} if method == "POST" else {}
        given = {} if method == "GET" else {"json": body}
        assert reader.request(method, path, **given).status_code == 403, (method, path)
        assert admin.request(method, path, **given).status_code == 200, (method, path)
    for method, path in (
        ("GET", "/v1/tenants"),
        ("POST", "/v1/tenants"),
        ("GET", "/v1/tenants/default"),
        ("PATCH", "/v1/tenants/default"),
        ("DELETE", "/v1/tenants/default"),
    ):
        given = {} if method in {"GET", "DELETE"} else {"json": {"name": "x"} if method == "POST" else {}}
        assert admin.request(method, path, **given).status_code == 403, (method, path)
    operator = connect(filled.keys.create("operator", scopes=["operator"]).secret)
    assert operator.get("/v1/tenants").status_code == 200
    assert operator.get("/v1/grants").status_code == 403
    assert operator.post("/v1/search", json={"query": "leave"}).status_code == 403


def test_a_source_has_metadata_and_a_refused_one_is_not_added(rag, client, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "leave.md").write_text("Annual leave is 30 days.", encoding="utf-8")
    for refused in (
        {"location": "file:///srv/handbook.git"},
        {"location": "https://git.example.org/a.git", "settings": {"grants": ["nonsense"]}},
        {"location": str(tmp_path / "docs"), "every": "-5m"},
        {"location": str(tmp_path / "docs"), "metadata": {"text": "x" * 10_001}},
    ):
        assert client.post("/v1/sources", json={**refused, "collection": "hr"}).status_code in {400, 422}, refused
    assert not rag.collections.list()
    added = client.post("/v1/sources", json={"location": str(tmp_path / "docs"), "metadata": {"project": "alpine"}})
    assert (added.status_code, added.json()["metadata"]) == (201, {"project": "alpine"})
    assert rag.sources.refresh(added.json()["name"]).added == 1
    for where, count in (({"project": "alpine"}, 1), ({"project": "other"}, 0)):
        found = client.post("/v1/search", json={"query": "annual leave", "where": where}).json()["results"]
        assert len(found) == count
