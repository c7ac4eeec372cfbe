"""Links, sitemaps and rules of sites, from whoever wrote them; and turns at a host."""

from __future__ import annotations

import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from recollect.errors import FetchError, UsageError
from recollect.fetching.client import Fetcher, PageRequest
from recollect.fetching.crawl import Crawl, CrawlPlan, Politeness, Visit
from recollect.fetching.guard import Guard
from recollect.fetching.sites import NOTHING, Robots, page_links, read_rules, read_sitemap
from recollect.fetching.urls import parse_url
from web_site import Page, Redirected, gzip_bomb, open_guard, resolving, web_site
from web_site import Visit as Request

HERE = parse_url("http://example.com/a/b")


def links(markup: str) -> list[str]:
    return [str(link) for link in page_links(markup.encode(), HERE).links]


class TestLinks:
    def test_are_absolute_and_each_once(self) -> None:
        markup = (
            '<a href="c">1</a><A HREF=/d#x>2</a><area href=\'?q=1&amp;r=2\'><a href="//other.test/">3</a><a href="c">'
        )
        assert links(markup) == [
            "http://example.com/a/c",
            "http://example.com/d",
            "http://example.com/a/b?q=1&r=2",
            "http://other.test/",
        ]

    def test_leave_out_what_is_no_page(self) -> None:
        assert links('<a href="mailto:x@y">a</a><a href="javascript:void(0)"><a href="#top"><a href=""><a>') == []
        assert links('<a href="http://u:p@x/"><a href="http://[::1"><a href="file:///etc/passwd">') == []

    def test_heed_base_nofollow_and_comments(self) -> None:
        assert links('<base href="/z/"><a href="c">') == ["http://example.com/z/c"]
        assert links('<a rel="nofollow ugc" href="c"><!-- <a href="d"> --><a href="e">') == ["http://example.com/a/e"]
        told = page_links(b'<meta name="ROBOTS" content="noindex, NOFOLLOW"><a href="c">', HERE)
        assert (told.links, told.indexed) == ((), False)

    @pytest.mark.parametrize(
        "page", [b"<a " * 200_000, b'<a href="' * 100_000, b"<!--" * 300_000, b"<a x=" + b" " * 500_000]
    )
    def test_contrived_pages_end(self, page: bytes) -> None:
        page_links(page, HERE)


class TestSitemaps:
    def test_pages_and_further_sitemaps(self) -> None:
        xml = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc> http://x/1 </loc><lastmod>2026-01-02</lastmod></url><url><loc>http://x/2?a=1&amp;b=2</loc></url></urlset>'
        assert read_sitemap(xml).pages == (("http://x/1", "2026-01-02"), ("http://x/2?a=1&b=2", None))
        index = b"<sitemapindex><sitemap><loc>http://x/s.xml.gz</loc></sitemap></sitemapindex>"
        assert read_sitemap(gzip.compress(index)).sitemaps == ("http://x/s.xml.gz",)

    def test_feeds_and_texts(self) -> None:
        rss = b"<rss><channel><link>http://x/</link><item><link>http://x/1</link></item></channel></rss>"
        assert read_sitemap(rss).pages == (("http://x/1", None),)
        atom = b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="http://x/1"/><updated>2026</updated></entry></feed>'
        assert read_sitemap(atom).pages == (("http://x/1", "2026"),)
        assert read_sitemap(b"http://x/1\nhttp://x/2\nno address\n").pages == (
            ("http://x/1", None),
            ("http://x/2", None),
        )

    def test_hostile_ones_do_nothing(self) -> None:
        entity = b'<!DOCTYPE u [<!ENTITY f SYSTEM "file:///etc/passwd"><!ENTITY a "aa"><!ENTITY b "&a;&a;&a;&a;">]>'
        assert "root" not in str(read_sitemap(entity + b"<urlset><url><loc>&f;&b;</loc></url></urlset>"))
        assert read_sitemap(b"<urlset><url><loc>http://x/1</loc></url><url><lo").pages == (("http://x/1", None),)
        assert read_sitemap(b"<" * 100_000).pages == ()
        assert read_sitemap(b"").pages == ()
        with pytest.raises(FetchError, match="unpacks"):
            read_sitemap(gzip_bomb(51 << 20))


class TestRobots:
    def test_rules_for_this_program_and_for_all(self) -> None:
        rules = read_rules(
            b"User-agent: *\nDisallow: /\n\nUser-agent: recollect\nDisallow: /no\nCrawl-delay: 3\nSitemap: http://x/s.xml",
            "recollect",
        )
        assert rules.allows(parse_url("http://x/yes"))
        assert not rules.allows(parse_url("http://x/no/a"))
        assert (rules.delay_seconds, rules.sitemaps) == (3.0, ("http://x/s.xml",))
        assert not read_rules(b"User-agent: *\nDisallow: /", "recollect/1.0").allows(parse_url("http://x/"))
        assert read_rules(b"\xff\x00garbage", "recollect").allows(parse_url("http://x/"))
        assert read_rules(b"User-agent: *\nCrawl-delay: 86400", "recollect").delay_seconds == 60

    @pytest.mark.parametrize(("status", "allowed"), [(404, True), (403, True), (503, False), (500, False)])
    def test_without_rules_all_is_allowed_and_without_an_answer_nothing(self, status: int, allowed: bool) -> None:
        with web_site({"/robots.txt": Page("", status)}) as site, Fetcher(open_guard()) as fetcher:
            rules = Robots(fetcher).rules(parse_url(site.url("/a")))
            assert rules.allows(parse_url(site.url("/a"))) is allowed
            assert (rules is NOTHING) is not allowed

    def test_are_asked_for_once_a_day(self) -> None:
        now = [0.0]
        with web_site({"/robots.txt": Page("")}) as site, Fetcher(open_guard()) as fetcher:
            robots = Robots(fetcher, clock=lambda: now[0])
            for moment in (0.0, 3600.0, 90_000.0):
                now[0] = moment
                robots.rules(parse_url(site.url("/a")))
            assert site.paths == ["/robots.txt"] * 2


class TestPoliteness:
    def test_no_more_at_once_than_agreed(self) -> None:
        polite = Politeness(at_once=2)
        busy, most, lock = [0], [0], threading.Lock()

        def visit(_: int) -> None:
            with polite.turn("x"):
                with lock:
                    busy[0] += 1
                    most[0] = max(most[0], busy[0])
                with lock:
                    busy[0] -= 1

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(visit, range(100)))
        assert most[0] <= 2

    def test_so_long_between_two(self) -> None:
        class Clock:
            """Runs on whenever somebody looks, so that nobody has to wait."""

            now = 0.0

            def __call__(self) -> float:
                self.now += 1.0
                return self.now

        clock = Clock()
        polite = Politeness(delay_seconds=2, at_once=1, clock=clock)
        begun = []
        for _ in range(3):
            with polite.turn("x", delay_seconds=1):
                begun.append(clock.now)
        assert [round(after - before, 6) >= 2 for before, after in pairwise(begun)] == [True, True]


class TestCrawl:
    def test_another_port_is_another_service(self) -> None:
        with (
            web_site() as other,
            web_site({"/": Page(f'<a href="{other.url("/x")}">x</a>')}) as site,
            Fetcher(open_guard()) as fetcher,
        ):
            start = Visit.of(PageRequest(url=site.url()), named=True)
            list(Crawl(fetcher, [start], CrawlPlan(depth=2, delay_seconds=0)).pages())
            assert other.visits == []

    def test_below_a_path(self) -> None:
        pages = {"/docs/": Page('<a href="a">x</a><a href="/blog">x</a>'), "/docs/a": Page("a"), "/blog": Page("b")}
        with web_site(pages) as site, Fetcher(open_guard()) as fetcher:
            start = Visit.of(PageRequest(url=site.url("/docs/")), named=True)
            plan = CrawlPlan(depth=2, delay_seconds=0, below="/docs", obey_robots=False)
            assert [one.visit.url.path for one in Crawl(fetcher, [start], plan).pages()] == ["/docs/", "/docs/a"]

    def test_a_hidden_trap_of_endless_pages_ends(self) -> None:
        with web_site() as site, Fetcher(open_guard()) as fetcher:
            for number in range(60):
                site.routes[f"/{number}"] = Page(f'<a href="/{number + 1}">next</a>')
            start = Visit.of(PageRequest(url=site.url("/0")), named=True)
            plan = CrawlPlan(depth=1_000, max_pages=20, delay_seconds=0, obey_robots=False)
            assert len(list(Crawl(fetcher, [start], plan).pages())) == 20

    def test_given_up_it_leaves_no_thread(self) -> None:
        with web_site({"/": Page('<a href="/1">x</a>')}) as site, Fetcher(open_guard()) as fetcher:
            pages = Crawl(fetcher, [Visit.of(PageRequest(url=site.url()))], CrawlPlan(depth=3, delay_seconds=0)).pages()
            next(pages)
            pages.close()
        assert not [one for one in threading.enumerate() if one.name.startswith("recollect-fetch")]

    @pytest.mark.parametrize("plan", [{"depth": -1}, {"max_pages": 0}, {"delay_seconds": float("nan")}, {"at_once": 65},
                                      {"below": "docs"}])  # fmt: skip
    def test_a_plan_that_cannot_be_followed(self, plan: dict[str, object]) -> None:
        with pytest.raises(UsageError):
            CrawlPlan(**plan).checked()  # type: ignore[arg-type]


def test_a_site_that_calls_itself_otherwise_is_the_site_that_was_named() -> None:
    def answer(visit: Request) -> Page:
        if visit.headers["Host"] == "rivers.test":
            return Page(status=301, headers={"Location": f"http://www.rivers.test{visit.path}"})
        return Page('<a href="/a">a</a><a href="http://blog.rivers.test/">b</a><a href="http://brooks.test/">c</a>')

    with web_site({"/": answer, "/a": answer}) as site:
        guard = Guard(resolver=resolving())
        with Fetcher(guard, network=Redirected(site)) as fetcher:
            start = Visit.of(PageRequest(url="http://rivers.test/"), named=True)
            plan = CrawlPlan(depth=2, delay_seconds=0, obey_robots=False)
            assert {one.uri for one in Crawl(fetcher, [start], plan).pages()} == {
                "http://rivers.test/",
                "http://www.rivers.test/a",
            }
