"""How keys are written, and what is told from one that was not copied whole."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import AuthenticationError
from recollect.model.key import PATTERN, KeyText, draw_key, read_key

# One key, and not one of each process: names of tests hold it.
KEY = read_key("rk_7_1xVChw6OCJ7kol_nsyz4A7Kng7F3LdNaQaYZhhHOekSaG81TQL5UA81Zk9441Do0")


@given(tenant=st.integers(1, 2**31 - 1))
def test_a_key_is_read_as_it_was_drawn_and_found_by_scanners(tenant: int):
    drawn = draw_key(tenant)
    assert read_key(drawn.text) == drawn
    assert drawn.tenant_id == tenant
    assert re.fullmatch(PATTERN, drawn.text)
    assert re.findall(rf"\b{PATTERN}\b", f'curl -H "Authorization: Bearer {drawn.text}"') == [drawn.text]


def test_no_two_keys_are_alike_and_ids_sort_by_their_time():
    drawn = [draw_key(1) for _ in range(200)]
    assert len({key.text for key in drawn}) == len({key.key_id for key in drawn}) == 200
    times = [key.key_id[:6] for key in drawn]
    assert times == sorted(times)


def test_another_secret_of_the_same_key_has_another_hash():
    other = draw_key(7, KEY.key_id)
    assert (other.key_id, other.tenant_id) == (KEY.key_id, KEY.tenant_id)
    assert other.hash != KEY.hash


def test_neither_repr_nor_error_shows_a_secret():
    secret = KEY.text.rpartition("_")[2]
    assert secret not in repr(KEY)
    with pytest.raises(AuthenticationError) as caught:
        read_key(KEY.text[:-1] + ("a" if KEY.text[-1] != "a" else "b"))
    assert secret[:20] not in str(caught.value)


@given(at=st.integers(0, len(KEY.text) - 1), letter=st.characters())
def test_one_wrong_character_is_noticed(at: int, letter: str):
    changed = KEY.text[:at] + letter + KEY.text[at + 1 :]
    if changed == KEY.text:
        return
    with pytest.raises(AuthenticationError):
        read_key(changed)


@pytest.mark.parametrize("count", range(len(KEY.text)))
def test_a_key_that_is_cut_off_is_none(count: int):
    with pytest.raises(AuthenticationError):
        read_key(KEY.text[:count])


@pytest.mark.parametrize(
    "text",
    [
        *("", "rk_", "rk_0_" + KEY.text[5:], KEY.text + "\n", " " + KEY.text, KEY.text * 2, KEY.text.upper()),
        *("rk_٧_" + KEY.text[5:], KEY.text.replace("rk_7", "rk_８"), "rk_" + "9" * 4000 + KEY.text[4:]),
        *("\ud800", "rk_07" + KEY.text[4:], "Bearer " + KEY.text, KEY.text.replace("_", "__")),
    ],
)
def test_what_is_no_key_is_refused(text: str):
    with pytest.raises(AuthenticationError):
        read_key(text)


def test_another_tenants_number_does_not_fit_the_checksum():
    with pytest.raises(AuthenticationError, match="checksum"):
        read_key(KEY.text.replace("rk_7_", "rk_8_"))


def test_a_tenant_that_no_column_holds_is_refused():
    with pytest.raises(AuthenticationError):
        read_key(draw_key(2**31).text)
    assert isinstance(read_key(draw_key(2**31 - 1).text), KeyText)
