"""Which languages an embedding model knows: where it knows a question's, its similarities count in full, else little.

A model that declares its languages is believed. Any other is asked, once a language: ``language_anchors.json`` holds
six questions in each, with a passage that answers each in other words. A model that knows the language brings them
together; one that does not finds all of them alike, or goes by the letters that they share.

The same texts in two languages tell what sets the languages themselves apart in a model: a question in Chinese is
nearer to whatever resembles Chinese text than to the English passage that answers it. A question in a language that no
text is in is moved by that difference (centring by language; Libovický, Rosa and Fraser 2020, "On the Language
Neutrality of Pre-trained Multilingual Representations").
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from cachetools import LRUCache

from recollect.embedding.models import known_model
from recollect.errors import RecollectError
from recollect.languages import AUTO, DEFAULT_LANGUAGE, language_of_text, shares_script
from recollect.retrieval.fusion import CROSSING_DENSE_WEIGHT, FOREIGN_DENSE_WEIGHT, STRANGE_DENSE_WEIGHT

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider, Vectors
    from recollect.model.collection import Collection
    from recollect.retrieval.candidates import Candidates


logger = logging.getLogger(__name__)


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
