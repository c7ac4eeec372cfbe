from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.errors import UsageError
from recollect.model import RetrievedContext
from recollect.retrieval.passages import Gap, Stretch, gaps_between, merge_adjacent, widen

TEXT = "Leave is 28 days.\n\nAsk early. Carry over five days.\n\nSick leave needs a note.\n"


def passage(start, end, *, rank=1, document_id=1, text=TEXT, **more):
    fields = {"chunk_id": 1000 * document_id + start, "section": f"section {start}", "page": start // 10 + 1} | more
    return RetrievedContext(
        rank=rank,
        score=1 / rank,
        content=text[start:end],
        document_id=document_id,
        title="Leave",
        source="hr/leave.md",
        start_offset=start,
        end_offset=end,
        metadata={},
        **fields,
    )


def merged(*passages, text=TEXT, **options):
    max_gap = {name: value for name, value in options.items() if name == "max_gap"}
    gap_texts = {gap: text[gap.start_offset : gap.end_offset] for gap in gaps_between(passages, **max_gap)}
    return merge_adjacent(passages, gap_texts=gap_texts, **options)


def spans(passages):
    return [(p.start_offset, p.end_offset) for p in passages]


def test_neighbours_become_one_with_the_blank_lines_between_them():
    (found,) = merged(passage(19, 51, rank=1), passage(0, 17, rank=3), passage(53, 77, rank=2))
    assert found.content == TEXT[0:77]
    assert (found.start_offset, found.end_offset) == (0, 77)
    assert (found.rank, found.score, found.chunk_id) == (1, 1.0, 1019)
    assert (found.section, found.page) == ("section 19", 1)
    assert found.chunk_ids == (1000, 1019, 1053)


def test_without_the_gaps_characters_neighbours_stay_apart():
    one, other = passage(0, 17), passage(19, 51, rank=2)
    assert gaps_between([other, one]) == (Gap(1, None, 17, 19),)
    assert merge_adjacent([other, one]) == [one, other]
    assert merge_adjacent([one, other], gap_texts={Gap(1, None, 17, 19): "\n"}) == [one, other]


def test_what_is_far_apart_or_in_another_document_or_version_stays_apart():
    assert spans(merged(passage(0, 17), passage(53, 77, rank=2), max_gap=35)) == [(0, 17), (53, 77)]
    assert len(merged(passage(0, 17), passage(19, 51, rank=2, document_id=2))) == 2
    assert len(merged(passage(0, 17, version_id=4), passage(10, 51, rank=2, version_id=5))) == 2


def test_versions_that_cannot_be_told_apart_are_by_their_characters():
    changed = TEXT.replace("28", "30")
    assert len(merged(passage(0, 17), passage(5, 51, rank=2, text=changed))) == 2
    broken = replace(passage(0, 17), content="shorter")
    assert merged(broken, passage(10, 51, rank=2)) == [broken, passage(10, 51, rank=2)]
    assert merged(broken, passage(19, 51, rank=2)) == [broken, passage(19, 51, rank=2)]


def test_the_limit_joins_what_ranks_best_first():
    left, middle, right = passage(0, 17, rank=3), passage(19, 51, rank=2), passage(53, 77, rank=1)
    assert spans(merged(left, middle, right, max_length=60)) == [(19, 77), (0, 17)]
    assert spans(merged(left, replace(middle, rank=1), replace(right, rank=4), max_length=60)) == [(0, 51), (53, 77)]
    assert spans(merged(left, middle, right, max_length=10)) == [(53, 77), (19, 51), (0, 17)]


def test_the_limit_leaves_out_the_worst_not_whoever_stands_beside_the_best():
    fourth, first, second, third = (
        passage(start, start + 10, rank=rank) for start, rank in [(0, 4), (10, 1), (20, 2), (30, 3)]
    )
    assert spans(merged(fourth, first, second, third, max_length=30)) == [(10, 40), (0, 10)]


def test_a_part_of_a_longer_passage_is_absorbed_whatever_the_limit():
    (found,) = merged(passage(0, 77, rank=2), passage(19, 30, rank=1), max_length=5)
    assert (found.content, found.rank, found.chunk_id) == (TEXT[0:77], 1, 1019)


def test_duplicates_of_all_parts_are_remembered():
    (found,) = merge_adjacent(
        [
            passage(0, 20, rank=2, duplicates=(8, 1010)),
            passage(10, 40, rank=1, chunk_id=1010, duplicates=(9, 8)),
        ]
    )
    assert found.chunk_ids == (1000, 1010)
    assert found.duplicates == (9, 8)


def test_merging_again_changes_nothing():
    once = merged(passage(0, 17, rank=1), passage(19, 51, rank=2), passage(19, 30, rank=3, document_id=2))
    assert merged(*once) == once


def test_neighbours_widen_a_passage():
    stretch = Stretch(0, 51, TEXT[0:51], 1)
    (found,) = widen([passage(19, 29, rank=7)], {1019: stretch})
    assert (found.content, found.rank, found.section, found.page) == (TEXT[0:51], 7, "section 19", 1)
    assert spans([found]) == [(0, 51)]


@pytest.mark.parametrize(
    "stretch",
    [Stretch(0, 51, TEXT[0:50]), Stretch(20, 51, TEXT[20:51]), Stretch(0, 51, TEXT.replace("early", "later")[0:51])],
)
def test_a_stretch_that_does_not_hold_the_passage_is_not_shown(stretch):
    hit = passage(19, 30)
    assert widen([hit, passage(0, 5)], {1019: stretch}) == [hit, passage(0, 5)]


def test_widened_neighbours_merge():
    found = widen(
        [passage(0, 17), passage(53, 77, rank=2)],
        {1000: Stretch(0, 51, TEXT[0:51]), 1053: Stretch(19, 77, TEXT[19:77])},
    )
    assert spans(merge_adjacent(found)) == [(0, 77)]


@pytest.mark.parametrize("options", [{"max_gap": -1}, {"max_length": 0}])
def test_limits_out_of_range_are_refused(options):
    with pytest.raises(UsageError, match=next(iter(options))):
        merge_adjacent([passage(0, 17), passage(19, 51)], **options)


DOCUMENT = "".join(f"{number} " for number in range(60))


@st.composite
def some_passages(draw):
    chosen = draw(
        st.lists(st.tuples(st.integers(0, 150), st.integers(1, 60), st.integers(1, 2)), max_size=12, unique=True)
    )
    ranks = draw(st.permutations(range(1, len(chosen) + 1)))
    return [
        passage(start, min(start + length, len(DOCUMENT)), rank=rank, document_id=document_id, text=DOCUMENT)
        for (start, length, document_id), rank in zip(chosen, ranks, strict=True)
    ]


@settings(max_examples=60, deadline=None)
@given(some_passages(), st.integers(0, 20), st.integers(1, 120))
def test_merging_keeps_every_character_at_its_place(passages, max_gap, max_length):
    found = merged(*passages, text=DOCUMENT, max_gap=max_gap, max_length=max_length)
    longest = max((len(p.content) for p in passages), default=0)
    for p in found:
        assert DOCUMENT[p.start_offset : p.end_offset] == p.content
        assert len(p.content) <= max(max_length, longest)
    for p in passages:
        assert any(
            (m.document_id, m.start_offset <= p.start_offset, m.end_offset >= p.end_offset, m.rank <= p.rank)
            == (p.document_id, True, True, True)
            for m in found
        )
    assert [p.rank for p in found] == sorted({p.rank for p in found})
    assert min((p.rank for p in found), default=1) == 1


@settings(max_examples=60, deadline=None)
@given(some_passages(), st.integers(0, 20))
def test_without_a_limit_nothing_that_touches_stays_apart(passages, max_gap):
    found = merged(*passages, text=DOCUMENT, max_gap=max_gap, max_length=10_000)
    ordered = sorted(found, key=lambda p: (p.document_id, p.start_offset))
    assert all(
        one.document_id != other.document_id or other.start_offset - one.end_offset > max_gap
        for one, other in pairwise(ordered)
    )
