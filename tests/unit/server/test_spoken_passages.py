"""Passages in the text of a reply of OpenAI's API: as Markdown that fetches nothing, with places for annotations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect import Answer, ShownPassage
from recollect.answer.absence import OFFERS
from recollect.model import Highlight
from recollect.server.openai.asking import additions, markers, spoken, without_additions

OFFER = OFFERS["en"]


def answer(*passages: ShownPassage) -> Answer:
    return Answer(question="?", text=OFFER, outcome="passages", citations=(), passages=passages)


def passage(text: str, *highlighted: str, marker: int = 1, **given) -> ShownPassage:
    """A passage that begins at 100 in its document."""
    places = [(text.index(one) + 100, text.index(one) + 100 + len(one)) for one in highlighted]
    told = {"source": "guide.md", "section": None, "page": None, **given}
    return ShownPassage(
        marker=marker,
        document_id=marker,
        start_offset=100,
        end_offset=100 + len(text),
        text=text,
        highlights=tuple(Highlight(start_offset=start, end_offset=end) for start, end in places),
        **told,
    )


def test_it_has_a_number_a_place_and_a_quote_with_what_fits_in_bold():
    told = spoken(answer(passage("Before. It fits.\n\nAfter.", "It fits.", section="Use > Start", page=3)))
    assert told == f"{OFFER}\n\n[1] guide.md, Use > Start, p. 3\n\n> Before. **It fits.**\n>\n> After."
    elsewhere = spoken(answer(passage("It fits.", server="north")))
    assert elsewhere == f"{OFFER}\n\n[1] guide.md (north)\n\n> It fits."


def test_items_stay_items_and_headings_that_the_section_names_are_left_out():
    text = "# Start\n\nDo this:\n\n- Open **it**.\n- Close it.\n\n1. Wait."
    shown = spoken(answer(passage(text, "- Open **it**.\n- Close it.", "1. Wait.", section="Start")))
    quote = "> Do this:\n>\n> - **Open it.**\n> - **Close it.**\n>\n> 1. **Wait.**"
    assert shown == f"{OFFER}\n\n[1] guide.md, Start\n\n{quote}"


def test_code_and_rows_are_shown_as_they_are():
    text = "Run:\n\n```\nmake all\n```\n\n    make test\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    shown = spoken(answer(passage(text, "make all", "    make test", "| 1 | 2 |")))
    assert "**" not in shown and "> make all\n" in shown and ">     make test\n" in shown and "> | 1 | 2 |" in shown
    assert "**" not in spoken(answer(passage(text, "```\nmake all\n```")))


def test_nothing_in_it_is_fetched_by_what_shows_it():
    text = 'See ![x](https://e.example/1.png), ![y][z], [w](https://e.example) <img src="https://e.example/2.png">'
    told = spoken(answer(passage(text, source="a](b)<c>.md", section="![x](https://e.example)")))
    assert not any(one in told for one in ("](", "][", "![", "<"))


@given(st.lists(st.text(max_size=60), max_size=3), st.booleans())
def test_markers_stand_where_annotations_say_whatever_documents_hold(texts, footnotes):
    told = answer(*(passage(text, text, marker=number, source=text) for number, text in enumerate(texts, start=1)))
    content = told.text + additions(told, footnotes=footnotes)
    assert content == spoken(told)
    places = list(markers(told))
    assert [content[start:end] for start, end, _ in places] == [f"[{one.marker}]" for one in told.passages]
    assert [one for _, _, one in places] == list(told.passages)
    assert all(content[:start].endswith("\n\n") for start, _, _ in places)


def test_an_earlier_reply_is_read_without_its_passages():
    for offer in OFFERS.values():
        told = Answer(question="?", text=offer, outcome="passages", citations=(), passages=(passage("It fits."),))
        assert without_additions(spoken(told)) == offer
    assert without_additions("It fits.\n\nAnd more.") == "It fits.\n\nAnd more."
