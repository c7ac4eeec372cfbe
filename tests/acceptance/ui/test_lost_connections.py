"""A page notices by itself that its server is gone, says so, and goes on when it is there again."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Page, Request

from browser import picture, require_usable_by_all, visitor
from dropping import drop
from recollect import RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.server.app import create_app
from recollect.ui import install
from served import fill, listening

LOST, BACK = "The connection is lost.", "The server is back."


@pytest.fixture
def store(dsn, tmp_path):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        fill(rag)
        yield rag


def app_of(rag):
    app = create_app(rag)
    install(app)
    return app


#: Notes every message of a page: what says that a server is back goes by itself, also while another page is looked at.
NOTING = """() => {
  window.told = []
  const noting = new MutationObserver((changes) => {
    for (const change of changes) for (const one of change.addedNodes) window.told.push(one.textContent)
  })
  noting.observe(document.body, { childList: true, subtree: true })
}"""


@dataclass
class Time:
    """The time of all pages of a visitor, which goes by as a test wants it."""

    page: Page
    #: What they have asked the server.
    asked: list[Request] = field(default_factory=list)
    _awaited: int = 0

    def __post_init__(self) -> None:
        self.page.context.on("request", lambda request: self.asked.append(request))

    def go_by(self, seconds: int) -> None:
        """Let seconds go by: few at once, since no page waits long for a reply, and each is given when it is there."""
        while seconds > 0:
            self.page.clock.run_for(1_000 * min(seconds, 5))
            seconds -= 5
            for request in self.asked[self._awaited :]:
                request.response()
                self._awaited += 1

    def until_told(self, page: Page, text: str) -> None:
        """Go by until a page has said something since it was last asked."""
        deadline = time.monotonic() + 60
        while not said(page, text):
            assert time.monotonic() < deadline, page.evaluate("window.told")
            self.go_by(1)
        page.evaluate("window.told = []")


def said(page: Page, text: str) -> bool:
    return page.evaluate("text => window.told.some((one) => one.includes(text))", text)


def test_idle_tabs_notice_that_the_server_is_gone_and_that_it_is_back(browser, store):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with visitor(browser, f"http://127.0.0.1:{port}") as one:
        with listening(app_of(store), port):
            pages = [one.context.new_page(), one.context.new_page()]
            for page, path in zip(pages, ("/chat", "/library/add"), strict=True):
                one.watch(page)
                page.clock.install()
                page.goto(one.url + path)
                page.wait_for_load_state()
                page.evaluate(NOTING)
            passing = Time(pages[1])
            # While nobody does anything it is asked seldom: in five minutes not forty times.
            passing.go_by(300)
            asked = [one.url for one in passing.asked if one.frame.page == pages[1]]
            asked = [url for url in asked if "/static/" not in url]  # the browser's own idea of an icon
            assert 0 < len(asked) < 40 and all(url.endswith("/healthz") for url in asked)
            assert not any(said(page, LOST) for page in pages)
            # Whoever comes back to it does not wait for the next time.
            with pages[1].expect_request("**/healthz"):
                pages[1].mouse.move(20, 20)
        for page in pages:
            passing.until_told(page, LOST)
        picture(pages[0], "chat-lost")
        require_usable_by_all(pages[1])
        # What is dropped meanwhile waits, and is sent when the server is there.
        drop(pages[1], {"late.md": "# Late"})
        pages[1].locator(".uploads li[data-state=waiting]").wait_for()
        with listening(app_of(store), port):
            for page in pages:
                passing.until_told(page, BACK)
                assert not page.get_by_text(LOST).is_visible()
            pages[1].locator(".uploads li[data-state=reading]").wait_for()
            assert [job.document for job in store.jobs.list()] == ["late.md"]
            passing.go_by(30)
            pages[0].get_by_text(BACK).wait_for(state="detached")
            # The browser tells of connections that were refused, which they were.
            one.complaints[:] = [told for told in one.complaints if "net::ERR" not in told]
