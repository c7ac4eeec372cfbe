"""Which edition a document is, by its name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.retrieval.shaping import covers_the_same, edition_of, is_older


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("hr/leave_policy_2024.md", "hr/leave_policy.pdf"),
        ("policy-2023.md", "policy-2025.md"),
        ("policy-2023.md", "Policy 2025.docx"),
        ("policies/2023/leave.md", "policies/2025/leave.md"),
        ("guide-v1.md", "guide-v2.md"),
        ("guide-v1.9.md", "guide-v1.10.md"),
        ("api/v1/users.html", "api/v2/users.html"),
        ("report-2024-03-01.txt", "report-2024-04-01.txt"),
        ("report_20240301.txt", "report_20240302.txt"),
        ("report-2023-q1.txt", "report-2024-q1.txt"),
        ("terms version 2.md", "terms version 3.md"),
        ("terms-2023-v1.md", "terms-2023-v2.md"),
    ],
)
def test_names_tell_which_is_older(older: str, newer: str):
    one, other = edition_of(older), edition_of(newer)
    assert one.older_than(other) is True
    assert other.older_than(one) is not True
    assert is_older(one, None, other, None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("policy-2023.md", "policy-2023.pdf"),
        ("hr/policy-2023.md", "it/policy-2025.md"),
        ("leave-2023.md", "travel-2025.md"),
        ("policy-2023.md", "policy-v2.md"),
        ("report-17.md", "report-18.md"),
        ("building-1900s.md", "building.md"),
        ("order-20231301.md", "order-20241301.md"),
        ("a.md", "b.md"),
        ("2023.md", "2024.md"),
    ],
)
def test_names_that_tell_nothing(one: str, other: str):
    assert edition_of(one).older_than(edition_of(other)) is None


def test_dates_contradict_an_undated_name_only():
    early, late = datetime(2020, 1, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)
    dated, undated = edition_of("policy_2024.md"), edition_of("policy.md")
    assert is_older(dated, early, undated, late)
    assert not is_older(dated, late, undated, early)
    assert is_older(edition_of("policy_2023.md"), late, dated, early)


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_two_names_are_each_older(one: str, other: str):
    first, second = edition_of(one), edition_of(other)
    assert not (first.older_than(second) and second.older_than(first))
    assert first.older_than(first) is None


def test_passages_about_the_same_share_their_words_whatever_the_numbers():
    before = "Every employee is entitled to 28 days of paid annual leave per calendar year."
    after = "Every full-time employee is entitled to 30 days of paid annual leave per calendar year, since 2026."
    assert covers_the_same(before, after)
    assert not covers_the_same(
        before, "The visitor badge is returned at the reception desk before leaving the building."
    )
    assert not covers_the_same("28 days", "28 days")
