"""``/v1/sessions``, ``/v1/recall``, ``/v1/facts``, ``/v1/feedback``: conversations over HTTP, each user's own."""

from __future__ import annotations

import base64
import json

import pytest

from recollect import Document, Principal

SAID = [
    {"content": "My office is in Bremen.", "at": "2026-01-01T09:00:00Z", "id": "a"},
    {"content": "My office is in Hamburg.", "at": "2026-02-01T09:00:00Z", "id": "b", "metadata": {"channel": "web"}},
    {"content": "Noted.", "role": "assistant"},
]


@pytest.fixture
def key(rag):
    """Makes keys of users: ``key("ann")`` reads and writes as Ann."""

    def made(user: str, *scopes: str) -> str:
        found = rag.keys.create(user, scopes=scopes or ("read", "write"), principal=Principal(user_id=user))
        return found.secret

    return made


def remember(client, session="talk", turns=SAID, **body):
    return client.post(f"/v1/sessions/{session}/turns", json={"turns": turns, **body})


def test_a_conversation_is_remembered_read_and_forgotten(client):
    done = remember(client)
    assert done.status_code == 201, done.text
    assert done.json() == {"session": "talk", "turns": 3, "added": 3, "positions": [1, 2, 3]}
    # A turn whose id is known is not stored again.
    assert remember(client, turns=SAID[:2]).json()["added"] == 0
    assert remember(client, turns=[{"content": "Other words.", "id": "a"}]).status_code == 409

    shown = client.get("/v1/sessions/talk").json()
    assert (shown["session"]["turns"], [turn["id"] for turn in shown["turns"]]) == (3, ["a", "b", None])
    assert shown["turns"][1]["metadata"] == {"channel": "web"}
    assert "document_session" not in shown

    never = f"/v1/sessions/{'s' * 300}"  # no id that there could be
    assert (client.get(never).status_code, client.delete(never).status_code) == (404, 404)

    removed = client.post("/v1/sessions/talk/forget", json={"turns": [1]})
    assert removed.json() == {"session": "talk", "removed": 1}
    assert client.post("/v1/sessions/talk/forget", json={"turns": [1]}).status_code == 404
    assert client.delete("/v1/sessions/talk").json() == {"deleted": "talk", "turns": 2}
    assert client.get("/v1/sessions/talk").status_code == 404
    assert client.delete("/v1/sessions/talk").status_code == 404


def test_long_lists_are_read_page_by_page(client):
    remember(client, turns=[{"content": f"Turn {number}."} for number in range(1, 8)])
    for number in range(4):
        remember(client, f"other-{number}", turns=SAID[:1])
    for path, key, count in (("/v1/sessions/talk/turns", "turns", 7), ("/v1/sessions", "sessions", 5)):
        found, cursor, pages = [], None, 0
        while cursor is not None or not pages:
            page = client.get(path, params={"limit": 3, **({"cursor": cursor} if cursor else {})}).json()
            found += page[key]
            cursor, pages = page["next_cursor"], pages + 1
        assert (len(found), pages) == (count, -(-count // 3))
        assert len({str(one) for one in found}) == count


def test_what_goes_between_two_pages_hides_nothing_of_the_next(client):
    for number in range(6):
        remember(client, f"talk-{number}", turns=[{"content": f"The reading room {number} has {number} seats."}])
        client.post("/v1/sessions", json={"session": f"files-{number}", "ttl": f"{number + 1}h"})
    first = client.get("/v1/sessions", params={"limit": 3}).json()
    assert [one["session"] for one in first["sessions"]] == ["talk-5", "talk-4", "talk-3"]
    assert [one["session"] for one in first["document_sessions"]] == ["files-0", "files-1", "files-2"]
    for gone in ("talk-5", "talk-3", "files-0", "files-2"):
        assert client.delete(f"/v1/sessions/{gone}").status_code == 200
    rest = client.get("/v1/sessions", params={"limit": 3, "cursor": first["next_cursor"]}).json()
    assert [one["session"] for one in rest["sessions"]] == ["talk-2", "talk-1", "talk-0"]
    assert [one["session"] for one in rest["document_sessions"]] == ["files-3", "files-4", "files-5"]
    assert rest["next_cursor"] is None


def test_a_cursor_that_no_page_gave_is_refused(client):
    remember(client)
    of_a_number = "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk"  # too large for one
    keys = [
        [["x", 1], None],
        [["2026-01-01", 1], None],
        [["2026-01-01T00:00:00Z", -1], None],
        [None],
        [None, ["x", "a", 1]],
    ]
    made = [base64.urlsafe_b64encode(json.dumps(key).encode()).rstrip(b"=").decode() for key in (*keys, keys[0][0], {})]
    for cursor in ("x", "!", "bnVsbA", "IjEi", "LTE", "dHJ1ZQ", "W10", "ä", of_a_number, *made):
        for path in ("/v1/sessions", "/v1/sessions/talk/turns", "/v1/facts", "/v1/audit", "/v1/requests"):
            refused = client.get(path, params={"cursor": cursor})
            assert refused.status_code == 400, (path, cursor, refused.text)
            assert "earlier page" in refused.json()["detail"]


def test_what_was_said_is_found_with_those_around_it(client):
    remember(client)
    found = client.post("/v1/recall", json={"query": "Where is the office?", "top_k": 1, "neighbours": 1}).json()
    assert list(found) == ["query", "mode", "results"]
    (best,) = found["results"]
    assert best["session"] == "talk"
    assert {turn["position"] for turn in (*best["before"], *best["after"])} <= {1, 2, 3} - {best["position"]}
    early = {"query": "office", "until": "2026-01-15", "neighbours": 0}
    assert [one["id"] for one in client.post("/v1/recall", json=early).json()["results"]] == ["a"]
    assert client.post("/v1/recall", json={"query": "office", "since": "yesterdayish"}).status_code == 400
    assert client.post("/v1/recall", json={"query": "office", "session": "none"}).status_code == 404
    assert client.post("/v1/recall", json={"query": "office", "top_k": 0}).status_code == 422


def test_facts_are_drawn_followed_and_removed(client):
    remember(client)
    client.post("/v1/recall", json={"query": "Where is my office?"})
    report = client.post("/v1/facts/consolidate", json={"min_retrievals": 1}).json()
    assert report["added"] >= 2
    (current,) = client.get("/v1/facts", params={"session": "talk"}).json()["items"]
    assert current["value"] == "in Hamburg" or "Hamburg" in current["statement"]
    every = client.get("/v1/facts", params={"superseded": True}).json()
    assert len(every["items"]) == 2
    assert every["next_cursor"] is None
    first = client.get("/v1/facts", params={"superseded": True, "limit": 1}).json()
    second = client.get("/v1/facts", params={"superseded": True, "limit": 1, "cursor": first["next_cursor"]}).json()
    assert [*first["items"], *second["items"]] == every["items"]
    found = client.post("/v1/facts/search", json={"query": "office", "session": "talk"}).json()
    assert found["results"][0]["fact"] == current["fact"]
    assert client.get(f"/v1/facts/{current['fact']}").json() == current
    thread = client.get(f"/v1/facts/{current['fact']}/history").json()["history"]
    assert [one["superseded_by"] for one in thread] == [current["fact"], None]
    assert client.delete(f"/v1/facts/{current['fact']}").status_code == 204
    assert client.get(f"/v1/facts/{current['fact']}").status_code == 404
    assert client.get("/v1/facts/0").status_code == 422
    assert client.delete("/v1/facts/search").status_code == 405
    assert client.get(f"/v1/facts/{10**30}").status_code == 422


def test_a_session_with_documents_begins_is_renewed_and_ends(rag, client):
    given = {"session": "desk", "ttl": "1h", "max_documents": 2, "when_full": "oldest"}
    made = client.post("/v1/sessions", json=given)
    assert made.status_code == 201, made.text
    assert (made.json()["ttl_seconds"], made.json()["when_full"]) == (3600, "oldest")
    assert client.post("/v1/sessions", json=given).status_code == 409
    rag.view(session="desk").ingest(Document(content="Notes of the desk.", source="desk.md"))
    shown = client.get("/v1/sessions/desk").json()
    assert list(shown) == ["document_session", "documents"]
    assert [one["source"] for one in shown["documents"]] == ["desk.md"]
    assert client.post("/v1/sessions/desk/renew").json()["expires_at"] > made.json()["expires_at"]
    listed = client.get("/v1/sessions").json()
    assert [one["session"] for one in listed["document_sessions"]] == ["desk"]
    assert client.post("/v1/sessions/desk/end").json() == {"ended": "desk", "documents": 1}
    assert client.post("/v1/sessions/desk/end").status_code == 404
    # What is removed is there no more, whatever there was under its id.
    for conversation, expected in ((True, {"turns": 3, "documents": 0}), (False, {"turns": 0, "documents": 0})):
        client.post("/v1/sessions", json=given)
        if conversation:
            remember(client, "desk")
        assert client.delete("/v1/sessions/desk").json() == {"deleted": "desk", **expected}
        assert client.get("/v1/sessions/desk").status_code == 404
    lasting = client.post("/v1/sessions", json={"session": "lasting", "ttl": "never"}).json()
    assert (lasting["ttl_seconds"], lasting["expires_at"]) == (None, None)
    assert client.post("/v1/sessions", json={"session": "x", "ttl": "soon"}).status_code == 400


def test_feedback_moves_weights_and_is_forgotten(client):
    before = client.get("/v1/feedback").json()
    assert before["shift"] == 0
    given = {"sources": ["memory:talk", "hr/leave.md"], "helpful": True}
    after = client.post("/v1/feedback", json=given).json()
    assert after["tenant"] == {"documents_helpful": 1, "documents_not": 0, "memory_helpful": 1, "memory_not": 0}
    assert client.delete("/v1/feedback").json() == {"forgotten": 2}
    assert client.get("/v1/feedback").json() == before
    assert client.post("/v1/feedback", json={**given, "session": "none"}).status_code == 404
    assert client.post("/v1/feedback", json={"sources": [], "helpful": True}).status_code == 422


def test_a_user_has_conversations_of_their_own(rag, connect, key):
    ann, bob = connect(key("ann")), connect(key("bob"))
    assert remember(ann).status_code == 201
    ann.post("/v1/recall", json={"query": "Where is my office?"})
    ann.post("/v1/facts/consolidate", json={"min_retrievals": 1})
    ann.post("/v1/sessions", json={"session": "desk"})
    (fact,) = ann.get("/v1/facts").json()["items"]

    assert bob.get("/v1/sessions").json() == {"sessions": [], "document_sessions": [], "next_cursor": None}
    assert bob.get("/v1/sessions", params={"user": "ann"}).json()["sessions"] == []
    for path in ("/v1/sessions/talk", "/v1/sessions/talk/turns", "/v1/sessions/desk", f"/v1/facts/{fact['fact']}"):
        assert bob.get(path).status_code == 404, path
        assert ann.get(path).status_code == 200, path
    assert bob.get(f"/v1/facts/{fact['fact']}/history").status_code == 404
    assert bob.get("/v1/facts").json()["items"] == []
    assert bob.post("/v1/recall", json={"query": "office"}).json()["results"] == []
    assert bob.post("/v1/recall", json={"query": "office", "user": "ann"}).json()["results"] == []
    assert bob.post("/v1/facts/search", json={"query": "office"}).json()["results"] == []
    assert bob.delete(f"/v1/facts/{fact['fact']}").status_code == 404
    assert bob.delete("/v1/sessions/talk").status_code == 404
    assert bob.post("/v1/sessions/talk/forget", json={"turns": [1]}).status_code == 404
    assert bob.post("/v1/sessions/desk/end").status_code == 404
    assert remember(bob, user="ann").status_code == 403
    # Weights in general are everybody's: a user speaks of a conversation of their own.
    assert bob.post("/v1/feedback", json={"sources": ["a.md"], "helpful": True}).status_code == 403
    assert bob.post("/v1/feedback", json={"sources": ["a.md"], "helpful": True, "session": "talk"}).status_code == 404
    assert len(ann.get("/v1/sessions/talk/turns").json()["turns"]) == 3


def test_another_tenant_knows_nothing_of_it(rag, connect):
    rag.tenants.create("acme")
    other = connect(rag.view(tenant="acme").keys.create("acme", scopes=["read", "write"]).secret)
    remember(connect())
    assert other.get("/v1/sessions").json()["sessions"] == []
    assert other.get("/v1/sessions/talk").status_code == 404
    assert other.post("/v1/recall", json={"query": "office"}).json()["results"] == []
    assert remember(other, turns=SAID[:1]).json()["positions"] == [1]
    assert len(connect().get("/v1/sessions/talk/turns").json()["turns"]) == 3


def test_who_only_reads_changes_nothing(rag, connect, key):
    remember(connect())
    reader = connect(rag.keys.create("reader", scopes=["read"]).secret)
    for method, path, body in (
        ("POST", "/v1/sessions", {"session": "x"}),
        ("POST", "/v1/sessions/talk/turns", {"turns": SAID}),
        ("POST", "/v1/sessions/talk/forget", {"turns": [1]}),
        ("POST", "/v1/sessions/talk/renew", None),
        ("POST", "/v1/sessions/talk/end", None),
        ("DELETE", "/v1/sessions/talk", None),
        ("POST", "/v1/facts/consolidate", {}),
        ("DELETE", "/v1/facts/1", None),
        ("POST", "/v1/feedback", {"sources": ["a.md"], "helpful": True}),
        ("DELETE", "/v1/feedback", None),
    ):
        assert reader.request(method, path, json=body).status_code == 403, (method, path)
    assert len(reader.get("/v1/sessions/talk/turns").json()["turns"]) == 3


def test_turns_that_cannot_be_stored_are_refused_whole(client):
    for body in (
        {"turns": []},
        {"turns": [{"content": ""}]},
        {"turns": [{"content": "a\x00b"}]},
        {"turns": [{"content": "a", "at": "soon"}]},
        {"turns": [{"content": "a", "role": ""}]},
        {"turns": [{"content": "a", "metadata": {"b": "c\x00"}}]},
        {"turns": [{"content": "a"}], "usr": "ann"},
        {"turns": [{"content": "a" * 100_001}]},
        {"turns": [{"content": "a"}] * 1_001},
    ):
        reply = client.post("/v1/sessions/talk/turns", json=body)
        assert reply.status_code in {400, 422}, reply.text
        assert reply.headers["content-type"] == "application/problem+json"
        assert client.get("/v1/sessions/talk").status_code == 404
