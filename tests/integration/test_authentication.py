"""Who presents a credential: keys and tokens together, as requests bring them."""

from __future__ import annotations

import time

import jwt
import pytest
from starlette.requests import Request

from recollect import RAGConfig, RAGPipeline
from recollect.errors import AuthenticationError, ConfigurationError, TenantSuspendedError
from recollect.model.key import ACCESS_SCOPES, draw_key
from recollect.server import caller as callers
from recollect.server.authentication import Authenticator, caller_of, is_of_this_machine
from recollect.server.caller import Caller
from recollect.server.requests import is_loopback

SECRET = "a secret of thirty-two bytes or more"
TOKENS = {"secret": "env:KEY"}


def door(rag: RAGPipeline, **server) -> Authenticator:
    return Authenticator(rag, RAGConfig.load(server=server).server, environment={"KEY": SECRET})


def token(**claims) -> str:
    return jwt.encode({"sub": "ann", "exp": int(time.time()) + 600, **claims}, SECRET, "HS256")


def bearer(text: str) -> str:
    return f"Bearer {text}"


def request(*headers: tuple[str, str], query: str = "", client: str | None = "127.0.0.1") -> Request:
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    if not any(name == b"host" for name, _ in raw):
        raw.append((b"host", b"127.0.0.1:8321"))
    return Request({
        "type": "http", "method": "GET", "path": "/v1/me", "query_string": query.encode(), "headers": raw,
        "client": None if client is None else (client, 5), "server": ("127.0.0.1", 8321), "scheme": "http",
    })  # fmt: skip


# Nobody needs anything on this machine


def test_on_this_machine_one_user_needs_nothing(pipeline):
    for host in ["127.0.0.1", "::1", "localhost", "127.1.2.3"]:
        local = door(pipeline, host=host).authenticate(None, local=True)
        assert local == Caller.local()
        assert local.scopes == set(ACCESS_SCOPES)


def test_everywhere_else_everybody_needs_a_credential(pipeline):
    for server in [
        {"host": "0.0.0.0"}, {"host": "::"}, {"host": "192.168.1.2"}, {"host": "example.org"},
        {"host": "127.0.0.1.example.org"}, {"authentication": "required"}, {"jwt": TOKENS},
    ]:  # fmt: skip
        with pytest.raises(AuthenticationError) as caught:
            door(pipeline, **server).authenticate(None, local=True)
        assert caught.value.missing


def test_a_credential_is_checked_where_none_is_needed(pipeline):
    local = door(pipeline)
    for authorization in ("Bearer", "Bearer ", "Basic YTpi", "", "rk_", bearer(draw_key(1).text)):
        with pytest.raises(AuthenticationError) as caught:
            local.authenticate(authorization, local=True)
        assert not caught.value.missing


def test_what_programs_send_because_they_must_opens_what_is_open_anyway(pipeline):
    for text in ("none", "local", "NOT-NEEDED", "sk-no-key-required"):
        assert door(pipeline).authenticate(f"Bearer {text}", local=True) == Caller.local()
    # What was meant for another server is not passed over.
    for text in ("sk-proj-Abc123", "eyJhbGciOiJIUzI1NiJ9.e30.x", "nones", "secret"):
        with pytest.raises(AuthenticationError, match="send none, or local"):
            door(pipeline).authenticate(f"Bearer {text}", local=True)
    for elsewhere in ({"authentication": "required"}, {"host": "0.0.0.0"}, {"jwt": TOKENS}):
        with pytest.raises(AuthenticationError):
            door(pipeline, **elsewhere).authenticate("Bearer none", local=True)
    with pytest.raises(AuthenticationError):
        door(pipeline).authenticate("Bearer none", local=False)


def test_a_server_that_nobody_could_use_does_not_start(pipeline):
    open_to_all = door(pipeline, host="0.0.0.0")
    with pytest.raises(ConfigurationError, match="recollect keys create"):
        open_to_all.require_usable()
    door(pipeline).require_usable()
    door(pipeline, host="0.0.0.0", jwt=TOKENS).require_usable()
    pipeline.keys.create("first")
    open_to_all.require_usable()


def test_the_local_user_is_of_the_configured_tenant(pipeline, dsn):
    pipeline.tenants.create("acme")
    with RAGPipeline(RAGConfig.load(tenant="acme", storage={"dsn": dsn}, embedding={"provider": "hashing"})) as rag:
        assert door(rag).authenticate(None, local=True).tenant == 2


# Keys


def test_a_key_is_taken_in_either_header(pipeline):
    made = pipeline.keys.create("reports", scopes="write")
    check = door(pipeline, authentication="required")
    by_header, by_bearer = check.authenticate(None, api_key=made.secret), check.authenticate(bearer(made.secret))
    assert by_header == by_bearer == check.authenticate(f"bearer  {made.secret} ")
    assert (by_header.tenant, by_header.scopes, str(by_header.credential)) == (1, {"write"}, f"key:{made.key.key_id}")
    with pytest.raises(AuthenticationError, match="Two credentials"):
        check.authenticate(bearer(made.secret), api_key=made.secret)


def test_what_is_no_credential_is_refused(pipeline):
    for text in [
        "é", "rk_1_\u0661", "a\tb", "a\0b", "a b", "\ud800", " ", "💥" * 50, "rk_1_" + "0" * 100_000,
        "null", "undefined", "rk_1_00000000000000_" + "0" * 49,
    ]:  # fmt: skip
        for check in (door(pipeline), door(pipeline, jwt=TOKENS)):
            for given in (
                {"authorization": bearer(text)},
                {"authorization": text},
                {"authorization": None, "api_key": text},
            ):
                with pytest.raises(AuthenticationError) as caught:
                    check.authenticate(**given)
                assert len(str(caught.value)) < 200


def test_a_revocation_ends_a_key_within_seconds(pipeline, monkeypatch):
    made = pipeline.keys.create("reports")
    now = [0.0]
    monkeypatch.setattr(callers, "monotonic", lambda: now[0])
    check = door(pipeline)
    check.authenticate(bearer(made.secret))
    pipeline.keys.revoke(made.key.key_id)
    assert check.authenticate(bearer(made.secret)), "it is not asked for again"
    now[0] = callers.CACHE_SECONDS + 0.1
    with pytest.raises(AuthenticationError, match="revoked"):
        check.authenticate(bearer(made.secret))


def test_a_revocation_in_the_same_process_ends_it_at_once(pipeline):
    made = pipeline.keys.create("reports")
    check = door(pipeline)
    check.authenticate(bearer(made.secret))
    pipeline.keys.revoke(made.key.key_id)
    check.forget()
    with pytest.raises(AuthenticationError, match="revoked"):
        check.authenticate(bearer(made.secret))


def test_a_known_credential_costs_no_statement_and_an_unknown_one_is_never_kept(pipeline, monkeypatch):
    made = pipeline.keys.create("reports")
    check = door(pipeline)
    first = check.authenticate(bearer(made.secret))
    monkeypatch.setattr(type(pipeline.keys), "authenticate", lambda *_: pytest.fail("it was asked for"))
    assert check.authenticate(bearer(made.secret)) is first
    assert check.known(bearer(made.secret)) is first
    assert check.known(bearer(draw_key(1).text)) is None


def test_credentials_that_are_kept_are_bounded(pipeline, monkeypatch):
    monkeypatch.setattr(callers, "MOST_CACHED", 4)
    check = door(pipeline, jwt=TOKENS)
    for number in range(6):
        check.authenticate(bearer(token(sub=f"user{number}")))
    assert check.cached == 4


def test_a_key_that_ends_meanwhile_is_not_taken_from_what_is_kept(pipeline, dsn, monkeypatch):
    made = pipeline.keys.create("reports", expires="1h")
    check = door(pipeline)
    check.authenticate(bearer(made.secret))
    monkeypatch.setattr(callers.Caller, "is_over", True)
    assert check.known(bearer(made.secret)) is None


def test_keys_of_a_suspended_tenant(pipeline):
    pipeline.tenants.create("acme")
    made = pipeline.view(tenant="acme").keys.create("reports")
    pipeline.tenants.suspend("acme")
    with pytest.raises(TenantSuspendedError):
        door(pipeline).authenticate(bearer(made.secret))


# Tokens


def test_a_token_names_its_tenant_and_is_of_the_configured_one_where_there_is_no_other(pipeline):
    check = door(pipeline, jwt=TOKENS)
    assert check.authenticate(bearer(token())).tenant == 1
    pipeline.tenants.create("acme")
    assert check.authenticate(bearer(token(tenant="acme"))).tenant == 2
    assert check.authenticate(bearer(token(tenant=2))).tenant == 2
    check.forget()
    with pytest.raises(AuthenticationError, match="names no tenant"):
        check.authenticate(bearer(token()))
    for other in (3, "nobody", -1, 2**40, "a\0b"):
        with pytest.raises(AuthenticationError, match="tenant"):
            check.authenticate(bearer(token(tenant=other)))
    lenient = door(pipeline, jwt={**TOKENS, "require_tenant": False})
    assert lenient.authenticate(bearer(token())).tenant == 1


def test_a_token_is_no_key_and_no_token_is_taken_unless_it_is_configured(pipeline):
    with pytest.raises(AuthenticationError, match="takes no tokens"):
        door(pipeline).authenticate(bearer(token()))
    with pytest.raises(AuthenticationError, match="That is no API key"):
        door(pipeline, jwt=TOKENS).authenticate(None, api_key=token())


def test_a_token_reads_as_its_user(pipeline):
    from recollect import Document

    pipeline.ingest(Document(content="Salaries rise in April.", source="pay.md", permissions=("group:board",)))
    check = door(pipeline, jwt=TOKENS)
    one, other = (check.authenticate(bearer(token(groups=groups))) for groups in (["board"], ["staff"]))
    assert [found.source for found in one.view(pipeline).retrieve("salaries")] == ["pay.md"]
    assert other.view(pipeline).retrieve("salaries") == []
    assert (one.actor, str(one.credential)) == ("user:ann", "jwt:ann")


# As requests bring them


async def asked(rag, *headers, query="", client="127.0.0.1", **server) -> Caller:
    return await caller_of(request(*headers, query=query, client=client), door(rag, **server))


def run(coroutine):
    import asyncio

    return asyncio.run(coroutine)


def test_a_request_is_its_credentials(pipeline):
    made = pipeline.keys.create("reports")
    for headers in ([("Authorization", bearer(made.secret))], [("X-API-Key", made.secret)]):
        assert run(asked(pipeline, *headers, client="203.0.113.9", host="0.0.0.0")).credential.id == made.key.key_id
    assert run(asked(pipeline)) == Caller.local()


@pytest.mark.parametrize("name", ["Authorization", "X-API-Key"])
def test_a_header_that_is_there_twice_is_refused(pipeline, name):
    made = pipeline.keys.create("reports")
    value = made.secret if name == "X-API-Key" else bearer(made.secret)
    for second in (value, "", "Bearer x"):
        with pytest.raises(AuthenticationError, match="2 headers"):
            run(asked(pipeline, (name, value), (name, second)))


def test_a_credential_in_the_url_is_refused_even_where_none_is_needed(pipeline):
    made = pipeline.keys.create("reports")
    for query in (
        f"access_token={made.secret}", "api_key=x", "API_KEY=x", f"anything={made.secret}", made.secret,
        f"a=1&b=2&c=%20{made.secret}",
    ):  # fmt: skip
        with pytest.raises(AuthenticationError, match="stays in logs") as caught:
            run(asked(pipeline, query=query))
        assert made.secret not in str(caught.value)
        with pytest.raises(AuthenticationError):
            run(asked(pipeline, ("Authorization", bearer(made.secret)), query=query))
    assert run(asked(pipeline, query="filter=key&sort=name"))


def test_what_comes_from_elsewhere_is_not_the_local_users(pipeline):
    for headers in [
        [("X-Forwarded-For", "203.0.113.9")], [("Forwarded", "for=203.0.113.9")], [("X-Real-IP", "203.0.113.9")],
        [("Via", "1.1 proxy")], [("X-Forwarded-Host", "example.org")],
        [("Host", "evil.example:8321")], [("Host", "127.0.0.1.evil.example")], [("Host", "")],
        [("Host", "192.168.1.5:8321")], [("Host", "evil.example@127.0.0.1.evil")],
        [("Origin", "https://evil.example")], [("Origin", "null")], [("Origin", "http://127.0.0.1:3000")],
        [("Sec-Fetch-Site", "cross-site")], [("Sec-Fetch-Site", "same-site")],
    ]:  # fmt: skip
        assert not is_of_this_machine(request(*headers))
        with pytest.raises(AuthenticationError) as caught:
            run(asked(pipeline, *headers))
        assert caught.value.missing


@pytest.mark.parametrize(
    "headers",
    [
        [], [("Host", "localhost:8321")], [("Host", "[::1]:8321")], [("Origin", "http://127.0.0.1:8321")],
        [("Sec-Fetch-Site", "same-origin")], [("Sec-Fetch-Site", "none")],
    ],
)  # fmt: skip
def test_what_comes_from_this_machine_is(headers):
    assert is_of_this_machine(request(*headers))


def test_another_machine_is_not_this_one():
    assert not is_of_this_machine(request(client="203.0.113.9"))
    assert is_of_this_machine(request(client="::1"))


@pytest.mark.parametrize("host", ["", "*", "0", "127.0.0", "0.0.0.0", "::", "1.1.1.1", "localhost.example.org", "\0"])
def test_what_is_not_loopback(host):
    assert not is_loopback(host)
