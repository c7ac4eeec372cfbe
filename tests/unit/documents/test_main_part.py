"""Pages of the web are cut down to their main content, which keeps everything that it holds."""

from __future__ import annotations

from contextlib import suppress

import pytest

from recollect.documents._html import parse_html

MENU = "<div id=nav><ul>" + "".join(f"<li><a href=/{n}>Section {n}</a></li>" for n in range(25)) + "</ul></div>"
FOOTER = """<div class=footer><p>Copyright 2026 Example Ltd. All rights reserved. <a href=/i>Imprint</a></p>
<p>Subscribe to our newsletter and receive offers every week in your inbox.</p></div>"""
NEWS = "".join(
    f"<p>The old bridge was closed on day {n} after engineers found cracks in {n + 3} of its piers.</p>"
    for n in range(8)
)


def read(body: str, *, main_content: bool = True) -> str:
    page = f"<html><head><title>Bridge closed</title></head><body>{MENU}{body}{FOOTER}</body></html>"
    parsed = parse_html(page.encode(), main_content=main_content)
    for heading in parsed.headings:
        assert heading.title in parsed.content[heading.start_offset : heading.end_offset]
    return parsed.content


def test_menus_and_footers_go_and_the_title_stays() -> None:
    text = read(f"<div class=a><h1>Bridge closed until spring</h1><div class=by>By Jo Reed</div>{NEWS}</div>")
    assert text.startswith("# Bridge closed until spring\n\nBy Jo Reed")
    assert text.endswith("cracks in 10 of its piers.")
    assert "Section" not in text
    assert "Copyright" not in text


def test_what_extractors_lose_within_stays() -> None:
    text = read(
        f"<div class=a><h1>Options</h1>{NEWS}<dl><dt>--verbose</dt><dd>Says more.</dd></dl>Bare text."
        f"<pre>run --verbose</pre>{NEWS.replace('bridge', 'tunnel')}</div>"
    )
    for kept in ("--verbose: Says more.", "Bare text.", "```\nrun --verbose\n```", "old tunnel"):
        assert kept in text


def test_tables_at_the_end_are_recognised_in_their_own_layout() -> None:
    rows = "".join(f"<tr><td>Item number {n}<td>{n}.50<td>per piece</tr>" for n in range(9))
    text = read(f"<h1>Prices</h1>{NEWS}<table><tr><th>Item<th>Price<th>Unit</tr>{rows}</table>")
    assert text.endswith("| Item number 8 | 8.50 | per piece |")


def test_a_short_page_is_kept_whole() -> None:
    assert "We are open from 9 to 5." in read("<p>We are open from 9 to 5.</p>")


def test_a_page_that_says_where_its_main_content_is_is_believed() -> None:
    text = read(f"<main><h1>Hours</h1>{NEWS}<p>Odd one out.</p></main>")
    assert text.startswith("# Hours")
    assert text.endswith("Odd one out.")


def test_files_are_not_cut_down() -> None:
    text = read(f"<div><h1>Bridge</h1>{NEWS}</div>", main_content=False)
    assert "Section 3" in text
    assert "Copyright" in text


@pytest.mark.parametrize("page", [b"", b"<", b"<div>" * 5000, b"\xff\xfe", b"<p>" + b"a " * 3000, b"<x>\0</x>" * 100])
def test_contrived_pages_end(page: bytes) -> None:
    with suppress(ValueError):  # refused as binary
        parse_html(page, main_content=True)
