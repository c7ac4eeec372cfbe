"""Principals and permissions as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import UsageError
from recollect.model.principal import KINDS, Permissions, Principal, read_permissions, read_token

NAMES = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters=","), min_size=1, max_size=20)


def test_tokens_are_everything_that_a_grant_could_name():
    ann = Principal(user_id="ann", roles=("b", "a", "a"), department="hr", groups=("g",))
    assert ann.tokens == ("*", "user:ann", "department:hr", "role:a", "role:b", "group:g")
    assert Principal().tokens == ("*",)
    assert ann == Principal(user_id=" ann ", roles=("a", "b"), department="hr", groups=("g",))


def test_names_are_compared_in_one_unicode_form_but_letter_by_letter():
    assert Principal(user_id="Rene\u0301").tokens == Principal(user_id="Ren\u00e9").tokens
    assert read_token("user:Rene\u0301") == "user:Ren\u00e9"
    assert Principal(roles=("manager",)).tokens != Principal(roles=("Manager",)).tokens


@pytest.mark.parametrize("name", ["*", "role:boss", "a:b", "!ann", "\u05d0\u05e0\u05d4"])
def test_no_name_can_be_taken_for_another_kind_of_grant(name: str):
    assert Principal(user_id=name).tokens == ("*", f"user:{name}")


BAD_PRINCIPALS = [
    {"user_id": ""}, {"user_id": " "}, {"user_id": "a\0b"}, {"user_id": "a\nb"}, {"user_id": 7}, {"user_id": "x" * 501},
    {"roles": "boss"}, {"roles": (1,)}, {"roles": None}, {"groups": ("",)}, {"department": "\u202e"},
]  # fmt: skip


@pytest.mark.parametrize("fields", BAD_PRINCIPALS, ids=range(len(BAD_PRINCIPALS)))
def test_principals_that_are_none_are_refused(fields):
    with pytest.raises(UsageError):
        Principal(**fields)


@pytest.mark.parametrize(
    ("given", "grants", "denials"),
    [
        (["role:hr", "role:hr", "*"], ("*", "role:hr"), ()),
        ("role:hr, !user:bob", ("role:hr",), ("user:bob",)),
        ('["role:hr", "! group:g"]', ("role:hr",), ("group:g",)),
        (["!*"], (), ("*",)),
        ([" user : ann:b "], ("user:ann:b",), ()),
    ],
)
def test_permissions_are_read_as_people_write_them(given, grants, denials):
    assert read_permissions(given) == Permissions(grants=grants, denials=denials)


@pytest.mark.parametrize(
    "given",
    [[], "", ["hr"], ["role:"], ["roles:hr"], [None], [["role:hr"]], 7, ["role:a\0"], ["!"], ["!!user:a"], "hr"],
)
def test_what_is_no_permission_is_refused_and_never_taken_for_everybody(given):
    with pytest.raises(UsageError):
        read_permissions(given)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(KINDS), NAMES), min_size=1, max_size=5))
def test_permissions_survive_being_written_down(given):
    written = [f"{'!' if denied else ''}{kind}:{name}" for denied, kind, name in given]
    read = read_permissions(written)
    assert read_permissions(read.as_tokens()) == read
