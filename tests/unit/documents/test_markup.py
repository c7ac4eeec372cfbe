from __future__ import annotations

from datetime import date

from recollect.documents._markup import front_matter, markdown_headings, org_headings, rst_headings


def shape(headings):
    return [(one.level, one.title) for one in headings]


def test_atx_and_setext_headings():
    text = (
        "# One #\n\nbody\n\n###   Three *stars* and `code_x`\nTitle\n=====\n\nSub\n---\n\n#no heading\n####### seven\n"
    )
    assert shape(markdown_headings(text)) == [(1, "One"), (3, "Three stars and code_x"), (1, "Title"), (2, "Sub")]


def test_offsets_cover_the_markup():
    text = "intro\n\n## A [link](http://x.y) \\_b\\_ {#anchor}\n\nSetext *x*\n====\nend"
    first, second = markdown_headings(text)
    assert text[first.start_offset : first.end_offset] == "## A [link](http://x.y) \\_b\\_ {#anchor}"
    assert first.title == "A link _b_"
    assert text[second.start_offset : second.end_offset] == "Setext *x*\n===="
    assert second.title == "Setext x"


def test_nothing_inside_fences_front_matter_lists_or_tables():
    text = (
        "---\ntitle: T\n# comment\n---\n\n```sh\n# comment\n~~~\n# still\n```\n\n~~~\n# x\n\n- item\n---\n\n"
        "~~~\n\n- item\n---\n\n| a | b |\n---\n\ntwo lines\nof text\n---\n\n    # code\n\n# Real\n"
    )
    assert shape(markdown_headings(text)) == [(1, "Real")]


def test_an_unclosed_fence_runs_to_the_end():
    assert markdown_headings("```\n# a\n\n# b\n") == []


def test_hash_signs_in_titles():
    assert shape(markdown_headings("# C# and F#\n## ##\n# snake_case_name\n")) == [
        (1, "C# and F#"),
        (1, "snake_case_name"),
    ]


def test_front_matter():
    assert front_matter('---\nTitle: "The Rules"\ndate: 2024-05-06\ntags:\n  - a\n---\n# x') == {
        "title": "The Rules",
        "date": date(2024, 5, 6),
        "tags": ["a"],
    }
    # No YAML, but what people write.
    assert front_matter("---\ntitle: One: two\ntags: [a, b]\n---\n") == {"title": "One: two", "tags": ["a", "b"]}
    assert front_matter("no matter\n---\na: b\n---\n") == {}


def test_rst_levels_follow_the_order_of_appearance():
    text = "=====\nTitle\n=====\n\nFirst\n-----\nbody text\n\nDeep\n~~~~\n\nSecond\n------\n\n- item\n\n"
    text += "====  ====\n a     b\n====  ====\n"
    headings = rst_headings(text)
    assert shape(headings) == [(1, "Title"), (2, "First"), (3, "Deep"), (2, "Second")]
    assert text[headings[0].start_offset : headings[0].end_offset] == "=====\nTitle\n====="


def test_org():
    text = "#+TITLE: x\n* TODO [#A] Buy *milk* :shop:home:\n** Sub\n#+begin_src org\n* no\n#+end_src\n*bold* text\n"
    assert shape(org_headings(text)) == [(1, "Buy *milk*"), (2, "Sub")]
