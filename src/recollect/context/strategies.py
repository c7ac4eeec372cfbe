"""What a context is to be made of, by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from recollect.context.hybrid import HybridContext, HybridPassage
from recollect.context.weights import RetrievalWeights

if TYPE_CHECKING:
    from recollect.model.memory import RecallMode

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

    @property
    def both(self) -> bool:
        """Whether there is anything to weigh."""
        return self.documents and self.memory


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
