"""Rerankers by name, with the settings that measured best; each one's module is imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from recollect.embedding.models import ModelCache
from recollect.errors import UsageError
from recollect.plugins import Plugins
from recollect.retrieval.rerank.apply import Bm25Reranker, ConsensusReranker
from recollect.retrieval.rerank.base import Candidate, CrossEncoderReranker, PairScorer, Reranker

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.embedding.quantise import Precision
    from recollect.retrieval.rerank.late_interaction import StoredVectors


@dataclass(frozen=True, slots=True)
class RerankDefaults:
    """How a reranker is best used.

    Attributes:
        weight: Its share of the final score.
        depth: How many of the first stage's candidates it sees at least.
        needs_text: Whether it reads the candidates' texts.
        needs_embedding: Whether it reads the candidates' stored vectors.
        of_one_model: Whether it scores by one embedding model what this model embedded.
    """

    weight: float
    depth: int
    needs_text: bool = True
    needs_embedding: bool = False
    of_one_model: bool = False


#: One setting for all collections; see ``docs/how-to/reranking.md`` for the measurements.
DEFAULTS: Mapping[str, RerankDefaults] = MappingProxyType(
    {
        "best_sentence": RerankDefaults(weight=0.1, depth=50),
        "bm25": RerankDefaults(weight=0.2, depth=50),
        "consensus": RerankDefaults(weight=0.3, depth=50, needs_text=False, needs_embedding=True),
        "cross_encoder": RerankDefaults(weight=0.7, depth=20),
        "hosted": RerankDefaults(weight=0.7, depth=50),
        "late_interaction": RerankDefaults(weight=0.25, depth=50, of_one_model=True),
    }
)

#: Those that embed texts themselves, with the model of the collections.
EMBEDDING_RERANKERS = frozenset({"best_sentence", "late_interaction"})


@dataclass(frozen=True, slots=True)
class PluggedReranker:
    """A reranker that is not recollect's own, under the name that it was given."""

    name: str
    inner: Reranker

    def rerank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        """Score candidates; whoever asks checks the scores."""
        return self.inner.rerank(query, candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    embedder: EmbeddingProvider | None
    model: str | None
    model_directory: Path | None
    precision: Precision
    threads: int | None
    language: str
    stored: StoredVectors | None
    scorer: PairScorer | None


def make_reranker(
    name: str,
    *,
    embedder: EmbeddingProvider | None = None,
    model: str | None = None,
    model_directory: Path | None = None,
    precision: Precision = "int8",
    threads: int | None = None,
    language: str = "en",
    stored: StoredVectors | None = None,
    scorer: PairScorer | None = None,
    rerankers: Plugins | None = None,
) -> Reranker:
    """Make the reranker that a configuration names. Nothing is loaded before its first use.

    Args:
        name: ``"consensus"``, ``"late_interaction"``, ``"best_sentence"``, ``"bm25"``, ``"cross_encoder"`` or
            ``"hosted"``, or one of ``rerankers``.
        embedder: For ``best_sentence`` any embedder, for ``late_interaction`` the local one; required there.
        model: For ``cross_encoder``, a directory or the name of a model; required there.
        model_directory: For ``cross_encoder``, where models are kept; required there.
        precision: For ``cross_encoder``, ``"int8"`` or ``"fp32"``.
        threads: For ``cross_encoder``, how many pairs are computed at once; by default one for each processor.
        language: For ``best_sentence`` and ``bm25``, the texts' language, ISO 639-1.
        stored: For ``late_interaction``, looks up the token vectors that ingest stored.
        scorer: For ``hosted``, a provider's model; required there.
        rerankers: All there are; None: `RERANKERS`.

    Raises:
        UsageError: The name is unknown, or an argument that it requires is missing or unfit.

    Example:
        >>> make_reranker("consensus").name
        'consensus'
    """
    known = RERANKERS if rerankers is None else rerankers
    if not known.is_own(name):
        return PluggedReranker(name, known.shared(name))
    make: Callable[[_Request], Reranker] = known.find(name)
    return make(
        _Request(
            embedder=embedder,
            model=model,
            model_directory=model_directory,
            precision=precision,
            threads=threads,
            language=language,
            stored=stored,
            scorer=scorer,
        )
    )


def _bm25(request: _Request) -> Reranker:
    return Bm25Reranker(request.language)


def _consensus(_: _Request) -> Reranker:
    return ConsensusReranker()


def _best_sentence(request: _Request) -> Reranker:
    from recollect.retrieval.rerank.late_interaction import BestSentenceReranker

    if request.embedder is None:
        raise UsageError("The reranker 'best_sentence' requires an embedder.")
    return BestSentenceReranker(request.embedder, language=request.language)


def _late_interaction(request: _Request) -> Reranker:
    from recollect.retrieval.rerank.late_interaction import LateInteractionReranker, TokenEncoder

    # A cache around the embedder has no token vectors to give.
    embedder = getattr(request.embedder, "inner", request.embedder)
    if not isinstance(embedder, TokenEncoder):
        raise UsageError(
            "The reranker 'late_interaction' requires the local embedding model (embedding.provider = 'local'): other "
            "providers give no token vectors. 'consensus' works with all of them."
        )
    return LateInteractionReranker(embedder, stored=request.stored)


def _cross_encoder(request: _Request) -> Reranker:
    from recollect.embedding.local import CrossEncoder

    if request.model is None or request.model_directory is None:
        raise UsageError(
            "The reranker 'cross_encoder' requires model (a directory with model.safetensors, config.json and "
            "tokenizer.json) and model_directory, where built graphs are kept."
        )
    cache = ModelCache(request.model_directory)
    scorer = CrossEncoder(request.model, cache=cache, precision=request.precision, threads=request.threads)
    return CrossEncoderReranker(scorer)


def _hosted(request: _Request) -> Reranker:
    if request.scorer is None:
        raise UsageError("The reranker 'hosted' is a provider's model: configure one ([rag.reranking] provider).")
    return CrossEncoderReranker(request.scorer, name="hosted")


#: Other packages add rerankers by entry points of its group: a name, and a class that is made without arguments.
RERANKERS = Plugins(
    kind="reranker",
    group="recollect.rerankers",
    own={
        "best_sentence": _best_sentence,
        "bm25": _bm25,
        "consensus": _consensus,
        "cross_encoder": _cross_encoder,
        "hosted": _hosted,
        "late_interaction": _late_interaction,
    },
    methods=("rerank",),
    reserved=("none",),
)
