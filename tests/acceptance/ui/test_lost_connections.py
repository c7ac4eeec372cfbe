"""A page notices by itself that its server is gone, says so, and goes on when it is there again."""

from __future__ import annotations

import socket
import time

import pytest

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


def until_told(page, text: str) -> None:
    """Let the page's time pass until it has said something since it was last asked."""
    deadline = time.monotonic() + 60
    while not page.evaluate("text => window.told.some((one) => one.includes(text))", text):
        assert time.monotonic() < deadline, page.evaluate("window.told")
        page.clock.run_for(1_000)
    page.evaluate("window.told = []")


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
            asked: list[str] = []
            pages[1].on("request", lambda request: asked.append(request.url))
            # While nobody does anything it is asked seldom: in five minutes not forty times.
            for _ in range(10):
                pages[1].clock.run_for(30_000)
            asked = [url for url in asked if "/static/" not in url]  # the browser's own idea of an icon
            assert 0 < len(asked) < 40 and all(url.endswith("/healthz") for url in asked)
            # Whoever comes back to it does not wait for the next time.
            with pages[1].expect_request("**/healthz"):
                pages[1].mouse.move(20, 20)
        for page in pages:
            until_told(page, LOST)
        picture(pages[0], "chat-lost")
        require_usable_by_all(pages[1])
        # What is dropped meanwhile waits, and is sent when the server is there.
        drop(pages[1], {"late.md": "# Late"})
        pages[1].locator(".uploads li[data-state=waiting]").wait_for()
        with listening(app_of(store), port):
            for page in pages:
                until_told(page, BACK)
                assert not page.get_by_text(LOST).is_visible()
            pages[1].locator(".uploads li[data-state=reading]").wait_for()
            assert [job.document for job in store.jobs.list()] == ["late.md"]
            pages[0].clock.run_for(30_000)
            pages[0].get_by_text(BACK).wait_for(state="detached")
            # The browser tells of connections that were refused, which they were.
            one.complaints[:] = [told for told in one.complaints if "net::ERR" not in told]
