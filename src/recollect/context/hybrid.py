"""Documents, conversations and facts in one context: searched at the same time, ranked together, in one budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeVar

from recollect.context.assembly import SEPARATOR, AssembledContext, assemble
from recollect.context.blocks import context_block
from recollect.context.budget import estimate_tokens
from recollect.context.merging import (
    HybridPassage,
    is_echo,
    merged,
    passage_of_document,
    passage_of_fact,
    passages_of_memory,
    told_by,
)
from recollect.context.searches import DocumentSearch, FactSearch, MemorySearch
from recollect.context.weights import Adapt, RetrievalWeights, WeightAdaptation
from recollect.errors import NotFoundError, UsageError
from recollect.model import RetrievalOptions, RetrievedContext
from recollect.model.arguments import checked
from recollect.model.facts import RecalledFact
from recollect.model.memory import RecallOptions, Recollection

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import Principal, SearchMode

#: Tokens of the budget for which one passage is asked for.
TOKENS_A_PASSAGE = 100

_Answer = TypeVar("_Answer")

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


@dataclass(frozen=True, slots=True)
class _Found:
    """Candidates of both sides, best first; the reserve of each is looked at when its best have been."""

    passages: tuple[HybridPassage, ...]
    reserve: frozenset[int]


@checked
class HybridRetriever:
    """Searches documents and memory at the same time. Safe to share between threads.

    Args:
        documents: Where documents are searched; None: there are none.
        memory: Where conversations are searched, and the facts drawn from them where it knows any (`FactSearch`); None:
            there are none.
        weights: What each weighs; None: `RetrievalWeights.memory_focused`. Facts are memory.
        mode: How all are searched.
        facts: Whether facts are searched as well; ``"first"``: and fill memory's share before turns do.
        collection: Of the documents; None: the configured one.
        user: Whose conversations are searched beside the session that is named.
        tenant_id: Whose knowledge; None: the default tenant's.
        principal: Who asks: what they may not read does not exist for them; None: the owner of the store.
        count_tokens: Counts tokens as the model does that will read the context.
        language: ISO 639-1, of the words that both are reranked by.
        on_shown: Told which episodes a context shows, which then count as retrieved; None: every candidate does.
        adapt: Says what feedback makes of the weights in a session; None: they stay.
        min_relevance: Of documents' passages, 0 to 1; None: as configured.

    Example:
        >>> from recollect import RAGPipeline
        >>> with RAGPipeline() as rag:  # doctest: +SKIP
        ...     HybridRetriever(rag, rag).retrieve_hybrid("What did we decide?", "chat-1", 2_000).text
    """

    def __init__(
        self,
        documents: DocumentSearch | None,
        memory: MemorySearch | None,
        *,
        weights: RetrievalWeights | None = None,
        mode: SearchMode = "hybrid",
        facts: bool | Literal["first"] = True,
        collection: str | None = None,
        user: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
        count_tokens: Callable[[str], int] = estimate_tokens,
        language: str = "en",
        on_shown: Callable[[Sequence[int]], None] | None = None,
        adapt: Adapt | None = None,
        min_relevance: float | None = None,
    ) -> None:
        self._min_relevance = min_relevance
        self._documents = documents
        self._memory = memory
        self._weights = weights or RetrievalWeights.memory_focused()
        self._mode: SearchMode = mode
        self._collection = collection
        self._user = user
        self._tenant_id = tenant_id
        self._principal = principal
        informed: object = memory
        self._facts = informed if facts and isinstance(informed, FactSearch) else None
        self._facts_first = facts == "first"
        self._count_tokens = count_tokens
        self._language = language
        self._on_shown = on_shown
        self._adapt = adapt

    def retrieve_hybrid(
        self,
        query: str,
        session_id: str | None = None,
        token_budget: int = 2_000,
        *,
        as_of: datetime | None = None,
    ) -> HybridContext:
        """The passages of documents and of conversations that answer a question, within one budget.

        Each side fills its own share of the budget first, with its best passage for each 100 tokens of it (at least
        one) before any other, and what one side leaves is the other's. The order is that of both together:
        similarities to the question, which one model measured, are weighed by side, and BM25 counted over both has the
        other half of the say. A turn is shown once, and the question itself, where it has been remembered already, not
        at all.

        Args:
            query: In plain words.
            session_id: The conversation at hand; one that has not begun yet is empty. None: the user's, or all.
            token_budget: Tokens at most, headers included; never exceeded.
            as_of: What was known at this time; None: now.

        Raises:
            UsageError: The query is empty, or the budget less than 1.
        """
        if token_budget < 1:
            raise UsageError(f"token_budget must be at least 1, not {token_budget!r}.")
        adaptation = None if self._adapt is None else self._adapt(self._weights, session_id)
        weights = self._weights if adaptation is None else adaptation.weights
        room = {"document": token_budget * weights.rag, "memory": token_budget * weights.memory}
        found = self._search(query, session_id, token_budget, as_of, weights)
        chosen, likely = self._fitting(found, token_budget, room)
        context = assemble(
            [item.passage for item in chosen],
            token_budget=token_budget,
            count_tokens=self._count_tokens,
            language=self._language,
            likely=likely,
        )
        by_id = {item.passage.chunk_id: item for item in chosen}
        shown = tuple(
            replace(by_id[passage.chunk_id], passage=passage, content=passage.content) for passage in context.passages
        )
        if self._on_shown is not None:
            self._on_shown([item.recollection.episode.episode_id for item in shown if item.recollection is not None])
        return HybridContext(query=query, passages=shown, context=context, weights=weights, adaptation=adaptation)

    def _search(
        self, query: str, session_id: str | None, budget: int, as_of: datetime | None, weights: RetrievalWeights
    ) -> _Found:
        # Enough of each side to fill the whole budget, should the other have nothing and passages be short.
        most = min(_MAX_PASSAGES, max(1, _SPARE * budget // TOKENS_A_PASSAGE))
        with ThreadPoolExecutor(2, thread_name_prefix="recollect-memory") as executor:
            remembered = executor.submit(self._recalled, query, session_id, most, as_of)
            known = executor.submit(self._known, query, session_id, most, as_of)
            passages = self._retrieved(query, most, as_of)
            turns, facts = remembered.result(), known.result()
        documents = [passage_of_document(passage) for passage in passages if passage.content.strip()]
        memory = passages_of_memory(turns, query)
        shares = {"document": weights.rag, "memory": weights.memory}
        everything = [*documents, *memory, *(passage_of_fact(one) for one in facts)]
        order = merged(query, everything, shares, language=self._language)
        return _Found(tuple(order), _reserve(order, budget, shares))

    def _retrieved(self, query: str, limit: int, as_of: datetime | None) -> list[RetrievedContext]:
        if self._documents is None:
            return []
        options = RetrievalOptions(top_k=limit, mode=self._mode, min_relevance=self._min_relevance, outline=True)
        return self._documents.retrieve(
            query,
            options,
            collection=self._collection,
            tenant_id=self._tenant_id,
            as_of=as_of,
            principal=self._principal,
        )

    def _recalled(self, query: str, session: str | None, limit: int, as_of: datetime | None) -> list[Recollection]:
        if self._memory is None:
            return []
        # Of the candidates, only what is shown in the end counts as retrieved.
        options = RecallOptions(top_k=limit, mode=self._mode, counted=self._on_shown is None)
        return self._asked(self._memory.recall, query, options, session, as_of)

    def _known(self, query: str, session: str | None, limit: int, as_of: datetime | None) -> list[RecalledFact]:
        if self._facts is None:
            return []
        options = RecallOptions(top_k=limit, mode=self._mode)
        return self._asked(self._facts.recall_facts, query, options, session, as_of)

    def _asked(
        self,
        search: Callable[..., list[_Answer]],
        query: str,
        options: RecallOptions,
        session: str | None,
        as_of: datetime | None,
    ) -> list[_Answer]:
        whose = {"user": self._user, "tenant_id": self._tenant_id, "as_of": as_of, "principal": self._principal}
        try:
            return search(query, options, session=session, **whose)
        except NotFoundError:  # a conversation that begins with this question
            return [] if self._user is None else search(query, options, **whose)

    def _fitting(self, found: _Found, budget: int, room: dict[str, float]) -> tuple[list[HybridPassage], int]:
        """What is shown, best first: each side within its ``room``, then the best of the rest while there is some.

        Returns:
            The passages, and how many of them fit whole; one more is to be shortened.
        """
        cost = cache(lambda number: self._cost(by_number[number]))
        by_number = {item.passage.chunk_id: item for item in found.passages}
        chosen: set[int] = set()
        told: set[int] = set()
        left = float(budget)
        own = [item for item in found.passages if item.passage.chunk_id not in found.reserve]
        first = [item for item in found.passages if self._facts_first and item.kind == "fact"]
        # The best of each side within its share, then more of each within it, then whatever there is room for.
        for items, shared in ((first, True), (own, True), (found.passages, True), (found.passages, False)):
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
        kept = [item for item in found.passages if item.passage.chunk_id in chosen]
        # The best that is too long for what is left comes last: as many of its sentences are shown as fit.
        rest = (item for item in found.passages if item.passage.chunk_id not in chosen and not is_echo(item, told))
        return [*kept, *islice(rest, 0 if kept and left < _SENTENCE else 1)], len(kept)

    def _cost(self, item: HybridPassage) -> int:
        return self._count_tokens(context_block(item.passage, number=10) + SEPARATOR)


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
