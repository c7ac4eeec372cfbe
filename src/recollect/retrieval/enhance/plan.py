"""What a query becomes before it is searched: extra words, hypothetical answers, other wordings.

Every enhancement is a `QueryEnhancer`: a plan in, a plan out. `enhance` runs a chain of them; the search then runs the
plan, whatever the chain was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from recollect.retrieval import fusion
from recollect.retrieval.analysis import Analyzer, lexeme

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider, Vectors
    from recollect.model import TokenUsage

#: What a ranking of another wording counts beside the original's 1.
ALTERNATIVE_WEIGHT = 0.5

Outcome = Literal["applied", "nothing to add", "failed"]


@dataclass(frozen=True, slots=True)
class Expansion:
    """Words that are searched beside those of the query.

    Attributes:
        original: The words of the query that they stand for, as the rule has them.
        text: The words to search too.
        weight: What a match of them is worth beside a match of the original, above 0 to 1.
    """

    original: str
    text: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EnhancementNote:
    """What one enhancement did, for ``explain``.

    Attributes:
        name: The enhancement's.
        outcome: ``failed`` means that the query runs without it.
        detail: What was added, or why nothing was, in words for a person.
        milliseconds: How long it took.
    """

    name: str
    outcome: Outcome
    detail: str
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """What a search is to run.

    Attributes:
        query: As asked; it is always searched.
        expansions: Extra words for the lexical retriever.
        hypothetical_answers: Texts whose embeddings join the query's in the dense retriever.
        alternatives: Other wordings, each searched like the query; the rankings are fused.
        notes: One per enhancement, in the order of the chain.
        usage: What a language model took for it; None where none was asked.
    """

    query: str
    expansions: tuple[Expansion, ...] = ()
    hypothetical_answers: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    notes: tuple[EnhancementNote, ...] = ()
    usage: TokenUsage | None = None

    @property
    def degraded(self) -> bool:
        """Whether an enhancement failed: such a reply is not worth keeping."""
        return any(note.outcome == "failed" for note in self.notes)


class QueryEnhancer(Protocol):
    """Adds to a plan. Safe to share between threads."""

    @property
    def name(self) -> str:
        """As ``explain`` and the settings call it."""
        ...

    def enhance(self, plan: QueryPlan) -> QueryPlan:
        """The plan with something added, and with one more note.

        It never takes anything away, and it does not fail: where it cannot do its work, the note says why.
        """
        ...


def enhance(query: str, enhancers: Sequence[QueryEnhancer]) -> QueryPlan:
    """Run a chain of enhancements over a query.

    Args:
        query: As asked.
        enhancers: In this order; none: the plain query.
    """
    plan = QueryPlan(query=query)
    for enhancer in enhancers:
        start = time.perf_counter()
        enhanced = enhancer.enhance(plan)
        if enhanced is plan:
            continue
        milliseconds = (time.perf_counter() - start) * 1000
        timed = tuple(replace(note, milliseconds=milliseconds) for note in enhanced.notes[len(plan.notes) :])
        plan = replace(enhanced, notes=plan.notes + timed)
    return plan


def expansion_terms(plan: QueryPlan, analyzer: Analyzer) -> list[str]:
    """Every term of a plan's expansions, to look their document frequencies up with the query's own."""
    return [term for expansion in plan.expansions for term in analyzer.query_terms(expansion.text)]


def expanded_weights(
    weights: Mapping[int, float],
    expansions: Sequence[Expansion],
    *,
    analyzer: Analyzer,
    salt: int,
    idf: Mapping[int, float],
) -> dict[int, float]:
    """The lexical retriever's weights of a query with its expansions.

    An expansion's terms share at most ``expansion.weight`` times what the words that they stand for weigh, however rare
    they are: a chunk that holds the original words scores above one that holds the expansion as often. Where
    the collection lacks the original words, the expansion's own rarity counts.

    Args:
        weights: The query's own, by lexeme; lexemes that the collection lacks are absent.
        expansions: From the plan.
        analyzer: Of the collection's language.
        salt: The collection's id.
        idf: Inverse document frequencies by lexeme; of an expansion's terms that are absent here, no chunk holds any.

    Returns:
        The query's own weights unchanged, and the extra ones; of a term in several expansions, the greatest.
    """
    extra: dict[int, float] = {}
    for expansion in expansions:
        originals = {lexeme(term, salt) for term in analyzer.query_terms(expansion.original)}
        found = {number for term in analyzer.query_terms(expansion.text) if (number := lexeme(term, salt)) in idf}
        total = math.fsum(idf[number] for number in found)
        limit = math.fsum(weights.get(number, 0.0) for number in originals) or total
        for number in found - weights.keys():
            share = expansion.weight * idf[number] * min(1.0, limit / total)
            extra[number] = max(share, extra.get(number, 0.0))
    return {**weights, **extra}


def query_vector(plan: QueryPlan, embedder: EmbeddingProvider) -> Vectors:
    """The dense retriever's query: the mean of the embeddings of the query and its hypothetical answers (HyDE).

    Gao, Ma, Lin and Callan, "Precise Zero-Shot Dense Retrieval without Relevance Labels" (2023).

    Raises:
        ProviderError: The embedding model failed.
    """
    own = embedder.embed_query(plan.query)
    if not plan.hypothetical_answers:
        return own
    joined = np.vstack([own[None, :], embedder.embed_documents(plan.hypothetical_answers)]).mean(axis=0)
    length = float(np.linalg.norm(joined))
    if length < 1e-6:
        return own
    vector: Vectors = (joined / length).astype(np.float32)
    return vector


def fuse_alternatives(
    original: Sequence[fusion.Scored], alternatives: Sequence[Sequence[fusion.Scored]]
) -> list[fusion.Scored]:
    """One ranking from those of the query and of its other wordings, by reciprocal ranks (Cormack et al. 2009).

    Args:
        original: The query's own ranking, best first; it counts 1.
        alternatives: One ranking per other wording; each counts `ALTERNATIVE_WEIGHT`. None: the original as it is.
    """
    if not alternatives:
        return list(original)
    weights = [1.0, *[ALTERNATIVE_WEIGHT] * len(alternatives)]
    return fusion.rrf([original, *alternatives], weights=weights)
