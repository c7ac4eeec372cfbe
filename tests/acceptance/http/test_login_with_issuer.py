"""Browsers that log in with an issuer (OpenID Connect): a real one, and one that lies."""

from __future__ import annotations

import base64
import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import jwt
import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from fastapi.testclient import TestClient

from recollect import RAGConfig, RAGPipeline
from recollect.server import tokens
from recollect.server.app import create_app
from recollect.server.login import issuer as issuers
from recollect.server.login.issuer import MOST_ATTEMPTS
from web_site import Page, WebSite, web_site

SITE = "https://knowledge.example"
OWN = {"Sec-Fetch-Site": "same-origin"}
COOKIE = "__Host-recollect_login"
CLIENT_SECRET = "the secret of the client, of thirty-two bytes"
ONE, TWO = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))


@pytest.fixture
def visit(rag: RAGPipeline, monkeypatch) -> Callable[..., TestClient]:
    """Makes browsers of a server whose people log in with an issuer; ``app`` is of one process, of another without."""
    monkeypatch.setenv("CLIENT", CLIENT_SECRET)

    def made(issuer: str, *, app=None, oidc=None, **settings) -> TestClient:
        client = {
            "issuer": issuer,
            "client_id": "recollect",
            "client_secret": "env:CLIENT",
            "name": "Example",
            **(oidc or {}),
        }
        server = RAGConfig.load(
            server={"host": "0.0.0.0", "public_url": SITE, "login": {"oidc": client}, **settings}
        ).server
        rag.standpoint.assembly.config = rag.config.model_copy(update={"server": server})
        return TestClient(
            app or create_app(rag),
            base_url=SITE,
            headers={"Accept": "text/html"},
            follow_redirects=False,
            raise_server_exceptions=False,
        )

    return made


def begin(browser: TestClient, return_to: str = "/v1/me") -> dict[str, str]:
    """Send a browser to the issuer; returns what it is sent there with."""
    sent = browser.get("/login/oidc", params={"return_to": return_to})
    assert sent.status_code == 303, sent.text
    return {name: values[0] for name, values in parse_qs(urlsplit(sent.headers["location"]).query).items()}


def come_back(browser: TestClient, **said: str):
    return browser.get("/login/callback", params=said)


# A real one. It warns of what its own libraries are going to remove.
pytestmark = pytest.mark.filterwarnings("ignore:get_jwt_config")


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the provider's own libraries
        import oidc_provider_mock
    people = [
        oidc_provider_mock.User(
            sub="ann",
            claims={"roles": ["clerk", "boss"], "tenant": "default", "department": "hr", "groups": ["a", "b"]},
        ),
        oidc_provider_mock.User(sub="bob", claims={"tenant": "nowhere"}),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")
        with oidc_provider_mock.run_server_in_thread(user_claims=people) as server:
            yield f"http://localhost:{server.server_port}"


def consent(sent_to: str, user: str) -> dict[str, str]:
    """Log in at the provider, as somebody does with its form; returns what it sends the browser back with."""
    answer = httpx2.post(sent_to, data={"sub": user})
    assert answer.status_code == 302, answer.text
    assert answer.headers["location"].startswith(f"{SITE}/login/callback?")
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}


def test_somebody_logs_in_with_a_provider_and_out_again(rag, visit, provider, caplog):
    browser = visit(provider, jwt={"role_scopes": {"boss": ["write", "admin", "operator"]}})
    assert 'href="/login/oidc?return_to=/v1/me">Log in with Example</a>' in browser.get("/login?return_to=/v1/me").text
    away = browser.get("/login/oidc?return_to=/v1/me").headers["location"]
    back = consent(away, "ann")
    done = come_back(browser, **back)
    assert (done.status_code, done.headers["location"]) == (303, "/v1/me")
    me = browser.get("/v1/me").json()
    assert me["principal"] == {"user_id": "ann", "roles": ["boss", "clerk"], "department": "hr", "groups": ["a", "b"]}
    assert me["credential"] == {"kind": "oidc", "id": "ann", "expires_at": None}
    assert me["scopes"] == ["read", "write", "admin"], "tokens open what they may at most"
    (kept,) = rag.logins.list()
    assert (kept.method, kept.key_id, kept.principal.user_id) == ("oidc", None, "ann")
    assert [name for name in browser.cookies if "attempt" in name] == []

    # The code and its answer are taken once, here and there.
    again = come_back(browser, **back)
    assert again.status_code == 401 and "begun no login" in again.text
    out = browser.post("/logout", headers=OWN)
    url = out.headers["refresh"].removeprefix("0; url=")
    query = parse_qs(urlsplit(url).query)
    assert url.startswith(f"{provider}/oauth2/end_session?") and query["post_logout_redirect_uri"] == [f"{SITE}/login"]
    assert jwt.decode(query["id_token_hint"][0], options={"verify_signature": False})["sub"] == "ann"
    assert httpx2.get(url).status_code == 200 and browser.get("/v1/me").status_code == 401
    assert [entry.actor for entry in rag.audit.list()] == ["user:ann", "user:ann"]
    for secret in (back["code"], back["state"], query["id_token_hint"][0], CLIENT_SECRET):
        assert not any(secret in one.getMessage() for one in caplog.records if one.name.startswith("recollect"))


def test_whoever_the_provider_knows_and_no_tenant_does_is_nobody(rag, visit, provider):
    browser = visit(provider)
    refused = come_back(browser, **consent(browser.get("/login/oidc").headers["location"], "bob"))
    assert refused.status_code == 401 and "tenant that does not exist" in refused.text and not rag.logins.list()


def test_any_process_takes_the_answer_to_another_ones_attempt(rag, visit, provider):
    first = visit(provider)
    back = consent(first.get("/login/oidc").headers["location"], "ann")
    second = visit(provider)
    second.cookies.update(first.cookies)
    assert come_back(second, **back).status_code == 303
    first.cookies.update(second.cookies)
    assert first.get("/v1/me").status_code == 200


def test_a_provider_refuses_a_code_of_another_attempt(rag, visit, provider):
    """An attacker's code in somebody's browser, and somebody's in an attacker's (PKCE, and the nonce)."""
    browser, attacker = visit(provider), visit(provider)
    own = consent(browser.get("/login/oidc").headers["location"], "ann")
    stolen = consent(attacker.get("/login/oidc").headers["location"], "ann")
    assert come_back(browser, **{**own, "code": stolen["code"]}).status_code == 401
    assert come_back(attacker, **{**stolen, "code": own["code"]}).status_code == 401
    assert not rag.logins.list()


# One that lies


class Liar:
    """An issuer that says what a test wants."""

    def __init__(self, site: WebSite) -> None:
        self.site = site
        self.url = site.url("").rstrip("/")
        self.keys = [(ONE, "one")]
        self.more: dict[str, object] = {}
        self.token: Callable[[dict], object] = lambda claims: signed(claims)
        self.claims: dict[str, object] = {}
        self.nonce = self.challenge = ""
        site.routes["/.well-known/openid-configuration"] = self.configuration
        site.routes["/keys"] = self.published
        site.routes["/token"] = self.answer

    def configuration(self, _) -> Page:
        said = {"issuer": self.url, "authorization_endpoint": f"{self.url}/authorize?tenant=1",
                "token_endpoint": f"{self.url}/token", "jwks_uri": f"{self.url}/keys", **self.more}  # fmt: skip
        return Page(json.dumps(said), content_type="application/json")

    def published(self, _) -> Page:
        rsa256 = jwt.get_algorithm_by_name("RS256")
        keys = [{**json.loads(rsa256.to_jwk(key.public_key())), "kid": name} for key, name in self.keys]
        return Page(json.dumps({"keys": keys}), content_type="application/json")

    def answer(self, visit) -> Page:
        form = {name: values[0] for name, values in parse_qs(visit.body.decode()).items()}
        given = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        assert given == self.challenge and form["redirect_uri"] == f"{SITE}/login/callback"
        now = int(time.time())
        claims = {"iss": self.url, "sub": "ann", "aud": "recollect", "iat": now, "exp": now + 60, "nonce": self.nonce}
        claims = {name: value for name, value in {**claims, **self.claims}.items() if value is not None}
        token = self.token(claims)
        return Page(json.dumps({"id_token": token, "access_token": "x"}), content_type="application/json")

    def log_in(self, browser: TestClient, **said: str):
        """Let a browser go there and back."""
        sent = begin(browser)
        self.nonce, self.challenge = sent["nonce"], sent["code_challenge"]
        assert sent["code_challenge_method"] == "S256" and sent["response_type"] == "code"
        return come_back(browser, **{"state": sent["state"], "code": "c", **said})


def signed(claims: dict, key=ONE, algorithm: str = "RS256", kid: str | None = "one") -> str:
    return jwt.encode(claims, key, algorithm, headers={} if kid is None else {"kid": kid})


def by_hand(header: dict, claims: dict, signature: bytes = b"") -> str:
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def hmac_signed(claims: dict, key: bytes) -> str:
    head = by_hand({"alg": "HS256", "kid": "one"}, claims).rpartition(".")[0]
    return f"{head}.{base64.urlsafe_b64encode(hashlib.sha256(key + head.encode()).digest()).rstrip(b'=').decode()}"


@pytest.fixture
def liar(monkeypatch) -> Iterator[Liar]:
    for module in (tokens, issuers):
        monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)
    with web_site() as site:
        yield Liar(site)


PUBLIC = ONE.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_a_token_that_is_not_to_be_believed_logs_nobody_in(rag, visit, liar):
    browser = visit(liar.url, limits={"failed_credentials": None})
    assert liar.log_in(browser).status_code == 303
    rag.logins.revoke_all()
    now = int(time.time())
    for claims in (
        {"iss": "https://evil.example"},
        {"iss": liar.url + "/"},
        {"iss": None},
        {"aud": "another"},
        {"aud": None},
        {"aud": []},
        {"aud": ["recollect", "another"]},
        {"aud": ["recollect", "another"], "azp": "another"},
        {"azp": "another"},
        {"exp": now - 3600},
        {"exp": None},
        {"exp": "soon"},
        {"iat": now + 3600},
        {"iat": None},
        {"nbf": now + 3600},
        {"nonce": "another"},
        {"nonce": None},
        {"nonce": ["x"]},
        {"sub": None},
        {"sub": ""},
        {"sub": 5},
        {"roles": [5]},
        {"tenant": "nowhere"},
        {"tenant": True},
        {"hasgroups": True},
    ):
        liar.claims = claims
        refused = liar.log_in(browser)
        assert refused.status_code == 401, claims
        assert COOKIE not in refused.headers.get("set-cookie", "") and 'role="alert"' in refused.text
    liar.claims = {}
    for number, token in enumerate((
        lambda claims: by_hand({"alg": "none", "kid": "one"}, claims),
        lambda claims: by_hand({"alg": "None", "typ": "JWT"}, claims),
        lambda claims: by_hand({"kid": "one"}, claims),
        lambda claims: by_hand({"alg": "HS256", "kid": "one"}, claims, PUBLIC),
        lambda claims: hmac_signed(claims, PUBLIC),
        lambda claims: signed(claims, CLIENT_SECRET, "HS256"),
        lambda claims: signed(claims, ONE, "RS512"),
        lambda claims: signed(claims, ONE, "PS256"),
        lambda claims: signed(claims, TWO),
        lambda claims: signed(claims, TWO, kid="two"),
        lambda claims: signed(claims, TWO, kid=None),
        lambda claims: signed({**claims, "x": "x" * 20_000}),
        lambda claims: jwt.encode(claims, ONE, "RS256", headers={"kid": "one", "crit": ["x"], "x": 1}),
        lambda claims: jwt.encode(claims, TWO, "RS256", headers={"jwk": {"kty": "RSA"}, "jku": liar.site.url("/evil")}),
        lambda claims: signed(claims)[:-5],
        lambda claims: "nonsense",
        lambda claims: "",
    )):  # fmt: skip
        liar.token = token
        assert liar.log_in(browser).status_code == 401, number
    for token in (None, 5, {"x": 1}):
        liar.token = lambda _, token=token: token
        assert liar.log_in(browser).status_code == 502
    assert {login.status for login in rag.logins.list()} == {"ended"}
    assert "/evil" not in liar.site.paths


def test_a_key_that_was_rotated_is_fetched_and_the_old_one_is_over(rag, visit, liar):
    browser = visit(liar.url)
    assert liar.log_in(browser).status_code == 303
    liar.keys, liar.token = [(TWO, "two")], lambda claims: signed(claims, TWO, kid="two")
    assert liar.log_in(browser).status_code == 303
    liar.token = signed
    assert liar.log_in(browser).status_code == 401


def test_an_answer_is_taken_from_the_browser_that_asked_and_once(rag, visit, liar):
    browser, other = visit(liar.url), visit(liar.url)
    sent, elsewhere = begin(browser), begin(other)
    liar.nonce, liar.challenge = sent["nonce"], sent["code_challenge"]
    for state in (elsewhere["state"], "", "x", sent["state"][:-1], sent["state"] + "x", "é" * 100):
        assert come_back(browser, state=state, code="c").status_code == 401, state
    assert come_back(other, state=sent["state"], code="c").status_code == 401
    assert come_back(browser, state=sent["state"], code="c").status_code == 303
    assert come_back(browser, state=sent["state"], code="c").status_code == 401
    assert len({sent[name] for name in ("state", "nonce", "code_challenge")}) == 3


def test_several_tabs_log_in_beside_each_other_and_cookies_do_not_pile_up(rag, visit, liar):
    browser = visit(liar.url)
    first, second = begin(browser), begin(browser)
    for sent in (first, second):
        liar.nonce, liar.challenge = sent["nonce"], sent["code_challenge"]
        assert come_back(browser, state=sent["state"], code="c").status_code == 303
    for _ in range(20):
        begin(browser)
    assert len([name for name in browser.cookies if "attempt" in name]) <= MOST_ATTEMPTS


def test_what_the_issuer_refuses_and_another_issuer_says_logs_nobody_in(rag, visit, liar):
    browser = visit(liar.url)
    assert liar.log_in(browser, error="access_denied").status_code == 401
    assert liar.log_in(browser, code="").status_code == 401
    assert liar.log_in(browser, iss="https://evil.example").status_code == 401
    assert liar.log_in(browser, iss=liar.url).status_code == 303
    liar.more = {"authorization_response_iss_parameter_supported": True}
    fresh = visit(liar.url)
    assert liar.log_in(fresh).status_code == 401, "it names itself in its answers, and this one does not"
    assert liar.log_in(fresh, iss=liar.url).status_code == 303


def test_an_issuer_that_cannot_be_asked_is_a_problem_of_its_own_and_never_a_login(rag, visit, liar):
    def told(path: str, page: Page | None, status: int, browser: TestClient | None = None) -> None:
        before = liar.site.routes[path]
        if page is not None:
            liar.site.routes[path] = page
        browser = browser or visit(liar.url)
        page_told = browser.get("/login/oidc")
        if page_told.status_code == 303:
            sent = parse_qs(urlsplit(page_told.headers["location"]).query)
            (liar.nonce,), (liar.challenge,), (state,) = sent["nonce"], sent["code_challenge"], sent["state"]
            page_told = come_back(browser, state=state, code="c")
        assert page_told.status_code == status, (path, page, page_told.text)
        assert ("retry-after" in page_told.headers) == (status == 503)
        assert COOKIE not in page_told.headers.get("set-cookie", "")
        problem = browser.get("/login/oidc", headers={"Accept": "application/json"})
        assert problem.status_code == 303 or problem.headers["content-type"] == "application/problem+json"
        liar.site.routes[path] = before

    configuration, down = "/.well-known/openid-configuration", Page("later", 503)
    for path in (configuration, "/token", "/keys"):
        told(path, down, 503)
        told(path, Page("not here", 404), 502)
        told(path, Page("<html>"), 502)
        told(path, Page("[]"), 502)
        told(path, Page("[" * 100_000), 502)
        told(path, Page("{" + " " * 300_000 + "}"), 502)
        told(path, Page("", 302, {"Location": "http://169.254.169.254/latest"}), 502)
    told("/token", Page('{"error": "invalid_grant"}', 400), 401)
    told("/token", Page('{"error": "invalid_client"}', 401), 502)
    for said in (
        {"issuer": "https://evil.example"},
        {"token_endpoint": None},
        {"jwks_uri": "http://evil.example/keys"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"token_endpoint": "file:///etc/passwd"},
        {"token_endpoint": "https://[x"},
        {"authorization_endpoint": "https://e.example/\r\nSet-Cookie: x=y"},
        {"end_session_endpoint": "javascript:alert(1)"},
    ):
        liar.more = said
        told(configuration, None, 502)
    assert not rag.logins.list()
    liar.more = {}
    # What was known is used while the issuer is away, and a logout ends the login here whatever happens there.
    browser = visit(liar.url, jwt={"jwks_cache_seconds": 10})
    assert liar.log_in(browser).status_code == 303
    liar.site.routes[configuration] = down
    assert browser.get("/login/oidc").status_code == 303
    assert browser.post("/logout", headers=OWN).status_code == 200 and browser.get("/v1/me").status_code == 401


def test_the_way_back_is_no_way_to_another_site(rag, visit, liar):
    browser = visit(liar.url)
    for elsewhere in ("//evil.example", "https://evil.example", "/\\evil.example"):
        sent = begin(browser, elsewhere)
        liar.nonce, liar.challenge = sent["nonce"], sent["code_challenge"]
        assert come_back(browser, state=sent["state"], code="c").headers["location"] == "/login"
    sent = begin(browser, "/v1/me?x=1&y=%2F#z")
    liar.nonce, liar.challenge = sent["nonce"], sent["code_challenge"]
    assert come_back(browser, state=sent["state"], code="c").headers["location"] == "/v1/me?x=1&y=%2F#z"


def test_the_issuers_token_is_kept_so_that_only_the_cookie_opens_it(rag, visit, liar, dsn):
    browser = visit(liar.url)
    liar.claims = {"email": "ann@example.org"}
    liar.log_in(browser)
    with psycopg.connect(dsn) as connection:
        (sealed,) = connection.execute("SELECT id_token FROM recollect.logins").fetchone()
    assert len(sealed) > 300 and b"ann" not in bytes(sealed) and b"eyJ" not in bytes(sealed)


def test_a_client_without_a_secret_and_one_that_sends_it_in_the_form(rag, visit, liar):
    public = visit(liar.url, oidc={"client_secret": None})
    assert liar.log_in(public).status_code == 303
    sent = [visit for visit in liar.site.visits if visit.path == "/token"]
    assert "Authorization" not in sent[-1].headers and b"client_id=recollect" in sent[-1].body
    liar.more = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    assert liar.log_in(visit(liar.url)).status_code == 303
    sent = [visit for visit in liar.site.visits if visit.path == "/token"]
    assert urlencode({"client_secret": CLIENT_SECRET}).encode() in sent[-1].body


def test_without_an_issuer_there_is_no_such_way(client):
    for path in ("/login/oidc", "/login/callback?state=x&code=y"):
        assert client.get(path, follow_redirects=False).status_code == 404
    assert "Log in with" not in client.get("/login").text


def test_many_answers_that_are_not_taken_are_slowed_down(rag, visit, liar):
    browser = visit(liar.url, limits={"failed_credentials": 2})
    liar.token = lambda _: "nonsense"
    assert [liar.log_in(browser).status_code for _ in range(4)] == [401, 401, 429, 429]
    assert liar.site.paths.count("/token") == 3
