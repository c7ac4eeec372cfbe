from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.errors import UsageError
from recollect.retrieval.diversity import MIN_NEAR_WORDS, Distinct, collapse_duplicates, mmr

POLICY = (
    "Full-time employees receive 28 days of paid annual leave per calendar year. Requests are made in the portal "
    "two weeks ahead, and a manager answers within three working days. Unused days may be carried over until the end "
    "of March; what is left after that lapses without compensation."
)


def cosine(a, b):
    norms = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / norms if norms else 0.0


class TestMmr:
    def test_the_extremes_of_lambda(self):
        scores, vectors = [0.2, 0.9, 0.8, 0.1], [[1, 0], [1, 0], [1, 0.1], [0, 1]]
        assert mmr(scores, vectors, lambda_=1, top_k=4) == [1, 2, 0, 3]
        assert mmr(scores, vectors, lambda_=0, top_k=2)[1] == 3

    def test_the_scale_of_scores_makes_no_difference(self):
        vectors = np.random.default_rng(1).normal(size=(30, 8))
        scores = np.linspace(1, 0, 30)
        expected = mmr(scores, vectors, top_k=10)
        assert expected != list(range(10))
        assert mmr(scores / 60, vectors, top_k=10) == expected
        assert mmr(scores * 40 - 7, vectors, top_k=10) == expected

    def test_equal_candidates_come_in_their_order(self):
        row = np.random.default_rng(2).normal(size=384)
        assert mmr([0.5] * 37, np.tile(row, (37, 1)), top_k=37) == list(range(37))

    def test_nothing_and_less_than_asked(self):
        assert mmr([], [], top_k=3) == []
        assert mmr([0.5], [[0, 0]], top_k=3) == [0]

    @pytest.mark.parametrize(
        ("scores", "vectors", "options"),
        [
            ([1.0], [[1.0]], {"lambda_": 1.1}),
            ([1.0], [[1.0]], {"top_k": 0}),
            ([1.0, 2.0], [[1.0]], {}),
            ([1.0], [1.0], {}),
            ([math.nan], [[1.0]], {}),
            ([1.0], [[math.inf]], {}),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, scores, vectors, options):
        with pytest.raises(UsageError):
            mmr(scores, vectors, **({"top_k": 1} | options))

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(
            st.tuples(st.integers(0, 10), st.lists(st.integers(-2, 2), min_size=3, max_size=3)),
            min_size=1,
            max_size=12,
        ),
        st.sampled_from([0.0, 0.25, 0.5, 0.7, 1.0]),
    )
    def test_is_what_its_authors_defined(self, candidates, lambda_):
        scores = [score / 10 for score, _ in candidates]
        vectors = [vector for _, vector in candidates]
        chosen = mmr(scores, vectors, lambda_=lambda_, top_k=5, rescale=False)
        assert len(chosen) == min(5, len(scores))
        for step, choice in enumerate(chosen):
            worth = {
                i: lambda_ * scores[i]
                - (1 - lambda_) * max((cosine(vectors[i], vectors[j]) for j in chosen[:step]), default=0)
                for i in range(len(scores))
                if i not in chosen[:step]
            }
            assert worth[choice] >= max(worth.values()) - 1e-5


def kept(texts, **options):
    return [(text.index, text.duplicates) for text in collapse_duplicates(texts, **options)]


class TestDuplicates:
    def test_the_same_words_are_one_text(self):
        texts = [POLICY, "Something else.", POLICY.upper(), "  ".join(POLICY.split()), f"**{POLICY}**"]
        assert collapse_duplicates(texts) == [Distinct(0, (2, 3, 4)), Distinct(1, ())]

    def test_editions_that_differ_in_a_number_stay(self):
        assert kept([POLICY, POLICY.replace("28", "25")]) == [(0, ()), (1, ())]
        assert kept([POLICY, POLICY.replace("28", "٢٥")]) == [(0, ()), (1, ())]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Smoking is allowed here.", "Smoking is not allowed here."),
            ("Keep below 5 °C.", "Keep below -5 °C."),
            ("if a < b then stop", "if a > b then stop"),
            ("Pay 5 €", "Pay 5 $"),
            ("Ask Ann about it today.", "Ask Bob about it today."),
            ("休暇は二十八日です", "休暇は二十五日です"),
        ],
    )
    def test_short_texts_that_differ_stay(self, one, other):
        assert kept([one, other]) == [(0, ()), (1, ())]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Call the desk.", "CALL  the\ndesk!"),
            ("Straße nach Köln", "STRASSE NACH KÖLN"),
            ("the ﬁle", "The file"),
            ("pages 5-7 of ISO-9001", "Pages 5–7 of ISO 9001"),
            ("- first\n- second item", "* First\n* second item"),
            ("年次有給休暇は二十八日です。", "年次有給休暇は、二十八日です"),
            ("مرحبا، بكم في الشركة.", "مرحبا بكم في الشركة"),
        ],
    )
    def test_punctuation_case_and_form_make_no_difference(self, one, other):
        assert kept([one, other]) == [(0, (1,))]

    def test_scripts_without_spaces_have_near_duplicates_too(self):
        text = (
            "正社員は暦年ごとに有給休暇を取得できます。申請は二週間前までにポータルで行い、上司は三日以内に回答する。"
        )
        assert kept([text, text.replace("回答", "返答")], threshold=0.85) == [(0, (1,))]

    def test_empty_input_and_texts_without_words(self):
        assert collapse_duplicates([]) == []
        assert kept(["", "---", "word", " \n", "\ud800"]) == [(0, (1, 3)), (2, ()), (4, ())]

    @pytest.mark.parametrize("threshold", [0, 1.01, math.nan])
    def test_a_threshold_out_of_range_is_refused(self, threshold):
        with pytest.raises(UsageError, match="threshold"):
            collapse_duplicates(["a"], threshold=threshold)

    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(st.lists(st.sampled_from("abc15"), max_size=30), max_size=14), st.sampled_from([0.3, 0.6, 0.9, 1.0])
    )
    def test_agrees_with_comparing_all_pairs(self, texts, threshold):
        assert kept([" ".join(words) for words in texts], threshold=threshold) == all_pairs(texts, threshold)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.text(max_size=60), max_size=12))
    def test_every_text_is_kept_or_stood_for_once(self, texts):
        groups = collapse_duplicates(texts)
        assert sorted(i for group in groups for i in (group.index, *group.duplicates)) == list(range(len(texts)))
        assert all(group.index < duplicate for group in groups for duplicate in group.duplicates)


def all_pairs(texts, threshold):
    """The definition, without hashes or an index."""

    def shingles(words):
        return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}

    def repeats(words, other):
        if words == other:
            return True
        own = shingles(words)
        share = threshold if len(words) >= MIN_NEAR_WORDS else 1
        numbers = {word for word in words if word.isdigit()}
        return bool(own) and len(own & shingles(other)) >= share * len(own) - 1e-9 and numbers <= set(other)

    groups, leader_of = {}, {}
    for index, words in enumerate(texts):
        # The same words share a leader, be it a text that merely resembles them.
        leader = leader_of.get(tuple(words))
        if leader is None:
            leader = next((other for other in groups if repeats(words, texts[other])), None)
        if leader is None:
            groups[index] = []
        else:
            groups[leader].append(index)
        leader_of.setdefault(tuple(words), index if leader is None else leader)
    return [(index, tuple(duplicates)) for index, duplicates in groups.items()]
