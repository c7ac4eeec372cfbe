from __future__ import annotations

import pytest

from recollect.answer._names import identifiers
from recollect.answer._quantities import quantities


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Write to jane.doe+hr@mail.example.org.", ["jane.doe+hr@mail.example.org"]),
        ("Or call +49 421 555-1234, see https://example.org/a?b=1.", ["+49 421 555-1234", "https://example.org/a?b=1"]),
        ("README.md and docs/setup_guide.pdf.", ["README.md", "docs/setup_guide.pdf"]),
        ("ERR-4012 and max_sessions of FRM-HR in version 3.12.1", ["ERR-4012", "max_sessions", "FRM-HR", "3.12.1"]),
        ("The well-known EUR400 fee and/or 28 days at 9.30", []),
    ],
)
def test_what_is_an_identifier(text, found):
    assert [one.text for one in identifiers(text)] == found


@pytest.mark.parametrize("part", ["a", "a.", "a-", "a-a.", "a+", "1.1.", "+1 ", "_a-", "@a", "a@a.", "1-1111"])
def test_no_text_takes_long(part):
    # A pattern that tries every beginning of a run up to its end takes minutes here.
    identifiers(part * 200_000)
    identifiers(part * 200_000 + "@")


@pytest.mark.parametrize(
    "text",
    [
        "1-" * 4_000,
        "1 to 1 and " * 2_000,
        "may" + " " * 40_000,
        "1" + " " * 40_000 + "x",
        "二" * 200_000,
        "二" * 200_000 + "天",
    ],
)
def test_no_range_or_date_takes_long(text):
    quantities(text)
