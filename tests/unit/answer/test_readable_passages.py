"""How people read a passage: paragraphs are joined, rows, items and commands keep their lines."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from recollect.answer.readable import pieces_of, readable
from recollect.model.answer import Highlight, ShownPassage


def passage(text: str, *highlights: tuple[int, int], start: int = 100) -> ShownPassage:
    return ShownPassage(
        marker=1,
        document_id=1,
        source="a.md",
        section=None,
        page=None,
        start_offset=start,
        end_offset=start + len(text),
        text=text,
        highlights=tuple(Highlight(start_offset=start + begin, end_offset=start + end) for begin, end in highlights),
    )


def test_lines_of_a_paragraph_are_joined():
    text = "The probation period is six months in Bremen, and\nfour months in Lyon, where it can be renewed\nonce."
    assert "".join(readable(text)) == text.replace("\n", " ")


def test_rows_items_labels_and_code_keep_their_lines():
    for text in (
        "| Plan with a name of many many words | 10 |\n| Premium plan with a name of its own | 30 |",
        "Name: Ada\nrole: engineer\nplace: Leeds",
        "- Open the settings of the team and look at it.\n- choose the plan that the team is to have now.",
        "Run the two commands:\n\n    recollect ingest --all the/documents/of/the/handbook\n    recollect status",
        "```\nrecollect ingest --all the/documents/of/the/handbook\nrecollect status of all collections\n```",
    ):
        assert "".join(readable(text)) == text


def test_the_next_lines_of_an_item_are_joined_without_their_indentation():
    text = "1. HR Operations checks the rules of residence and applies\n   for a certificate.\n2. You need it."
    assert "".join(readable(text)) == text.replace("\n   for", " for")


def test_pieces_are_the_passage_and_say_what_is_highlighted():
    text = "Before. The sentence that fits the question best of all,\nand goes on. Behind."
    begin, end = text.index("The"), text.index(" Behind")
    assert pieces_of(passage(text, (begin, end))) == [
        ("Before. ", False),
        ("The sentence that fits the question best of all, and goes on.", True),
        (" Behind.", False),
    ]
    assert pieces_of(passage(text)) == [(text.replace("\n", " "), False)]
    assert pieces_of(passage(text, (0, len(text)))) == [(text.replace("\n", " "), True)]


@given(st.text(alphabet="ab |1.\n\t`:é", max_size=300), st.data())
def test_nothing_but_white_space_is_left_out(text, data):
    edges = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=2)))
    shown = readable(text)
    assert len(shown) == len(text)
    assert all(new == old or (old in " \n\t" and new in {"", " "}) for old, new in zip(text, shown, strict=True))
    joined = "".join(piece for piece, _ in pieces_of(passage(text, tuple(edges))))
    assert joined.split() == text.split()


def test_headings_that_the_section_names_and_rules_of_tables_are_left_out():
    text = "## Offices\n\n### In Europe\n\n| Office | Head |\n|---|:-:|\n| Lyon | Ada |\n\n### Others\n"
    shown = replace(passage(text), section="About > Offices > In Europe")
    assert pieces_of(shown) == [("| Office | Head |\n| Lyon | Ada |\n\n### Others", False)]
    assert pieces_of(replace(shown, section=None))[0][0].startswith("## Offices\n\n### In Europe")
    # What is highlighted is never left out, nor is all of a passage.
    named = replace(passage("## Offices\n", (3, 10)), section="Offices")
    assert pieces_of(named) == [("## ", False), ("Offices", True)]
    assert pieces_of(replace(passage("## Offices\n"), section="Offices")) == [("## Offices", False)]
