from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from answer.samples import LEAVE
from recollect.answer._units import MAX_UNIT_CHARS, quotable_units


def quotes(text, **options):
    return [text[unit.start : unit.end] for unit in quotable_units(text, **options)]


def test_sentences_items_and_rows_but_no_headings():
    found = quotes(LEAVE)
    assert "Own wedding: 2 days" in found
    assert "Birth of a child | 3" in found
    assert "Call your manager before 9 a.m." in found
    assert not {"# Leave policy", "Leave policy", "Annual leave", "Occasion | Days"} & set(found)
    assert not any("---" in quote for quote in found)


def test_rows_and_items_know_what_they_belong_to():
    units = {LEAVE[unit.start : unit.end]: unit for unit in quotable_units(LEAVE)}
    assert units["Own wedding: 2 days"].lead == "Special leave is granted for:"
    assert "Occasion" in units["Birth of a child | 3"].lead
    assert units["Birth of a child | 3"].heading == "Sick leave"


def test_headings_in_capitals_and_known_titles_are_left_out():
    text = "SICK LEAVE\nCall your manager.\n\nCertificates And Forms\nBring them."
    assert quotes(text, headings=["Certificates and forms"]) == ["Call your manager.", "Bring them."]


def test_a_record_on_a_line_is_one_unit():
    text = (
        "Rates in EUR.\nCountry: Norway; Full rate: 75; Half rate: 50\nCountry: Malta; Full rate: 46; Half rate: 31\n"
    )
    assert quotes(text) == [
        "Rates in EUR.",
        "Country: Norway; Full rate: 75; Half rate: 50",
        "Country: Malta; Full rate: 46; Half rate: 31",
    ]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.one_of(st.sampled_from("ab .\n|-*#>1!\t"), st.characters(codec="utf-8")), max_size=400))
def test_units_are_ordered_trimmed_and_bounded(text):
    units = quotable_units(text)
    end = 0
    for unit in units:
        assert end <= unit.start < unit.end <= len(text)
        assert unit.quote_start <= unit.start
        assert unit.end - unit.start <= MAX_UNIT_CHARS
        assert text[unit.start : unit.end] == text[unit.start : unit.end].strip()
        end = unit.end


def test_no_text_is_cubic():
    for text in (
        "[" * 50_000,
        "- " * 30_000,
        "|" * 60_000,
        "* *" * 20_000,
        "> " * 30_000,
        "a\tb " * 20_000,
        "a: b;" * 20_000,
    ):
        quotable_units(text)
