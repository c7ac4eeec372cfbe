from __future__ import annotations

from datetime import date

from recollect.documents import read_bytes
from recollect.documents.headings import front_matter, markdown_headings, org_headings, rst_headings


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


def test_what_says_nothing_to_readers_of_markdown_is_left_out():
    text = """---
title: "[a]: https://e.org"
---
# Leave { #leave .big }

See [the law][a] and {braces}.

[a]: https://example.org/law "The law"
[Anna]: Yes
[^1]: A footnote

## Sick leave {#sick}
{: .note }

```
[c]: https://example.org
# x { #y }
```
Last.

[d]: <docs/d.md>"""
    document = read_bytes(text.encode(), name="leave.md", source="leave.md")
    gone = [
        " { #leave .big }",
        '[a]: https://example.org/law "The law"\n',
        " {#sick}",
        "{: .note }\n",
        "[d]: <docs/d.md>",
    ]
    for part in gone:
        text = text.replace(part, " " if part.startswith(" ") else "")
    assert document.content.split() == text.split()
    assert '"[a]: https://e.org"' in document.content and "# x { #y }" in document.content
    shown = [document.content[one.start_offset : one.end_offset].rstrip() for one in document.headings]
    assert shown == ["# Leave", "## Sick leave"]


def test_what_says_nothing_to_readers_of_restructured_text_is_left_out():
    text = "=====\nTitle\n=====\n\n.. _part:\n\nPart\n----\n\nWords `it`_ a.\n\n.. _it: https://e.org\n\nSub\n~~~\nEnd."
    document = read_bytes(text.encode(), name="a.rst", source="a.rst")
    assert document.content.split("\n") == ["Title", "", "", "Part", "", "Words `it`_ a.", "", "", "Sub", "End."]
    shown = [(one.level, document.content[one.start_offset : one.end_offset]) for one in document.headings]
    assert shown == [(1, "Title"), (2, "Part"), (3, "Sub")]
