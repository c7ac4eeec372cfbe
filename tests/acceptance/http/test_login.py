"""Browsers that log in with a key: their cookie, what it opens, and how it ends."""

from __future__ import annotations

import re
from collections.abc import Callable

import psycopg
import pytest
from fastapi.testclient import TestClient

from recollect import Principal, RAGConfig, RAGPipeline
from recollect.model.key import draw_key, draw_login
from recollect.server.app import create_app

SITE = "https://knowledge.example"
OWN = {"Sec-Fetch-Site": "same-origin"}
COOKIE = "__Host-recollect_login"
ANN = Principal(user_id="ann", roles=("clerk",))


@pytest.fixture
def visit(rag: RAGPipeline) -> Callable[..., TestClient]:
    """Makes browsers of a server for others, reached over an encrypted connection; each has cookies of its own."""

    def made(base_url: str = SITE, **settings) -> TestClient:
        server = RAGConfig.load(server={"host": "0.0.0.0", **settings}).server
        rag.standpoint.assembly.config = rag.config.model_copy(update={"server": server})
        headers = {"Accept": "text/html"}
        return TestClient(
            create_app(rag), base_url=base_url, headers=headers, follow_redirects=False, raise_server_exceptions=False
        )

    return made


def log_in(browser: TestClient, key: str, **more):
    return browser.post("/login", data={"key": key, **more}, headers=OWN)


def as_if(dsn: str, change: str) -> None:
    """Change logins as time would."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"UPDATE recollect.logins SET {change}")


def test_a_browser_is_whoever_its_key_is_until_it_logs_out(rag, visit):
    browser = visit()
    made = rag.keys.create("laptop", scopes=("read", "write"), principal=ANN)
    page = browser.get("/login?return_to=/v1/me")
    assert page.status_code == 200 and "script" not in page.text and 'value="/v1/me"' in page.text
    done = log_in(browser, f" {made.secret} ", return_to="/v1/me")
    assert (done.status_code, done.headers["location"]) == (303, "/v1/me")
    me = browser.get("/v1/me").json()
    assert (me["principal"]["user_id"], me["scopes"]) == ("ann", ["read", "write"])
    assert me["credential"] == {"kind": "key", "id": made.key.key_id, "expires_at": None}
    (listed,) = rag.logins.list()
    assert me["login"]["login_id"] == listed.login_id and listed.status == "active"
    assert "Logged in as <b>ann</b>" in browser.get("/login").text
    assert browser.post("/v1/collections", json={"name": "x"}, headers=OWN).status_code == 403  # no scope `admin`
    assert browser.post("/v1/search", json={"query": "x"}, headers=OWN).status_code == 200
    out = browser.post("/logout", headers=OWN)
    assert out.status_code == 200 and "logged out" in out.text and COOKIE not in browser.cookies
    assert browser.get("/v1/me").status_code == 401
    assert [entry.action for entry in rag.audit.list()][:2] == ["end_login", "log_in"]
    assert {entry.actor for entry in rag.audit.list()[:2]} == {f"user:ann (key:{made.key.key_id})"}


def test_the_cookie_is_the_hosts_alone_and_no_scripts(rag, visit):
    key = rag.keys.create("laptop").secret
    told = log_in(visit(), key).headers["set-cookie"]
    assert re.fullmatch(
        rf"{COOKIE}=rl_1_\w+; HttpOnly; Max-Age=43200; Path=/; SameSite=lax; Secure",
        told.replace("httponly", "HttpOnly"),
    )
    plain = log_in(visit("http://knowledge.example"), key).headers["set-cookie"]
    assert plain.startswith("recollect_login=rl_1_") and "Secure" not in plain
    # A cookie without the prefix, which another name below the domain could have set, is none where there could be one.
    browser = visit()
    browser.cookies.set("recollect_login", plain.partition("=")[2].partition(";")[0])
    assert browser.get("/v1/me").status_code == 401


def test_no_login_is_as_the_one_before(rag, visit):
    """Whatever cookie a browser comes with, its login has another (session fixation), and the one before is over."""
    browser, key = visit(), rag.keys.create("laptop").secret
    planted = draw_login(1).text
    browser.post("/login", data={"key": key}, headers={**OWN, "Cookie": f"{COOKIE}={planted}"})
    first = dict(browser.cookies)[COOKIE]
    log_in(browser, key)
    assert len({planted, first, dict(browser.cookies)[COOKIE]}) == 3
    assert sorted(login.status for login in rag.logins.list()) == ["active", "ended"]
    late = visit()
    late.cookies.set(COOKIE, first)
    assert late.get("/v1/me").status_code == 401


def test_nothing_but_a_hash_of_the_cookie_is_kept(rag, visit, dsn, tmp_path, caplog):
    browser = visit()
    log_in(browser, rag.keys.create("laptop").secret)
    browser.get("/v1/me")
    text = dict(browser.cookies)[COOKIE]
    secret = text.rpartition("_")[2]
    rag.tenants.export("default", tmp_path / "out")
    with psycopg.connect(dsn) as connection:
        kept = connection.execute("SELECT to_jsonb(l)::text FROM recollect.logins l").fetchall()
    exported = "".join(path.read_text() for path in (tmp_path / "out").rglob("*.jsonl"))
    for place in (str(kept), exported, caplog.text, str(browser.get("/v1/me").json())):
        assert secret not in place
    assert browser.get("/v1/me", headers={"Authorization": f"Bearer {text}", "Cookie": ""}).status_code == 401
    assert browser.get("/v1/me", headers={"X-API-Key": text, "Cookie": ""}).status_code == 401
    assert browser.get(f"/v1/me?x={text}").status_code == 401


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("expires_at = now()", "expired"),
        ("last_used_at = now() - interval '3 hours'", "expired"),
        ("ended_at = now()", "ended"),
    ],
)
def test_a_login_that_is_over_opens_nothing_and_is_forgotten(rag, visit, dsn, change, why):
    browser = visit()
    log_in(browser, rag.keys.create("laptop").secret)
    as_if(dsn, change)
    refused = browser.get("/v1/me")
    assert (refused.status_code, rag.logins.list()[0].status) == (401, why)
    assert why in refused.json()["detail"] and "max-age=0" in refused.headers["set-cookie"].lower()
    assert COOKIE not in browser.cookies
    as_if(dsn, "expires_at = now() - interval '40 days'")
    rag.maintenance.cleanup()
    assert not rag.logins.list()


def test_use_keeps_a_login_from_ending_and_is_noted_once_a_minute(rag, visit, dsn):
    browser = visit()
    log_in(browser, rag.keys.create("laptop").secret)
    as_if(dsn, "last_used_at = now() - interval '1 hour'")
    for _ in range(3):
        assert browser.get("/v1/me").status_code == 200
    (first,) = rag.logins.list()
    assert first.last_used_at > first.created_at or (first.idle_until - first.last_used_at).total_seconds() == 7200
    as_if(dsn, "last_used_at = last_used_at - interval '30 seconds'")
    before = rag.logins.list()[0].last_used_at
    visit().get("/v1/me", headers={"Cookie": f"{COOKIE}={dict(browser.cookies)[COOKIE]}"})
    assert rag.logins.list()[0].last_used_at == before


def test_a_login_ends_with_its_key_and_with_the_secret_that_it_was_made_with(rag, visit):
    made = rag.keys.create("laptop")
    old, new = visit(), visit()
    log_in(old, made.secret)
    rotated = rag.keys.rotate(made.key.key_id, grace="1h")
    log_in(new, rotated.secret)
    # Whoever asks within five seconds is not looked up again: others are asked here.
    cookie, newer = (f"{COOKIE}={dict(one.cookies)[COOKIE]}" for one in (old, new))
    assert visit().get("/v1/me", headers={"Cookie": cookie}).status_code == 200
    rag.keys.rotate(made.key.key_id, grace=0)
    assert visit().get("/v1/me", headers={"Cookie": cookie}).status_code == 401
    assert visit().get("/v1/me", headers={"Cookie": newer}).status_code == 401
    again = rag.keys.rotate(made.key.key_id)
    log_in(new, again.secret)
    cookie = f"{COOKIE}={dict(new.cookies)[COOKIE]}"
    assert visit().get("/v1/me", headers={"Cookie": cookie}).status_code == 200
    rag.keys.revoke(made.key.key_id)
    assert visit().get("/v1/me", headers={"Cookie": cookie}).status_code == 401
    assert {login.status for login in rag.logins.list()} == {"revoked"}


def test_a_key_that_is_revoked_over_http_ends_its_logins_at_once(rag, visit):
    browser = visit()
    made, admin = rag.keys.create("laptop"), rag.keys.create("admin", scopes=("admin",)).secret
    log_in(browser, made.secret)
    assert browser.get("/v1/me").status_code == 200
    plain = {"Authorization": f"Bearer {admin}"}
    assert browser.delete(f"/v1/keys/{made.key.key_id}", headers=plain).status_code == 200
    assert browser.get("/v1/me").status_code == 401


def test_an_administrator_lists_logins_and_ends_them(rag, visit):
    ann, bob = visit(), visit()
    rag.tenants.create("acme")
    log_in(ann, rag.keys.create("a", principal=ANN).secret)
    log_in(bob, rag.keys.create("b", principal=Principal(user_id="bob")).secret)
    admin = {"Authorization": f"Bearer {rag.keys.create('admin', scopes=('admin',)).secret}"}
    first = bob.get("/v1/logins?limit=1", headers=admin).json()
    following = bob.get(f"/v1/logins?limit=1&cursor={first['next_cursor']}", headers=admin).json()
    listed = [*first["items"], *following["items"]]
    assert {one["principal"]["user_id"] for one in listed} == {"ann", "bob"} and not following["next_cursor"]
    (own,) = bob.get("/v1/logins?user=ann", headers=admin).json()["items"]
    assert bob.get(f"/v1/logins/{own['login_id']}", headers=admin).json() == own
    ended = bob.delete(f"/v1/logins/{own['login_id']}", headers=admin).json()
    assert (ended["status"], ended["principal"]["user_id"]) == ("ended", "ann")
    assert bob.get("/v1/me").status_code == 200
    assert bob.delete("/v1/logins?user=bob", headers=admin).json() == {"ended": 1}
    assert bob.delete("/v1/logins", headers=admin).json() == {"ended": 0}
    assert bob.get("/v1/me").status_code == 401
    assert bob.get("/v1/logins/unknown", headers=admin).status_code == 404
    assert not rag.view(tenant="acme").logins.list()
    assert not rag.view(principal=ANN).logins.list(user="bob")


def test_limits_and_writes_are_the_keys_however_often_it_logs_in(rag, visit):
    made = rag.keys.create("laptop")
    one, two = visit(), visit()
    for browser in (one, two):
        log_in(browser, made.secret)
    left = [int(browser.get("/v1/collections").headers["ratelimit"].partition("r=")[2].partition(";")[0])
            for browser in (one, two, one)]  # fmt: skip
    assert left[0] > left[-1]


def test_a_key_made_with_a_login_does_not_outlive_the_logins_key(rag, visit):
    browser = visit()
    log_in(browser, rag.keys.create("laptop", scopes=("read", "admin"), expires="2h").secret)
    kept = browser.post("/v1/keys", json={"name": "x"}, headers=OWN).json()
    assert kept["key"]["expires_at"] is not None
    assert browser.post("/v1/keys", json={"name": "x", "expires": "3h"}, headers=OWN).status_code == 403


# Where it leads


def test_a_login_leads_to_no_other_site(rag, visit):
    browser, key = visit(limits={"ingest": None}), rag.keys.create("laptop").secret
    for elsewhere in (
        *("//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example"),
        *("javascript:alert(1)", "evil", "/ evil", "/é", "/\n//evil.example", "", "/" * 3_000, "///evil.example"),
    ):
        assert log_in(browser, key, return_to=elsewhere).headers["location"] == "/login", elsewhere


def test_below_a_path_that_a_proxy_gives_it(rag, visit):
    browser = visit(public_url="https://example.com/knowledge")
    page = browser.get("/login").text
    assert 'action="/knowledge/login"' in page
    assert log_in(browser, rag.keys.create("laptop").secret).headers["location"] == "/knowledge/login"


# What goes wrong is told


def test_what_is_no_key_logs_nobody_in(rag, visit):
    browser = visit()
    for key in ("", "x", "rk_1_", draw_login(1).text, draw_key(1).text, "a" * 5_000, "rk_1_\u00e9", "<script>"):
        refused = log_in(browser, key, return_to='/"><script>alert(1)</script>')
        assert refused.status_code == 401 and "<script>" not in refused.text
        assert 'role="alert"' in refused.text and "set-cookie" not in refused.headers
        told = browser.post("/login", data={"key": key}, headers={**OWN, "Accept": "application/json"})
        assert told.headers["content-type"] == "application/problem+json"
    assert not rag.logins.list()


def test_the_page_may_do_nothing_but_send_its_form(rag, visit):
    page = visit().get("/login", params={"return_to": '/x?"><img src=x>'})
    assert "<img" not in page.text and page.headers["cache-control"] == "no-store"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "script" not in policy
    # A form of a page with `no-referrer` is sent with an origin that says nothing.
    assert page.headers["referrer-policy"] == "same-origin"
    for attribute in ('lang="en"', '<label for="key">', "<h1>", "<main>", "<title>"):
        assert attribute in page.text


def test_where_no_keys_are_taken_there_is_no_form(rag, visit):
    browser = visit(login={"keys": False})
    assert "<form" not in browser.get("/login").text
    assert log_in(browser, rag.keys.create("laptop").secret).status_code == 403


def test_keys_of_a_suspended_tenant_log_nobody_in_and_end_their_logins(rag, visit):
    browser = visit()
    rag.tenants.create("acme")
    key = rag.view(tenant="acme").keys.create("laptop").secret
    log_in(browser, key)
    rag.tenants.suspend("acme")
    assert log_in(visit(), key).status_code == 403
    cookie = {"Cookie": f"{COOKIE}={dict(browser.cookies)[COOKIE]}"}
    assert visit().get("/v1/me", headers=cookie).status_code == 403


# Other sites' pages


def test_only_the_servers_own_pages_change_anything(rag, visit):
    browser = visit()
    log_in(browser, rag.keys.create("laptop", scopes=("read", "admin")).secret)
    for number, (said, status) in enumerate((
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({"Sec-Fetch-Site": "none"}, 201),
        ({"Origin": SITE}, 201),
        ({"Origin": SITE, "Sec-Fetch-Site": "same-origin"}, 201),
        ({}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": ""}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": SITE, "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, 403),
        ({"Origin": "https://knowledge.example.evil.example"}, 403),
        ({"Origin": "https://evil.example/https://knowledge.example"}, 403),
        ({"Referer": SITE + "/login"}, 403),
    )):  # fmt: skip
        name = f"made{number}"
        assert browser.post("/v1/collections", json={"name": name}, headers=said).status_code == status, said
        assert (name in browser.get("/v1/collections").text) == (status == 201), said
    for method in ("PATCH", "DELETE"):
        foreign = {"Sec-Fetch-Site": "cross-site"}
        assert browser.request(method, "/v1/collections/made0", json={}, headers=foreign).status_code == 403
    # A key that is presented is no cookie: it comes with no page.
    key = {"Authorization": f"Bearer {rag.keys.create('x', scopes=('admin',)).secret}"}
    assert browser.post("/v1/collections", json={"name": "by-key"}, headers=key).status_code == 201


def test_another_site_logs_nobody_in_or_out(rag, visit):
    browser, key = visit(), rag.keys.create("laptop").secret
    for said in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        assert browser.post("/login", data={"key": key}, headers=said).status_code == 403
        log_in(browser, key)
        assert browser.post("/logout", headers=said).status_code == 403
        assert browser.get("/v1/me").status_code == 200
        browser.post("/logout", headers=OWN)
    assert browser.get("/logout").status_code == 405


def test_behind_a_proxy_that_names_another_host_the_public_address_counts(rag, visit):
    browser = visit("http://internal:8321", public_url=SITE)
    told = log_in(browser, rag.keys.create("x", scopes=("admin",)).secret).headers["set-cookie"]
    browser.headers["Cookie"] = told.partition(";")[0]
    assert browser.post("/v1/collections", json={"name": "a"}, headers={"Origin": SITE}).status_code == 201
    foreign = {"Origin": "https://other.example"}
    assert browser.post("/v1/collections", json={"name": "b"}, headers=foreign).status_code == 403


def test_a_trusted_proxy_says_that_the_connection_is_encrypted_and_nobody_else_does(rag, visit):
    key, said = rag.keys.create("x").secret, {**OWN, "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
    told = {}
    for proxies in (("10.0.0.0/8",), ("192.0.2.1",), ()):
        app = visit("http://knowledge.example", trusted_proxies=proxies).app
        browser = TestClient(app, base_url="http://knowledge.example", client=("10.1.2.3", 5), follow_redirects=False)
        told[proxies] = browser.post("/login", data={"key": key}, headers=said).headers["set-cookie"]
    assert told["10.0.0.0/8",].startswith(f"{COOKIE}=") and "Secure" in told["10.0.0.0/8",]
    assert all("Secure" not in told[proxies] for proxies in (("192.0.2.1",), ()))


def test_on_this_machine_a_login_counts_and_one_that_is_over_is_in_nobodys_way(rag, dsn):
    """Who has logged in as somebody stays that; when it is over, they are told once, and are the local user again."""
    browser = TestClient(create_app(rag), base_url="http://127.0.0.1:8321", follow_redirects=False)
    assert browser.get("/v1/me").json()["credential"]["kind"] == "local"
    browser.post("/login", data={"key": rag.keys.create("laptop", principal=ANN).secret})
    assert browser.get("/v1/me").json()["principal"]["user_id"] == "ann"
    assert browser.post("/logout").status_code == 403
    as_if(dsn, "ended_at = now()")
    stale = TestClient(create_app(rag), base_url="http://127.0.0.1:8321", cookies=dict(browser.cookies))
    told = stale.get("/v1/me")
    assert told.status_code == 401 and told.headers["set-cookie"].startswith('recollect_login=""; HttpOnly; Max-Age=0')
    assert stale.get("/v1/me", headers={"Cookie": ""}).json()["credential"]["kind"] == "local"
