"""A hundred hostile texts, wherever somebody may put one, in every page that there is: all of it is shown as text.

The pages are found by following links from the first one, and every route of a page must be among them: a new area that
no link leads to, or that this test cannot fill in, fails it.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from urllib.parse import urljoin, urlsplit

import httpx2
from fastapi.routing import APIRoute

from browser import visitor
from recollect import Document, RecollectError
from recollect.model import Principal
from recollect.ui.pages import _routes
from recollect.ui.visit import AREAS
from served import serving

RUN = "window.__owned=1"
PRODUCT = str(7007 * 7007)

ELEMENTS = [
    f"<script x-owned>{RUN}</script>",
    f"<ScRiPt x-owned src=data:,{RUN}></ScRiPt>",
    f"<img x-owned src=x onerror={RUN}>",
    f"<svg x-owned onload={RUN}>",
    f"<svg><script x-owned>{RUN}</script></svg>",
    f"<svg><animate x-owned onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><foreignObject><iframe x-owned onload={RUN}></foreignObject></svg>",
    f"<svg><use x-owned href='data:image/svg+xml,<svg onload={RUN}>'></svg>",
    f'<iframe x-owned srcdoc="<script>parent.{RUN}</script>"></iframe>',
    f"<iframe x-owned src=javascript:parent.{RUN}></iframe>",
    f"<body x-owned onload={RUN}>",
    f"<details x-owned open ontoggle={RUN}>x</details>",
    f"<video x-owned><source onerror={RUN}></video>",
    f"<audio x-owned src=x onerror={RUN}>",
    f"<input x-owned autofocus onfocus={RUN}>",
    f"<select x-owned autofocus onfocus={RUN}></select>",
    f"<textarea x-owned autofocus onfocus={RUN}></textarea>",
    f"<button x-owned popovertarget=x onclick={RUN}>x</button>",
    f"<marquee x-owned onstart={RUN}>x</marquee>",
    f"<object x-owned data=javascript:{RUN}></object>",
    f"<embed x-owned src=javascript:{RUN}>",
    f"<link x-owned rel=stylesheet href=javascript:{RUN}>",
    f'<meta x-owned http-equiv=refresh content="0;url=javascript:{RUN}">',
    "<base x-owned href=//evil.example/>",
    f"<form x-owned action=javascript:{RUN}><button>x</button></form>",
    f"<isindex x-owned type=image src=1 onerror={RUN}>",
    f"<math><mtext><mglyph><style><!--</style><img x-owned title='--&gt;&lt;img onerror={RUN}&gt;'>",
    f"<noscript><p title='</noscript><img x-owned src=x onerror={RUN}>'>",
    f"<template x-owned><script>{RUN}</script></template>",
    f"<a x-owned href=javascript:{RUN}>x</a>",
    f"<a x-owned href='java&#9;script:{RUN}'>x</a>",
    f"<style x-owned>@import 'javascript:{RUN}'; * {{ display: none }}</style>",
    f"<x-owned onclick={RUN}>x</x-owned>",
    f"<div x-owned style='animation: x 1s' onanimationstart={RUN}>",
    f"<div x-owned hx-get=/ hx-trigger=load hx-on::load='{RUN}'>x</div>",
    "<button x-owned hx-post=/logout hx-trigger=load>x</button>",
    f"<dialog x-owned open onclose={RUN}><form method=dialog>",
]
BREAKING_OUT = [
    f"</title><script x-owned>{RUN}</script>",
    f"</textarea><img x-owned src=x onerror={RUN}>",
    f"</option></select><img x-owned src=x onerror={RUN}>",
    f"</style><script x-owned>{RUN}</script>",
    f"</script><script x-owned>{RUN}</script>",
    f"--><script x-owned>{RUN}</script>",
    f"]]><script x-owned>{RUN}</script>",
    f'"><img x-owned src=x onerror={RUN}>',
    f"'><img x-owned src=x onerror={RUN}>",
    f'" x-owned onmouseover="{RUN}" autofocus onfocus="{RUN}',
    f"' x-owned onmouseover='{RUN}' autofocus onfocus='{RUN}",
    f"` x-owned onmouseover=`{RUN}",
    f" x-owned onpointerenter={RUN} ",
    '" x-owned hx-get="/" hx-trigger="load',
    f"';{RUN};//",
    f'";{RUN};//',
    f"\\';{RUN};//",
    f"<!--<img x-owned src=x onerror={RUN}>",
    "<x-owned",
    "<<script x-owned>",
]
ADDRESSES = [
    f"javascript:{RUN}",
    f"JaVaScRiPt:{RUN}",
    f" javascript:{RUN}",
    f"javascript&colon;{RUN}",
    f"javascript://x%0a{RUN}",
    f"data:text/html,<script x-owned>{RUN}</script>",
    f"data:image/svg+xml,<svg onload={RUN}>",
    "vbscript:MsgBox(1)",
    "//evil.example/x",
    "https://evil.example@127.0.0.1/",
    f"[x](javascript:{RUN})",
    f'![x](x" x-owned onerror="{RUN})',
    "../../../etc/passwd",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..\\..\\windows\\win.ini",
]
TEMPLATES = [
    "{{7007*7007}}",
    "${7007*7007}",
    "#{7007*7007}",
    "<%= 7007*7007 %>",
    "{% set x = 7007*7007 %}{{ x }}",
    "{{ ''.__class__.__mro__ }}",
    "{{ config }}{{ visit.service }}",
    "%(num)s %(user)s %s %n",
    "{0}{visit}{0.__class__}",
]
ENCODED = [
    f"&lt;script x-owned&gt;{RUN}&lt;/script&gt;",
    f"&#x3c;img x-owned src=x onerror={RUN}&#x3e;",
    f"\\u003cscript x-owned\\u003e{RUN}",
    f"＜script x-owned＞{RUN}＜/script＞",
    f"<ſcript x-owned>{RUN}</ſcript>",
    "‮gpj.exe",
    "⁦⁧hidden⁩⁩",
    "a​b‌c‍d",
    "﻿bom",
    "İıſK",
    "Z͎̠̈́a̘ͣl̝g̭o",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿👩‍👩‍👧",
    "null\0byte",
    "\x1b[31mred\x1b[0m",
]
LINES = [
    "a\r\nSet-Cookie: x-owned=1",
    "a\r\n\r\n<script x-owned>window.__owned=1</script>",
    "a%0d%0aX-Owned:%201",
    "line\u2028separator",
    "'; DROP TABLE recollect.documents; --",
    "\\",
]
FORMULAS = [
    "=1+1",
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)",
    '=HYPERLINK("http://evil.example")',
    "\t=1+1",
]
LONG = ["A" * 400, "<b x-owned>" * 40, "W" * 5_000]
PAYLOADS = [*ELEMENTS, *BREAKING_OUT, *ADDRESSES, *TEMPLATES, *ENCODED, *LINES, *FORMULAS, *LONG]

#: Of one kind of page so many are opened.
_OF_A_KIND = 1
#: Pages with so many hostile texts are opened.
_MANY = 20
_FOUND = """(html) => {
  // Of a text, what Chromium makes of it without running it.
  const root = html === null ? document : new DOMParser().parseFromString(html, 'text/html');
  const all = [...root.querySelectorAll('*')];
  const bad = (element) => [...element.attributes].some((one) => /^(on|hx-on|data-hx-on)/i.test(one.name)
    || (['href', 'src', 'action', 'formaction', 'data'].includes(one.name)
        && /^[\\s\\x00-\\x20]*(javascript|vbscript|data:text)/i.test(one.value)));
  const made = 'x-owned, [x-owned], iframe, object, embed, base, marquee, script:not([src])';
  return {
    owned: window.__owned !== undefined,
    made: [...root.querySelectorAll(made), ...all.filter(bad)].map((element) => element.outerHTML.slice(0, 200)),
    links: [...root.querySelectorAll('a[href]')].map((element) => element.getAttribute('href')),
    parts: [...root.querySelectorAll('[hx-get]')].map((element) => element.getAttribute('hx-get')),
    text: root.documentElement.textContent,
    values: [...root.querySelectorAll('input, textarea')].map((element) => element.value).join('\\n'),
  };
}"""


def attempt(call, *args, **kwargs) -> bool:
    """Whether it was taken: what is refused is shown nowhere."""
    try:
        call(*args, **kwargs)
    except (RecollectError, ValueError):
        return False
    return True


def fill(rag) -> None:
    """Every payload, wherever somebody may put one."""
    whole = "\n\n".join(PAYLOADS)
    rag.ingest(
        Document(
            content=f"# {ELEMENTS[2]}\n\n{whole}",
            source="whole.md",
            title=" ".join(ELEMENTS[:12]),
            metadata={f"{number} {one}"[:60]: one for number, one in enumerate(PAYLOADS)},
        )
    )
    # What no source can be is a title all the same.
    sources = {one: one for one in PAYLOADS if one.isprintable() and len(one) <= 400}
    rag.ingest(
        [
            Document(content=f"{one}\n\nNumber {number}.", title=one[:200], source=sources.get(one, f"{number}.md"))
            for number, one in enumerate(PAYLOADS)
        ]
    )
    for number, one in enumerate(PAYLOADS):
        tagged = {"content": f"Tagged {number}", "source": f"tagged-{number}.md"}
        if number % 5 == 0:
            attempt(lambda: rag.ingest(Document(**tagged, tags=(one,), department=one)))  # noqa: B023 - called at once
            attempt(rag.collections.create, one[:60], description=one)
        attempt(rag.keys.create, one[:100], principal=None)
        if number % 4 == 0:
            attempt(lambda: rag.keys.create("x", principal=Principal(user_id=one, roles=(one,))))  # noqa: B023
            attempt(lambda: rag.grants.add(f"user:{one}", documents=1))  # noqa: B023
            attempt(lambda: rag.view(session=one[:100], user="ada").remember([one, "Noted."]))  # noqa: B023
    attempt(rag.ingest_url, f"http://127.0.0.1:1/{ELEMENTS[2]}", wait=False)
    attempt(rag.tenants.create, ELEMENTS[2])


def kind_of(path: str) -> tuple[str, tuple[str, ...]]:
    """What pages have in common that show another thing of the same kind."""
    parts = urlsplit(path)
    names = tuple(sorted({one.partition("=")[0] for one in parts.query.split("&") if one}))
    shape = "/".join("{}" if re.search(r"\d|%", one) or len(one) > 30 else one for one in parts.path.split("/"))
    return shape, names


def require_harmless_table(text: str) -> None:
    """No cell of a table begins like a formula, unless it is a number."""
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            number = re.fullmatch(r"[-+]?[\d.,:eE+-]*", cell)
            assert number or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell


class Crawl:
    """Visits pages, and holds each to what it may do with hostile texts.

    Pages that hold many of them are opened, and one of each area, so that whatever its scripts make of them is seen; of
    the others Chromium reads the text.
    """

    def __init__(self, page, client: httpx2.Client) -> None:
        self.page, self.client = page, client
        self.url = str(client.base_url).rstrip("/")
        self.seen: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.visited: set[str] = set()
        self.opened: set[str] = set()
        self.text = ""

    def visit(self, start: str) -> None:
        waiting = [start]
        while waiting:
            path = waiting.pop(0)
            if path in self.visited or self.seen[kind_of(path)] >= _OF_A_KIND or path.startswith(("/static/", "/v1/")):
                continue
            self.seen[kind_of(path)] += 1
            self.visited.add(path)
            waiting += self.looked_at(path)

    def looked_at(self, path: str) -> list[str]:
        reply = self.client.get(path)
        assert "x-owned" not in reply.headers and "x-owned" not in reply.headers.get("set-cookie", ""), path
        if reply.status_code == 303:
            return self.own([reply.headers["location"]], reply.url)
        kind = reply.headers.get("content-type", "")
        if kind.startswith("text/csv"):
            require_harmless_table(reply.text)
        if not kind.startswith("text/html"):
            # A program's text or a file: never one that a browser runs.
            assert reply.headers["x-content-type-options"] == "nosniff", path
            return []
        if reply.text.count("x-owned") >= _MANY or path.partition("?")[0] in {area.path for area in AREAS}:
            self.opened.add(path)
            self.page.goto(self.url + path, wait_until="load")
            found = self.page.evaluate(_FOUND, None)
        else:
            found = self.page.evaluate(_FOUND, reply.text)
        assert not found["owned"], f"{path}: something ran"
        assert found["made"] == [], f"{path}: a payload became an element"
        assert PRODUCT not in found["text"], f"{path}: a template ran"
        self.text += found["text"] + found["values"]
        return self.own([*found["links"], *found["parts"]], reply.url)

    def own(self, links: list[str], where: object) -> list[str]:
        """The paths among links that are of this server."""
        whole = [urljoin(str(where), link) for link in links]
        return [
            urlsplit(link)._replace(scheme="", netloc="", fragment="").geturl()
            for link in whole
            if link.startswith(f"{self.url}/")
        ]


def pages_of_routes() -> dict[str, re.Pattern[str]]:
    """Every page, and what its addresses look like."""
    routes = [route for route in _routes() if isinstance(route, APIRoute) and "GET" in (route.methods or ())]
    return {route.path: route.path_regex for route in routes}


def filled_in(path: str) -> str:
    """A page's address for the first document, job, and so on."""
    return re.sub(r"\{[^}]+\}", "1", path)


def test_a_hundred_hostile_texts_are_shown_as_text_in_every_page(browser, dsn, tmp_path):
    assert len(PAYLOADS) >= 100 and len(set(PAYLOADS)) == len(PAYLOADS)
    with (
        serving(dsn, tmp_path, worker=False, pages=True) as served,
        visitor(browser, served.url) as one,
        httpx2.Client(base_url=served.url, timeout=60) as client,
    ):
        fill(served.rag)
        one.expected |= {400, 404, 410, 422}
        page = one.context.new_page()
        one.watch(page)
        page.on("dialog", lambda dialog: one.complaints.append(f"dialog: {dialog.message}"))
        page.goto(f"{served.url}/chat")
        crawl = Crawl(page, client)
        crawl.visit("/")
        reached = {path.partition("?")[0] for path in crawl.visited}
        assert {area.path for area in AREAS} <= reached, "an area that no link leads to"
        assert len(crawl.opened) >= 2 * len(AREAS), "most of what holds many of them was not opened"
        for path, pattern in pages_of_routes().items():
            if not any(pattern.match(seen) for seen in reached):
                crawl.visit(filled_in(path))
        shown = [payload for payload in PAYLOADS if " ".join(payload.split()) in " ".join(crawl.text.split())]
        # Null bytes and control characters are refused or left out where they came in.
        assert len(shown) >= 90, sorted(set(PAYLOADS) - set(shown))
    # Whatever the console said of scripts that were refused would be a complaint.
