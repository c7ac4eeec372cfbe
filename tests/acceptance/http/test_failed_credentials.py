"""Credentials that are not taken are slowed down, and nobody else is."""

from __future__ import annotations

import time
from collections.abc import Callable

import jwt
import psycopg
import pytest
from fastapi.testclient import TestClient

from recollect import RAGConfig, RAGPipeline
from recollect.model.key import draw_key, draw_login
from recollect.server import limits
from recollect.server.app import create_app
from recollect.server.limits import FailedCredentials

SECRET = "a secret of thirty-two bytes or more"


@pytest.fixture
def reach(rag: RAGPipeline, monkeypatch) -> Callable[..., TestClient]:
    """Makes clients of one process, by their address; ``another=True`` is of another process on the same store."""
    monkeypatch.setenv("TOKENS", SECRET)
    # An hour, in which nothing is given back while a test runs.
    monkeypatch.setattr(limits, "WINDOW_SECONDS", 3600 * 3)
    server = RAGConfig.load(
        server={
            "host": "0.0.0.0",
            "jwt": {"secret": "env:TOKENS"},
            "limits": {"failed_credentials": 3},
            "trusted_proxies": ["10.0.0.1"],
        }
    ).server
    rag.standpoint.assembly.config = rag.config.model_copy(update={"server": server})
    apps = []

    def made(address: str = "203.0.113.7", *, another: bool = False) -> TestClient:
        if another or not apps:
            apps.append(create_app(rag))
        return TestClient(apps[-1], base_url="http://knowledge.example", client=(address, 5), follow_redirects=False)

    return made


def asked(client: TestClient, credential: str, **headers: str):
    return client.get("/v1/me", headers={"Authorization": f"Bearer {credential}", **headers})


def statuses(client: TestClient, *credentials: str) -> list[int]:
    return [asked(client, credential).status_code for credential in credentials]


def forged(count: int) -> list[str]:
    return [draw_key(1).text for _ in range(count)]


def token(key: str = SECRET, **claims) -> str:
    return jwt.encode({"sub": "ann", "tenant": 1, "exp": int(time.time()) + 600, **claims}, key, "HS256")


def test_too_many_from_one_address_are_told_to_wait_and_the_audit_says_so_once(rag, reach):
    client = reach()
    assert statuses(client, *forged(5)) == [401, 401, 401, 429, 429]
    refused = asked(client, draw_key(1).text)
    assert refused.headers["content-type"] == "application/problem+json"
    assert 3_000 < int(refused.headers["retry-after"]) <= 3_600
    assert refused.json()["type"] == "urn:recollect:problem:rate-limited"
    (entry,) = (one for one in rag.audit.list() if one.action == "credentials_refused")
    assert (entry.actor, entry.details) == ("server", {"address": "203.0.113.7", "limit": 3})
    told = reach().get(
        "/metrics", headers={"Authorization": f"Bearer {rag.keys.create('x', scopes='operator').secret}"}
    )
    assert told.status_code == 429, "it is from there too, and was never seen"
    operator = {"Authorization": f"Bearer {rag.keys.create('x', scopes='operator').secret}"}
    figures = reach("198.51.100.1").get("/metrics", headers=operator).text
    assert 'recollect_credentials_not_taken_total{kind="key",throttled="false"} 3.0' in figures
    assert 'recollect_credentials_not_taken_total{kind="key",throttled="true"} 4.0' in figures


def test_who_is_known_there_is_not_refused_for_others(rag, reach):
    client = reach()
    good = rag.keys.create("good").secret
    assert statuses(client, good) == [200]
    assert statuses(client, *forged(4)) == [401, 401, 401, 429]
    client.app.state.service.authenticator.forget()
    assert statuses(client, good, token()) == [200, 200], "looked up anew, and verified without asking anybody"
    rag.keys.revoke(rag.keys.list()[0].key_id)
    client.app.state.service.authenticator.forget()
    assert statuses(client, good, good) == [429, 429]


def test_every_kind_counts(rag, reach):
    client = reach()
    assert statuses(client, token("another secret of thirty-two bytes"), "nonsense") == [401, 401]
    assert client.post("/login", data={"key": draw_key(1).text}).status_code == 401
    login = {"Cookie": f"recollect_login={draw_login(1).text}"}
    assert client.get("/v1/me", headers=login).status_code == 429
    assert client.post("/login", data={"key": "x"}, headers={"Accept": "text/html"}).status_code == 401, "no key at all"
    page = client.post("/login", data={"key": draw_key(1).text}, headers={"Accept": "text/html"})
    assert page.status_code == 429 and page.headers["retry-after"] and "try again later" in page.text
    assert statuses(client, token("another secret of thirty-two bytes")) == [429]
    assert client.get("/v1/me").status_code == 401, "who presents nothing has failed at nothing"


def test_all_processes_count_together(rag, reach):
    assert statuses(reach(), *forged(3)) == [401] * 3
    assert statuses(reach(another=True), *forged(2)) == [429, 429]


def test_one_key_is_guarded_wherever_its_wrong_secrets_come_from(rag, reach):
    made = rag.keys.create("good")
    for number in range(3):
        assert statuses(reach(f"192.0.2.{number}"), draw_key(1, made.key.key_id).text) == [401]
    assert statuses(reach("192.0.2.9"), draw_key(1, made.key.key_id).text) == [429]
    assert statuses(reach("192.0.2.10"), made.secret) == [200], "whoever has it is not kept out"
    assert {"key": f"1 {made.key.key_id}", "limit": 3} in [entry.details for entry in rag.audit.list()]


def test_an_address_is_a_network_and_no_proxys(rag, reach):
    for number in range(3):
        assert statuses(reach(f"2001:db8:0:1::{number}"), *forged(1)) == [401]
    assert statuses(reach("2001:db8:0:1:ffff::1"), *forged(1)) == [429]
    assert statuses(reach("2001:db8:0:2::1"), *forged(1)) == [401]
    assert statuses(reach("192.0.2.1"), *forged(3)) == [401] * 3
    assert statuses(reach("::ffff:192.0.2.1"), *forged(1)) == [429]
    proxy = reach("10.0.0.1")
    for said in ("198.51.100.7", "evil, 198.51.100.7", "192.0.2.200, 198.51.100.7"):
        assert asked(proxy, draw_key(1).text, **{"X-Forwarded-For": said}).status_code == 401
    assert asked(proxy, draw_key(1).text, **{"X-Forwarded-For": "198.51.100.7"}).status_code == 429
    assert asked(proxy, draw_key(1).text, **{"X-Forwarded-For": "198.51.100.8"}).status_code == 401
    # Whoever is no proxy does not get away with another address.
    for number in range(3):
        reply = asked(reach("192.0.2.77"), draw_key(1).text, **{"X-Forwarded-For": f"198.51.100.{number}"})
        assert reply.status_code == 401
    assert asked(reach("192.0.2.77"), draw_key(1).text, **{"X-Forwarded-For": "198.51.100.99"}).status_code == 429


def test_no_address_stands_in_the_counters_and_there_are_only_so_many(rag, reach, dsn, monkeypatch):
    monkeypatch.setattr(limits, "_COUNTERS", 8)
    client = reach()
    for number in range(40):
        statuses(reach(f"198.51.100.{number}"), *forged(1))
    with psycopg.connect(dsn) as connection:
        names = [row[0] for row in connection.execute("SELECT bucket FROM recollect.rate_limits")]
    assert 0 < len([name for name in names if name.startswith("failed address ")]) <= 8
    assert len(names) <= 16 and not any("198.51" in name or "203.0" in name for name in names)
    client.close()


def test_the_audit_is_not_filled_by_whoever_has_many_addresses(rag, reach):
    client = reach()
    failures: FailedCredentials = client.app.state.service.authenticator.failures
    for number in range(30):
        for _ in range(4):
            asked(reach(f"198.51.100.{number}"), "rk_nonsense")
    noted = [entry for entry in rag.audit.list(limit=200) if entry.action == "credentials_refused"]
    assert len(noted) == limits.MOST_NOTED_A_MINUTE
    assert len(failures._refused_until) <= limits._COUNTERS


def test_a_good_credential_asks_the_database_for_nothing_more(rag, reach, monkeypatch):
    client, good = reach(), rag.keys.create("good").secret
    asked(client, good)
    client.app.state.service.authenticator.forget()
    monkeypatch.setattr(FailedCredentials, "_counted", None)
    assert statuses(client, good, good) == [200, 200]


def test_without_a_limit_nobody_waits(rag):
    server = RAGConfig.load(server={"host": "0.0.0.0", "limits": {"failed_credentials": None}}).server
    rag.standpoint.assembly.config = rag.config.model_copy(update={"server": server})
    client = TestClient(create_app(rag), base_url="http://knowledge.example")
    assert set(statuses(client, *forged(70))) == {401}
