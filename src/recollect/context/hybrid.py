"""Documents, conversations and facts in one context: ranked together, in one budget. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from recollect.context.assembly import SEPARATOR, AssembledContext, assemble
from recollect.context.blocks import context_block
from recollect.context.merging import (
    HybridPassage,
    Scales,
    is_echo,
    merged,
    no_scale,
    passage_of_document,
    passage_of_fact,
    passages_of_memory,
    told_by,
)
from recollect.context.weights import RetrievalWeights, WeightAdaptation
from recollect.errors import UsageError
from recollect.llm.base import estimate_tokens

if TYPE_CHECKING:
    from recollect.model import RetrievedContext
    from recollect.model.facts import RecalledFact
    from recollect.model.memory import Recollection

#: Tokens of the budget for which one passage is asked for.
TOKENS_A_PASSAGE = 100

_MAX_PASSAGES = 1_000
# Counting tokens takes longer than searching. Tokens that no passage, and no sentence below its header, is shorter
# than; and how many passages of a side in a row are too long for what is left before the others are believed to be.
_CRUMBS = 12
_SENTENCE = 32
_MISSES = 4
_SPARE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridContext:
    """What a language model is shown.

    Attributes:
        query: As asked.
        passages: What is shown, in order of the numbers.
        context: The same as text, numbered, within the budget.
        weights: As used.
        adaptation: How feedback has moved the weights; None: it is not asked.
    """

    query: str
    passages: tuple[HybridPassage, ...] = ()
    context: AssembledContext = field(default_factory=AssembledContext)
    weights: RetrievalWeights
    adaptation: WeightAdaptation | None = None

    @property
    def text(self) -> str:
        """The numbered passages; empty where nothing was found."""
        return self.context.text

    @property
    def token_count(self) -> int:
        """Tokens of `text`."""
        return self.context.token_count

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of the passages, each once, in their order."""
        return tuple(dict.fromkeys(passage.source for passage in self.passages))


def passages_for(token_budget: int) -> int:
    """How many passages of each side to search for: enough to fill the budget alone, should they be short.

    Raises:
        UsageError: The budget is less than 1.
    """
    if token_budget < 1:
        raise UsageError(f"token_budget must be at least 1, not {token_budget!r}.")
    return min(_MAX_PASSAGES, max(1, _SPARE * token_budget // TOKENS_A_PASSAGE))


def hybrid_context(
    query: str,
    *,
    documents: Sequence[RetrievedContext] = (),
    turns: Sequence[Recollection] = (),
    facts: Sequence[RecalledFact] = (),
    weights: RetrievalWeights,
    token_budget: int,
    facts_first: bool = False,
    count_tokens: Callable[[str], int] = estimate_tokens,
    language: str = "en",
    scales: Scales = no_scale,
) -> HybridContext:
    """What answers a query of documents and of conversations, in one order and within one budget.

    Each side fills its own share of the budget first, with its best passage for each 100 tokens of it (at least one)
    before any other, and what one side leaves is the other's. The order is that of both together: similarities to the
    question, on one scale where several models measured them, are weighed by side, and BM25 counted over both has the
    other half of the say. A turn is shown once, and the question itself, where it has been remembered already, not at
    all.

    Args:
        query: In plain words.
        documents: Passages, best first.
        turns: Of conversations, best first.
        facts: Drawn from conversations, best first; they are memory, as turns are.
        weights: What each side weighs.
        token_budget: Tokens at most, headers included; never exceeded.
        facts_first: Whether facts fill memory's share before turns do.
        count_tokens: Counts tokens as the model does that will read the context.
        language: ISO 639-1, of the words that both are reranked by.
        scales: Gives the scale of an embedding model, where several measured what was found.
    """
    shares = {"document": weights.rag, "memory": weights.memory}
    found = merged(
        query,
        [
            *(passage_of_document(passage) for passage in documents if passage.content.strip()),
            *passages_of_memory(turns, query),
            *(passage_of_fact(one) for one in facts),
        ],
        shares,
        language=language,
        scales=scales,
    )
    chosen, likely = _fitting(
        found,
        _reserve(found, token_budget, shares),
        {side: token_budget * share for side, share in shares.items()},
        budget=token_budget,
        facts_first=facts_first,
        count_tokens=count_tokens,
    )
    context = assemble(
        [item.passage for item in chosen],
        token_budget=token_budget,
        count_tokens=count_tokens,
        language=language,
        likely=likely,
    )
    by_id = {item.passage.chunk_id: item for item in chosen}
    shown = tuple(
        replace(by_id[passage.chunk_id], passage=passage, content=passage.content) for passage in context.passages
    )
    return HybridContext(query=query, passages=shown, context=context, weights=weights)


def _fitting(
    found: Sequence[HybridPassage],
    reserve: Set[int],
    room: dict[str, float],
    *,
    budget: int,
    facts_first: bool,
    count_tokens: Callable[[str], int],
) -> tuple[list[HybridPassage], int]:
    """What is shown, best first: each side within its ``room``, then the best of the rest while there is some.

    Returns:
        The passages, and how many of them fit whole; one more is to be shortened.
    """
    by_number = {item.passage.chunk_id: item for item in found}

    @cache
    def cost(number: int) -> int:
        return count_tokens(context_block(by_number[number].passage, number=10) + SEPARATOR)

    chosen: set[int] = set()
    told: set[int] = set()
    left = float(budget)
    own = [item for item in found if item.passage.chunk_id not in reserve]
    first = [item for item in found if facts_first and item.kind == "fact"]
    # The best of each side within its share, then more of each within it, then whatever there is room for.
    for items, shared in ((first, True), (own, True), (found, True), (found, False)):
        missed = {"document": 0, "memory": 0}
        for item in items:
            key = item.passage.chunk_id
            limit = min(room[item.side], left) if shared else left
            # Of a fact and the turn that it was drawn from, one is enough.
            if key in chosen or limit < _CRUMBS or missed[item.side] >= _MISSES or is_echo(item, told):
                continue
            if cost(key) > limit:
                missed[item.side] += 1
                continue
            room[item.side] -= cost(key)
            left -= cost(key)
            chosen.add(key)
            told |= told_by(item)
    kept = [item for item in found if item.passage.chunk_id in chosen]
    # The best that is too long for what is left comes last: as many of its sentences are shown as fit.
    rest = (item for item in found if item.passage.chunk_id not in chosen and not is_echo(item, told))
    return [*kept, *islice(rest, 0 if kept and left < _SENTENCE else 1)], len(kept)


def _reserve(items: Sequence[HybridPassage], budget: int, shares: Mapping[str, float]) -> frozenset[int]:
    """What of each kind comes, in its own search, after the best for each 100 tokens of its side's share."""
    reserve: set[int] = set()
    for kind in {item.kind for item in items}:
        found = sorted((item for item in items if item.kind == kind), key=lambda item: item.passage.rank)
        reserve.update(item.passage.chunk_id for item in found[_own(budget, shares[found[0].side]) :])
    return frozenset(reserve)


def _own(budget: int, share: float) -> int:
    """How many passages fill a side's share of the budget."""
    return max(1, int(budget * share) // TOKENS_A_PASSAGE)
