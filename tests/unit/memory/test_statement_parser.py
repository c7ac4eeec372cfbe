"""What statements say of whom, and that what is not sure says nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.statements import comparable, parse_statement


@pytest.mark.parametrize(
    ("statement", "subject", "attribute", "value"),
    [
        ("I live in Lisbon.", "ada", "residence", "Lisbon"),
        ("i live in lisbon now", "ada", "residence", "lisbon"),
        ("Actually, I've just moved to Porto with my cat!", "ada", "residence", "Porto"),
        ("I moved to Porto last month.", "ada", "residence", "Porto"),
        ("Caroline lives in New York, by the park.", "caroline", "residence", "New York"),
        ("My sister lives in Oslo.", "ada's sister", "residence", "Oslo"),
        ("My sister is in Oslo.", "ada", "sister (in)", "Oslo"),
        ("I work at Acme Corp. and like it", "ada", "employer", "Acme Corp"),
        ("Since May, I work for Globex.", "ada", "employer", "Globex"),
        ("I work as a nurse.", "ada", "occupation", "nurse"),
        ("I’m originally from Ghana.", "ada", "origin", "Ghana"),
        ("I'm 34 years old", "ada", "age", "34"),
        ("I just turned 35!", "ada", "age", "35"),
        ("I got married to Ben", "ada", "relationship", "married"),
        ("My phone number is 555-123.", "ada", "phone number", "555-123"),
        ("My new phone number is now +49 151 234.", "ada", "phone number", "+49 151 234"),
        ("My favourite food is sushi, by far.", "ada", "favourite food", "sushi"),
        ("My email is ada@example.org.", "ada", "email", "ada@example.org"),
        ("Caroline's birthday is on May 3.", "caroline", "birthday", "May 3"),
        ("The budget has been changed to 450.50 euros.", "the", "budget", "450.50 euros"),
        ("The meeting is on Friday.", "the", "meeting (on when)", "Friday"),
        ("The meeting is in Leeds.", "the", "meeting (in)", "Leeds"),
    ],
)
def test_what_has_one_value_is_read(statement: str, subject: str, attribute: str, value: str):
    parsed = parse_statement(statement, speaker="Ada")
    assert parsed is not None
    assert (parsed.subject, parsed.attribute, parsed.value, parsed.ends) == (subject, attribute, value, False)


@pytest.mark.parametrize(
    ("statement", "attribute", "value"),
    [
        ("I no longer live in Lisbon.", "residence", "Lisbon"),
        ("I don't live in Lisbon any more.", "residence", "Lisbon"),
        ("I quit working at Acme.", "employer", "Acme"),
        ("I have left Acme", "employer", "Acme"),
    ],
)
def test_what_is_so_no_more(statement: str, attribute: str, value: str):
    parsed = parse_statement(statement, speaker="Ada")
    assert parsed is not None
    assert (parsed.attribute, parsed.value, parsed.ends) == (attribute, value, True)


@pytest.mark.parametrize(
    "statement",
    [
        "I like apples.",
        "I visited Lisbon.",
        "I lived in Lisbon for years.",
        "I used to live in Lisbon.",
        "I want to live in Lisbon.",
        "I might move to Lisbon.",
        "I would live in Lisbon.",
        "If I live in Lisbon, I am happy.",
        "When I live in Lisbon I swim.",
        "Do you live in Lisbon?",
        "I live in Lisbon?",
        "I live in a small flat.",
        "I moved to the marketing department.",
        "I work for hours.",
        "She lives in Rome.",
        "You live in Rome.",
        "It is 5.",
        "My sister is a doctor.",
        "My sister is in love.",
        "The castle is open.",
        "I never live in Rome.",
        "Moving is hard.",
        "",
        "???",
    ],
)
def test_what_is_not_sure_says_nothing(statement: str):
    assert parse_statement(statement, speaker="Ada") is None


@given(st.text(max_size=200), st.text(max_size=20))
def test_any_text_can_be_asked(statement: str, speaker: str):
    parsed = parse_statement(statement, speaker=speaker)
    assert parsed is None or (parsed.subject and parsed.attribute and parsed.value)


def test_long_hostile_text_takes_no_time():
    for text in ("I " * 50_000, "my " + "a b " * 30_000 + "is 5", "and " * 50_000, "I am " + "now " * 50_000 + "5"):
        parse_statement(text, speaker="x")


@pytest.mark.parametrize(("one", "other"), [("the Porto", "porto"), (" 400 euros", "400  Euros"), ("about 5", "5")])
def test_values_are_compared_without_their_dress(one: str, other: str):
    assert comparable(one) == comparable(other)
    assert comparable("5 euros") != comparable("5 dollars")
