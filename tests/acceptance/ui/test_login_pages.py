"""The login in the look of all other pages, and where it leads; what is left of a page after it."""

from __future__ import annotations

import re

import httpx2
import pytest

from browser import picture, require_usable_by_all, visitor
from served import serving


@pytest.fixture(scope="module")
def served(filled, clone, tmp_path_factory):
    """A server that everybody needs a login for."""
    required = {"authentication": "required"}
    with (
        clone(filled) as dsn,
        serving(dsn, tmp_path_factory.mktemp("served"), worker=False, pages=True, server=required) as one,
    ):
        yield one


def log_in(page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Log in").click()


def test_the_login_can_be_used_by_everybody_in_their_language(browser, served):
    with visitor(browser, served.url, locale="de-DE") as one:
        one.expected.add(401)
        page = one.open("/")
        assert page.url.startswith(f"{served.url}/login") and page.locator("h1").inner_text() == "Anmelden"
        require_usable_by_all(page, in_both_themes=True)
        picture(page, "login")
        page.locator("#key").fill("rk_1_wrong")
        page.get_by_role("button", name="Anmelden").click()
        page.locator("[role=alert]").wait_for()
        require_usable_by_all(page, in_both_themes=True)


def test_who_logs_in_is_led_to_the_page_and_who_logs_out_has_nothing_left(browser, served):
    key = served.rag.keys.create("desk", scopes=("read", "admin")).secret
    with visitor(browser, served.url) as one:
        page = one.open("/administration/keys")
        log_in(page, key)
        page.wait_for_url(f"{served.url}/administration/keys")
        assert page.get_by_role("link", name="desk").is_visible()
        page.locator("details.menu > summary").click()
        page.get_by_role("button", name="Log out").click()
        page.get_by_text("You are logged out.").wait_for()
        assert page.get_by_label("API key").is_visible()
        page.go_back()  # nothing of it was kept
        page.get_by_label("API key").wait_for()
        assert "desk" not in page.content()
        page.goto(f"{served.url}/login")
        log_in(page, key)
        page.wait_for_url("**/chat")  # where the interface begins


def test_a_login_that_ends_while_a_page_is_open_leads_back_to_that_page(browser, served):
    key = served.rag.keys.create("desk", scopes=("read", "admin", "write")).secret
    with visitor(browser, served.url) as one:
        page = one.open("/administration/grants?collection=default")
        log_in(page, key)
        page.wait_for_url(f"{served.url}/administration/grants?collection=default")
        one.expected.add(401)
        one.context.clear_cookies()
        page.get_by_label("Readers").fill("role:nobody")
        page.get_by_role("button", name="Save").click()
        page.wait_for_url(re.compile(r"/login\?return_to=/administration/grants"))
        log_in(page, key)
        page.wait_for_url(f"{served.url}/administration/grants?collection=default")
    assert served.rag.grants.of_collection().readers == ("*",)


def test_no_page_of_the_login_runs_a_script_or_is_kept(served):
    key = served.rag.keys.create("desk").secret
    own = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
    with httpx2.Client(base_url=served.url, headers=own) as asked:
        replies = [asked.get("/login"), asked.post("/login", data={"key": "rk_1_x"})]
        assert asked.post("/login", data={"key": key}).headers["location"] == "/"
        replies += [asked.get("/login"), asked.post("/logout")]
    for reply in replies:
        assert "<script" not in reply.text and reply.headers["cache-control"] == "no-store"
        assert reply.headers["referrer-policy"] == "same-origin"
        policy = reply.headers["content-security-policy"]
        assert "script-src" not in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    # No login leads elsewhere, whatever a header or an address says.
    for hostile in ("//evil.example/x", "https://evil.example/x", "/\\evil.example", "javascript:alert(1)"):
        told = {"HX-Request": "true", "HX-Current-URL": hostile}
        away = httpx2.get(f"{served.url}/administration", headers={**own, **told}).headers["hx-redirect"]
        assert away.startswith("/login?return_to=/") and "evil.example/" not in away.removeprefix(
            "/login?return_to=/x"
        ), away
        page = httpx2.get(f"{served.url}/login", params={"return_to": hostile}, headers=own)
        assert 'name="return_to" value="/"' in page.text
