"""Documents, conversations and facts in one context: ranked together, in one budget. Pure: no I/O, no clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from recollect.context.assembly import SEPARATOR, AssembledContext, assemble, context_block
from recollect.errors import UsageError
from recollect.llm.base import estimate_tokens
from recollect.model import RetrievedContext
from recollect.model.arguments import checked
from recollect.model.facts import EXTRACTIVE, RecalledFact
from recollect.model.feedback import FeedbackCounts
from recollect.model.memory import Episode, RecallMode, Recollection
from recollect.model.record import Public, Record, public
from recollect.retrieval.analysis import Analyzer, term_frequencies
from recollect.retrieval.ranking import on_one_scale
from recollect.retrieval.rerank.apply import scores_of_texts

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.retrieval.indexing import TermIndexer
    from recollect.retrieval.relevance import SimilarityScale


_TOLERANCE = 0.01

#: So many more helpful passages of one side than of the other move the weights half as far as they may.
HALFWAY = 10

#: Neither side's weight becomes less by feedback.
LEAST = 0.1


@checked
@dataclass(frozen=True, slots=True)
class RetrievalWeights(Record):
    """What documents and memory weigh, which is also their share of the budget; both add up to 1.

    Attributes:
        rag: Of documents, 0 to 1.
        memory: Of conversations, 0 to 1.

    Raises:
        UsageError: One of them lies outside 0 to 1, or they do not add up to 1 (within 0.01).

    Example:
        >>> RetrievalWeights.rag_focused()
        RetrievalWeights(rag=0.7, memory=0.3)
    """

    rag: Public[float]
    memory: Public[float]

    def __post_init__(self) -> None:
        for name, weight in (("rag", self.rag), ("memory", self.memory)):
            if not 0 <= weight <= 1:
                raise UsageError(f"The weight {name!r} must lie between 0 and 1, not {weight!r}.")
        # A hair more than the tolerance, for 0.51 + 0.5 is not 1.01 in binary.
        if abs(self.rag + self.memory - 1) > _TOLERANCE + 1e-9:
            raise UsageError(
                f"The weights must add up to 1: rag {self.rag!r} and memory {self.memory!r} are "
                f"{self.rag + self.memory:g}."
            )

    @classmethod
    def balanced(cls) -> RetrievalWeights:
        """Half and half."""
        return cls(0.5, 0.5)

    @classmethod
    def rag_focused(cls) -> RetrievalWeights:
        """Documents 70 %, memory 30 %."""
        return cls(0.7, 0.3)

    @classmethod
    def memory_focused(cls) -> RetrievalWeights:
        """Documents 40 %, memory 60 %."""
        return cls(0.4, 0.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightAdaptation(Record):
    """How feedback has moved weights.

    Attributes:
        base: As configured.
        weights: As used.
        shift: What was added to memory's weight, and taken from documents'.
        tenant: The feedback on contexts of no session in particular.
        session: The feedback on contexts of the session.
        on: Whether contexts use it.
    """

    base: Public[RetrievalWeights]
    weights: Public[RetrievalWeights]
    shift: Public[float]
    tenant: Public[FeedbackCounts]
    session: Public[FeedbackCounts]
    on: Public[bool] = True

    @property
    @public
    def explanation(self) -> str:
        """In words, for ``explain``."""
        if not (self.tenant.total or self.session.total):
            return "no feedback yet: the weights are as configured"
        return (
            f"memory {self.base.memory:.2f} {'+' if self.shift >= 0 else '-'} {abs(self.shift):.2f}; "
            f"in general: {_words(self.tenant)}; in this session: {_words(self.session)}"
        )


#: Says what feedback makes of weights in a session, or, where there is none, in general.
Adapt: TypeAlias = Callable[[RetrievalWeights, str | None], WeightAdaptation]


def adapted(
    base: RetrievalWeights, *, tenant: FeedbackCounts, session: FeedbackCounts, max_shift: float
) -> WeightAdaptation:
    """Weights moved towards the side whose passages have helped more.

    What has helped and what has not is counted, and the shift computed from the counts alone: it does not depend on the
    order in which feedback came, one piece is undone by its opposite, and all of it by forgetting the counts. It grows
    with the difference d between the sides as d / (|d| + `HALFWAY`), so that no amount of feedback passes the bounds.

    Args:
        base: As configured; where one side weighs nothing, it stays so.
        tenant: Feedback on contexts of no session in particular.
        session: Feedback on contexts of the session.
        max_shift: How far memory's weight may move at most, 0 to 1.
    """
    shift = 0.0
    if base.rag > 0 and base.memory > 0:
        wanted = max_shift * (_leaning(tenant) + _leaning(session))
        # A side that weighs less than the least already does not lose any more.
        lowest, highest = min(LEAST, base.memory), max(1 - LEAST, base.memory)
        shift = min(max(base.memory + min(max(wanted, -max_shift), max_shift), lowest), highest) - base.memory
    memory = base.memory + shift
    return WeightAdaptation(
        base=base,
        weights=base if shift == 0 else RetrievalWeights(max(0.0, 1 - memory), memory),
        shift=shift,
        tenant=tenant,
        session=session,
    )


def _leaning(counts: FeedbackCounts) -> float:
    """Towards memory, -1 to 1."""
    difference = (counts.memory_helpful - counts.memory_not) - (counts.documents_helpful - counts.documents_not)
    return difference / (abs(difference) + HALFWAY)


def _words(counts: FeedbackCounts) -> str:
    if not counts.total:
        return "none"
    return (
        f"documents {counts.documents_helpful} helpful, {counts.documents_not} not, "
        f"memory {counts.memory_helpful} helpful, {counts.memory_not} not"
    )


# Passages of documents, of conversations, and facts in one order. Pure: no I/O, no clock, no chance.


#: Gives the scale of an embedding model's similarities by its name; None where it is not known.
Scales: TypeAlias = "Callable[[str], SimilarityScale | None]"

Kind = Literal["document", "memory", "fact"]

# Below every episode's number with its sign turned: of one context, all numbers differ.
_FACTS_FROM = -(1 << 61)

# What is shown of a fact's evidence.
_EVIDENCE = ("session", "position", "start_offset", "end_offset", "quote")

# Words are only compared with one another here.
_SALT = 0

# The part that words, counted over documents and memory alike, have in the final order.
_WORDS_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridPassage:
    """A passage of a document or of a conversation, or a fact, as it is shown.

    Attributes:
        kind: Which of the three; facts are memory, and share its part of the budget.
        passage: The passage; of memory it has no document (``document_id`` 0), and ``metadata`` names the session and
            the position, of a fact also the ``fact`` and its ``evidence``, the exact characters of turns.
        score: What the passages are ordered by, best first; comparable within one search only.
        recollection: The turn it came from, of a conversation.
        fact: The fact, of one.
    """

    kind: Kind
    passage: RetrievedContext
    score: float
    recollection: Recollection | None = None
    fact: RecalledFact | None = None

    @property
    def source(self) -> str:
        """The document's name, ``memory:`` and the session's, or ``fact:`` and the fact's number."""
        return self.passage.source

    @property
    def content(self) -> str:
        """What is shown of it."""
        return self.passage.content

    @property
    def side(self) -> Literal["document", "memory"]:
        """Whose part of the budget it takes."""
        return "document" if self.kind == "document" else "memory"


def merged(
    query: str,
    items: Sequence[HybridPassage],
    weights: Mapping[str, float],
    *,
    language: str,
    scales: Scales,
) -> list[HybridPassage]:
    """Both sides in one order, best first.

    Similarities to the question are weighed by side: as they are where one model measured them all, else each on its
    model's own scale. BM25, its statistics counted over all candidates alike, has the other half of the say.

    Args:
        query: As asked.
        items: Of both sides, in any order.
        weights: By side.
        language: ISO 639-1, of the words.
        scales: Gives a model's scale, where there are several.
    """
    if not items:
        return []
    meant = [weights[item.side] * score for item, score in zip(items, _comparable(items, scales), strict=True)]
    said = _said(query, [item.content for item in items], language)
    scores = [
        (1 - _WORDS_SHARE) * by_meaning + _WORDS_SHARE * by_words
        for by_meaning, by_words in zip(_scaled(meant), _scaled(said), strict=True)
    ]
    scored = [replace(item, score=score) for item, score in zip(items, scores, strict=True)]
    return sorted(scored, key=lambda item: (-item.score, item.kind, item.passage.rank))


def _said(query: str, texts: Sequence[str], language: str) -> list[float]:
    """BM25 of each text, counted over these texts as `Bm25Reranker` does it; of known words faster."""
    analyzer, indexer = _analysis(language)
    wanted = term_frequencies(analyzer.query_terms(query), salt=_SALT)
    counted = [dict(zip(one.lexemes.tolist(), one.counts.tolist(), strict=True)) for one in indexer.count(texts)]
    return scores_of_texts(wanted, counted)


@cache
def _analysis(language: str) -> tuple[Analyzer, TermIndexer]:
    """What counts words, which remembers those it has met."""
    from recollect.retrieval.indexing import TermIndexer

    return Analyzer(language), TermIndexer(language, salt=_SALT)


def _comparable(items: Sequence[HybridPassage], scales: Scales) -> list[float]:
    """How near each is to the question; where that is known of none (a search by words alone), 1 for all."""
    known = {
        place: (item.passage.embedding_model or "", item.passage.similarity)
        for place, item in enumerate(items)
        if item.passage.similarity is not None
    }
    if not known:
        return [1.0] * len(items)
    near = [similarity for _, similarity in known.values()]
    models = dict.fromkeys(model for model, _ in known.values())
    if len(models) > 1:
        near = on_one_scale(list(known.values()), {model: scales(model) for model in models})
    measured = dict(zip(known, near, strict=True))
    # Of a fact whose vector is of no use, nothing is known.
    return [max(0.0, measured.get(place, 0.0)) for place in range(len(items))]


def no_scale(_: str) -> None:
    """No model's scale is known: what was found of each is its measure."""


def _scaled(values: Sequence[float]) -> list[float]:
    """The values as shares of the greatest."""
    greatest = max(values, default=0.0)
    return [value / greatest if greatest > 0 and math.isfinite(value) else 0.0 for value in values]


def passages_of_memory(found: Sequence[Recollection], query: str) -> list[HybridPassage]:
    """Turns with their neighbours as passages; a turn is part of the best passage that it belongs to, and no other.

    What was said twice in the same words, in one conversation or in two, is one passage.

    Args:
        found: Best first.
        query: A turn that says just this is the question itself, remembered already; it answers nothing.
    """
    asked = query.strip().casefold()
    shown: set[int] = set()
    passages: dict[str, HybridPassage] = {}
    for one in found:
        around = [*one.before, one.episode, *one.after]
        fresh = [turn for turn in around if turn.episode_id not in shown and turn.content.strip().casefold() != asked]
        if one.episode in fresh:
            shown.update(turn.episode_id for turn in fresh)
            passage = _memory_passage(one, fresh)
            passages.setdefault(passage.content.casefold(), passage)
    return list(passages.values())


def _memory_passage(one: Recollection, turns: Sequence[Episode]) -> HybridPassage:
    episode = one.episode
    passage = _of_memory(
        one,
        "\n".join(f"{turn.role}: {turn.content.strip()}" for turn in turns),
        # Documents' chunks have positive numbers: of one context, all differ.
        number=-episode.episode_id,
        source=f"memory:{episode.session}",
        at=episode.at,
        metadata={"session": episode.session, "position": episode.position, "role": episode.role},
    )
    return HybridPassage(kind="memory", score=one.score, passage=passage, recollection=one)


def passage_of_fact(found: RecalledFact) -> HybridPassage:
    """A fact among the passages of both sides, with the turns that it rests on."""
    fact = found.fact
    said = fact.statement if fact.made_by != EXTRACTIVE else f"{fact.role}: {fact.statement}"
    turns = dict.fromkeys(f"{one.session}, turn {one.position}" for one in fact.evidence)
    latest = max((one for one in fact.evidence if one.kind == "source"), key=lambda one: one.episode_id, default=None)
    passage = _of_memory(
        found,
        f"{said} ({'; '.join(turns)})" if turns else said,
        number=_FACTS_FROM - fact.fact_id,
        source=fact.source,
        at=fact.at,
        metadata={
            "fact": fact.fact_id,
            "session": fact.session,
            "position": None if latest is None else latest.position,
            "role": fact.role,
            "evidence": [{name: getattr(one, name) for name in _EVIDENCE} for one in fact.evidence],
        },
    )
    return HybridPassage(kind="fact", score=found.score, passage=passage, fact=found)


def _of_memory(
    found: Recollection | RecalledFact,
    content: str,
    *,
    number: int,
    source: str,
    at: datetime | None,
    metadata: Mapping[str, Any],
) -> RetrievedContext:
    """What memory found, as a passage of no document."""
    return RetrievedContext(
        rank=found.rank,
        score=found.score,
        content=content,
        chunk_id=number,
        document_id=0,
        title=metadata["session"],
        source=source,
        section=None,
        page=None,
        start_offset=0,
        end_offset=len(content),
        metadata=metadata,
        similarity=found.similarity,
        event_time=at,
        embedding_model=found.embedding_model,
    )


def told_by(item: HybridPassage) -> set[int]:
    """The episodes that a passage says, so that a fact drawn from one of them says nothing more."""
    if item.recollection is None:
        return _rests_on(item)
    one = item.recollection
    return {turn.episode_id for turn in (*one.before, one.episode, *one.after)}


def is_echo(item: HybridPassage, told: set[int]) -> bool:
    """Whether what is shown says already what a passage would: a fact's turns, or a turn itself or as a fact."""
    episodes = _rests_on(item)
    return bool(episodes) and episodes <= told


def _rests_on(item: HybridPassage) -> set[int]:
    if item.fact is not None:
        return {one.episode_id for one in item.fact.fact.evidence if one.kind == "source"}
    return set() if item.recollection is None else {item.recollection.episode.episode_id}


#: Tokens of the budget for which one passage is asked for.
TOKENS_A_PASSAGE = 100

_MAX_PASSAGES = 1_000
# Counting tokens takes longer than searching. Tokens that no passage, and no sentence below its header, is shorter
# than; and how many passages of a side in a row are too long for what is left before the others are believed to be.
_CRUMBS = 12
_SENTENCE = 32
_MISSES = 4
_SPARE = 2

ContextStrategy = Literal["rag", "documents", "hybrid", "episodic", "semantic", "bm25"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """What a context is made of.

    Attributes:
        documents: Whether documents are searched.
        memory: Whether conversations are.
        facts: Whether the facts drawn from them are; ``"first"``: and fill memory's share before turns do.
        mode: How all are searched; None: documents as configured, memory by words and meaning.
        weights: What each side weighs where the caller leaves it open.
    """

    documents: bool = True
    memory: bool = True
    facts: bool | Literal["first"] = True
    mode: RecallMode | None = None
    weights: RetrievalWeights = field(default_factory=RetrievalWeights.memory_focused)


#: Semantic memory is facts; an episodic context is made of turns as they were said.
STRATEGIES: dict[ContextStrategy, Strategy] = {
    "rag": Strategy(weights=RetrievalWeights.rag_focused()),
    "documents": Strategy(memory=False, weights=RetrievalWeights(1.0, 0.0)),
    "hybrid": Strategy(),
    "episodic": Strategy(documents=False, facts=False, weights=RetrievalWeights(0.0, 1.0)),
    "semantic": Strategy(facts="first", mode="dense"),
    "bm25": Strategy(mode="lexical"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridContext:
    """What a language model is shown, and how it came about.

    Attributes:
        query: As asked.
        passages: What is shown, in order of the numbers.
        context: The same as text, numbered, within the budget.
        weights: As used.
        adaptation: How feedback has moved the weights; None: it is not asked.
        strategy: As asked; a `HybridRetriever` is asked for none but ``hybrid``.
        used: What it is made of: ``episodic`` where ``rag`` was asked and no document was there to be shown, so that
            memory has the budget alone; otherwise as asked.
    """

    query: str
    passages: tuple[HybridPassage, ...] = ()
    context: AssembledContext = field(default_factory=AssembledContext)
    weights: RetrievalWeights
    adaptation: WeightAdaptation | None = None
    strategy: ContextStrategy = "hybrid"
    used: ContextStrategy = "hybrid"

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
            *(
                HybridPassage(kind="document", passage=passage, score=passage.score)
                for passage in documents
                if passage.content.strip()
            ),
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
    shown = tuple(replace(by_id[passage.chunk_id], passage=passage) for passage in context.passages)
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
        own = max(1, int(budget * shares[found[0].side]) // TOKENS_A_PASSAGE)
        reserve.update(item.passage.chunk_id for item in found[own:])
    return frozenset(reserve)
