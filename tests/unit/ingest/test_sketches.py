"""Sketches: equal for equal texts, alike for texts that are alike, and the same for ever."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from recollect.ingest.prepare import bands, likeness, runs


def words(count: int, seed: int) -> list[str]:
    lot = Random(seed)
    return [f"w{lot.randrange(5_000)}" for _ in range(count)]


def test_bands_are_stored_so_they_never_change():
    assert bands(" ".join(map(str, range(100))))[:4] == (1082139449, -237722765, -1718655980, -1543430546)
    assert bands("Too short a text to be like another.") == ()
    assert bands("") == ()


def test_case_and_punctuation_make_no_difference():
    one = " ".join(words(60, 1))
    assert bands(one) == bands(one.upper().replace(" ", ", "))
    assert likeness(one, one.upper().replace(" ", "\n")) == 1.0
    assert likeness("", "") == 1.0


def test_texts_that_are_alike_share_a_band_and_others_do_not():
    missed = alarms = 0
    for seed in range(40):
        text = words(600, seed)
        edited = list(text)
        for at in Random(seed).sample(range(600), 12):
            edited[at] = "changed"
        one, other = " ".join(text), " ".join(edited)
        assert 0.75 < likeness(one, other) < 1
        missed += not set(bands(one)) & set(bands(other))
        alarms += bool(set(bands(one)) & set(bands(" ".join(words(600, 1_000 + seed)))))
    assert (missed, alarms) == (0, 0)


@given(st.text(st.characters(codec="ascii") | st.sampled_from(" a.")))
def test_words_of_ascii_are_found_as_those_of_any_text(text: str):
    assert runs(text) == runs(f"{text} \N{MIDDLE DOT}")
