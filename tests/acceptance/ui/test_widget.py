"""The widget on a page of another site: answers with their sources, and nothing else, for its sites alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest

from browser import picture, require_usable_by_all, visitor
from recollect import Document
from recollect.errors import NotFoundError, PermissionDeniedError, UsageError
from recollect.model import Principal


@contextmanager
def another_site() -> Iterator[ThreadingHTTPServer]:
    """A site of one page, whose text is its `page`."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/" else 204)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            if self.path == "/":
                self.wfile.write(self.server.page.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    # To browsers another site than 127.0.0.1, which is the server's name.
    server.origin = f"http://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def embedding(url: str, key: str) -> str:
    return (
        "<!doctype html><html lang=en><title>Intranet</title><h1>Intranet</h1>"
        f'<script src="{url}/widget.js" data-key="{key}" data-label="Ask HR"></script>'
    )


def own(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "Sec-Fetch-Site": "same-origin"}


def test_a_page_of_another_site_asks_and_sees_what_the_answer_rests_on(browser, served):
    with another_site() as site:
        made = served.rag.keys.create_widget("intranet", collection="default", origins=[site.origin])
        site.page = embedding(served.url, made.secret)
        with visitor(browser, site.origin) as one:
            page = one.open("/")
            page.get_by_role("button", name="Ask HR").click()
            frame = page.frame_locator("iframe")
            frame.get_by_label("Question", exact=True).fill("How many days of annual leave are there?")
            frame.get_by_role("button", name="Ask").click()
            source = frame.locator("ol summary").first
            source.wait_for()
            assert "30 days" in frame.locator(".answer > p").inner_text() and "hr/leave.md" in source.inner_text()
            source.click()
            assert "30 days" in frame.locator("blockquote").first.inner_text()
            require_usable_by_all(page)
            picture(page, "widget")
            hostile = "# <b>Bold</b>\n\nThe code ERR-7 <script>alert(1)</script> stands for a full disk."
            served.rag.ingest(Document(content=hostile, source="https://a.example/x"))
            frame.get_by_label("Question", exact=True).fill("What does the code ERR-9999 stand for?")
            frame.get_by_role("button", name="Ask").click()
            passages = frame.get_by_label("Passages that may help").locator("li")
            passages.first.wait_for()
            assert frame.locator(".answer > p").last.inner_text() == "No exact answer found. These passages may help:"
            assert passages.locator("mark").count() >= 1 and "1 · " in passages.first.inner_text()
            assert "<script>alert(1)</script>" in frame.get_by_label("Passages that may help").inner_text()
            assert passages.get_by_role("link").first.get_attribute("href") == "https://a.example/x"
            require_usable_by_all(page)
            picture(page, "widget-passages")
            frame.get_by_label("Question", exact=True).press("Escape")
            assert page.get_by_role("button", name="Ask HR").get_attribute("aria-expanded") == "false"
            # The page that embeds it reaches nothing of it.
            frames = "[...document.querySelectorAll('div')].map((one) => one.shadowRoot?.querySelector('iframe'))"
            assert page.evaluate(f"{frames}.map((one) => one.contentDocument)") == [None]


def test_no_other_site_shows_it(browser, served):
    with another_site() as site:
        made = served.rag.keys.create_widget("x", collection="default", origins=["https://intranet.example.com"])
        site.page = embedding(served.url, made.secret)
        with visitor(browser, site.origin) as one:
            page = one.open("/")
            with page.expect_event("console", lambda told: "frame-ancestors" in told.text):
                page.get_by_role("button", name="Ask HR").click()
            assert page.frame_locator("iframe").locator("#question").count() == 0
            answer = page.evaluate(
                "([url, key]) => fetch(url + '/widget/ask', {method: 'POST', body: JSON.stringify({question: 'x'}),"
                " headers: {Authorization: 'Bearer ' + key, 'Content-Type': 'application/json'}})"
                ".then(() => 'read', () => 'refused')",
                [served.url, made.secret],
            )
            assert answer == "refused"
            one.expected.add(403)
            assert [told for told in one.complaints if "frame-ancestors" not in told and "CORS" not in told] == []
            one.complaints.clear()


def test_its_key_opens_nothing_else(served):
    """Whoever opens a page that embeds it has the key."""
    rag, url = served.rag, served.url
    rag.ingest("Board salaries are confidential: 900,000.")
    rag.grants.add("role:board", documents=[one.document_id for one in rag.documents.list()][-1:], only=True)
    made = rag.keys.create_widget("intranet", collection="it", origins=["https://intranet.example.com"])
    assert (made.key.principal, made.key.scopes) == (Principal(), ("read",))
    for method, path in (
        *(("GET", path) for path in ("/v1/me", "/v1/collections", "/v1/keys", "/chat", "/administration", "/metrics")),
        *(("POST", path) for path in ("/v1/search", "/v1/ask", "/v1/chat/completions", "/mcp")),
    ):
        for header in ({"X-API-Key": made.secret}, own(made.secret)):
            reply = httpx2.request(
                method, url + path, headers=header, json={"query": "x"} if method == "POST" else None
            )
            assert reply.status_code in {401, 303}, (method, path, reply.status_code)
    with httpx2.Client(base_url=url, headers={"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}) as asked:
        assert asked.post("/login", data={"key": made.secret}).status_code == 401
    ask = {"question": "What does ERR-4012 mean?"}
    reply = httpx2.post(f"{url}/widget/ask", headers=own(made.secret), json=ask)
    assert reply.status_code == 200 and "sessions are open" in reply.text
    beyond = httpx2.post(f"{url}/widget/ask", headers=own(made.secret), json={"question": "What are board salaries?"})
    assert "900,000" not in beyond.text and "event: sources" not in reply.text + beyond.text
    for wrong in ({"question": "x", "collection": "default"}, {"question": ""}, {"question": "x" * 2001}, {}):
        assert httpx2.post(f"{url}/widget/ask", headers=own(made.secret), json=wrong).status_code == 422, wrong
    # Without a word of the browser that its own frame asks, and with an ordinary key or a stranger's.
    assert (
        httpx2.post(f"{url}/widget/ask", headers={"Authorization": f"Bearer {made.secret}"}, json=ask).status_code
        == 403
    )
    for key in (rag.keys.create("ordinary").secret, "rk_1_x", made.secret[:-1] + "xy"[made.secret[-1] == "x"]):
        assert httpx2.post(f"{url}/widget/ask", headers=own(key), json=ask).status_code == 401
    rag.keys.revoke(made.key.key_id)
    assert httpx2.post(f"{url}/widget/ask", headers=own(made.secret), json=ask).status_code == 401


def test_no_other_route_is_opened_to_other_sites(served):
    made = served.rag.keys.create_widget("x", collection="it", origins=["https://intranet.example.com"])
    frame = httpx2.get(f"{served.url}/widget/1/{made.key.key_id}")
    policy = frame.headers["content-security-policy"]
    assert "frame-ancestors https://intranet.example.com" in policy and "unsafe" not in policy
    assert made.secret not in frame.text
    script = httpx2.get(f"{served.url}/widget.js")
    assert script.headers["cross-origin-resource-policy"] == "cross-origin"
    origin = {"Origin": "https://intranet.example.com"}
    for path in ("/widget.js", f"/widget/1/{made.key.key_id}", "/v1/me", "/chat", "/login"):
        assert not [name for name in httpx2.get(served.url + path).headers if name.startswith("access-control")], path
        assert httpx2.get(served.url + path, headers=origin).status_code == 403, path
        asked = {**origin, "Access-Control-Request-Method": "POST"}
        assert httpx2.request("OPTIONS", served.url + path, headers=asked).status_code == 403, path
    for path in ("/widget/1/00000000000000", "/widget/2/" + made.key.key_id, "/widget/0/x", "/widget/1/../x"):
        assert httpx2.get(served.url + path).status_code in {404, 422}, path
    ordinary = served.rag.keys.create("ordinary").key.key_id
    assert httpx2.get(f"{served.url}/widget/1/{ordinary}").status_code == 404


@pytest.mark.parametrize(
    "origin",
    [
        *("*", "https://*", "https://*.example.com", "http://intranet.example.com", "intranet.example.com", ""),
        *("https://a.example/path", "https://a.example;script-src *", "https://a.example https://b", "null"),
        *("javascript:alert(1)", "https://user@a.example", "https://a.example\r\nX: y", "file:///x"),
    ],
)
def test_a_site_is_a_scheme_and_a_host(pipeline, origin):
    pipeline.collections.ensure("default")
    with pytest.raises(UsageError):
        pipeline.keys.create_widget("x", collection="default", origins=[origin])


def test_whose_widget_it_is(pipeline):
    with pytest.raises(NotFoundError):
        pipeline.keys.create_widget("x", collection="none", origins=["https://a.example"])
    with pytest.raises(PermissionDeniedError):
        view = pipeline.view(principal=Principal(user_id="ann"))
        view.keys.create_widget("x", collection="default", origins=["https://a.example"])


def test_questions_are_limited(dsn, tmp_path):
    from served import serving

    limits = {"limits": {"answer": 2}}
    with serving(dsn, tmp_path, worker=False, pages=True, server=limits) as one:
        one.rag.ingest("The canteen opens at noon.")
        key = one.rag.keys.create_widget("x", collection="default", origins=["https://a.example"]).secret
        asked = [
            httpx2.post(f"{one.url}/widget/ask", headers=own(key), json={"question": "When?"}).status_code
            for _ in range(4)
        ]
        assert asked.count(429) >= 1 and asked[0] == 200
