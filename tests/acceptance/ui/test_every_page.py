"""Every page, visited once in German: usable by all in both themes, and no wider than what it is shown on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.routing import compile_path

from browser import picture, require_readable_colours, require_usable_by_all, visitor
from recollect import Document, Principal
from recollect.ui.routes import AREA_ROUTERS

#: An address of every page, with what stands in it by name.
PAGES = {
    "chat and library": (
        "/chat",
        "/chat/talk?user=ada",
        "/library",
        "/library/new",
        "/library/collection?name=default",
        "/library/documents?tag=official",
        "/library/add",
        "/library/preview",
        "/library/jobs/{job}",
        "/library/sources",
        "/library/sources?location=s3://bucket",
    ),
    "documents, bench and dashboard": (
        "/documents/{document}",
        "/documents/{document}/pages",
        "/documents/{document}/versions",
        "/documents/{document}/source?start=0&end=5",
        "/documents/{document}/access?user=kim",
        "/documents/{document}/erase",
        "/bench?q=annual+leave&b_mode=lexical&missed=pay.txt",
        "/bench/cases",
        "/dashboard",
    ),
    "people and rights": (
        "/administration",
        "/administration/keys",
        "/administration/keys/new",
        "/administration/keys/widget",
        "/administration/keys/{key}",
        "/administration/people",
        "/administration/logins",
        "/administration/grants",
        "/administration/grants/documents/{document}",
        "/administration/grants/explain?user=kim&document={document}",
    ),
    "the tenant": (
        "/administration/policies",
        "/administration/audit",
        "/administration/audit/accesses",
        "/administration/audit/check",
        "/administration/models",
        "/administration/models/contexts?collection=default",
        "/administration/models/jobs/{reembed}",
        "/administration/tenants",
        "/administration/tenants/{tenant}",
    ),
}
#: Parts of pages, files, and what another site shows in a frame: they are no pages. The first page leads to another.
PARTS = re.compile(
    r"/|/conversations.*|/library/(collection/(size|export)|documents/choices|progress|sources/settings)"
    r"|/documents/\{document_id\}/(text|outline|original)|.*\.(csv|yaml)|/widget.*|.*/export"
)
#: What stands over the right edge, but in what is moved there by itself.
WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("main *, header *")].filter((one) => one.getBoundingClientRect().right > innerWidth)
    .filter((one) => !one.parentElement.closest(".areas, .tabs, .scroll"))
    .map((one) => `${one.tagName}.${one.className} ${one.textContent.slice(0, 40)}`)"""


def test_every_page_has_an_address_here():
    shown = [one.partition("?")[0].format(job=1, document=1, key="a", reembed=1, tenant=1)
             for some in PAGES.values() for one in some]  # fmt: skip
    unvisited = [
        path
        for path in paths_of(AREA_ROUTERS)
        if not PARTS.fullmatch(path) and not any(compile_path(path)[0].fullmatch(one) for one in shown)
    ]
    assert unvisited == [], "pages that are not looked at: give each an address"


def paths_of(routers) -> Iterator[str]:
    """The paths that are asked for with GET, of routers and of those that they include."""
    for router in routers:
        for one in router.routes:
            if hasattr(one, "original_router"):
                yield from paths_of([one.original_router])
            elif "GET" in one.methods:
                yield one.path


@pytest.mark.parametrize("part", PAGES)
def test_every_page_is_usable_by_all_in_both_themes_and_fits_every_width(browser, served, part):
    rag = served.rag
    changed = Document(content="# Leave\n\nThirty-one days.", source="hr/leave.md", tags=("official",))
    named = {
        "document": rag.ingest(changed).document_id,
        "key": rag.keys.create("laptop", principal=Principal(user_id="kim", roles=("board",))).key.key_id,
        "job": rag.jobs.ingest(Path("/nowhere.txt"))[0].job_id,
        "reembed": rag.jobs.reembed("hashing", provider="hashing", dimensions=32).job_id,
        "tenant": rag.tenants.create("acme").tenant_id,
    }
    with visitor(browser, served.url, locale="de-DE", viewport={"width": 360, "height": 900}) as one:
        page = one.context.new_page()
        one.watch(page)
        for address in PAGES[part]:
            page.set_viewport_size({"width": 360, "height": 900})
            page.goto(served.url + address.format(**named))
            page.wait_for_load_state()
            assert page.locator("html").get_attribute("lang") == "de", address
            assert page.get_by_role("heading", level=1).count() == 1, address
            name = re.sub(r"\W+", "-", address.partition("?")[0]).strip("-")
            require_usable_by_all(page)
            assert page.evaluate(WIDE) == [], f"{address} is wider than 360"
            picture(page, f"all-{name}-360-light", full=True)
            page.set_viewport_size({"width": 1600, "height": 900})
            page.evaluate("document.documentElement.dataset.theme = 'dark'")
            require_readable_colours(page)
            assert page.evaluate(WIDE) == [], f"{address} is wider than 1,600"
            picture(page, f"all-{name}-1600-dark", full=True)
