"""Rules over paths: the last that matches decides, and no pattern takes long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import UsageError
from recollect.sources.base import GrantRules, matches, wanted


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*", "a.md", True),
        ("*", "in/a.md", True),
        ("*.md", "in/deep/a.md", True),
        ("*.md", "a.txt", False),
        ("hr/", "hr/a.md", True),
        ("hr/", "in/hr/a.md", True),
        ("/hr/", "in/hr/a.md", False),
        ("hr/", "hr", False),
        ("hr", "hr/pay/a.md", True),
        ("hr/**", "hr/pay/a.md", True),
        ("hr/*.md", "hr/pay/a.md", False),
        ("**/pay/*.md", "hr/pay/a.md", True),
        ("**/pay/*.md", "pay/a.md", True),
        ("hr/**/a.md", "hr/a.md", True),
        ("a?.md", "ab.md", True),
        ("a?.md", "a/.md", False),
        ("a.md", "axmd", False),
        ("in/a.md", "in/a.mdx", False),
        ("[xy].md", "x.md", True),
        ("*", "line\nbreak.md", True),
    ],
)
def test_a_pattern_names_what_a_code_owners_file_would(pattern: str, path: str, expected: bool):
    assert matches(pattern, path) is expected


def test_the_last_rule_that_matches_decides():
    rules = GrantRules.read(["# who reads what", "", "* role:staff", "hr/ role:hr !group:interns", "'two words.md' *"])
    assert rules.of("hr/pay.md") == ("role:hr", "!group:interns")
    assert rules.of("guide.md") == ("role:staff",)
    assert rules.of("two words.md") == ("*",)
    assert GrantRules().of("guide.md") is None


@pytest.mark.parametrize("line", ["hr/", "hr/ everybody", "hr/ role:", "'open role:hr"])
def test_a_rule_that_cannot_be_read_is_refused(line: str):
    with pytest.raises(UsageError):
        GrantRules.read([line])


def test_what_is_read_is_included_and_not_excluded():
    assert wanted("a.md", include=(), exclude=())
    assert not wanted("a.txt", include=("*.md",), exclude=())
    assert not wanted("in/a.md", include=("*.md",), exclude=("in/",))


@given(st.text("ab*?/.", max_size=30), st.text("ab/.", max_size=30))
def test_any_pattern_gets_an_answer(pattern: str, path: str):
    matches(pattern, path)


def test_a_pattern_made_to_take_long_takes_no_longer():
    # The next test never comes where this one takes exponential time.
    assert not matches("*a" * 12 + "/" + "**/" * 12 + "b", "a" * 60 + "/a" * 30)
    assert not matches("*a" * 30 + "b", "a" * 200)
