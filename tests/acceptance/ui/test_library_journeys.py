"""Whole tasks of the library: a collection's life, a folder that is read again, and very many files at once."""

from __future__ import annotations

import httpx2
import pytest

from browser import picture, require_usable_by_all, visitor
from dropping import drop
from served import serving

TEXT = "# Travel\n\n## Trains\n\nWhoever travels by train books second class."


@pytest.fixture
def working(dsn, tmp_path):
    """A server whose worker stores what is sent."""
    with serving(dsn, tmp_path, pages=True) as one:
        yield one


def test_a_collection_is_made_described_filled_exported_and_deleted(browser, served):
    with visitor(browser, served.url) as one:
        page = one.open("/library")
        page.get_by_role("link", name="New collection").click()
        hostile = 'a/b "<b>x</b> &?#'
        page.get_by_label("Name").fill(hostile)
        page.get_by_label("How documents are cut").select_option("markdown")
        with page.expect_navigation():
            page.get_by_role("button", name="Create").click()
        assert page.get_by_role("heading", level=1).inner_text() == hostile
        page.locator("#description").fill("What is said of it")
        with page.expect_navigation():
            page.locator("form[action*='/describe'] button").click()
        assert page.locator("#description").input_value() == "What is said of it"
        drop(page, {"one.md": TEXT})
        page.locator(".uploads li[data-state=reading]").wait_for()
        assert [job.collection for job in served.rag.jobs.list()] == [hostile]
        # A document of it goes through the export, as the browser saves it.
        served.rag.view(collections=hostile).ingest(TEXT)
        page.reload()
        with page.expect_download() as saved:
            page.get_by_role("link", name="Export").click()
        assert saved.value.suggested_filename.endswith(".jsonl")
        assert "second class" in saved.value.path().read_text()
        page.get_by_text("Delete this collection").click()
        page.get_by_label("Type the collection's name").fill(hostile)
        page.get_by_role("button", name="Delete for good").click()
        page.get_by_role("heading", name="Library").wait_for()
        assert hostile not in {place.name for place in served.rag.collections.list()}
    refused = httpx2.post(f"{served.url}/library/collection/delete?name=default", data={"confirmed": "defualt"})
    assert refused.status_code == 400 and served.rag.collections.get("default")


def test_hundreds_of_files_are_dropped_at_once_and_wait_where_a_server_takes_no_more(
    browser, dsn, tmp_path, monkeypatch
):
    monkeypatch.setattr("recollect.server.limits.WINDOW_SECONDS", 4)
    many = {f"notes/{number // 110}/{number:03}.md": f"# Note {number}" for number in range(150)}
    few = {f"few/{number}.md": f"# Few {number}" for number in range(5)}
    with serving(dsn, tmp_path, worker=False, pages=True, server={"limits": {"ingest": 4}}) as served:
        served.rag.collections.ensure()
        # Whoever uses the machine is not limited.
        with visitor(browser, served.url) as one:
            page = one.open("/library/add")
            drop(page, many)
            page.locator(".uploads li[data-state=reading]").nth(149).wait_for()
            assert page.locator(".uploads .summary").inner_text() == "0 of 150 files stored, 0 failed"
            picture(page, "library-many")
        key = served.rag.keys.create("somebody", scopes=("read", "write")).secret
        with visitor(browser, served.url, extra_http_headers={"X-API-Key": key}) as one:
            one.expected.add(429)
            page = one.open("/library/add")
            drop(page, few)
            note = page.locator(".uploads .paused")
            note.wait_for()
            assert "goes on by itself" in note.inner_text()
            picture(page, "library-paused")
            page.locator(".uploads li[data-state=reading]").nth(4).wait_for()
            assert not note.is_visible() and page.locator(".uploads li[data-state=failed]").count() == 0
            require_usable_by_all(page)
        assert {job.document for job in served.rag.jobs.list(limit=1_000)} == {*many, *few}


def test_a_folder_is_a_source_that_is_read_again_and_removed(browser, working, tmp_path):
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "one.md").write_text(TEXT)
    working.rag.collections.ensure()
    with visitor(browser, working.url) as one:
        page = one.open("/library/sources")
        page.get_by_label("Where it is").fill(str(folder))
        page.get_by_label("Name").fill("handbook")
        page.get_by_role("button", name="Add and read").click()
        page.get_by_role("link", name="Documents of this source").wait_for(timeout=30_000)
        (folder / "two.md").write_text("# Two\n\nThe second.")
        page.goto(f"{working.url}/library/sources")
        page.get_by_role("button", name="Read again").click()
        page.get_by_role("link", name="Documents of this source").click(timeout=30_000)
        page.get_by_text("2 documents").wait_for()
        page.goto(f"{working.url}/library/sources")
        page.locator("summary", has_text="Remove").click()
        page.get_by_role("button", name="Remove the source").click()
        page.get_by_text("Nothing is read from elsewhere yet").wait_for()
    assert not working.rag.documents.list()
