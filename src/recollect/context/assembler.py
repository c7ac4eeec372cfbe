"""One way to ask for a context, whatever it is to be made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from recollect.context.budget import estimate_tokens
from recollect.context.hybrid import HybridContext, HybridRetriever
from recollect.context.merging import HybridPassage
from recollect.context.searches import DocumentSearch, MemorySearch
from recollect.context.weights import Adapt, RetrievalWeights
from recollect.errors import UsageError
from recollect.model.arguments import checked

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import Principal, SearchMode

ContextStrategy = Literal["rag", "documents", "hybrid", "episodic", "semantic", "bm25"]

STRATEGIES: tuple[ContextStrategy, ...] = ("rag", "documents", "hybrid", "episodic", "semantic", "bm25")

_DOCUMENTS_ALONE = RetrievalWeights(1.0, 0.0)
_MEMORY_ALONE = RetrievalWeights(0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAssembly:
    """A context, and how it came about.

    Attributes:
        strategy: As asked.
        used: What it is made of: ``episodic`` where ``rag`` was asked and no document was there to be shown, so that
            memory has the budget alone; otherwise as asked.
        found: The context.
    """

    strategy: ContextStrategy
    used: ContextStrategy
    found: HybridContext

    @property
    def text(self) -> str:
        """The numbered passages; empty where nothing was found."""
        return self.found.text

    @property
    def token_count(self) -> int:
        """Tokens of `text`, never more than the budget."""
        return self.found.token_count

    @property
    def passages(self) -> tuple[HybridPassage, ...]:
        """What is shown, in order of the numbers."""
        return self.found.passages

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of the passages, each once, in their order."""
        return self.found.sources


@checked
class ContextAssembler:
    """Assembles contexts of documents, of memory, or of both. Safe to share between threads.

    Args:
        documents: Where documents are searched; None: there are none.
        memory: Where conversations are searched, and facts drawn from them where it knows any; None: there are none.
        weights: What each weighs where both are searched; None: `RetrievalWeights.rag_focused` for ``rag``, otherwise
            `RetrievalWeights.memory_focused`.
        collection: Of the documents; None: the configured one.
        user: Whose conversations are searched beside the session that is named.
        tenant_id: Whose knowledge; None: the default tenant's.
        principal: Who asks: what they may not read does not exist for them; None: the owner of the store.
        facts: Whether facts are searched as well.
        count_tokens: Counts tokens as the model does that will read the context.
        language: ISO 639-1, of documents and conversations.
        on_shown: Told which episodes a context shows, which then count as retrieved; None: every candidate does.
        adapt: Says what feedback makes of the weights in a session, where both sides are searched; None: they stay.
        min_relevance: Of documents' passages, 0 to 1; None: as configured.
    """

    def __init__(
        self,
        documents: DocumentSearch | None = None,
        memory: MemorySearch | None = None,
        *,
        weights: RetrievalWeights | None = None,
        collection: str | None = None,
        user: str | None = None,
        tenant_id: int | None = None,
        principal: Principal | None = None,
        facts: bool = True,
        count_tokens: Callable[[str], int] = estimate_tokens,
        language: str = "en",
        on_shown: Callable[[Sequence[int]], None] | None = None,
        adapt: Adapt | None = None,
        min_relevance: float | None = None,
    ) -> None:
        self._min_relevance = min_relevance
        self._documents = documents
        self._memory = memory
        self._weights = weights
        self._collection = collection
        self._user = user
        self._tenant_id = tenant_id
        self._principal = principal
        self._facts = facts
        self._count_tokens = count_tokens
        self._language = language
        self._on_shown = on_shown
        self._adapt = adapt

    def assemble(
        self,
        query: str,
        strategy: ContextStrategy = "hybrid",
        token_budget: int = 2_000,
        session_id: str | None = None,
        *,
        as_of: datetime | None = None,
    ) -> ContextAssembly:
        """What a language model should read to answer a query.

        Args:
            query: In plain words.
            strategy: ``rag``: documents and memory (conversations and the facts drawn from them), documents first
                unless the weights say otherwise, and memory alone where there are no documents; ``documents``:
                documents alone; ``episodic``: conversations alone; ``hybrid``: documents and memory, memory first;
                ``semantic``: the same by meaning alone, facts before turns; ``bm25``: the same by words alone.
            token_budget: Tokens at most, headers included; never exceeded.
            session_id: The conversation at hand; one that has not begun yet is empty. None: the user's, or all.
            as_of: What was known at this time; None: now.

        Raises:
            UsageError: The query is empty, the strategy unknown, or the budget less than 1.
            NotFoundError: There is no such collection.
        """
        if strategy not in STRATEGIES:
            raise UsageError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}.")
        if not query.strip():
            raise UsageError("The query is empty: say what to look for.")
        found = self._retriever(strategy).retrieve_hybrid(query, session_id, token_budget, as_of=as_of)
        from_documents = any(passage.kind == "document" for passage in found.passages)
        used: ContextStrategy = "episodic" if strategy == "rag" and not from_documents else strategy
        return ContextAssembly(strategy=strategy, used=used, found=found)

    def _retriever(self, strategy: ContextStrategy) -> HybridRetriever:
        both = RetrievalWeights.rag_focused() if strategy == "rag" else RetrievalWeights.memory_focused()
        alone = {"documents": _DOCUMENTS_ALONE, "episodic": _MEMORY_ALONE}
        weights = alone.get(strategy, self._weights or both)
        # Semantic memory is facts; an episodic context is made of turns as they were said.
        kinds: dict[ContextStrategy, bool | Literal["first"]] = {"semantic": "first", "episodic": False}
        facts = kinds.get(strategy, True)
        modes: dict[ContextStrategy, SearchMode] = {"semantic": "dense", "bm25": "lexical"}
        return HybridRetriever(
            None if strategy == "episodic" else self._documents,
            None if strategy == "documents" else self._memory,
            weights=weights,
            mode=modes.get(strategy, "hybrid"),
            collection=self._collection,
            user=self._user,
            tenant_id=self._tenant_id,
            principal=self._principal,
            facts=facts if self._facts else False,
            count_tokens=self._count_tokens,
            language=self._language,
            on_shown=self._on_shown,
            adapt=self._adapt,
            min_relevance=self._min_relevance,
        )
