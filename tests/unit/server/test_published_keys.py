"""Keys that an issuer publishes: fetched, kept, renewed and refused."""

from __future__ import annotations

import json
import threading
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from recollect.config.server import JwtConfig
from recollect.errors import AuthenticationError, FetchError
from recollect.fetching.client import Fetched
from recollect.fetching.urls import parse_url
from recollect.server.tokens import RETRY_SECONDS, STALE_SECONDS, PublishedKeys, TokenVerifier, published_keys
from web_site import Page, web_site

URL = "https://issuer.example/keys"
ONE, TWO = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
ELLIPTIC = ec.generate_private_key(ec.SECP256R1())


def public(key, kid: str | None, **more) -> dict:
    algorithm = jwt.get_algorithm_by_name("ES256" if key is ELLIPTIC else "RS256")
    named = {} if kid is None else {"kid": kid}
    return {**json.loads(algorithm.to_jwk(key.public_key())), **named, **more}


class Issuer:
    """Publishes keys, and counts who asks."""

    def __init__(self, *keys: dict) -> None:
        self.body = json.dumps({"keys": keys}).encode()
        self.asked = 0
        self.fails = False
        self.now = 0.0

    def publish(self, *keys: dict) -> None:
        self.body = json.dumps({"keys": keys}).encode()

    def fetch(self, request, *, max_bytes: int) -> Fetched:
        self.asked += 1
        if self.fails:
            raise FetchError(request.url, "is not there", retryable=True)
        return Fetched(url=parse_url(request.url), status=200, body=self.body)

    def keys(self) -> PublishedKeys:
        return PublishedKeys(URL, self, cache_seconds=300, clock=lambda: self.now)


def header(kid: str | None = "one", alg: str = "RS256") -> dict:
    return {"alg": alg} if kid is None else {"alg": alg, "kid": kid}


def test_keys_are_fetched_once_and_kept():
    issuer = Issuer(public(ONE, "one"), public(ELLIPTIC, "two"))
    keys = issuer.keys()
    for _ in range(3):
        assert keys.of(header()).algorithm_name == "RS256"
        assert keys.of(header("two", "ES256")).algorithm_name == "ES256"
    assert issuer.asked == 1
    issuer.now = 301
    keys.of(header())
    assert issuer.asked == 2


def test_a_new_key_is_fetched_when_a_token_names_it_and_an_old_one_ends():
    issuer = Issuer(public(ONE, "one"))
    keys = issuer.keys()
    keys.of(header())
    issuer.publish(public(TWO, "two"))
    issuer.now = RETRY_SECONDS + 1
    assert keys.of(header("two"))
    with pytest.raises(AuthenticationError, match="publishes"):
        keys.of(header("one"))


def test_unknown_keys_do_not_make_a_flood_of_requests():
    issuer = Issuer(public(ONE, "one"))
    keys = issuer.keys()
    for number in range(100):
        issuer.now = number / 10
        with pytest.raises(AuthenticationError):
            keys.of(header(f"unknown{number}"))
        assert keys.of(header())
    assert issuer.asked == 1


def test_an_issuer_that_does_not_answer_is_done_without_for_a_while():
    issuer = Issuer(public(ONE, "one"))
    keys = issuer.keys()
    keys.of(header())
    issuer.fails = True
    for issuer.now in (400.0, 401.0, 1000.0, STALE_SECONDS - 1):
        assert keys.of(header())
    assert issuer.asked == 4
    issuer.now = STALE_SECONDS + 1000
    with pytest.raises(FetchError, match="cannot be fetched now"):
        keys.of(header())
    issuer.fails, issuer.now = False, STALE_SECONDS + 2000
    assert keys.of(header())


def test_without_any_answer_no_token_is_taken_and_none_called_wrong():
    issuer = Issuer()
    issuer.fails = True
    keys = issuer.keys()
    for _ in range(3):
        with pytest.raises(FetchError) as caught:
            keys.of(header())
        assert caught.value.retryable
    assert issuer.asked == 1


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"{}", b'{"keys": 5}', b'{"keys": [5, null]}', b"\xff", b'{"keys": []}', b"[" * 100_000),
        json.dumps({"keys": [{"kty": "oct", "kid": "one", "k": "eHh4"}]}).encode(),
    ],
)
def test_what_is_no_set_of_keys_is_none(body):
    issuer = Issuer()
    issuer.body = body
    with pytest.raises(FetchError):
        issuer.keys().of(header())


@pytest.mark.parametrize(
    "entry",
    [
        {"kty": "oct", "kid": "one", "k": "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4"},
        public(ONE, "one", use="enc"),
        public(ONE, "one", alg="RS512"),
        public(ONE, "one", d="AQAB"),
        public(ONE, "one", kty="EC"),
        {**public(ONE, "one"), "n": 5},
        {**public(ONE, "one"), "kid": {}},
        {**public(ELLIPTIC, "one"), "crv": "P-384"},
    ],
)
def test_other_keys_beside_those_that_sign_are_passed_over(entry):
    issuer = Issuer(entry, public(TWO, "two"))
    keys = issuer.keys()
    assert keys.of(header("two"))
    for alg in ("RS256", "ES256", "HS256"):
        with pytest.raises(AuthenticationError):
            keys.of(header("one", alg))


def test_a_token_without_a_name_of_its_key_needs_there_to_be_one():
    alone = Issuer(public(ONE, "one"), public(ELLIPTIC, "two")).keys()
    assert alone.of(header(None))
    several = Issuer(public(ONE, "one"), public(TWO, "two")).keys()
    with pytest.raises(AuthenticationError):
        several.of(header(None))
    nameless = Issuer(public(ONE, None)).keys()
    assert nameless.of(header(None))
    for kid in ([], {}, 5):
        with pytest.raises(AuthenticationError):
            alone.of({"alg": "RS256", "kid": kid})


def test_two_keys_of_one_name_are_none():
    with pytest.raises(AuthenticationError):
        Issuer(public(ONE, "one"), public(TWO, "one")).keys().of(header())


def test_of_many_at_once_one_asks():
    issuer = Issuer(public(ONE, "one"))
    keys, begin = issuer.keys(), threading.Barrier(8)

    def ask() -> None:
        begin.wait()
        keys.of(header())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert issuer.asked == 1


def test_only_the_issuers_host_is_asked():
    config = JwtConfig(jwks_url="https://127.0.0.1:9/keys", audience="us")
    with pytest.raises(FetchError, match="cannot be fetched"):
        published_keys(config).of(header())


def test_tokens_are_verified_with_keys_from_a_server_of_ones_own():
    """Through the real client, over a connection: the issuer is in a private network, which has to be said."""
    page = Page(json.dumps({"keys": [public(ONE, "one")]}), content_type="application/json")
    with web_site({"/keys": page}) as site:
        claims = {"sub": "ann", "exp": int(time.time()) + 60, "aud": "us"}
        config = JwtConfig(jwks_url=site.url("/keys"), jwks_allowed_hosts=(f"127.0.0.1:{site.port}",), audience="us")
        verifier = TokenVerifier(config, {})
        good = jwt.encode(claims, ONE, "RS256", headers={"kid": "one"})
        assert verifier.verify(good).principal.user_id == "ann"
        with pytest.raises(AuthenticationError):
            verifier.verify(jwt.encode(claims, TWO, "RS256", headers={"kid": "one"}))
        with pytest.raises(AuthenticationError):
            verifier.verify(jwt.encode(claims, "x" * 32, "HS256", headers={"kid": "one"}))
        assert site.paths == ["/keys"]


def test_an_issuer_does_not_send_elsewhere():
    with web_site() as other, web_site({"/keys": Page("", 302, {"Location": other.url("/keys")})}) as site:
        config = JwtConfig(jwks_url=site.url("/keys"), jwks_allowed_hosts=(f"127.0.0.1:{site.port}",), audience="us")
        with pytest.raises(FetchError):
            published_keys(config).of(header())
        assert (len(site.visits), other.visits) == (1, [])
