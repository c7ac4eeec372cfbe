"""Which languages an embedding model knows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ProviderError
from recollect.model.collection import Collection
from recollect.retrieval.model_languages import (
    ModelLanguages,
    asked_language,
    load_anchors,
    separation,
    undeclared_languages,
)


class Understanding:
    """Brings each question of the anchors of some languages to its passage; other texts it finds alike."""

    model_name = "understanding"
    dimension = 7

    def __init__(self, *languages: str) -> None:
        self._places = {
            text: index
            for language in languages
            for index, pair in enumerate(load_anchors()[language])
            for text in pair
        }
        self.asked = 0

    def embed_documents(self, texts):
        self.asked += 1
        rows = np.eye(7, dtype=np.float32)
        # Texts of no language that it knows are alike, but for a little that their letters do.
        alike = [np.eye(7, dtype=np.float32)[6] + 0.01 * np.sin(np.arange(7) + len(text)) for text in texts]
        return np.stack(
            [
                rows[self._places[text]] if text in self._places else vector / np.linalg.norm(vector)
                for text, vector in zip(texts, alike, strict=True)
            ]
        ).astype(np.float32)

    def embed_query(self, text):
        return self.embed_documents([text])[0]


class Failing(Understanding):
    model_name = "failing"

    def embed_documents(self, texts):
        raise ProviderError("It is down.", provider="test", model="failing")


def collection(language: str, *languages: str) -> Collection:
    return Collection(
        collection_id=1, name="c", description="", embedding_model="m", embedding_dimension=7, space_id=1,
        first_model="m", language=language, chunking={}, created_at=datetime.now(UTC), revision=0, document_count=0,
        chunk_count=0, stats_chunks=0, stats_terms=0, stats_pending=0, reference_length=None, indexed=False,
        languages=languages,
    )  # fmt: skip


def test_every_language_has_six_different_anchors():
    for language, anchors in load_anchors().items():
        assert len(anchors) == 6, language
        assert len({text for pair in anchors for text in pair}) == 12, language


def test_a_model_is_asked_once_a_language():
    known, model = ModelLanguages(), Understanding("de", "tr")
    for _ in range(3):
        assert known.knows("understanding", "de", lambda: model)
        assert not known.knows("understanding", "ar", lambda: model)
    asked = model.asked
    assert known.knows("understanding", "tr", lambda: model)
    assert model.asked == asked + 7  # six questions, and the passages together


def test_what_is_declared_is_believed_without_asking():
    def never():
        raise AssertionError("asked")

    known = ModelLanguages()
    assert known.knows("sentence-transformers/all-MiniLM-L6-v2:int8", "en", never)
    assert not known.knows("sentence-transformers/all-MiniLM-L6-v2:int8", "vi", never)
    assert not known.knows("sentence-transformers/all-MiniLM-L6-v2:fp32", "sw", never)


def test_what_cannot_be_found_out_counts_in_full_and_is_asked_again():
    known = ModelLanguages()
    assert known.knows("other", "xx", Understanding)
    assert known.knows("failing", "de", Failing)
    assert not known.knows("failing", "de", Understanding)


def test_letters_alone_separate_nothing():
    assert separation(HashingEmbedder(), load_anchors()["de"]) < 2


def test_languages_that_the_default_model_does_not_declare():
    def named(model: str, *languages: str) -> Collection:
        return replace(collection(*languages), embedding_model=model)

    default = "sentence-transformers/all-MiniLM-L6-v2:int8"
    assert undeclared_languages(named(default, "auto", "de", "en")) == ("de",)
    assert undeclared_languages(named(default, "tr")) == ("tr",)
    assert undeclared_languages(named(default, "auto")) == ()
    assert undeclared_languages(named("intfloat/multilingual-e5-small:int8", "auto", "de")) == ()
    assert undeclared_languages(named("hashing", "auto", "de")) == ()


@pytest.mark.parametrize(
    ("query", "places", "asked"),
    [
        ("Wann wird die Rechnung bezahlt?", [collection("auto", "de", "en")], "de"),
        ("Rechnung", [collection("auto", "de")], "de"),
        ("Rechnung", [collection("auto", "de", "fr")], None),
        ("Wann wird die Rechnung bezahlt?", [collection("auto", "en")], None),
        ("Wann wird die Rechnung bezahlt?", [collection("en")], None),
        ("Wann wird die Rechnung bezahlt?", [collection("en"), collection("de")], "de"),
        ("When are the invoices paid?", [collection("auto", "de", "en")], "en"),
        ("4012", [collection("auto")], None),
        ("", [], None),
    ],
)
def test_a_question_is_in_a_language_of_the_texts_or_in_none(query: str, places: list[Collection], asked: str | None):
    assert asked_language(query, places) == asked
