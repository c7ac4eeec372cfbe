"""What the similarities of an embedding model mean, and which languages it knows.

How relevant a passage is, from 0 to 1, is a logistic model of its similarity and of the share of the query's words that
it holds. ``relevance.json`` holds the coefficients; ``benchmarks/relevance.py`` makes it from judged data, and
``docs/how-to/relevance.md`` says how well it is calibrated.
"""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from cachetools import LRUCache

from recollect.embedding import models
from recollect.embedding.models import DEFAULT_MODEL
from recollect.errors import RecollectError
from recollect.languages import AUTO, DEFAULT_LANGUAGE, language_of_text, shares_script

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider, Vectors
    from recollect.model import RetrievalOptions
    from recollect.model.collection import Collection
    from recollect.retrieval.candidates import Candidates


# Which languages an embedding model knows: where it knows a question's, its similarities count in full, else little.
#
# A model that declares its languages is believed. Any other is asked, once a language: `language_anchors.json` holds
# six questions in each, with a passage that answers each in other words. A model that knows the language brings them
# together; one that does not finds all of them alike, or goes by the letters that they share.
#
# The same texts in two languages tell what sets the languages themselves apart in a model: a question in Chinese is
# nearer to whatever resembles Chinese text than to the English passage that answers it. A question in a language that
# no text is in is moved by that difference (centring by language; Libovický, Rosa and Fraser 2020, "On the Language
# Neutrality of Pre-trained Multilingual Representations").


#: By how many standard deviations questions are nearer to their own passages than to others, where a model knows the
#: language. all-MiniLM-L6-v2 has 9.9 in English and between -0.3 and 0.8 in nineteen other languages,
#: multilingual-e5-small between 1.5 and 6.1 in all twenty.
KNOWN_SEPARATION = 1.1

_KEPT = 1_024

# A vector that is moved to nearly nothing points nowhere.
_SHORTEST = 1e-6


class ModelLanguages:
    """What is known of the languages of embedding models; each is asked once. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: LRUCache[tuple[str, str], bool] = LRUCache(_KEPT)
        self._centres: LRUCache[tuple[str, str], Vectors] = LRUCache(_KEPT)

    def knows(self, model_name: str, language: str, embedder: Callable[[], EmbeddingProvider]) -> bool:
        """Whether a model knows a language; it does where nothing says otherwise.

        Args:
            model_name: Of the model.
            language: ISO 639-1 code.
            embedder: Gives the model, where it has to be asked.
        """
        if language == DEFAULT_LANGUAGE:
            return True
        declared = _declared(model_name)
        if declared is not None:
            return language in declared
        anchors = load_anchors().get(language)
        if anchors is None:
            return True
        with self._lock:
            known = self._known.get((model_name, language))
        if known is None:
            try:
                known = separation(embedder(), anchors) >= KNOWN_SEPARATION
            except RecollectError as exc:
                logger.warning("Whether %s knows the language %r could not be found out: %s", model_name, language, exc)
                return True
            with self._lock:
                self._known[model_name, language] = known
        return known

    def moved(self, vector: Vectors, query: str, collection: Collection, embedder: EmbeddingProvider) -> Vectors:
        """A question's vector for the texts of a collection: moved, where no text is in its language.

        Args:
            vector: Of unit length.
            query: The question.
            collection: Where it is asked.
            embedder: The collection's model. One that nothing is known of moves nothing.
        """
        known = known_model(embedder.model_name)
        if known is None or not known.language_shift:
            return vector
        asked = foreign_language(query, [collection])
        return vector if asked is None else self.shifted(vector, asked, languages_of([collection]), embedder)

    def shifted(self, vector: Vectors, asked: str, languages: Iterable[str], embedder: EmbeddingProvider) -> Vectors:
        """A question's vector, moved from its own language towards those of the texts.

        Args:
            vector: Of unit length.
            asked: The question's language, ISO 639-1.
            languages: Of the texts.
            embedder: The model, which is asked for what a language's texts have in common, once.

        Returns:
            A vector of unit length; the same one where there are no anchors in these languages.
        """
        known = known_model(embedder.model_name)
        anchors = load_anchors()
        there = [language for language in languages if language in anchors]
        if known is None or not known.language_shift or asked not in anchors or not there:
            return vector
        towards = np.mean([self._centre(language, embedder) for language in there], axis=0)
        moved = vector - known.language_shift * (self._centre(asked, embedder) - towards)
        length = float(np.linalg.norm(moved))
        return vector if length < _SHORTEST else (moved / length).astype(vector.dtype)

    def _centre(self, language: str, embedder: EmbeddingProvider) -> Vectors:
        """The mean of the anchors' vectors in a language."""
        key = embedder.model_name, language
        with self._lock:
            centre = self._centres.get(key)
        if centre is None:
            asked, answers = _anchor_vectors(embedder, load_anchors()[language])
            centre = (asked.mean(axis=0) + answers.mean(axis=0)) / 2
            with self._lock:
                self._centres[key] = centre
        return centre


def languages_of(collections: Iterable[Collection]) -> tuple[str, ...]:
    """The languages that texts of collections are analysed in, each once."""
    return tuple(
        dict.fromkeys(
            code for one in collections for code in (one.languages if one.language == AUTO else (one.language,))
        )
    )


def foreign_language(query: str, collections: Iterable[Collection]) -> str | None:
    """The language of a question that no text is in which it is asked of; None: some are, or nothing tells.

    Args:
        query: The question.
        collections: That it is asked of.
    """
    languages = languages_of(collections)
    if not languages:
        return None
    asked = language_of_text(query)
    # What may be in one of them, is: a name says nothing of its language.
    if any(language_of_text(query, expected=language) in languages for language in languages):
        return None
    return asked


def asked_language(query: str, collections: Iterable[Collection]) -> str | None:
    """The language of a question, where texts that it is asked of are in that language; None: none is.

    Args:
        query: The question.
        collections: That it is asked of.
    """
    languages = languages_of(collections)
    only = languages[0] if len(languages) == 1 else None
    asked = language_of_text(query, expected=only)
    return asked if asked in languages else None


def may_know(model_name: str, language: str) -> bool:
    """Whether an embedding model may know a language: it declares it, or declares none.

    Args:
        model_name: Of the model.
        language: ISO 639-1 code.
    """
    declared = _declared(model_name)
    return declared is None or language in declared


def tells_meaning(model_name: str, language: str) -> bool:
    """Whether a model's similarities in a language say something: of a script that it never learnt, they are chance.

    Args:
        model_name: Of the model.
        language: ISO 639-1 code. One that is written as English is may be known in part.
    """
    return shares_script(language) or may_know(model_name, language)


def undeclared_languages(collection: Collection) -> tuple[str, ...]:
    """The languages of a collection's texts that its embedding model, which declares some, does not declare."""
    declared = _declared(collection.embedding_model)
    languages = collection.languages if collection.language == AUTO else (collection.language,)
    return () if declared is None else tuple(code for code in languages if code not in declared)


def separation(embedder: EmbeddingProvider, anchors: Sequence[tuple[str, str]]) -> float:
    """How far a model's similarities of questions with their passages lie above those with others, in deviations.

    Args:
        embedder: The model.
        anchors: Questions, each with its passage, all in one language.

    Raises:
        ProviderError: The embedder failed.
    """
    asked, answers = _anchor_vectors(embedder, anchors)
    similarities = asked @ answers.T
    own = np.eye(len(anchors), dtype=bool)
    others = similarities[~own]
    return float((similarities[own].mean() - others.mean()) / max(float(others.std()), 1e-6))


def _anchor_vectors(embedder: EmbeddingProvider, anchors: Sequence[tuple[str, str]]) -> tuple[Vectors, Vectors]:
    questions, passages = zip(*anchors, strict=True)
    # Where a question is a request over a network, all of them are one.
    together = getattr(embedder, "embed_queries", None)
    asked = together(questions) if together else np.stack([embedder.embed_query(question) for question in questions])
    return asked, np.asarray(embedder.embed_documents(passages))


@cache
def load_anchors() -> dict[str, tuple[tuple[str, str], ...]]:
    """Questions and passages that answer them, by language."""
    stored: dict[str, list[list[str]]] = json.loads(
        files("recollect.retrieval").joinpath("language_anchors.json").read_text("utf-8")
    )
    return {code: tuple((question, passage) for question, passage in pairs) for code, pairs in stored.items()}


def _declared(model_name: str) -> frozenset[str] | None:
    """The languages that a model declares; numeric formats of one model share them."""
    known = known_model(model_name)
    return None if known is None else known.languages


# What the language of a question says of its meaning and its words: which of them a hybrid search goes by.

#: Where the embedding model does not know the question's language but one in the same script: names and loan words are
#: what it still understands.
FOREIGN_DENSE_WEIGHT = 0.15
#: Where it does not know the script either: chance. What it finds stands behind what the words found.
STRANGE_DENSE_WEIGHT = 0.0

#: Where no text is in the question's language and the model knows both: the words that are found are names, numbers and
#: those that mean something else in either language.
CROSSING_DENSE_WEIGHT = 0.85

#: A question in a language that no text is in counts as one whose words say little, unless a candidate holds so much of
#: them, by their rarity: then they are names, or the language was taken for another one.
WORDS_THAT_TELL = 0.5


@dataclass(frozen=True, slots=True)
class MeaningShare:
    """What the language of a question says of its meaning and its words.

    Attributes:
        weight: The dense retriever's share, where options and settings say nothing.
        crossing: Whether no text is in that language, but the model knows it and those of the texts. Otherwise a model
            does not know it, and is not asked to rerank.
    """

    weight: float
    crossing: bool

    def counts(self, found: Candidates) -> bool:
        """Whether it is to be followed with these candidates."""
        if self.crossing:
            return max(found.coverage.values(), default=0.0) < WORDS_THAT_TELL
        return bool(found.lexical)


def meaning_share(query: str, collections: Sequence[Collection], known: Callable[[str], bool]) -> MeaningShare | None:
    """What the language of a question says of meaning and words; None: nothing, because texts and models know it.

    Args:
        query: The question.
        collections: That it is asked of.
        known: Whether every model that embeds them knows a language.
    """
    asked = asked_language(query, collections)
    if asked is not None:
        if known(asked):
            return None
        return MeaningShare(FOREIGN_DENSE_WEIGHT if shares_script(asked) else STRANGE_DENSE_WEIGHT, crossing=False)
    asked = foreign_language(query, collections)
    if asked is None or not known(asked) or not all(map(known, languages_of(collections))):
        return None
    return MeaningShare(CROSSING_DENSE_WEIGHT, crossing=True)


logger = logging.getLogger(__name__)

#: A search asks of its model several times.
known_model = lru_cache(maxsize=256)(models.known_model)

# Embedding models whose meters are kept.
_MODELS = 32


@dataclass(frozen=True, slots=True)
class SimilarityScale:
    """Where an embedding model's cosine similarities lie.

    Attributes:
        unrelated: The mean similarity of questions and passages that have nothing to do with one another.
        related: The mean similarity of questions and the passages that answer them.
    """

    unrelated: float
    related: float

    def standardised(self, similarity: float) -> float:
        """0 for what is unrelated, 1 for what answers."""
        return (similarity - self.unrelated) / max(self.related - self.unrelated, 1e-6)

    def on(self, other: SimilarityScale, similarity: float) -> float:
        """What a similarity of this scale would be on another one."""
        return other.unrelated + (other.related - other.unrelated) * self.standardised(similarity)


@dataclass(frozen=True, slots=True)
class RelevanceModel:
    """The coefficients, by what is known of a passage.

    Attributes:
        both: Of 1, similarity and coverage, where both are known.
        similarity: Of 1 and similarity, where no words were compared.
        coverage: Of 1 and coverage, where no vectors were.
        floors: By which of the two is known, ``both`` or ``similarity``: where not even the best passage of a search is
            as relevant, it found nothing.
        scales: By embedding model.
        anchors: Questions and the passages that answer them, for the scale of other models.
    """

    both: tuple[float, float, float]
    similarity: tuple[float, float]
    coverage: tuple[float, float]
    floors: Mapping[str, float]
    scales: Mapping[str, SimilarityScale]
    anchors: tuple[tuple[str, str], ...]

    def scale_of(self, model_name: str) -> SimilarityScale | None:
        """The scale of an embedding model that was measured; numeric formats of one model share it."""
        return self.scales.get(model_name) or self.scales.get(model_name.rpartition(":")[0])

    def relevance(self, similarity: float | None, coverage: float | None) -> float | None:
        """How relevant a passage is; None where neither is known.

        Args:
            similarity: Standardised (`SimilarityScale.standardised`).
            coverage: From 0 to 1.
        """
        if similarity is not None and coverage is not None:
            bias, by_similarity, by_coverage = self.both
            logit = bias + by_similarity * similarity + by_coverage * coverage
        elif similarity is not None:
            logit = self.similarity[0] + self.similarity[1] * similarity
        elif coverage is not None:
            logit = self.coverage[0] + self.coverage[1] * coverage
        else:
            return None
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, logit))))


class RelevanceMeter:
    """Says how relevant the candidates of a search are. Safe to share between threads.

    Args:
        embedder: Whose similarities they are; None: nobody's, words alone are known.
        known: Where the model's similarities lie; None: the model is asked, unless it is among those measured.
        keep: Told what the model gave.
    """

    def __init__(
        self,
        embedder: EmbeddingProvider | None,
        *,
        known: SimilarityScale | None = None,
        keep: Callable[[SimilarityScale], None] = lambda _: None,
    ) -> None:
        self._embedder = embedder
        self._scale = known
        self._keep = keep

    def measure(
        self, chunk_ids: Iterable[int], *, similarities: Mapping[int, float], coverage: Mapping[int, float]
    ) -> Mapping[int, float]:
        """The relevance of chunks, as far as something is known of them; worked out for those that it is asked of."""
        return _Measured(chunk_ids, similarities, coverage, self.scale() if similarities else None)

    def floor(self, *, similarities: bool, coverage: bool) -> float:
        """What the best passage must reach for a search to have found anything, unless the caller says otherwise.

        0 for embedding models that it was not fitted with, and where words alone were searched: what those find holds
        some of them.
        """
        if not similarities or self._embedder is None or load_model().scale_of(self._embedder.model_name) is None:
            return 0.0
        return load_model().floors["both" if coverage else "similarity"]

    def scale(self) -> SimilarityScale | None:
        """Where the model's similarities lie; None where it could not be asked, which is logged."""
        if self._scale is None and self._embedder is not None:
            self._scale = load_model().scale_of(self._embedder.model_name)
            if self._scale is None:
                try:
                    self._scale = scale(self._embedder, load_model().anchors)
                    self._keep(self._scale)
                except RecollectError as exc:
                    missing = "How relevant passages are goes by words alone" if self._scale is None else "Not kept"
                    logger.warning("%s: %s", missing, exc)
        return self._scale


class RelevanceMeters:
    """The meters of embedding models, each kept: what a model is asked for its scale, it is asked once.

    Safe to share between threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: LRUCache[str, RelevanceMeter] = LRUCache(_MODELS)

    def of(
        self,
        model_name: str,
        embedder: Callable[[], EmbeddingProvider],
        *,
        known: SimilarityScale | None = None,
        keep: Callable[[SimilarityScale], None] = lambda _: None,
    ) -> RelevanceMeter:
        """Return the meter of a model.

        Args:
            model_name: The model.
            embedder: Gives it, if its meter is not known yet.
            known: See `RelevanceMeter`.
            keep: See `RelevanceMeter`.
        """
        with self._lock:
            meter = self._kept.get(model_name)
            if meter is None:
                meter = self._kept[model_name] = RelevanceMeter(embedder(), known=known, keep=keep)
            return meter

    def scale(self, model_name: str) -> SimilarityScale | None:
        """Where the similarities of a model lie that something was searched with; None where that is not known."""
        with self._lock:
            meter = self._kept.get(model_name)
        return load_model().scale_of(model_name) if meter is None else meter.scale()


class _Measured(Mapping[int, float]):
    """Of fifty candidates, ten are shown: the others are measured only where a threshold asks."""

    def __init__(
        self,
        chunk_ids: Iterable[int],
        similarities: Mapping[int, float],
        coverage: Mapping[int, float],
        scale: SimilarityScale | None,
    ) -> None:
        self._chunk_ids = chunk_ids
        self._similarities = similarities
        self._coverage = coverage
        self._scale = scale

    def __getitem__(self, chunk_id: int) -> float:
        relevance: float | None = self.get(chunk_id)
        if relevance is None:
            raise KeyError(chunk_id)
        return relevance

    # A mapping's own would ask `__getitem__`, and come back with an error for what is not known.
    def get(self, chunk_id: int, default: Any = None) -> Any:  # noqa: ANN401 - as of every mapping
        similarity = None if self._scale is None else self._similarities.get(chunk_id)
        standard = None if self._scale is None or similarity is None else self._scale.standardised(similarity)
        relevance = load_model().relevance(standard, self._coverage.get(chunk_id))
        return default if relevance is None else relevance

    def __iter__(self) -> Iterator[int]:
        return (chunk_id for chunk_id in self._chunk_ids if chunk_id in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def scale(embedder: EmbeddingProvider, anchors: Iterable[tuple[str, str]]) -> SimilarityScale:
    """Where a model's similarities lie, by questions and the passages that answer them.

    Args:
        embedder: The model.
        anchors: Questions, each with its passage; every other passage has nothing to do with it.

    Raises:
        ProviderError: The embedder failed.
    """
    questions, passages = zip(*anchors, strict=True)
    # Where a question is a request over a network, all of them are one.
    together = getattr(embedder, "embed_queries", None)
    asked = together(questions) if together else np.stack([embedder.embed_query(question) for question in questions])
    similarities = asked @ np.asarray(embedder.embed_documents(passages)).T
    own = np.eye(len(questions), dtype=bool)
    return SimilarityScale(float(similarities[~own].mean()), float(similarities[own].mean()))


def as_the_default(model_name: str) -> Callable[[float], float]:
    """Brings a model's similarities to where those of the default model lie; those of unknown models stay."""
    known, default = known_model(model_name), load_model().scale_of(DEFAULT_MODEL)
    if known is None or known.similarities is None or default is None:
        return float
    return partial(SimilarityScale(*known.similarities).on, default)


@cache
def load_model() -> RelevanceModel:
    """The coefficients that come with the package."""
    stored: dict[str, Any] = json.loads(files("recollect.retrieval").joinpath("relevance.json").read_text("utf-8"))
    return RelevanceModel(
        both=tuple(stored["both"]),
        similarity=tuple(stored["similarity"]),
        coverage=tuple(stored["coverage"]),
        floors=stored["floors"],
        scales={name: SimilarityScale(*values) for name, values in stored["scales"].items()},
        anchors=tuple((question, passage) for question, passage in stored["anchors"]),
    )


# What a ranking must reach to be shown. Pure.

Scored = tuple[int, float]

#: Why everything is left out where nothing has to do with the question.
BELOW_FLOOR = "of no relevance, the best included"


class GivenThresholds(Protocol):
    """The configured thresholds; None: none."""

    @property
    def similarity_threshold(self) -> float | None:
        """The least cosine similarity."""
        ...

    @property
    def min_relevance(self) -> float | None:
        """The least relevance."""
        ...

    @property
    def min_score(self) -> float | None:
        """The least score."""
        ...


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The least that passages must have, None for any.

    Attributes:
        similarity: Cosine similarity.
        relevance: Relevance.
        floor: Whether the floor of the embedding model applies if no relevance is set: if the best passage does not
            reach it, nothing is found.
        score: What they are ordered by.
    """

    similarity: float | None
    relevance: float | None
    score: float | None
    floor: bool = False

    @classmethod
    def of(cls, options: RetrievalOptions, settings: GivenThresholds) -> Thresholds:
        """Those of the options, and the settings' where these say nothing."""
        similarity, relevance, score = options.similarity_threshold, options.min_relevance, options.min_score
        return cls(
            settings.similarity_threshold if similarity is None else similarity,
            settings.min_relevance if relevance is None else relevance,
            settings.min_score if score is None else score,
            options.relevance_floor,
        )

    def apply(
        self,
        ranked: Sequence[Scored],
        *,
        similarities: Mapping[int, float],
        relevance: Mapping[int, float],
        floor: float,
        dropped: MutableMapping[str, int],
    ) -> list[Scored]:
        """The chunks of a ranking that reach all of them.

        Args:
            ranked: (chunk_id, score), best first.
            similarities: As far as they are known.
            relevance: Likewise; a chunk of unknown relevance stays.
            floor: The floor of the embedding model.
            dropped: Counts what is left out, by reason.
        """
        kept = list(ranked)

        def keep(reason: str, held: list[Scored]) -> None:
            nonlocal kept
            dropped[reason] = len(kept) - len(held)
            kept = held

        if self.similarity is not None:
            least = self.similarity
            keep("below similarity_threshold", [one for one in kept if similarities.get(one[0], -1.0) >= least])
        if self.relevance is not None:
            needed = self.relevance
            keep("below min_relevance", [one for one in kept if relevance.get(one[0], 1.0) >= needed])
        elif self.floor and kept and all(relevance.get(chunk_id, 1.0) < floor for chunk_id, _ in kept):
            keep(BELOW_FLOOR, [])
        if self.score is not None:
            lowest = self.score
            keep("below min_score", [one for one in kept if one[1] >= lowest])
        return kept
