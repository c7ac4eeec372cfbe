"""A passage on the page: its formatting, what is highlighted marked, and nothing that its document would have run."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from recollect.model.answer import Highlight, ShownPassage
from recollect.ui.conversation import passage_html
from unit.ui.test_chat_markdown import TEXTS, Tags


def passage(text: str, *marked: str, section: str | None = None, start: int = 7) -> ShownPassage:
    places = [(start + text.index(one), start + text.index(one) + len(one)) for one in marked]
    return ShownPassage(
        marker=1,
        document_id=1,
        source="a.md",
        section=section,
        page=None,
        start_offset=start,
        end_offset=start + len(text),
        text=text,
        highlights=tuple(Highlight(start_offset=begin, end_offset=end) for begin, end in places),
    )


@given(TEXTS, st.data())
def test_nothing_but_known_tags_comes_out_whatever_a_document_holds(text, data):
    edges = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=2)))
    shown = passage(text, section=data.draw(st.none() | st.just(text)))
    marks = (Highlight(start_offset=7 + edges[0], end_offset=7 + edges[1]),)
    html = str(passage_html(ShownPassage(**{name: getattr(shown, name) for name in _NAMES}, highlights=marks)))
    assert Tags(html).open == []
    assert "unsupported" not in html and html.count("<mark>") == html.count("</mark>")


_NAMES = ("marker", "document_id", "source", "section", "page", "start_offset", "end_offset", "text")


def test_what_is_highlighted_is_marked_in_sentences_rows_and_code():
    text = "## Plans\n\nThe plan **costs** 10 euros.\nPaid monthly.\n\n| Plan | Price |\n|---|---|\n| Basic | 10 |\n"
    html = str(passage_html(passage(text, "The plan **costs** 10 euros.", "Basic | 10", section="Prices > Plans")))
    assert re.findall("<mark>(.*?)</mark>", html) == ["The plan ", "costs", " 10 euros.", "Basic", "10"]
    assert "Plans" not in html and "<th>Plan</th>" in html
    code = str(passage_html(passage("Run:\n\n```\nplan set basic\nplan confirm\n```", "plan set basic")))
    assert "<code><mark>plan set basic</mark>\nplan confirm\n</code>" in code


def test_rows_without_the_head_of_their_table_are_a_table():
    html = str(passage_html(passage("| Lyon | 64 |\n| Leeds | 38 |\n\nAll of them.", "Leeds | 38")))
    assert html.count("<td>") == 4 and re.findall("<mark>(.*?)</mark>", html) == ["Leeds", "38"]
    assert "<th></th>" in html and "All of them." in html


def test_what_a_document_says_in_html_is_shown_as_text():
    html = str(passage_html(passage("<script>alert(1)</script> </mark><img src=x onerror=alert(1)>", "</mark>")))
    assert "<script" not in html and "<img" not in html and "<mark>&lt;/mark&gt;</mark>" in html
