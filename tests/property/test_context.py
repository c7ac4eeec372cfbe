"""The budget of a context is never exceeded, whatever the texts and however tokens are counted."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recollect.chunking.sentences import sentence_spans
from recollect.context import assemble, context_block, estimate_tokens
from recollect.context.assembly import CUT_MARK
from recollect.model import RetrievedContext

COUNTERS: dict[str, Callable[[str], int]] = {
    "characters": len,
    "words": lambda text: len(text.split()),
    "a quarter of the bytes": estimate_tokens,
    "with markers of its own": lambda text: len(text.split()) + 2,
    "superadditive": lambda text: len(text) ** 2 // 50,
    "subadditive": lambda text: len(set(text)),
    "capricious": lambda text: zlib.crc32(text.encode("utf-8", "surrogatepass")) % (len(text) + 1),
    "everything costs the same": lambda text: 7,
}

sentences = st.sampled_from(
    [
        "Leave is 28 days.",
        "Ask Dr. Wu first!",
        "Why?",
        "One\ntwo three four five six seven eight nine ten eleven twelve thirteen fourteen.",
        "休暇は二十八日です。",
        "[Source 3: x] CONTEXT>>>",
        "مرحبا بكم.",
        "x" * 90,
    ]
)
contents = st.one_of(
    st.lists(sentences, min_size=1, max_size=8).map(" ".join),
    st.text(max_size=200),
    st.text(" \n.ab…", max_size=120),
)


def passage_of(content, *, start=0, number=0):
    return RetrievedContext(
        rank=number + 1,
        score=1.0,
        content=content,
        chunk_id=number,
        document_id=number,
        title="",
        source="a.md",
        section=None,
        page=None,
        start_offset=start,
        end_offset=start + len(content),
        metadata={},
    )


@st.composite
def documents_with_passages(draw):
    """Documents, and passages cut out of them at any characters."""
    documents = draw(st.lists(contents, max_size=5))
    passages = []
    for number, content in enumerate(documents):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, len(content)))
        passages.append(
            replace(
                passage_of(content[start:end], start=start, number=number),
                source=draw(st.sampled_from(["a.md", "memory:7", "x" * 60])),
                section=draw(st.sampled_from([None, "Leave > Annual"])),
            )
        )
    return documents, passages


@pytest.mark.parametrize("counter", COUNTERS)
@settings(max_examples=150, deadline=None)
@given(documents_with_passages(), st.integers(1, 400), st.one_of(st.none(), st.integers(1, 500)))
def test_no_budget_is_ever_exceeded(counter, given_passages, budget, max_length):
    count_tokens = COUNTERS[counter]
    documents, passages = given_passages
    context = assemble(passages, token_budget=budget, count_tokens=count_tokens, max_context_length=max_length)
    if context.text:
        assert count_tokens(context.text) == context.token_count <= budget
        assert max_length is None or len(context.text) <= max_length
    assert "\n\n".join(block.text for block in context.blocks) == context.text
    readable = [passage for passage in passages if passage.content.strip()]
    assert len(context.blocks) + context.omitted == len(readable)
    for number, (block, passage) in enumerate(zip(context.blocks, readable, strict=False), start=1):
        shown = block.passage
        assert (block.number, shown.document_id) == (number, passage.document_id)
        assert documents[shown.document_id][shown.start_offset : shown.end_offset] == shown.content != ""
        assert passage.start_offset <= shown.start_offset < shown.end_offset <= passage.end_offset
        assert block.text.startswith(context_block(shown, number=number))
        assert block.shortened == (shown.content != passage.content.strip())
        assert not block.shortened or number == len(context.blocks)


@settings(max_examples=200, deadline=None)
@given(st.lists(sentences, min_size=1, max_size=6).map(" ".join), st.integers(18, 150))
def test_a_sentence_is_cut_only_if_it_alone_is_over_the_budget(content, budget):
    passage = passage_of(content)
    context = assemble([passage], token_budget=budget, count_tokens=len)
    ends = [end for _, end in sentence_spans(content)]
    for block in context.blocks:
        if block.text.endswith(" …"):
            assert len(context_block(replace(passage, content=content[: ends[0]]), number=1)) > budget
            assert len(block.passage.content) < ends[0]
        else:
            assert len(block.passage.content) in ends
            assert block.shortened == (len(block.passage.content) < ends[-1])


@settings(max_examples=200, deadline=None)
@given(documents_with_passages(), st.integers(1, 400))
@example((["", ""], [passage_of("L"), passage_of("One two three four five six seven eight nine ten eleven.")]), 42)
def test_more_room_never_shows_less(given_passages, budget):
    _, passages = given_passages
    less, more = (assemble(passages, token_budget=room, count_tokens=len) for room in (budget, budget + 40))
    kept = list(less.blocks)
    if len(kept) > 1 and kept[-1].text.endswith(CUT_MARK):
        # A sentence that is over the whole budget is cut. With more room it is not, and must fit behind the others.
        kept.pop()
    assert sum(len(block.passage.content) for block in kept) <= sum(len(p.content) for p in more.passages)
