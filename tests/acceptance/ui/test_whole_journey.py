"""From a file to a marked quote on its page, as a person goes; what a tenant stores does not exist for another."""

from __future__ import annotations

import pytest

from browser import picture, visitor
from served import serving
from unit.documents.made_files import pdf

LINES = [
    (20, "Travel rules"),
    "Whoever travels by train books the second class.",
    "Flights longer than eight hours may be in the business class.",
]
QUESTION = "Who may fly in the business class?"


@pytest.fixture
def office(dsn, tmp_path):
    """A server that everybody needs a key for, with a worker; two tenants."""
    settings = {"server": {"authentication": "required"}}
    with serving(dsn, tmp_path, pages=True, **settings) as one:
        yield one


def log_in(page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    with page.expect_navigation():
        page.get_by_role("button", name="Log in").click()
    page.locator("header.bar").wait_for()


def test_a_pdf_is_dropped_asked_about_and_its_page_shown_with_the_quote_marked(browser, office, tmp_path):
    office.rag.tenants.create("elsewhere")
    scopes = ("read", "write")
    here = office.rag.keys.create("ada", scopes=scopes).secret
    there = office.rag.view(tenant="elsewhere").keys.create("zoe", scopes=scopes).secret
    file = tmp_path / "travel.pdf"
    file.write_bytes(pdf([["Preface"], LINES]))
    note = tmp_path / "note.txt"
    note.write_text("The canteen opens at noon.", encoding="utf-8")
    with visitor(browser, office.url) as ada:
        page = ada.open("/library/add")
        # Whoever is not logged in comes back to the page that they wanted.
        log_in(page, here)
        assert page.url.endswith("/library/add")
        page.get_by_label("Choose files").set_input_files(file)
        page.get_by_text("1 of 1 files stored, 0 failed").wait_for(timeout=60_000)
        # Whoever is quick has chosen before the script is there that takes it.
        late = []
        page.route("**/uploads.js*", lambda route: late.append(route))
        with page.expect_request("**/uploads.js*"):
            page.goto(f"{office.url}/library/add", wait_until="commit")
        page.get_by_label("Choose files").set_input_files(note)
        late[0].continue_()
        page.get_by_text("1 of 1 files stored, 0 failed").wait_for(timeout=60_000)
        page.get_by_role("navigation", name="Areas").get_by_role("link", name="Chat").click()
        # Until its script is there Enter is a new line, as in any field of several lines.
        page.wait_for_url("**/chat")
        page.wait_for_load_state("load")
        page.get_by_label("Your question").fill(QUESTION)
        page.keyboard.press("Enter")
        page.get_by_label("Source 1: travel.pdf").click()
        mark = page.locator("#source .pdf-page[data-page='2'] .pdf-text mark")
        mark.first.wait_for()
        assert "business class" in " ".join(mark.all_inner_texts())
        picture(page, "journey-footnote")
        document = page.locator("#source a[href*='/documents/']").first.get_attribute("href")
    with visitor(browser, office.url) as zoe:
        zoe.expected.add(404)
        page = zoe.open("/library")
        log_in(page, there)
        assert "travel.pdf" not in page.content()
        assert zoe.context.request.get(office.url + document).status == 404
        page.goto(f"{office.url}/chat")
        page.get_by_label("Your question").fill(QUESTION)
        page.keyboard.press("Enter")
        page.locator(".exchange:not([data-pending]):not([hidden]) .answer").wait_for()
        assert "travel.pdf" not in page.content() and "Flights longer" not in page.content()
