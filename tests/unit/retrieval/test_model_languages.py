"""Which languages an embedding model knows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ProviderError
from recollect.model.collection import Collection
from recollect.retrieval.candidates import Candidates
from recollect.retrieval.relevance import (
    MeaningShare,
    ModelLanguages,
    asked_language,
    foreign_language,
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


@pytest.mark.parametrize(
    ("query", "places", "asked"),
    [
        ("Wann wird die Rechnung bezahlt?", [collection("auto", "en")], "de"),
        ("Wann wird die Rechnung bezahlt?", [collection("en")], "de"),
        ("Wann wird die Rechnung bezahlt?", [collection("auto", "ar", "en")], "de"),
        ("Wann wird die Rechnung bezahlt?", [collection("auto", "ar", "de")], None),
        ("Wann wird die Rechnung bezahlt?", [collection("en"), collection("de")], None),
        ("发票什么时候付款？", [collection("auto", "de", "en")], "zh"),
        ("متى تدفع الفاتورة؟", [collection("en")], "ar"),
        ("\u202bمتى تدفع الفاتورة؟\u202c", [collection("en")], "ar"),
        # What says nothing of its language is in that of the texts.
        ("Rechnung", [collection("auto", "en")], None),
        ("Rechnung", [collection("auto", "ar", "tr")], None),
        ("ERR-4012", [collection("auto", "de")], None),
        ("😀", [collection("auto", "tr")], None),
        ("schet oplachivaetsya kogda", [collection("auto", "en")], None),
        ("", [collection("auto", "de")], None),
        # Nothing is known of what there is.
        ("Wann wird die Rechnung bezahlt?", [collection("auto")], None),
        ("Wann wird die Rechnung bezahlt?", [], None),
    ],
)
def test_a_question_is_foreign_where_no_text_is_in_its_language(
    query: str, places: list[Collection], asked: str | None
):
    assert foreign_language(query, places) == asked


class Apart(Understanding):
    """Brings anchors together across languages, but keeps each language on a side of its own."""

    model_name = "intfloat/multilingual-e5-small:int8"
    dimension = 8

    def embed_documents(self, texts):
        vectors = np.zeros((len(texts), 8), np.float32)
        vectors[:, :7] = super().embed_documents(texts)
        german = {text for pair in load_anchors()["de"] for text in pair}
        vectors[:, 7] = [2.0 if text in german else -2.0 for text in texts]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_question_is_moved_by_what_tells_the_languages_apart():
    known, model = ModelLanguages(), Apart("de", "en")
    question = model.embed_query(load_anchors()["de"][2][0])
    answers = model.embed_documents([answer for _, answer in load_anchors()["en"]])
    moved = known.shifted(question, "de", ["en"], model)
    assert np.linalg.norm(moved) == pytest.approx(1.0)
    assert moved.dtype == question.dtype
    before, after = answers @ question, answers @ moved
    assert before.argmax() == after.argmax() == 2
    # What is left between the right answer and the others counts for more.
    assert after[2] - after[0] > 1.5 * (before[2] - before[0])


def test_a_language_is_asked_for_once_and_nothing_moves_without_anchors():
    known, model = ModelLanguages(), Apart("de", "en")
    question = model.embed_query("anything")
    known.shifted(question, "de", ["en"], model)
    asked = model.asked
    assert not np.array_equal(known.shifted(question, "de", ["en", "xx"], model), question)
    assert model.asked == asked
    for language, others in (("xx", ["en"]), ("de", ["xx"]), ("de", [])):
        assert known.shifted(question, language, others, model) is question
    assert np.allclose(known.shifted(question, "de", ["de"], model), question)


def test_only_with_models_that_it_was_measured_with_and_where_the_language_is_another():
    known, apart, other = ModelLanguages(), Apart("de", "en"), Understanding("de", "en")
    question = "Wann wird die Rechnung bezahlt?"
    english, german = collection("auto", "en"), collection("de")
    vector = apart.embed_query(question)
    assert not np.array_equal(known.moved(vector, question, english, apart), vector)
    assert known.moved(vector, question, german, apart) is vector
    vector = other.embed_query(question)
    assert known.moved(vector, question, english, other) is vector
    assert known.shifted(vector, "de", ["en"], other) is vector


def test_words_that_a_candidate_holds_count_whatever_the_question_is_taken_for():
    crossing, unknown = MeaningShare(0.85, crossing=True), MeaningShare(0.15, crossing=False)
    nothing = Candidates(dense=[(1, 0.8)], similarities={1: 0.8})
    names = Candidates(dense=[(1, 0.8)], lexical=[(1, 3.0)], coverage={1: 0.7, 2: 0.1})
    noise = Candidates(dense=[(1, 0.8)], lexical=[(1, 3.0)], coverage={1: 0.2, 2: 0.1})
    assert [crossing.counts(found) for found in (nothing, names, noise)] == [True, False, True]
    # What a model does not know is left to the words, where they found something.
    assert [unknown.counts(found) for found in (nothing, names, noise)] == [False, True, True]
