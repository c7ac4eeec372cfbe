"""Pages are fetched whole, within limits, and what goes wrong is told from what may go right later."""

from __future__ import annotations

import gzip
import ssl
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
import trustme

from recollect.errors import AddressRefusedError, FetchError, UsageError
from recollect.fetching.client import Fetcher, PageRequest
from recollect.fetching.guard import Guard
from web_site import Page, Redirected, Visit, WebSite, gzip_bomb, open_guard, resolving, web_site


@pytest.fixture(scope="module")
def shared() -> Iterator[WebSite]:
    with web_site() as running:
        yield running


@pytest.fixture
def site(shared: WebSite) -> WebSite:
    shared.routes.clear()
    shared.raw.clear()
    shared.visits.clear()
    return shared


@pytest.fixture
def fetcher() -> Iterator[Fetcher]:
    with Fetcher(open_guard(), timeout_seconds=10, max_bytes=1 << 20) as made:
        yield made


def failure(fetcher: Fetcher, request: PageRequest | str) -> FetchError:
    with pytest.raises(FetchError) as failed:
        fetcher.fetch(request)
    return failed.value


class TestAnswers:
    def test_a_page_with_what_is_needed_to_ask_again(self, fetcher: Fetcher, site: WebSite) -> None:
        site.routes["/a"] = Page("text", headers={"ETag": '"1"', "Last-Modified": "Sun, 22 Nov 2026 10:00:00 GMT"})

        page = fetcher.fetch(site.url("/a"))

        assert (page.status, page.body, page.content_type) == (200, b"text", "text/html; charset=utf-8")
        assert (page.etag, page.last_modified) == ('"1"', "Sun, 22 Nov 2026 10:00:00 GMT")

    def test_an_unchanged_page_is_not_sent_again(self, fetcher: Fetcher, site: WebSite) -> None:
        def page(visit: Visit) -> Page:
            return Page(status=304) if visit.headers.get("If-None-Match") == '"1"' else Page("text")

        site.routes["/a"] = page

        assert fetcher.fetch(PageRequest(url=site.url("/a"), etag='"1"')).unchanged
        assert not fetcher.fetch(PageRequest(url=site.url("/a"), etag='"2"')).unchanged

    def test_an_unasked_304_is_no_page(self, fetcher: Fetcher, site: WebSite) -> None:
        site.routes["/a"] = Page(status=304)
        assert failure(fetcher, site.url("/a")).status == 304

    @pytest.mark.parametrize("status", [200, 201, 202, 203, 226, 299])
    def test_what_is_well_is_read(self, fetcher: Fetcher, site: WebSite, status: int) -> None:
        site.routes["/a"] = Page("text", status=status)
        assert fetcher.fetch(site.url("/a")).body == b"text"

    @pytest.mark.parametrize(
        ("status", "retryable"),
        [(206, False), (300, False), (302, False), (400, False), (401, False), (403, False), (404, False), (410, False),
         (408, True), (425, True), (429, True), (451, False), (500, True), (501, False), (502, True), (503, True),
         (504, True), (505, False), (418, False)],
    )  # fmt: skip
    def test_what_is_not_is_told_apart(self, fetcher: Fetcher, site: WebSite, status: int, retryable: bool) -> None:
        site.routes["/a"] = Page("no", status=status)

        error = failure(fetcher, site.url("/a"))

        assert (error.status, error.retryable) == (status, retryable)
        assert error.gone is (status in {404, 410})

    @pytest.mark.parametrize(("said", "read"), [("120", 120.0), ("0", 0.0), ("soon", None), ("99999999999", None)])
    def test_retry_after(self, fetcher: Fetcher, site: WebSite, said: str, read: float | None) -> None:
        site.routes["/a"] = Page("no", status=429, headers={"Retry-After": said})
        assert failure(fetcher, site.url("/a")).retry_after_seconds == read

    def test_retry_after_a_date_in_the_past_is_now(self, fetcher: Fetcher, site: WebSite) -> None:
        site.routes["/a"] = Page("no", status=503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})
        assert failure(fetcher, site.url("/a")).retry_after_seconds == 0.0

    @pytest.mark.parametrize(
        ("said", "name"),
        [
            ('attachment; filename="report.pdf"', "report.pdf"),
            ("attachment; filename=../../etc/passwd", "passwd"),
            ("inline; filename*=UTF-8''%E2%82%AC%20rates.txt", "€ rates.txt"),
            ('attachment; filename="C:\\\\a\\\\b.docx"', "b.docx"),
            ("attachment", None),
            ("", None),
        ],
    )
    def test_the_files_name(self, fetcher: Fetcher, site: WebSite, said: str, name: str | None) -> None:
        site.routes["/a"] = Page("text", headers={"Content-Disposition": said})
        assert fetcher.fetch(site.url("/a")).file_name == name


class TestRequests:
    @pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
    def test_methods_headers_and_bodies(self, fetcher: Fetcher, site: WebSite, method: str) -> None:
        site.routes["/api"] = Page("text")
        body = None if method == "GET" else b'{"q": 1}'

        fetcher.fetch(
            PageRequest(url=site.url("/api"), method=method, headers={"X-Key": "s3cret", "User-Agent": "me"}, body=body)  # type: ignore[arg-type]
        )

        visit = site.visits[0]
        assert (visit.method, visit.body) == (method, body or b"")
        assert (visit.headers["X-Key"], visit.headers["User-Agent"]) == ("s3cret", "me")

    @pytest.mark.parametrize(
        ("name", "value"),
        [("Host", "other"), ("Content-Length", "1"), ("Transfer-Encoding", "chunked"), ("Connection", "x"), ("", "x"),
         ("X-A b", "x"), ("X-A", "s3cret\r\nHost: other"), ("X-A", "s3crét"), ("X-A:", "x"), ("X-A", "s3cret\0")],
    )  # fmt: skip
    def test_a_header_that_cannot_be_sent(self, fetcher: Fetcher, site: WebSite, name: str, value: str) -> None:
        with pytest.raises(UsageError) as refused:
            fetcher.fetch(PageRequest(url=site.url(), headers={name: value}))
        assert "s3cr" not in str(refused.value)
        assert not site.visits

    def test_an_unknown_method(self, fetcher: Fetcher, site: WebSite) -> None:
        with pytest.raises(UsageError, match="GET, POST, PUT, PATCH, DELETE"):
            fetcher.fetch(PageRequest(url=site.url(), method="TRACE"))  # type: ignore[arg-type]

    def test_secrets_are_in_no_representation(self, site: WebSite, fetcher: Fetcher) -> None:
        request = PageRequest(url=site.url("/no"), headers={"Authorization": "Bearer s3cret"}, body=b"s3cret")
        assert "s3cret" not in repr(request)
        assert "s3cret" not in str(failure(fetcher, request))

    def test_no_connection_is_used_twice(self, fetcher: Fetcher, site: WebSite) -> None:
        site.routes["/a"] = Page("text")
        before = site.connections
        for _ in range(3):
            fetcher.fetch(site.url("/a"))
        assert site.connections - before == 3

    def test_cookies_are_not(self, fetcher: Fetcher, site: WebSite) -> None:
        site.routes["/a"] = Page("text", headers={"Set-Cookie": "id=1"})
        fetcher.fetch(site.url("/a"))
        fetcher.fetch(site.url("/a"))
        assert all("Cookie" not in visit.headers for visit in site.visits)


class TestRedirects:
    def test_they_are_followed(self, fetcher: Fetcher, site: WebSite) -> None:
        site.routes |= {
            "/a": Page(status=301, headers={"Location": "b?x=1"}),
            "/b": Page(status=302, headers={"Location": "/ü"}),
            "/%C3%BC": Page("text"),
        }
        page = fetcher.fetch(site.url("/a"))
        assert (page.body, page.url.path) == (b"text", "/%C3%BC")

    def test_a_loop_ends(self, fetcher: Fetcher, site: WebSite) -> None:
        site.routes["/a"] = Page(status=302, headers={"Location": "/a"})
        error = failure(fetcher, site.url("/a"))
        assert (error.reason, error.retryable) == ("redirects more than 5 times", False)
        assert len(site.visits) == 6

    @pytest.mark.parametrize(
        ("status", "method", "kept"),
        [(301, "POST", False), (302, "POST", False), (303, "PUT", False), (307, "POST", True), (308, "PUT", True),
         (302, "PUT", True)],
    )  # fmt: skip
    def test_bodies_on_the_same_site(
        self, fetcher: Fetcher, site: WebSite, status: int, method: str, kept: bool
    ) -> None:
        site.routes |= {"/a": Page(status=status, headers={"Location": "/b"}), "/b": Page("text")}

        fetcher.fetch(PageRequest(url=site.url("/a"), method=method, body=b"data", headers={"X-Key": "s3cret"}))  # type: ignore[arg-type]

        last = site.visits[-1]
        assert (last.method, last.body) == ((method, b"data") if kept else ("GET", b""))
        assert last.headers["X-Key"] == "s3cret"

    def test_secrets_do_not_leave_the_site(self, fetcher: Fetcher, site: WebSite) -> None:
        with web_site({"/b": Page("text")}) as other:
            site.routes["/a"] = Page(status=302, headers={"Location": other.url("/b")})
            headers = {"Authorization": "Bearer s3cret", "Cookie": "s3cret", "X-Key": "s3cret", "Accept-Language": "de"}
            fetcher.fetch(PageRequest(url=site.url("/a"), headers=headers, etag='"s3cret"'))
        assert "s3cret" not in str(other.visits)
        assert other.visits[0].headers["Accept-Language"] == "de"

    def test_bodies_do_not_leave_the_site(self, fetcher: Fetcher, site: WebSite) -> None:
        with web_site({"/b": Page("text")}) as other:
            site.routes["/a"] = Page(status=307, headers={"Location": other.url("/b")})
            error = failure(fetcher, PageRequest(url=site.url("/a"), method="POST", body=b"s3cret"))
        assert "another site" in error.reason
        assert not other.visits

    def test_meta_refresh_is_no_redirect(self, fetcher: Fetcher, site: WebSite) -> None:
        site.routes["/a"] = Page('<meta http-equiv="refresh" content="0; url=http://169.254.169.254/">')
        fetcher.fetch(site.url("/a"))
        assert site.paths == ["/a"]


class TestLimits:
    def test_a_declared_size_is_believed(self, fetcher: Fetcher, site: WebSite) -> None:
        site.routes["/a"] = Page(b"x", headers={"Content-Length": str(2 << 20)})
        assert "larger than the limit of 1,048,576 bytes" in failure(fetcher, site.url("/a")).reason

    def test_an_endless_page_is_ended(self, fetcher: Fetcher, site: WebSite) -> None:
        ended = threading.Event()

        def endless(handler: BaseHTTPRequestHandler) -> None:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
            try:
                while True:
                    handler.wfile.write(bytes(65_536))
                    handler.wfile.flush()
            except OSError:
                ended.set()

        site.raw["/a"] = endless
        error = failure(fetcher, site.url("/a"))
        assert ("larger" in error.reason, error.retryable) == (True, False)
        assert ended.wait(10)

    @pytest.mark.parametrize("coding", ["gzip", "deflate"])
    def test_packed_pages(self, fetcher: Fetcher, site: WebSite, coding: str) -> None:
        text = b"text " * 1000
        packed = gzip.compress(text) if coding == "gzip" else zlib.compress(text)
        site.routes["/a"] = Page(packed, headers={"Content-Encoding": coding})
        assert fetcher.fetch(site.url("/a")).body == text

    def test_packed_in_several_members_or_without_a_wrapper(self, fetcher: Fetcher, site: WebSite) -> None:
        site.routes["/a"] = Page(gzip.compress(b"one ") + gzip.compress(b"two"), headers={"Content-Encoding": "x-gzip"})
        assert fetcher.fetch(site.url("/a")).body == b"one two"
        raw = zlib.compressobj(wbits=-15)
        site.routes["/b"] = Page(raw.compress(b"text") + raw.flush(), headers={"Content-Encoding": "deflate"})
        assert fetcher.fetch(site.url("/b")).body == b"text"

    @pytest.mark.parametrize("layers", [1, 2])
    def test_a_bomb_is_not_unpacked(self, fetcher: Fetcher, site: WebSite, layers: int) -> None:
        import tracemalloc

        bomb = gzip_bomb(16 << 20)
        if layers == 2:
            bomb = gzip.compress(bomb)
        site.routes["/a"] = Page(bomb, headers={"Content-Encoding": ", ".join(["gzip"] * layers)})
        tracemalloc.start()
        error = failure(fetcher, site.url("/a"))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert not error.retryable
        assert peak < 6 << 20

    @pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip", "br, gzip", "x"])
    def test_other_packings_are_not_read(self, fetcher: Fetcher, site: WebSite, coding: str) -> None:
        site.routes["/a"] = Page(b"packed", headers={"Content-Encoding": coding})
        error = failure(fetcher, site.url("/a"))
        assert ("not asked for" in error.reason, error.retryable) == (True, False)
        assert site.visits[0].headers["Accept-Encoding"] == "gzip, deflate"

    @pytest.mark.parametrize("body", [b"no gzip at all", gzip.compress(b"text" * 100, mtime=0)[:-9]])
    def test_a_damaged_packing(self, fetcher: Fetcher, site: WebSite, body: bytes) -> None:
        site.routes["/a"] = Page(body, headers={"Content-Encoding": "gzip"})
        assert failure(fetcher, site.url("/a")).retryable

    def test_fewer_bytes_than_declared(self, fetcher: Fetcher, site: WebSite) -> None:
        def short(handler: BaseHTTPRequestHandler) -> None:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf a page")

        site.raw["/a"] = short
        error = failure(fetcher, site.url("/a"))
        assert ("cut off" in error.reason, error.retryable) == (True, True)

    def test_more_bytes_than_declared_belong_to_nothing(self, fetcher: Fetcher, site: WebSite) -> None:
        def long(handler: BaseHTTPRequestHandler) -> None:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntextHTTP/1.1 200 OK\r\n\r\nsmuggled")

        site.raw["/a"] = long
        site.routes["/b"] = Page("other")
        assert fetcher.fetch(site.url("/a")).body == b"text"
        assert fetcher.fetch(site.url("/b")).body == b"other"

    def test_a_cut_off_chunked_page(self, fetcher: Fetcher, site: WebSite) -> None:
        def cut(handler: BaseHTTPRequestHandler) -> None:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntext\r\nff\r\nhal")

        site.raw["/a"] = cut
        assert failure(fetcher, site.url("/a")).retryable

    def test_headers_without_end(self, fetcher: Fetcher, site: WebSite) -> None:
        def endless(handler: BaseHTTPRequestHandler) -> None:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                handler.wfile.write(b"X-Filler: " + b"x" * 1000 + b"\r\n")

        site.raw["/a"] = endless
        error = failure(fetcher, site.url("/a"))
        assert ("headers" in error.reason, error.retryable) == (True, False)

    @pytest.mark.parametrize(
        "answer",
        [b"\x00\x01\x02\x03\r\n\r\n", b"HTTP/1.1 twohundred OK\r\n\r\n",
         b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\ntext",
         b"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\ntext"],
    )  # fmt: skip
    def test_another_protocol(self, fetcher: Fetcher, site: WebSite, answer: bytes) -> None:
        site.raw["/a"] = lambda handler: handler.wfile.write(answer)
        assert "HTTP" in failure(fetcher, site.url("/a")).reason

    def test_no_answer_at_all(self, fetcher: Fetcher, site: WebSite) -> None:
        site.raw["/a"] = lambda _: None
        assert failure(fetcher, site.url("/a")).retryable

    @pytest.mark.parametrize("where", ["headers", "body", "before", "continue"])
    def test_a_slow_server_has_one_deadline(self, site: WebSite, where: str) -> None:
        over = threading.Event()

        def drip(handler: BaseHTTPRequestHandler) -> None:
            start = {
                "headers": b"HTTP/1.1 200 OK\r\nX-Slow: ",
                "body": b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
                "before": b"",
                "continue": b"",
            }[where]
            handler.wfile.write(start)
            piece = {"before": b"", "continue": b"HTTP/1.1 100 Continue\r\n\r\n"}.get(where, b"x")
            # Each byte comes well before any limit of a single read.
            while not over.wait(0.05):
                handler.wfile.write(piece)
                handler.wfile.flush()

        site.raw["/a"] = drip
        with Fetcher(open_guard(), timeout_seconds=0.4) as fetcher:
            error = failure(fetcher, site.url("/a"))
        over.set()
        assert ("took longer than 0.4 seconds" in error.reason, error.retryable) == (True, True)

    def test_nobody_listens(self, fetcher: Fetcher) -> None:
        with web_site() as gone:
            url = gone.url()
        assert failure(fetcher, url).retryable


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


class TestEncryption:
    @pytest.fixture
    def trusting(self, authority: trustme.CA) -> ssl.SSLContext:
        context = ssl.create_default_context()
        authority.configure_trust(context)
        return context

    @pytest.fixture
    def secure(self, authority: trustme.CA) -> Iterator[tuple[WebSite, list[str | None]]]:
        names: list[str | None] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("pages.example").configure_cert(context)
        context.sni_callback = lambda _socket, name, _context: names.append(name)  # type: ignore[assignment]
        with web_site({"/": Page("text")}, tls=context) as running:
            yield running, names

    def test_certificate_and_sni_are_the_names_and_the_connection_the_addresses(
        self, secure: tuple[WebSite, list[str | None]], trusting: ssl.SSLContext
    ) -> None:
        site, names = secure
        network = Redirected(site)
        with Fetcher(Guard(resolver=resolving()), network=network, ssl_context=trusting) as fetcher:
            assert fetcher.fetch("https://pages.example/").body == b"text"
        assert names == ["pages.example"]
        assert network.connected == [("93.184.216.34", 443)]
        assert site.visits[0].headers["Host"] == "pages.example"

    def test_a_certificate_of_another_name_is_refused(
        self, secure: tuple[WebSite, list[str | None]], trusting: ssl.SSLContext
    ) -> None:
        site, _ = secure
        with Fetcher(Guard(resolver=resolving()), network=Redirected(site), ssl_context=trusting) as fetcher:
            error = failure(fetcher, "https://other.example/")
        assert ("certificate" in error.reason, error.retryable) == (True, False)
        assert not site.visits

    def test_an_unknown_authority_is_refused(self, secure: tuple[WebSite, list[str | None]]) -> None:
        site, _ = secure
        with Fetcher(Guard(resolver=resolving()), network=Redirected(site)) as fetcher:
            assert "certificate" in failure(fetcher, "https://pages.example/").reason
        assert not site.visits

    def test_what_was_entrusted_is_not_sent_in_the_clear(
        self, secure: tuple[WebSite, list[str | None]], trusting: ssl.SSLContext
    ) -> None:
        site, _ = secure
        site.routes["/a"] = Page(status=302, headers={"Location": "http://pages.example/b"})
        network = Redirected(site)
        with Fetcher(Guard(resolver=resolving()), network=network, ssl_context=trusting) as fetcher:
            error = failure(fetcher, PageRequest(url="https://pages.example/a", headers={"X-Key": "s3cret"}))
        assert "anybody reads" in error.reason
        assert network.connected == [("93.184.216.34", 443)]


def test_a_refused_redirect_says_which_url(fetcher: Fetcher, site: WebSite) -> None:
    site.routes["/a"] = Page(status=302, headers={"Location": "http://169.254.169.254/latest"})
    error = failure(fetcher, site.url("/a"))
    assert isinstance(error, AddressRefusedError)
    assert error.url == "http://169.254.169.254/latest"
