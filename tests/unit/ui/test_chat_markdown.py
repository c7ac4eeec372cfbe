"""Markdown of answers: what comes out is ours, whatever goes in."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from recollect.ui.markdown import Marked, finished, to_html

TAGS = {"p", "ul", "ol", "li", "blockquote", "strong", "em", "s", "thead", "tbody", "tr", "th", "td", "table"}
TAGS |= {"div", "pre", "code", "span", "hr", "br", "a", "mark", "sup"}
ATTRIBUTES = {"class", "title", "href", "rel", "target", "tabindex", "start"}


class Tags(HTMLParser):
    """What a browser would make of a text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.shown = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS and {name for name, _ in attrs} <= ATTRIBUTES, (tag, attrs)
        for name, value in attrs:
            if name == "href":
                assert re.match("https?://", value, re.IGNORECASE), value
        if tag not in {"hr", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.shown += data


def note(number: int) -> Markup | None:
    return Markup("<sup>{}</sup>").format(number) if number < 5 else None


PIECES = ["# ", "- ", "> ", "1. ", "\n", "\n\n", "**", "_", "`", "```", "[1]", "[9]", "[a](", ")"]
PIECES += ["javascript:alert(1)"]
PIECES += ["http://e.com", "<script>", "</p>", "<img src=x onerror=1>", "![", "|", "|---|", "&lt;", " "]
PIECES += ["word", "\ue010", "\ue011", "[1]: http://evil", "<http://e.com>", "data:text/html,x", "http:x"]
PIECES += ["~~", "\\", "    ", '"', "'", "\ufdd0", "\ufdd1", "&#xfdd0;", "&#91;1]", "\\|", "\r\n", "\t", "\0", "  \n"]
PIECES += ["| a | b |\n|---|---|\n| **c** | [d](http://e.com) |\n", "***", "``", "~~~", "&nbsp;", "\x0b", "---\n"]

TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=30).map("".join)
MARK = re.compile(r'<mark class="unsupported" title="why">|</mark>|<span class="visually-hidden"> \(why\)</span>')


@given(TEXTS, st.data())
def test_nothing_but_known_tags_comes_out_whatever_goes_in(text, data):
    ends = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4, unique=True)))
    marked = [Marked(start, end, 'why "<b>"') for start, end in zip(ends[::2], ends[1::2], strict=False)]
    found = Tags(to_html(text, footnote=note, marked=marked))
    assert found.open == []


@given(TEXTS, st.data())
def test_marks_change_nothing_but_that_something_is_marked(text, data):
    ends = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).map(sorted)
    marked = [Marked(start, end, "why") for start, end in data.draw(st.lists(ends, max_size=4))]
    assert MARK.sub("", to_html(text, footnote=note, marked=marked)) == to_html(text, footnote=note)


def marked_texts(html: str) -> list[str]:
    return [re.sub("<[^>]+>", "", one) for one in re.findall("<mark.*?>(.*?)</mark>", html)]


TABLE = "| Year | Fee |\n|---|---|\n| 2023 | 100 [1] |\n| 2024 | 999 [1] |\n| 2025 | 300 [1] |"


@pytest.mark.parametrize(
    ("text", "said", "shown"),
    [
        (TABLE, "| 2024 | 999 [1] |", ["2024", "999 "]),
        (TABLE, "| Year | Fee |", ["Year", "Fee"]),
        (TABLE, "| Fee |\n|---|---|\n| 2023 |", ["Fee", "2023"]),
        (TABLE.replace("\n", "\r\n"), "| 2024 | 999 [1] |", ["2024", "999 "]),
        ("> - a\n> - b c\n>   d\n", "- b c\n>   d", ["b c", "d"]),
        ("a | b\n-|-\nx \\| y | z", "x \\| y | z", ["x | y", "z"]),
        ("## One two\n\nThree", "## One two", ["One two"]),
        ("One\n===\nTwo", "One\n===", ["One"]),
        ("1. one\n2. two\n\n   ```\n   x = 1\n   y = 2\n   ```\n", "   y = 2", ["y = 2"]),
        ("    y = 1\n    y = 2", "y = 2", ["y = 2"]),
        ("Set `a b` now", "b", ["a b"]),
        ("See [the fee](https://e.com/fee) there", "fee](https://e.com/fee) there", ["fee", " there"]),
        ("A &lt; B", "lt; B", ["&lt; B"]),
    ],
)
def test_what_is_marked_is_marked_where_it_is_shown(text, said, shown):
    start = text.index(said)
    html = to_html(text, footnote=note, marked=[Marked(start, start + len(said), "why")])
    assert marked_texts(html) == shown
    assert html.count("(why)</span>") == 1


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**So** it is [1].", "<p><strong>So</strong> it is <sup>1</sup>.</p>"),
        ("- a\n- b [2]", "<ul><li>a</li><li>b <sup>2</sup></li></ul>"),
        ("[7] and `[1]`", "<p>[7] and <code>[1]</code></p>"),
        ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>"),
        ("[x](javascript:alert)", "<p>[x](javascript:alert)</p>"),
        ("# Title", '<p class="title">Title</p>'),
    ],
)
def test_what_is_written_is_shown(text, html):
    assert to_html(text, footnote=note) == html


def test_what_is_marked_is_marked_to_its_end_across_emphasis():
    text = "Good [1]. - Bad **very** bad. Good."
    html = to_html(text, footnote=note, marked=[Marked(12, 29, "no source")])
    assert re.sub("<[^>]+>", "", "".join(re.findall("<mark.*?</mark>", html))) == "Bad very bad."
    assert "(no source)" in html


BLOCKS = ["Words. ", "\n\n", "- item", "```\n", "\n", "1. one", "    code", "| a |"]


@given(st.lists(st.sampled_from(BLOCKS), max_size=20))
def test_blocks_that_are_whole_are_the_same_alone(pieces):
    text = "".join(pieces)
    cut = finished(text)
    assert 0 <= cut <= len(text)
    assert to_html(text[:cut]) + to_html(text[cut:]) == to_html(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[our bank](https://evil.example/login)", "our bank (evil.example)"),
        ("[https://bank.example](https://evil.example)", "https://bank.example (evil.example)"),
        ("[x](https://bank.example@evil.example/)", "x (evil.example)"),
        ("[x](https://b\u0430nk.example)", "x (xn--bnk-6cd.example)"),
        ("<https://bank.example/a>", "https://bank.example/a"),
    ],
)
def test_a_link_shows_its_host_before_it_is_followed(text, shown):
    assert Tags(to_html(text)).shown.strip() == shown
