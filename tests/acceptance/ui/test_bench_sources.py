"""The source of a result opens beside the search bench; the pieces of a file that are drawn are one read."""

from __future__ import annotations

import httpx2
from playwright.sync_api import expect

from browser import picture, require_usable_by_all
from recollect import Document
from recollect.documents.reader import read_bytes
from unit.documents.made_files import pdf


def test_the_source_of_a_result_opens_beside_the_results_as_it_was_then(ada, served):
    page = ada.open("/bench?q=annual+leave&b_mode=dense")
    opener = opener_of(page, "30 days")
    opener.focus()
    opener.press("Enter")
    panel = page.locator("#source")
    panel.locator("mark").wait_for()
    assert "30 days of annual leave" in panel.locator("mark").inner_text()
    assert page.locator("ol.found").first.is_visible() and page.url.endswith("b_mode=dense")
    expect(opener).to_have_attribute("aria-current", "location")
    require_usable_by_all(page)
    picture(page, "bench-source")
    page.keyboard.press("Escape")
    assert not panel.is_visible() and opener.evaluate("one => one === document.activeElement")
    page.set_viewport_size({"width": 360, "height": 800})
    opener.click()
    panel.locator("mark").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    picture(page, "bench-source-360")
    # What is found as of a moment is shown as of that moment.
    (first,) = served.rag.documents.history("hr/leave.md").versions
    served.rag.ingest(Document(content="# Leave\n\nNobody has annual leave any more.", source="hr/leave.md"))
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{served.url}/bench?q=annual+leave&as_of={first.known_from.isoformat().replace('+', '%2B')}")
    opener_of(page, "30 days").click()
    panel.locator("mark").wait_for()
    assert "30 days" in panel.locator("mark").inner_text() and "Version 1 of 2" in panel.inner_text()
    with httpx2.Client(base_url=served.url) as somebody:
        never = somebody.get(f"/documents/{first_id(served)}/source?start=0&end=9&as_of=2000-01-01")
        assert never.status_code == 404


def opener_of(page, words: str):
    """What opens the source of the passage that holds the words; each section of a document is a passage."""
    passage = page.locator("ol.found").first.get_by_role("listitem").filter(has_text=words)
    return passage.get_by_role("link", name="Show where it stands")


def first_id(served) -> int:
    return next(one.document_id for one in served.rag.documents.list() if one.source == "hr/leave.md")


def test_the_ranges_of_a_file_are_one_read_and_no_searches(served, monkeypatch):
    monkeypatch.setattr("recollect.server.limits.WINDOW_SECONDS", 60_000)
    rag = served.rag
    number = rag.ingest(read_bytes(pdf([["Page one"], ["Page two"]]), name="long.pdf")).document_id
    other = rag.ingest(read_bytes(pdf([["Another"]]), name="other.pdf")).document_id
    limits = rag.config.server.limits.model_copy(update={"search": 4})
    limited = rag.config.server.model_copy(update={"limits": limits})
    rag.standpoint.assembly.config = rag.config.model_copy(update={"server": limited})
    key = rag.keys.create("reader", scopes=("read",)).secret
    from recollect.server.app import create_app
    from recollect.ui import install
    from served import listening

    app = create_app(rag)
    install(app)
    with (
        listening(app) as url,
        httpx2.Client(base_url=url, headers={"X-API-Key": key}, timeout=60) as reader,
    ):
        path = f"/documents/{number}/original"
        assert reader.get(path).status_code == 200
        for start in range(0, 40, 4):
            assert reader.get(path, headers={"Range": f"bytes={start}-{start + 3}"}).status_code == 206
        # The whole file, and another one, are other reads; what is too much is refused, ranges of it too.
        assert reader.get(path).status_code == 200
        assert reader.get(f"/documents/{other}/original", headers={"Range": "bytes=0-3"}).status_code == 206
        assert reader.get(f"/documents/{other}/original").status_code == 200
        assert reader.get(path).status_code == 429
        assert reader.get(f"{path}?version=1", headers={"Range": "bytes=0-3"}).status_code == 429
        assert reader.get(path, headers={"Range": "bytes=0-3"}).status_code == 206
        # Who reads a file stands in the log of accesses with each read, not with each piece of it.
        assert [one.action for one in rag.audit.accesses(document=number)].count("original") == 2
        stranger = rag.keys.create("nobody", scopes=("write",)).secret
        refused = reader.get(path, headers={"Range": "bytes=0-3", "X-API-Key": stranger})
        assert refused.status_code == 403
