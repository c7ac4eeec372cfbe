"""Which languages an embedding model knows: where it knows a question's, its similarities count in full, else little.

A model that declares its languages is believed. Any other is asked, once a language: ``language_anchors.json`` holds
six questions in each, with a passage that answers each in other words. A model that knows the language brings them
together; one that does not finds all of them alike, or goes by the letters that they share.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from cachetools import LRUCache

from recollect.embedding.models import KNOWN_MODELS
from recollect.errors import RecollectError
from recollect.languages import AUTO, DEFAULT_LANGUAGE, language_of_text

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model.collection import Collection

logger = logging.getLogger(__name__)

#: By how many standard deviations questions are nearer to their own passages than to others, where a model knows the
#: language. all-MiniLM-L6-v2 has 9.9 in English and between -0.3 and 0.8 in nineteen other languages,
#: multilingual-e5-small between 1.5 and 6.1 in all twenty.
KNOWN_SEPARATION = 1.1

_KEPT = 1_024


class ModelLanguages:
    """What is known of the languages of embedding models; each is asked once. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: LRUCache[tuple[str, str], bool] = LRUCache(_KEPT)

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


def asked_language(query: str, collections: Iterable[Collection]) -> str | None:
    """The language of a question, where texts that it is asked of are in that language; None: none is.

    Args:
        query: The question.
        collections: That it is asked of.
    """
    languages = [code for one in collections for code in (one.languages if one.language == AUTO else (one.language,))]
    only = languages[0] if len(set(languages)) == 1 else None
    asked = language_of_text(query, expected=only)
    return asked if asked in languages else None


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
    questions, passages = zip(*anchors, strict=True)
    # Where a question is a request over a network, all of them are one.
    together = getattr(embedder, "embed_queries", None)
    asked = together(questions) if together else np.stack([embedder.embed_query(question) for question in questions])
    similarities = asked @ np.asarray(embedder.embed_documents(passages)).T
    own = np.eye(len(questions), dtype=bool)
    others = similarities[~own]
    return float((similarities[own].mean() - others.mean()) / max(float(others.std()), 1e-6))


@cache
def load_anchors() -> dict[str, tuple[tuple[str, str], ...]]:
    """Questions and passages that answer them, by language."""
    stored: dict[str, list[list[str]]] = json.loads(
        files("recollect.retrieval").joinpath("language_anchors.json").read_text("utf-8")
    )
    return {code: tuple((question, passage) for question, passage in pairs) for code, pairs in stored.items()}


def _declared(model_name: str) -> frozenset[str] | None:
    """The languages that a model declares; numeric formats of one model share them."""
    known = KNOWN_MODELS.get(model_name) or KNOWN_MODELS.get(model_name.rpartition(":")[0])
    return None if known is None else known.languages
