"""What all pages share: the bar at the top, themes, languages, errors, and links from elsewhere."""

from __future__ import annotations

import re

import httpx2
import pytest

from browser import picture, require_usable_by_all, visitor


@pytest.fixture
def served(served_for_all):
    return served_for_all


def test_the_first_page_can_be_used_by_everybody(ada):
    page = ada.open("/")
    for theme in ("light", "dark"):
        page.locator("header.bar details.menu > summary").click()
        with page.expect_navigation():
            page.get_by_label("Theme").select_option(theme)
        assert page.locator("html").get_attribute("data-theme") == theme
        require_usable_by_all(page)
        picture(page, f"first-{theme}")


def test_the_language_is_the_browsers_until_another_is_chosen(browser, served):
    with visitor(browser, served.url, locale="de-DE") as one:
        page = one.open("/")
        assert page.locator("html").get_attribute("lang") == "de"
        page.locator("header.bar details.menu > summary").click()
        with page.expect_navigation():
            page.get_by_label("Sprache").select_option("en")
        assert page.locator("html").get_attribute("lang") == "en"


def test_a_page_that_does_not_exist_says_so_and_leads_back(ada):
    ada.expected.add(404)
    page = ada.open("/library/nowhere")
    assert page.locator("[role=alert]").inner_text() == "There is no page at this address."
    page.get_by_role("link", name="To the first page").click()
    page.wait_for_url("**/chat")
    assert page.locator("header.bar").is_visible()


def test_what_a_page_of_an_error_is_called_is_said_in_the_visitors_language(served):
    told = httpx2.get(f"{served.url}/documents/99999", headers={"Accept-Language": "de"})
    assert told.status_code == 404 and "<h1>Das gibt es nicht</h1>" in told.text


def test_a_link_of_another_site_leads_to_the_page_and_its_requests_to_nothing(served):
    come = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    first = httpx2.get(f"{served.url}/chat", headers=come)
    assert first.status_code == 200 and 'http-equiv="refresh"' in first.text and "header" not in first.text
    # An image, a frame or a script of another site is nobody's request.
    framed = httpx2.get(f"{served.url}/chat", headers={**come, "Sec-Fetch-Dest": "iframe"})
    assert framed.status_code == 303 and framed.headers["location"].startswith("/login")
    posted = httpx2.post(f"{served.url}/preferences", data={"theme": "dark"}, headers={**come})
    assert posted.status_code == 303 and posted.headers["location"].startswith("/login")


def test_no_page_runs_what_stands_in_it_or_is_framed(served):
    policy = httpx2.get(f"{served.url}/chat").headers["content-security-policy"]
    assert "'unsafe-inline'" not in policy and "'unsafe-eval'" not in policy and "frame-ancestors 'none'" in policy


def test_files_have_the_name_of_their_content_and_are_kept(served):
    page = httpx2.get(f"{served.url}/chat").text
    path = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
    found = httpx2.get(served.url + path)
    assert found.status_code == 200 and "immutable" in found.headers["cache-control"]
    version = path.split("/")[2]
    for wrong in (path.replace(version, "0" * 12), f"/static/{version}/../pages.py", f"/static/{version}/", "/static/"):
        assert httpx2.get(served.url + wrong).status_code == 404, wrong


def test_files_are_sent_compressed_to_those_who_take_that_and_not_twice(served):
    page = httpx2.get(f"{served.url}/chat").text
    url = served.url + page.partition('rel="stylesheet" href="')[2].partition('"')[0]
    packed = httpx2.get(url, headers={"Accept-Encoding": "gzip"})
    plain = httpx2.get(url, headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert packed.text == plain.text and int(packed.headers["content-length"]) < len(plain.content) / 2
    for reply in (packed, plain):
        assert reply.headers["vary"] == "Accept-Encoding" and reply.headers["content-type"] == "text/css; charset=utf-8"
        encoding = reply.headers.get("content-encoding", "identity")
        again = httpx2.get(url, headers={"Accept-Encoding": encoding, "If-None-Match": reply.headers["etag"]})
        assert again.status_code == 304 and again.content == b""
    assert packed.headers["etag"] != plain.headers["etag"]
    assert httpx2.head(url).content == b"" and httpx2.post(url).status_code == 405


def test_no_script_is_found_out_of_another_one(ada):
    """Browsers fetch together what the page names; what only a module names comes one step later."""
    for path in ("/chat", "/library/documents", "/dashboard", "/bench"):
        page = ada.open(path)
        fetched = page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
        named = set(re.findall(r'(?:src|href)="([^"]+\.js)"', httpx2.get(ada.url + path).text))
        scripts = {one.removeprefix(ada.url) for one in fetched if one.endswith(".js")}
        assert scripts and scripts <= named, path
        page.close()
