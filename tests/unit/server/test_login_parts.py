"""The parts of a login that need no store: its page, its attempts, what is sealed, and where it leads."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import quote, urljoin, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.errors import AuthenticationError
from recollect.model.key import draw_key, draw_login, read_key, read_login
from recollect.server.login.browsers import seal, unseal
from recollect.server.login.issuer import LoginAttempt, cookie_name, safe_path
from recollect.server.login.routes import LoginPage, security_headers

SITE = "https://knowledge.example"


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: dict[str, str | None] = {}

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes |= dict(attrs)


def elements(page: str) -> _Elements:
    read = _Elements()
    read.feed(page)
    return read


@given(st.text(), st.booleans())
@example('"><script>alert(1)</script>', True)
@example("</style><img src=x onerror=alert(1)>", False)
@example("$title ${style} $$", True)
def test_nothing_that_a_page_shows_becomes_a_part_of_it(text, logged_in):
    def shown(what: str) -> _Elements:
        return elements(
            LoginPage(
                login_path="/login",
                issuer_path="/login/oidc",
                logout_path="/logout",
                return_to=what,
                issuer_name=what,
                takes_keys=True,
                user=what if logged_in else None,
                message=what,
                is_error=True,
                further=(f"https://e.example/{quote(what)}", what),
            ).html
        )

    hostile, plain = shown(text or "x"), shown("plain")
    assert hostile.names == plain.names and hostile.attributes.keys() == plain.attributes.keys()
    assert not any(name.startswith("on") for name in hostile.attributes) and "script" not in hostile.names


def test_the_policy_allows_the_pages_own_style_and_nothing_else():
    policy = dict(part.strip().partition(" ")[::2] for part in security_headers()["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["form-action"] == "'self'"
    assert policy["style-src"].startswith("'sha256-") and "script-src" not in policy


@given(st.text() | st.text(alphabet="/\\.:@ \t\n?#%ae"))
@example("//evil.example")
@example("/\\evil.example")
@example("/%2F/evil.example")
@example("/..//evil.example")
def test_wherever_it_leads_is_here(given_path):
    path = safe_path(given_path, otherwise="/login")
    there = urlsplit(urljoin(f"{SITE}/login", path))
    assert (there.scheme, there.netloc) == ("https", "knowledge.example")
    # As browsers read it: a backslash is a slash, and control characters are not there.
    assert not path.replace("\\", "/").replace("\t", "").replace("\n", "").startswith("//")
    assert path.isascii() and path.isprintable()


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\\")))
def test_an_attempt_is_made_again_of_its_cookie_alone(rest):
    attempt = LoginAttempt.begin(f"/{rest}")
    again = LoginAttempt.read(attempt.cookie, state=attempt.state)
    assert again == attempt and again.verifier == attempt.verifier and again.return_to == f"/{rest}"
    assert attempt.secret not in repr(attempt) and cookie_name(attempt.state) == attempt.cookie_name
    told = {attempt.state, attempt.nonce, attempt.challenge, attempt.verifier, attempt.secret}
    assert len(told) == 5 and all(43 <= len(one) <= 128 for one in told)


def test_an_answer_to_another_attempt_is_none():
    attempt, other = LoginAttempt.begin("/"), LoginAttempt.begin("/")
    for cookie, state in (
        (attempt.cookie, other.state),
        (None, attempt.state),
        ("", attempt.state),
        (".", LoginAttempt("", "").state),
        (attempt.cookie, ""),
        (attempt.cookie, "\u00e9\ud800"[:1]),
        (f"x{attempt.cookie}", attempt.state),
    ):
        assert LoginAttempt.read(cookie, state=state) is None


@given(st.text())
def test_what_is_sealed_is_opened_by_its_secret_alone(text):
    text = text.encode("utf-8", "ignore").decode()
    one, other = draw_login(1).text, draw_login(1).text
    sealed = seal(text, one)
    assert unseal(sealed, one) == text and unseal(sealed, other) is None
    assert unseal(bytes([sealed[0] ^ 1]) + sealed[1:], one) is None


def test_a_key_is_no_cookie_and_a_cookie_is_no_key():
    key, login = draw_key(3), draw_login(3)
    assert read_login(login.text) == login and read_login(login.text).tenant_id == 3
    for text in (key.text, "", "rl_", login.text[:-1], login.text + "0", login.text.replace("rl_3", "rl_4")):
        with pytest.raises(AuthenticationError):
            read_login(text)
    with pytest.raises(AuthenticationError):
        read_key(login.text)
