"""Pages of the web into a store: fetched, cut down, stored under their domain, fetched anew, closed once gone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from recollect import Principal, RAGConfig, RAGPipeline, View
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import FetchError, SourceError, UsageError
from recollect.fetching.crawl import CrawlPlan
from recollect.pipeline.web import refresh
from web_site import Page, Visit, WebSite, gzip_bomb, web_site

Clone = Callable[..., AbstractContextManager[str]]
QUICK = CrawlPlan(depth=3, delay_seconds=0, obey_robots=False)


@pytest.fixture(scope="module")
def rag(clone: Clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RAGPipeline]:
    with clone() as dsn:
        folder = tmp_path_factory.mktemp("web")
        config = RAGConfig.load(
            storage={"data_dir": folder / "unused", "dsn": dsn},
            embedding={"provider": "hashing"},
            sources={"allow_private_addresses": True},
            jobs={"backoff_seconds": 0},
        )
        with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
            yield opened


@pytest.fixture
def view(rag: RAGPipeline, request: pytest.FixtureRequest) -> View:
    """In a collection of the test's own."""
    return rag.view(collections=re.sub(r"\W+", "-", request.node.name)[:60])


@pytest.fixture
def site() -> Iterator[WebSite]:
    with web_site({"/": page("Home page")}) as running:
        yield running


def page(title: str, words: str = "Rivers", *links: str, **headers: str) -> Page:
    led = "".join(f'<a href="{link}">on</a>' for link in links)
    text = f"<title>{title}</title><main><h1>{title}</h1><p>{words} flow through Dunmore every spring.</p></main>{led}"
    return Page(text, headers={name.replace("_", "-"): value for name, value in headers.items()})


def stored(view: View) -> list[str]:
    scope = view.scope
    found = view.store.documents.list_page(scope, view.standpoint.place(scope))
    return sorted(one.source.partition("//")[2].partition("/")[2] for one in found)


def test_pages_that_were_imported_are_updated_when_they_are_read_here(view: View, site: WebSite, tmp_path):
    site.routes["/pay"] = page("Pay")
    for path in ("/", "/pay"):
        view.ingest_url(site.url(path))
    pay = next(one for one in view.documents.list() if one.source.endswith("/pay"))
    view.grants.add("role:clerk", documents=pay.document_id, only=True)
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(view.collections.export_lines()), encoding="utf-8")
    there = view.view(collections=f"{view.standpoint.collection}-2")
    assert there.collections.import_file(lines).added == 2
    site.routes["/pay"] = page("Pay", "Salaries")
    for path in ("/", "/pay"):
        there.ingest_url(site.url(path))
    assert stored(there) == ["", "pay"]
    assert stored(there.view(principal=Principal(user_id="sam"))) == [""]


class TestOnePage:
    def test_is_found_under_its_address(self, view: View, site: WebSite) -> None:
        job = view.ingest_url(site.url("/#part"), tags=["river"])

        assert (job.status, job.kind, job.document) == ("succeeded", "ingest_url", site.url("/"))
        assert [stage.name for stage in job.stages] == ["fetch", "read", "cut", "embed", "store"]
        assert all(stage.done == stage.total for stage in job.stages)
        assert job.result is not None
        assert (job.result["status"], job.result["source"], job.result["title"]) == ("added", "127.0.0.1", "Home page")
        (found,) = view.search("rivers of Dunmore").results
        document = view.documents.get(found.document_id)
        assert (document.source, document.origin, document.tags) == (site.url("/"), "127.0.0.1", ("river",))

    def test_unchanged_is_left_alone_and_changed_is_a_version(self, view: View, site: WebSite) -> None:
        def status() -> object:
            return (view.ingest_url(site.url()).result or {})["status"]

        assert status() == "added"
        assert status() == "unchanged"
        site.routes["/"] = page("Home page", "Brooks")
        assert status() == "updated"
        assert len(view.documents.history(site.url()).versions) == 2

    def test_chunk_size_and_overlap_are_the_requests(self, view: View, site: WebSite) -> None:
        site.routes["/long"] = page("Long", " ".join(f"River number {n} is long." for n in range(200)))
        whole = view.ingest_url(site.url("/long")).result or {}
        small = view.ingest_url(site.url("/long"), chunk_size=200, chunk_overlap=20).result or {}
        assert small["chunks"] > 2 * whole["chunks"]
        assert view.ingest_url(site.url("/long"), chunk_size=20, chunk_overlap=30).status == "cancelled"

    def test_methods_headers_and_body_are_sent_and_shown_to_nobody(self, view: View, site: WebSite) -> None:
        site.routes["/api"] = Page('{"river": "Dunmore"}', content_type="application/json")
        job = view.ingest_url(site.url("/api"), method="POST", headers={"X-Key": "s3cret"}, body="q=s3cret2")

        assert job.status == "succeeded"
        assert (site.visits[0].headers["X-Key"], site.visits[0].body) == ("s3cret", b"q=s3cret2")
        assert "s3cret" not in repr(view.jobs.get(job.job_id)) + repr(view.jobs.list())
        failing = view.ingest_url(site.url("/no"), headers={"X-Key": "s3cret"})
        assert "s3cret" not in repr(failing)
        with view.store.database.autocommit() as connection:
            kept = connection.execute("SELECT to_jsonb(j)::text FROM jobs j WHERE j.status = 'succeeded'").fetchall()
        assert "s3cret" not in str(kept)

    @pytest.mark.parametrize(
        ("answer", "reason", "attempts"),
        [
            (Page("no", 404), "does not exist (HTTP 404)", 1),
            (Page(b"\x89PNG\r\n\x1a\n", content_type="image/png"), "is image/png", 1),
            (Page("", 200), "is empty", 1),
            (Page(gzip_bomb(64 << 20), headers={"Content-Encoding": "gzip"}), "larger than the limit", 1),
            (Page(status=302, headers={"Location": "/x"}), "redirects more than", 1),
            (Page(status=302, headers={"Location": "http://169.254.169.254/"}), "metadata service", 1),
            (Page("no", 503), "HTTP 503", 3),
        ],
    )  # fmt: skip
    def test_what_cannot_be_stored_says_why(
        self, view: View, site: WebSite, answer: Page, reason: str, attempts: int
    ) -> None:
        site.routes["/x"] = answer
        job = view.ingest_url(site.url("/x"))
        assert reason in (job.error or "")
        assert (job.status, job.attempts) == ("cancelled" if attempts == 1 else "failed", attempts)

    def test_500_then_well(self, view: View, site: WebSite) -> None:
        answers = iter([Page("no", 500), Page("no", 502), page("Well")])
        site.routes["/x"] = lambda _: next(answers)
        job = view.ingest_url(site.url("/x"))
        assert (job.status, job.attempts) == ("succeeded", 3)

    @pytest.mark.parametrize("url", ["ftp://example.com/", "http://user:pw@example.com/", "http://127.1/", "nonsense"])
    def test_what_is_no_page_is_refused_before_there_is_a_job(self, view: View, url: str) -> None:
        with pytest.raises(FetchError):
            view.ingest_url(url)
        assert not view.jobs.list()

    def test_what_cannot_be_sent_is_too(self, view: View, site: WebSite) -> None:
        with pytest.raises(UsageError, match="Host"):
            view.ingest_url(site.url(), headers={"Host": "x"})
        with pytest.raises(UsageError, match="crawl"):
            view.ingest_url(site.url(), headers={"X": "x"}, crawl=QUICK)

    def test_without_waiting_it_is_done_by_whoever_waits(self, view: View, site: WebSite) -> None:
        job = view.ingest_url(site.url(), wait=False)
        assert (job.status, site.visits) == ("pending", [])
        assert view.jobs.wait(job.job_id).status == "succeeded"

    def test_private_addresses_are_refused_by_default(self, rag: RAGPipeline, site: WebSite) -> None:
        config = RAGConfig.load(storage=dict(rag.config.storage), embedding={"provider": "hashing"})
        with RAGPipeline(config, embedder=HashingEmbedder()) as strict:
            job = strict.view(collections="strict").ingest_url(site.url())
        assert (job.status, site.connections) == ("cancelled", 0)
        assert "allow_private_addresses in [rag.sources]" in (job.error or "")


class TestCrawl:
    def test_follows_links_within_the_site(self, view: View, site: WebSite) -> None:
        with web_site({"/": page("Elsewhere")}) as other:
            site.routes |= {
                "/": page("Home page", "Rivers", "/a", "b?x=1#part", other.url(), "mailto:a@b", "/missing"),
                "/a": page("A", "Brooks", "/", "/deep/1"),
                "/b": page("B", "Creeks"),
                "/deep/1": page("D1", "Canals", "/deep/2"),
                "/deep/2": page("D2", "Lakes"),
            }
            job = view.ingest_url(site.url(), crawl=CrawlPlan(depth=2, delay_seconds=0))
        assert job.status == "succeeded"
        assert stored(view) == ["", "a", "b?x=1", "deep/1"]
        assert job.result is not None
        (error,) = job.result["errors"]
        assert error == {"path": site.url("/missing"), "error": "does not exist (HTTP 404)"}
        assert other.visits == []

    def test_obeys_robots_but_fetches_what_somebody_named(self, view: View, site: WebSite) -> None:
        site.routes |= {
            "/robots.txt": Page("User-agent: *\nDisallow: /private\nDisallow: /$\n", content_type="text/plain"),
            "/": page("Home page", "Rivers", "/private/a", "/open"),
            "/private/a": page("Private"),
            "/open": page("Open"),
        }
        job = view.ingest_url(site.url(), crawl=CrawlPlan(depth=1, delay_seconds=0))
        assert stored(view) == ["", "open"]
        assert "/private/a" not in site.paths
        assert (job.result or {})["skip_reasons"] == {"excluded": 1}

    def test_noindex_and_nofollow_and_moved_pages(self, view: View, site: WebSite) -> None:
        site.routes |= {
            "/": page("Home page", "Rivers", "/hidden", "/old", "/new", "/away"),
            "/hidden": Page('<meta name="robots" content="noindex"><p>Hidden words<a href="/beyond">x</a>'),
            "/beyond": Page('<meta name="robots" content="nofollow"><p>Beyond words <a href="/never">x</a>'),
            "/old": Page(status=301, headers={"Location": "/new"}),
            "/new": page("New"),
            "/away": Page(status=302, headers={"Location": "http://example.com:6379/"}),
            "/never": page("Never"),
        }
        view.ingest_url(site.url(), crawl=QUICK)
        assert stored(view) == ["", "beyond", "new"]

    def test_reads_sitemaps(self, view: View, site: WebSite) -> None:
        listed = f"<urlset><url><loc>{site.url('/s1')}</loc></url><url><loc>{site.url('/s2')}</loc></url></urlset>"
        site.routes |= {
            "/sitemap.xml": Page(listed, content_type="application/xml"),
            "/s1": page("S1"),
            "/s2": page("S2", "Brooks", "/beyond"),
            "/beyond": page("Beyond"),
        }
        view.ingest_url(site.url(), crawl=CrawlPlan(sitemaps=True, delay_seconds=0))
        assert stored(view) == ["", "s1", "s2"]

    def test_that_finds_nothing_at_all_fails(self, view: View, site: WebSite) -> None:
        job = view.ingest_url(site.url("/missing"), crawl=QUICK)
        assert (job.status, "does not exist (HTTP 404)" in (job.error or "")) == ("cancelled", True)

    def test_ends_at_its_number_of_pages(self, view: View, site: WebSite) -> None:
        for number in range(30):
            site.routes[f"/{number}"] = page(f"P{number}", f"River {number}", f"/{number + 1}", f"/{number + 2}")
        view.ingest_url(site.url("/0"), crawl=CrawlPlan(depth=50, max_pages=7, delay_seconds=0, obey_robots=False))
        assert len(stored(view)) == 7
        assert len(site.visits) == 7

    def test_tries_again_what_may_succeed(self, view: View, site: WebSite) -> None:
        answers = iter([Page("no", 503, {"Retry-After": "0"}), page("Well")])
        site.routes |= {"/": page("Home page", "Rivers", "/x"), "/x": lambda _: next(answers)}
        job = view.ingest_url(site.url(), crawl=QUICK)
        assert (job.result or {})["failed"] == 0
        assert stored(view) == ["", "x"]


class TestRefresh:
    def test_costs_nothing_where_nothing_changed(self, view: View, site: WebSite) -> None:
        def conditional(visit: Visit) -> Page:
            return Page(status=304) if visit.headers.get("If-None-Match") == '"1"' else page("A", ETag='"1"')

        site.routes |= {
            "/": page("Home page", "Rivers", "/a", Last_Modified="Sun, 22 Nov 2026 10:00:00 GMT"),
            "/a": conditional,
        }
        view.ingest_url(site.url(), crawl=QUICK)
        site.visits.clear()

        report = refresh(view.standpoint, "127.0.0.1")

        assert (report.unchanged, report.added, report.updated, report.removed) == (2, 0, 0, 0)
        conditions = {
            one.path: (one.headers.get("If-None-Match"), one.headers.get("If-Modified-Since")) for one in site.visits
        }
        assert conditions == {"/": (None, "Sun, 22 Nov 2026 10:00:00 GMT"), "/a": ('"1"', None)}

    def test_closes_what_is_gone_keeps_what_fails_and_finds_what_came(self, view: View, site: WebSite) -> None:
        site.routes |= {
            "/": page("Home page", "Rivers", "/gone", "/ill", "/same"),
            "/gone": page("Gone", "Brooks"),
            "/ill": page("Ill", "Creeks"),
            "/same": page("Same", "Canals"),
        }
        view.ingest_url(site.url(), crawl=QUICK, tags=["t"])
        site.routes |= {
            "/": page("Home page", "New rivers", "/same", "/come"),
            "/gone": Page("no", 410),
            "/ill": Page("no", 403),
            "/come": page("Come", "Lakes"),
        }
        report = refresh(view.standpoint, "127.0.0.1")

        assert (report.added, report.updated, report.unchanged, report.removed, report.failed) == (1, 1, 1, 1, 1)
        assert stored(view) == ["", "come", "ill", "same"]
        assert report.errors[0].path == site.url("/ill")
        assert view.documents.get(site.url("/come")).tags == ("t",)

    def test_pages_are_cut_as_they_were(self, view: View, site: WebSite) -> None:
        site.routes["/long"] = page("Long", " ".join(f"River number {n} is long." for n in range(200)))
        view.ingest_url(site.url("/long"), chunk_size=200, chunk_overlap=20)
        view.ingest_url(site.url())
        report = refresh(view.standpoint, "127.0.0.1")
        assert (report.unchanged, report.updated) == (2, 0)

    def test_what_took_credentials_is_left_alone(self, view: View, site: WebSite) -> None:
        site.routes["/a"] = lambda visit: page("A") if "X-Key" in visit.headers else Page("no", 404)
        view.ingest_url(site.url("/a"), headers={"X-Key": "s3cret"})
        report = refresh(view.standpoint, "127.0.0.1")
        assert (report.removed, report.skip_reasons) == (0, {"needs_request": 1})
        assert stored(view) == ["a"]

    def test_what_its_site_excludes_since_is_closed_with_the_reason(self, view: View, site: WebSite) -> None:
        robots = "User-agent: *\nDisallow: {}\n"
        site.routes |= {
            "/robots.txt": Page(robots.format("/none"), content_type="text/plain"),
            "/": page("Home page", "Rivers", "/a", "/b", "/c", "/d"),
            "/a": page("A", "Brooks"),
            "/b": page("B", "Creeks"),
            "/c": page("C", "Canals"),
            "/d": page("D", "Lakes"),
        }
        plan = CrawlPlan(depth=1, delay_seconds=0)
        view.ingest_url(site.url(), crawl=plan)
        assert stored(view) == ["", "a", "b", "c", "d"]
        site.routes |= {
            "/robots.txt": Page(robots.format("/a") + "Disallow: /$\n", content_type="text/plain"),
            "/b": Page('<meta name="robots" content="noindex"><p>Creeks flow no more'),
            "/c": page("C", "Canals", X_Robots_Tag="googlebot, noindex"),
        }
        report = refresh(view.standpoint, "127.0.0.1")

        assert stored(view) == ["", "d"], "the page that somebody named is read whatever robots.txt says"
        told = {one.path.removeprefix(site.url("/")): one.error for one in report.closed}
        noindex = "its author does not want it to be found (noindex)"
        assert told == {"a": "robots.txt excludes it", "b": noindex, "c": noindex}
        assert (report.removed, report.unchanged, report.failed) == (3, 2, 0)

    def test_a_site_that_cannot_say_what_may_be_visited_closes_nothing(self, view: View, site: WebSite) -> None:
        site.routes |= {"/": page("Home page", "Rivers", "/a"), "/a": page("A", "Brooks")}
        view.ingest_url(site.url(), crawl=CrawlPlan(depth=1, delay_seconds=0))
        site.routes["/robots.txt"] = Page("no", 503)
        report = refresh(view.standpoint, "127.0.0.1")
        assert (stored(view), report.removed) == (["", "a"], 0)
        assert "cannot say now" in report.errors[0].error

    def test_what_the_server_calls_differently_every_time_keeps_its_name(self, view: View, site: WebSite) -> None:
        sessions = iter(range(1, 1000))
        site.routes |= {
            "/": lambda _: page("Home page", f"Rivers {next(sessions)}", "/a", "/old"),
            # A query of its own for every visitor, which is known to nobody else.
            "/a": lambda visit: (
                page("A", "Brooks")
                if visit.path.endswith(f"sid={site.latest}")
                else Page("gone", 404)
                if "sid=" in visit.path
                else moved(site, f"/a?sid={next(sessions)}")
            ),
            "/old": Page(status=301, headers={"Location": "/new"}),
            "/new": page("New", "Creeks"),
        }
        view.ingest_url(site.url(), crawl=QUICK)
        first = stored(view)
        assert [name.partition("=")[0] for name in first] == ["", "a?sid", "new"]
        numbers = {one.document_id for one in view.documents.list()}
        for forgotten in (False, True, True):
            site.latest = "" if forgotten else site.latest
            report = refresh(view.standpoint, "127.0.0.1")
            assert (report.added, report.removed, report.failed) == (0, 0, 0)
        assert stored(view) == first
        assert {one.document_id for one in view.documents.list()} == numbers

    def test_what_has_moved_to_another_page_is_closed_and_what_leads_away_stays(
        self, view: View, site: WebSite
    ) -> None:
        site.routes |= {
            "/": page("Home page", "Rivers", "/a", "/b", "/c"),
            "/a": page("A", "Brooks"),
            "/b": page("B", "Creeks"),
            "/c": page("C", "Canals"),
        }
        view.ingest_url(site.url(), crawl=QUICK)
        with web_site({"/login": page("Who are you?")}) as other:
            site.routes |= {
                "/a": Page(status=301, headers={"Location": "/b"}),
                "/c": Page(status=302, headers={"Location": other.url("/login")}),
            }
            report = refresh(view.standpoint, "127.0.0.1")
            again = refresh(view.standpoint, "127.0.0.1")
        assert stored(view) == ["", "b", "c"]
        assert [one.error for one in report.closed] == [f"its site has moved it to {site.url('/b')}, which is read too"]
        assert ["redirects out of its site" in one.error for one in report.errors] == [True]
        assert (again.added, again.removed) == (0, 0)

    def test_a_site_that_has_lost_most_of_it_closes_nothing_before_it_is_confirmed(
        self, view: View, site: WebSite
    ) -> None:
        numbers = [f"/{number}" for number in range(24)]
        site.routes |= {path: page(f"P{path}", f"River {path}") for path in numbers}
        site.routes["/"] = page("Home page", "Rivers", *numbers)
        view.ingest_url(site.url(), crawl=QUICK)
        assert len(stored(view)) == 25
        for path in numbers:
            del site.routes[path]
        with pytest.raises(SourceError, match="none was closed"):
            refresh(view.standpoint, "127.0.0.1")
        assert len(stored(view)) == 25
        assert refresh(view.standpoint, "127.0.0.1", confirm_removals=True).removed == 24
        assert stored(view) == [""]

    def test_anew_follows_the_links_of_pages_that_have_not_changed(self, view: View, site: WebSite) -> None:
        home = page("Home page", "Rivers", "/a", ETag='"1"')
        site.routes |= {
            "/": lambda visit: Page(status=304) if visit.headers.get("If-None-Match") else home,
            "/a": Page("later", 503),
        }
        view.ingest_url(site.url(), crawl=CrawlPlan(depth=1, delay_seconds=0, obey_robots=False, max_pages=1))
        site.routes["/a"] = page("A", "Brooks")
        assert refresh(view.standpoint, "127.0.0.1").added == 0
        assert refresh(view.standpoint, "127.0.0.1", anew=True).added == 1


def moved(site: WebSite, path: str) -> Page:
    site.latest = path.rpartition("=")[2]
    return Page(status=302, headers={"Location": path})
