from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.documents._html import parse_html, parse_markup


def text(html):
    return parse_markup(html).content


def test_structure():
    parsed = parse_markup(
        "<title>The &amp; Title</title><h1>Größe <b>bold</b> a_b *c*</h1><p>Para with <a href='http://x.y'>link</a>, "
        "a_b\n &lt;tag&gt;.<br>next line</p><ul><li>one<ul><li>nested</li></ul></li><li><p>two</p><p>more</p></li></ul>"
        "<ol><li>first<li>second</ol><h2>Second</h2>loose text<div>in a div</div>"
        "<dl><dt>Term</dt><dd>Definition</dd></dl><blockquote>quoted <p>text</p></blockquote>"
    )
    assert parsed.title == "The & Title"
    assert parsed.content == (
        "# Größe bold a_b *c*\n\nPara with link, a_b <tag>.\nnext line\n\n- one\n  - nested\n- two\n  more\n1. first\n"
        "2. second\n\n## Second\n\nloose text\n\nin a div\n\nTerm: Definition\n\nquoted\n\ntext"
    )
    assert [(one.level, one.title) for one in parsed.headings] == [(1, "Größe bold a_b *c*"), (2, "Second")]
    for one in parsed.headings:
        assert parsed.content[one.start_offset : one.end_offset] == f"{'#' * one.level} {one.title}"


def test_furniture_is_dropped():
    html = (
        "<body><nav><a>Home</a></nav><script>alert(1)</script><style>p{}</style><p>Kept.</p><p hidden>secret</p>"
        "<div role='navigation'>menu</div><div style='display: none'>gone</div><svg><text>x</text></svg>"
        "<img src='data:image/png;base64,AAAA' alt='pic'><footer>Imprint</footer></body>"
    )
    assert text(html) == "Kept."


@pytest.mark.parametrize(
    "style", ["visibility: hidden", "color:red;font-size:0px", "mso-hide:all", "font-size:0", "display:none !important"]
)
def test_what_a_style_hides_is_not_read(style: str):
    assert text(f"<p style='{style}'>HIDDEN</p><p style='font-size:0.8em'>Kept.</p>") == "Kept."


def test_items_have_the_numbers_that_the_page_gives_them():
    html = "<ol start=5><li>five<li>six<li value=9>nine<li>ten</ol><ol><li>one</ol>"
    assert text(html) == "5. five\n6. six\n9. nine\n10. ten\n1. one"


def test_terms_need_no_end():
    assert text("<dl><dt>Term<dd>Definition<dt>Next</dt><dd>Another<dd>and more</dl>") == (
        "Term: Definition\n\nNext: Another\n\nand more"
    )


@pytest.mark.parametrize("name", ["iso-8859-1", "us-ascii", "latin1"])
def test_a_small_encoding_means_what_programs_write_under_its_name(name: str):
    html = f"<meta charset={name}><p>“5 €” – done</p>".encode("cp1252")
    assert parse_html(html).content == "“5 €” – done"


def test_main_is_preferred_where_it_has_the_text():
    article = "This is the text that the page is about. " * 10
    assert text(f"<header>Intranet</header><main><p>{article}</p></main><aside>Ads</aside>") == article.strip()
    assert "Intranet" in text("<header>Intranet, with a long introduction</header><main>x</main>")


def test_an_unclosed_menu_does_not_hide_the_page():
    assert "The text" in text("<nav><ul><li>Home</ul><p>The text of the page")


def test_tables_read_row_by_row():
    html = "<table><tr><th>Office<th>Days<tr><td>Bremen<td>30<br>or 31<tr><td>Porto<td>28</table>"
    assert text(html) == "| Office | Days |\n|---|---|\n| Bremen | 30 or 31 |\n| Porto | 28 |"


def test_layout_tables_become_paragraphs():
    html = "<table><tr><td>side</td><td><h1>Title</h1><p>Body.</p>"
    html += "<table><tr><th>A<th>B<tr><td>1<td>2</table></td></tr></table>"
    assert text(html) == "side\n\n# Title\n\nBody.\n\n| A | B |\n|---|---|\n| 1 | 2 |"


def test_code_keeps_its_lines_and_gives_no_headings():
    parsed = parse_markup("<pre><code># comment\n  indented()\n</code></pre><p>after")
    assert parsed.content == "```\n# comment\n  indented()\n```\n\nafter"
    assert parsed.headings == []


def test_metadata_and_time():
    parsed = parse_markup(
        "<meta name=author content='Ann A.'>"
        "<meta property='article:published_time' content='2024-05-01T10:00:00+02:00'><p>x"
    )
    assert parsed.metadata["author"] == "Ann A."
    assert parsed.event_time.isoformat() == "2024-05-01T10:00:00+02:00"


@pytest.mark.parametrize("encoding", ["iso-8859-7", "utf-8", "shift_jis"])
def test_declared_encodings(encoding):
    words = "日本" if encoding == "shift_jis" else "Καλημέρα"
    assert parse_html(f"<meta charset='{encoding}'><p>{words}".encode(encoding)).content == words


@given(
    st.lists(
        st.sampled_from(
            [
                "<p>",
                "</p>",
                "<table>",
                "<tr>",
                "<td>",
                "</table>",
                "<li>",
                "<ul>",
                "</ul>",
                "<h1>",
                "</h2>",
                "<pre>",
                "</pre>",
                "<main>",
                "<nav>",
                "</nav>",
                "<br>",
                "<dt>",
                "<dd>",
                "text",
                "<!--",
                "-->",
                "<![CDATA[",
                "<title>",
                "&",
                "&#0;",
                "&#xD800;",
                '"',
                "<",
            ]
        ),
        max_size=60,
    )
)
def test_any_nesting(parts):
    parsed = parse_markup("".join(parts))
    for one in parsed.headings:
        assert parsed.content[one.start_offset : one.end_offset].endswith(one.title)
    is_told = "text" in parts and "<text" not in "".join(parts)  # which is an element
    if is_told and not {"<nav>", "<!--", "<title>", "<![CDATA["} & set(parts):
        assert "text" in parsed.content
