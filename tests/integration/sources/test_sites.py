"""A site that is a source: crawled once, and fetched anew when it is refreshed."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from recollect import RAGPipeline
from recollect.errors import UsageError

PAGES = {
    "/": "<html><body><h1>Start</h1><p>The handbook begins here.</p><a href='/leave'>Leave</a></body></html>",
    "/leave": "<html><body><h1>Leave</h1><p>Annual leave is 30 days.</p></body></html>",
}


@pytest.fixture
def site():
    pages = dict(PAGES)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path)
            body = (page or "").encode()
            self.send_response(200 if page else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", pages
        server.shutdown()
        thread.join()


def test_a_site_is_crawled_and_then_refreshed(pipeline: RAGPipeline, site):
    url, pages = site
    record = pipeline.sources.add(url, settings={"depth": 1, "delay_seconds": 0}, every="1d")
    assert (record.type, record.connector, record.name) == ("web", "web", "127.0.0.1")
    assert pipeline.sources.refresh(record.name).added == 2
    pages["/leave"] = pages["/leave"].replace("30", "31")
    assert pipeline.sources.refresh(record.name).updated == 1
    del pages["/leave"]
    assert pipeline.sources.refresh(record.name).removed == 1
    assert pipeline.sources.get(record.name).state == "fresh"


@pytest.mark.parametrize("settings", [{"unknown": 1}, {"depth": "deep"}, {"depth": -1}])
def test_a_site_has_settings_of_its_own(pipeline: RAGPipeline, settings):
    with pytest.raises(UsageError):
        pipeline.sources.add("https://example.org/", settings=settings)
