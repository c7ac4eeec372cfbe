"""``recollect ingest URL``: pages of the web into a collection, as a person asks for them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from program import Recollect
from web_site import Page, WebSite, web_site

ALLOWED = {"RECOLLECT_SOURCES__ALLOW_PRIVATE_ADDRESSES": "true"}
TEXT = "<title>{0}</title><main><h1>{0}</h1><p>The {0} flows through Dunmore every spring.</p></main>"


@pytest.fixture
def site() -> Iterator[WebSite]:
    routes = {
        "/": Page(TEXT.format("Lagan") + '<a href="/bann">on</a><a href="/gone">on</a>'),
        "/bann": Page(TEXT.format("Bann")),
        "/api": lambda visit: Page(TEXT.format("Foyle")) if visit.body == b"q=1" else Page("no", 400),
    }
    with web_site(routes) as running:
        yield running


@pytest.fixture
def allowed(recollect: Recollect) -> Recollect:
    recollect.environment.update(ALLOWED)
    return recollect


def test_a_page_is_stored_and_found(allowed: Recollect, site: WebSite) -> None:
    told = allowed("ingest", site.url())
    assert told.out == f"added Lagan (1 chunk) {site.url()}\n"
    (found,) = json.loads(allowed("query", "Lagan in Dunmore", "--json").out)["results"]
    assert found["source"] == site.url()
    assert allowed("ingest", site.url()).out.startswith("unchanged Lagan")
    (listed,) = json.loads(allowed("documents", "list", "--json").out)["items"]
    assert listed["source"] == site.url()


def test_json_is_the_jobs(allowed: Recollect, site: WebSite) -> None:
    told = allowed("ingest", site.url(), site.url("/gone"), "--json", "--chunk-size", "300", status=1)
    jobs = json.loads(told.out)["jobs"]
    assert [(job["kind"], job["status"]) for job in jobs] == [("ingest_url", "succeeded"), ("ingest_url", "cancelled")]
    assert [stage["name"] for stage in jobs[0]["stages"]] == ["fetch", "read", "cut", "embed", "store"]
    assert jobs[0]["arguments"]["options"] == {"chunk_size": 300}
    assert jobs[1]["error"].endswith("/gone: does not exist (HTTP 404)")
    # What a list names already is not said twice.
    gone, _ = allowed("jobs", "list").out.splitlines()
    assert gone == f"2  cancelled  ingest_url  {site.url('/gone')}  does not exist (HTTP 404)"
    assert f"✗ {site.url('/gone')}: does not exist" in allowed("documents", "list", "--status", "error").err


def test_a_request_with_headers_and_a_body(allowed: Recollect, site: WebSite) -> None:
    told = allowed("ingest", site.url("/api"), "--header", "X-Key: s3cret", "--data", "q=1", "--json")
    assert (site.visits[0].method, site.visits[0].headers["X-Key"]) == ("POST", "s3cret")
    assert "s3cret" not in told.out + told.err + allowed("jobs", "list", "--json").out


def test_a_crawl(allowed: Recollect, site: WebSite) -> None:
    told = allowed("ingest", site.url(), "--crawl", "--depth", "1", "--max-pages", "5", "--delay", "0")
    assert told.out.startswith(f"{site.url()}: 2 added, 1 failed; 2 chunks")
    assert "/gone: does not exist (HTTP 404)" in told.err


def test_in_the_background(allowed: Recollect, site: WebSite) -> None:
    told = allowed("ingest", site.url(), "--background")
    assert told.out.startswith("Job 1 waits for a worker")
    assert site.visits == []


def _facts(text: str) -> set[tuple[str, str]]:
    return {(name, value.strip()) for line in text.splitlines() for name, _, value in [line.partition("  ")]}


def test_a_document_that_is_shown_says_whether_it_is_stored(allowed: Recollect, site: WebSite) -> None:
    url, gone = site.url(), site.url("/gone")
    allowed("ingest", url, gone, "--background")
    shown = allowed("documents", "show", url, "--json").json
    assert (shown["status"], shown["source_type"], shown["content"]) == ("pending", "web", None)
    allowed("worker", "--until-empty")
    shown = allowed("documents", "show", url, "--json").json
    assert (shown["status"], shown["source_type"], shown["error"]) == ("embedded", "web", None)
    assert {("status", "embedded"), ("source type", "web")} <= _facts(allowed("documents", "show", url).out)
    text = allowed("documents", "show", gone).out
    assert ("status", "error") in _facts(text) and "does not exist (HTTP 404)" in text


def test_private_addresses_are_refused_by_default(recollect: Recollect, site: WebSite) -> None:
    told = recollect("ingest", site.url(), status=1)
    assert "allow_private_addresses in [rag.sources]" in told.err
    assert site.connections == 0


def test_what_cannot_be_asked_for(allowed: Recollect) -> None:
    for arguments, said in [
        (["http://a.test/", "folder"], "paths alone, or URLs alone"),
        (["folder", "--crawl"], "--crawl is for pages of the web"),
        (["http://a.test/", "--sync"], "--sync is for files"),
        (["http://a.test/", "--depth", "3"], "add --crawl"),
        (["http://a.test/", "--crawl", "--max-pages", "0"], "max_pages"),
        (["http://a.test/", "--header", "s3cret"], "with a colon"),
        (["http://a.test/", "--header", "Host: x"], "'Host'"),
        (["http://a.test/", "--data", "@missing"], "cannot be read"),
        (["ftp://a.test/"], "only http:// and https://"),
        (["http://user:s3cret@a.test/"], "user name or password"),
    ]:  # fmt: skip
        told = allowed("ingest", *arguments, status=None)
        assert told.status not in {0, 3}
        assert said in told.err
        assert "s3cret" not in told.err
