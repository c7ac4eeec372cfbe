"""The library: files are dropped and followed, lists are filtered by their addresses, texts are cut for a look."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from browser import picture, require_usable_by_all, visitor
from recollect import Document
from served import serving
from web_site import Page as SitePage
from web_site import web_site

TEXT = "# Travel\n\n## Trains\n\nWhoever travels by train books second class."


@pytest.fixture
def working(dsn, tmp_path):
    """A server whose worker stores what is sent."""
    with serving(dsn, tmp_path, pages=True, sources={"allow_private_addresses": True}) as one:
        yield one


def drop(page, files: dict[str, str]) -> None:
    """Files, some in folders, dropped upon the zone as a browser gives them."""
    page.wait_for_load_state()
    page.evaluate(
        """(files) => {
          const zone = document.querySelector(".dropzone");
          const tree = {};
          for (const [path, text] of Object.entries(files)) {
            const parts = path.split("/");
            let at = tree;
            for (const part of parts.slice(0, -1)) at = at[part] ??= {};
            at[parts.at(-1)] = new File([text], parts.at(-1));
          }
          const entry = (name, what, above) => what instanceof File
            ? {isFile: true, fullPath: `${above}/${name}`, file: (done) => done(what)}
            : {isFile: false, fullPath: `${above}/${name}`, createReader: () => {
                let some = Object.entries(what).map(([inner, it]) => entry(inner, it, `${above}/${name}`));
                return {readEntries: (done) => { done(some); some = []; }};
              }};
          const items = Object.entries(tree).map(([name, what]) => ({webkitGetAsEntry: () => entry(name, what, "")}));
          const event = new DragEvent("drop", {bubbles: true, cancelable: true});
          Object.defineProperty(event, "dataTransfer", {value: {items, files: []}});
          zone.dispatchEvent(event);
        }""",
        files,
    )


def test_files_are_dropped_followed_and_tried_again(browser, working):
    with visitor(browser, working.url) as one:
        page = one.open("/library")
        assert page.get_by_role("heading", name="There is nothing here yet").is_visible()
        require_usable_by_all(page)
        picture(page, "library-empty")
        page.locator(".nothing").get_by_role("link", name="Add documents").click()
        drop(page, {"travel.md": TEXT, "broken.bin": "\0\1\2" * 100, "pay.txt": "Paid on the 25th."})
        rows = page.locator(".uploads .files li")
        rows.nth(2).wait_for()
        page.get_by_text("2 of 3 files stored, 1 failed").wait_for(timeout=30_000)
        failed = rows.filter(has_text="broken.bin")
        assert "broken.bin" in failed.locator(".problem").inner_text()
        picture(page, "library-uploaded")
        require_usable_by_all(page)
        with page.expect_response(lambda reply: reply.url.endswith("/retry")) as retried:
            failed.get_by_role("button", name="Try again").click()
        assert retried.value.status == 200
        page.locator(".uploads li[data-state=failed]").wait_for(timeout=30_000)
        drop(page, {"handbook/one.md": "# One\n\nFirst.", "handbook/deep/two.md": "# Two\n\nSecond."})
        page.get_by_text("4 of 5 files stored, 1 failed").wait_for(timeout=30_000)
        stored = {one.source for one in working.rag.documents.list(status="embedded")}
        assert stored == {"travel.md", "pay.txt", "handbook/one.md", "handbook/deep/two.md"}
        # The same failure in the list of documents, with its reason and a button.
        page.goto(f"{working.url}/library/documents?status=error")
        assert page.locator("td .problem").inner_text()
        page.get_by_role("row").filter(has_text="broken.bin").get_by_role("button", name="Try again").click()
        page.get_by_text("1 document is tried again.").wait_for()


def test_a_page_of_the_web_is_a_job_and_then_a_document(browser, working):
    body = "<html><title>Leave</title><body><main><h1>Leave</h1><p>Thirty days of annual leave a year.</p></main>"
    with web_site({"/leave": SitePage(body)}) as site, visitor(browser, working.url) as one:
        page = one.open("/library/add")
        page.get_by_label("Address").fill(site.url("/leave"))
        page.locator("form[action$='/library/urls'] button").click()
        page.get_by_role("link", name="Open the document").wait_for(timeout=30_000)
        require_usable_by_all(page)
        picture(page, "library-job")
        assert page.url.startswith(f"{working.url}/library/jobs/")
        (stored,) = working.rag.documents.list()
        assert (stored.source, stored.source_type) == (site.url("/leave"), "web")
        page.get_by_role("link", name="Documents of this source").click()
        page.get_by_role("link", name="Leave").wait_for()


def test_filters_are_the_address_and_going_back_undoes_them(browser, served):
    served.rag.ingest([Document(content=f"Note {n}.", source=f"notes/{n:02}.md", tags=("note",)) for n in range(60)])
    with visitor(browser, served.url) as one:
        page = one.open("/library/documents")
        results = page.locator("#results")
        page.get_by_text("63 documents").wait_for()
        page.get_by_label("Words in the title or path").press_sequentially("LEAVE")
        results.get_by_text("1 document", exact=True).wait_for()
        assert page.url == f"{served.url}/library/documents?q=LEAVE"
        assert results.get_by_role("link", name="Leave", exact=True).is_visible()
        page.go_back()
        results.get_by_text("63 documents").wait_for()
        # By the keyboard: the filters behind the others, which say what there is to choose.
        page.locator("summary", has_text="More filters").press("Enter")
        page.locator("datalist#tags option[value=note]").wait_for(state="attached")
        page.get_by_label("Tags, all of them").fill("note")
        page.keyboard.press("Enter")
        results.get_by_text("60 documents").wait_for()
        assert page.url == f"{served.url}/library/documents?tag=note"
        results.get_by_role("link", name="Next").click()
        expect(page.locator("tbody tr")).to_have_count(10)
        page.wait_for_url("**cursor=*")
        page.get_by_text("60 documents").wait_for()
        page.go_back()
        page.get_by_role("link", name="Next").wait_for()
        # Chosen together: tagged, then deleted; what was filtered stays in the address.
        for row in (0, 1):
            page.locator("tbody input[name=document]").nth(row).check()
        page.get_by_text("2 chosen").wait_for()
        page.locator("#new-tag").fill("kept")
        page.get_by_role("button", name="Add tag").click()
        page.get_by_text("2 documents changed.").wait_for()
        page.get_by_role("link", name="Show the list as it is now").click()
        page.locator("tbody .badge", has_text="kept").nth(1).wait_for()
        page.once("dialog", lambda dialog: dialog.accept())
        page.locator("tbody input[name=document]").first.check()
        page.get_by_role("button", name="Delete").click()
        page.get_by_text("1 document deleted.").wait_for()
        assert len(served.rag.documents.list(tags=["note"])) == 59


def test_a_text_is_cut_two_ways_for_a_look_and_nothing_is_stored(browser, served):
    before = len(served.rag.documents.list())
    text = (
        "# One\n\n" + "A sentence of some length stands here. " * 40 + "\n\n## Two\n\n<script>alert(1)</script> ends."
    )
    with visitor(browser, served.url) as one:
        one.expected.add(422)
        page = one.open("/library/preview")
        page.get_by_label("Text", exact=True).fill(text)
        page.locator("#second_size").fill("40")
        page.get_by_role("button", name="Compare").click()
        sides = page.locator("#previewed section")
        sides.nth(1).wait_for()
        assert page.locator("#previewed h2").all_inner_texts() == ["recursive", "markdown"]
        cut = [sides.nth(side).locator(".chunks li").count() for side in (0, 1)]
        assert 1 < cut[0] < cut[1]
        assert (
            "One › Two" in sides.nth(1).inner_text() and "<script>alert(1)</script> ends." in sides.nth(0).inner_text()
        )
        require_usable_by_all(page)
        picture(page, "library-previewed")
        page.get_by_label("Or a file").set_input_files(
            {"name": "broken.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7 and no more"}
        )
        page.get_by_role("button", name="Compare").click()
        page.locator("#messages .note.bad").wait_for()
        assert "broken.pdf" in page.locator("#messages").inner_text()
    assert len(served.rag.documents.list()) == before
