"""The search bench as somebody uses it who tunes searches."""

from __future__ import annotations

from urllib.parse import urlencode

import httpx2
import pytest
from playwright.sync_api import expect

from browser import picture, require_usable_by_all, visitor
from recollect import Document, Principal
from recollect.evaluation.case_files import parse_suite
from served import fill, serving


def test_a_query_under_two_configurations_shows_what_differs_and_why(ada, served):
    page = ada.open("/bench")
    page.get_by_label("Query", exact=True).fill("How many days of annual leave?")
    page.get_by_label("A document that is missed").fill("pay.txt")
    page.get_by_role("combobox", name="Mode B").select_option("lexical")
    page.get_by_role("spinbutton", name="Results B").fill("1")
    assert page.locator("tr.differs").count() == 2
    page.get_by_role("button", name="Search", exact=True).click()
    first, second = page.locator("ol.found").nth(0), page.locator("ol.found").nth(1)
    first.locator("li.result").first.wait_for()
    assert second.locator("li.result").count() == 1 < first.locator("li.result").count()
    # One number is shown of a passage, the others on demand.
    assert "relevance" in first.inner_text() and "words (BM25)" not in first.inner_text()
    first.get_by_text("Scores", exact=True).first.click()
    assert "score" in first.inner_text() and "words (BM25)" in first.inner_text()
    assert page.locator("#why-not").inner_text() == "Why not pay.txt?"
    assert "pay.txt" in page.locator("section:has(#why-not)").inner_text()
    expect(page.locator("figure[data-drawn] canvas").nth(1)).to_be_visible()
    assert "b_mode=lexical&b_top_k=1" in page.url and "a_mode" not in page.url
    require_usable_by_all(page)
    picture(page, "bench", full=True)
    # The address is all of it: whoever is sent it sees the same.
    again = ada.open(page.url.removeprefix(served.url))
    shown, shared = again.locator("ol.found .passage"), page.locator("ol.found .passage")
    assert shown.all_inner_texts() == shared.all_inner_texts()


def test_what_was_known_then_is_found_by_the_slider(browser, served):
    served.rag.ingest(Document(content="# Leave\n\nNobody has annual leave any more.", source="hr/leave.md"))
    with visitor(browser, served.url, color_scheme="dark") as ada:
        page = ada.open("/bench?q=annual+leave&b_mode=dense")
        assert "any more" in page.locator("ol.found").first.inner_text()
        slider = page.get_by_role("slider")
        slider.focus()
        with page.expect_response("**/bench?*"):
            slider.press("Home")
        expect(page.locator("ol.found").first).not_to_contain_text("any more")
        assert "30 days" in page.locator("ol.found").first.inner_text()
        assert "as_of=20" in page.url and slider.evaluate("one => one === document.activeElement")
        require_usable_by_all(page)
        picture(page, "bench-dark", full=True)


def test_what_is_expected_is_saved_run_and_taken_along(ada, served):
    page = ada.open("/bench?q=How+many+days+of+annual+leave%3F&a_mode=lexical&b_mode=lexical&b_min_score=1000")
    page.get_by_label("Expectation for result 1 of A").select_option(label="must be found")
    page.get_by_label("Name", exact=True).fill("Annual <b>leave</b>")
    page.get_by_role("button", name="Save test case").click()
    page.get_by_text("“Annual <b>leave</b>” is saved.").wait_for()
    page.get_by_role("button", name="Run under both configurations").click()
    row = page.locator("tbody tr", has_text="Annual <b>leave</b>").last
    row.get_by_text("passes").wait_for()
    assert row.get_by_text("passes").count() == 1 and row.get_by_text("fails").count() == 1
    assert "hr/leave.md" in row.inner_text()
    expect(page.locator("figure[data-drawn] canvas")).to_have_count(2)
    plotted = page.locator("figure").first.locator("tbody tr").nth(0).locator("td").all()
    assert [cell.get_attribute("data-value") for cell in plotted] == ["1.0", "0.0"]
    require_usable_by_all(page)
    picture(page, "cases", full=True)
    suite = parse_suite(httpx2.get(f"{served.url}/bench/cases.yaml").text)
    assert [(case.query, case.must_have[0].source) for case in suite.cases] == [
        ("How many days of annual leave?", ("hr/leave.md",))
    ]
    page.get_by_role("button", name="Delete Annual <b>leave</b>").click()
    page.get_by_text("No test cases yet").wait_for()


@pytest.fixture
def guarded(dsn, tmp_path):
    """A server whose callers may not read the same."""
    with serving(dsn, tmp_path, worker=False, pages=True, access={"mode": "enforce"}) as one:
        fill(one.rag)
        one.rag.ingest(
            Document(content="The annual leave of directors is a secret.", source="board.md", permissions=("user:eve",))
        )
        yield one


def _page(served, key, path, **asked) -> str:
    reply = httpx2.get(
        f"{served.url}{path}?{urlencode(asked)}", headers={"Authorization": f"Bearer {key}", "Accept": "text/html"}
    )
    assert reply.status_code == 200, reply.text
    return reply.text


def test_nobody_sees_by_the_bench_what_they_may_not_read(guarded):
    keys = guarded.rag.keys
    owner = keys.create("owner", scopes=("read", "write")).secret
    kim = keys.create("kim", scopes=("read", "write"), principal=Principal(user_id="kim")).secret
    asked = {"q": "annual leave of directors"}
    assert "board.md" in _page(guarded, owner, "/bench", **asked)
    assert "board.md" not in _page(guarded, kim, "/bench", **asked)
    assert "board.md" not in _page(guarded, owner, "/bench", **asked, user="kim")
    assert "board.md" in _page(guarded, owner, "/bench", **asked, user="eve")
    refused = _page(guarded, kim, "/bench", **asked, user="eve")
    assert "board.md" not in refused and "ask as others" in refused
    assert "secret" not in _page(guarded, kim, "/bench", **asked, missed="board.md")
    # Test cases name sources: they are their maker's, and the owner's.
    data = {"query": "/bench?q=annual+leave", "name": "mine", "expect": "have:board.md"}
    saved = httpx2.post(f"{guarded.url}/bench/cases", data=data, headers={"Authorization": f"Bearer {owner}"})
    assert saved.status_code == 303, saved.text
    assert "board.md" in _page(guarded, owner, "/bench/cases")
    assert "board.md" not in _page(guarded, kim, "/bench/cases")
    assert "No test cases yet" in _page(guarded, kim, "/bench/cases")
    reader = keys.create("reader", scopes=("read",)).secret
    refused = httpx2.post(f"{guarded.url}/bench/cases", data=data, headers={"Authorization": f"Bearer {reader}"})
    assert refused.status_code == 403


def test_what_makes_no_sense_is_said_beside_the_form(served):
    wrong: tuple[dict[str, str], ...] = (
        {"as_of": "never"},
        {"a_top_k": "many"},
        {"b_mode": "<script>"},
        {"filter": "[1]"},
        {"filter": "[" * 5_000},
        {"filter": '{"metadata.x": {"like": 1}}'},
        {"collection": "nowhere"},
        {"event_from": "2026-02", "event_to": "2026-01"},
        {"a_mmr": "7", "a_rrf_k": "0"},
        {"q": "\x00"},
        {"roles": "admin"},
    )
    for asked in wrong:
        found = httpx2.get(f"{served.url}/bench", params={"q": "leave", **asked})
        assert found.status_code == 200 and 'role="alert"' in found.text and 'id="bench"' in found.text, asked
        assert "<script>" not in found.text
