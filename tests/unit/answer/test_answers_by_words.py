"""Where the embedding model does not know the language, words choose the sentence and decide whether to answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from answer.samples import passage
from recollect.answer import ExtractionOptions, RefusalRule, extract_answer
from recollect.answer.extractive import read
from recollect.answer.statements import statement
from recollect.answer.verification import Verifier
from recollect.embedding.models import DEFAULT_MODEL, MULTILINGUAL_MODEL
from recollect.retrieval.relevance import as_the_default, may_know


class OneForAll:
    """Finds everything alike, as MiniLM does with texts in Thai, of whose letters it knows none."""

    def __init__(self, model_name: str, similarity: float = 1.0) -> None:
        self.model_name = model_name
        self.similarity = similarity
        self.dimension = 2

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        return np.tile(np.array([[self.similarity, 0.0]], np.float32), (len(texts), 1))

    def embed_query(self, _: str) -> np.ndarray:
        return np.array([1.0, 0.0], np.float32)


#: A passage, a question with the sentence that answers it, and one that nothing answers.
ASKED = {
    "el": (
        "Το μουσείο χρεώνει 12 ευρώ για την είσοδο. Τα παιδιά μπαίνουν δωρεάν.",
        "Πόσο χρεώνει το μουσείο;",
        "Το μουσείο χρεώνει 12 ευρώ για την είσοδο.",
        "Ποιος εφηύρε την τυπογραφία;",
    ),
    "hi": (
        "कंपनी की स्थापना १९८७ में पुणे में हुई। आज इसमें ३४० लोग काम करते हैं।",
        "कंपनी की स्थापना किस वर्ष हुई?",
        "कंपनी की स्थापना १९८७ में पुणे में हुई।",
        "भोपाल में बारिश कब होती है?",
    ),
    "ru": (
        "Пароль должен содержать не менее 14 знаков. Поезд идёт два часа.",
        "Сколько знаков должен содержать пароль?",
        "Пароль должен содержать не менее 14 знаков.",
        "Кто изобрёл печатный станок?",
    ),
    "th": (
        "แม่น้ำปิงยาว 740 กิโลเมตร เด็กอายุต่ำกว่าสิบสองปีเข้าฟรี",
        "แม่น้ำปิงยาวกี่กิโลเมตร",
        "แม่น้ำปิงยาว 740 กิโลเมตร",
        "ใครประดิษฐ์แท่นพิมพ์",
    ),
    "zh": (
        "门票价格是十二元。儿童可以免费进入。",
        "門票價格是多少？",
        "门票价格是十二元。",
        "谁发明了印刷机？",
    ),
}


@pytest.mark.parametrize("language", ASKED)
def test_the_sentence_with_the_words_is_quoted_and_what_nobody_says_is_refused(language: str):
    text, question, sentence, unanswered = ASKED[language]
    minilm = OneForAll(DEFAULT_MODEL)
    answer = extract_answer(question, [passage(text)], embedder=minilm, language=language)
    assert [one.quote for one in answer.citations] == [sentence]
    assert extract_answer(unanswered, [passage(text)], embedder=minilm, language=language).refused
    never = ExtractionOptions(rule=RefusalRule(threshold=0.0))
    assert not extract_answer(unanswered, [passage(text)], embedder=minilm, language=language, options=never).refused
    # A model that may know the language is believed.
    for model, similarity in ((minilm, 0.0), (OneForAll("somebody/else"), 1.0)):
        reading = read(unanswered, [passage(text)], embedder=model, language=language, options=ExtractionOptions())
        assert {piece.fit.similarity for piece in reading.evidence} == {similarity}


def test_a_model_that_declares_no_languages_may_know_any():
    assert may_know("somebody/else", "th")
    assert may_know(DEFAULT_MODEL, "en")
    assert not may_know(DEFAULT_MODEL, "th")


def test_similarities_of_the_multilingual_model_are_judged_as_those_of_the_default_one():
    scaled = as_the_default(f"{MULTILINGUAL_MODEL}:int8")
    assert scaled(0.7460) == pytest.approx(0.0267)
    assert scaled(0.8683) == pytest.approx(0.6318)
    assert as_the_default(DEFAULT_MODEL)(0.5) == as_the_default("somebody/else")(0.5) == 0.5


def test_what_the_multilingual_model_finds_no_nearer_than_anything_counts_little_unless_the_languages_differ():
    text, question, _, _ = ASKED["ru"]

    def probability(question: str, similarity: float) -> float:
        model = OneForAll(MULTILINGUAL_MODEL, similarity)
        reading = read(question, [passage(text)], embedder=model, language="ru", options=ExtractionOptions())
        assert reading.support is not None
        return RefusalRule().probability(reading.support)

    assert probability(question, 0.86) > probability(question, 0.80)
    spanish = "¿Cuántos caracteres tiene la contraseña?"
    assert probability(spanish, 0.80) > probability("Кто изобрёл печатный станок?", 0.80)


def test_a_text_that_the_model_does_not_know_is_judged_by_words_among_others_that_it_knows():
    thai = passage(ASKED["th"][0], document_id=1)
    english = [
        passage("The office opens at eight. Visitors register at the desk.", document_id=number) for number in (2, 3)
    ]
    minilm = OneForAll(DEFAULT_MODEL)
    assert extract_answer("😀", [thai, *english], embedder=minilm, language="th").refused
    answer = extract_answer(ASKED["th"][1], [*english, thai], embedder=minilm, language="auto")
    assert answer.refused or {one.document_id for one in answer.citations} == {1}


@pytest.mark.parametrize(
    ("language", "said", "invented"),
    [
        ("el", "Η είσοδος στο μουσείο κοστίζει 12 ευρώ", "Τα παιδιά χαλάνε συχνά τα εκθέματα και φωνάζουν"),
        ("ru", "Пароль содержит не менее 14 знаков", "Поезд часто ломается и сильно шумит"),
        ("th", "แม่น้ำปิงยาว 740 กิโลเมตร", "แม่น้ำปิงสกปรกและเต็มไปด้วยเรือเก่าของชาวประมง"),
    ],
)
def test_what_a_language_model_invents_is_not_taken_for_said(language: str, said: str, invented: str):
    verifier = Verifier([passage(ASKED[language][0])], language=language)
    assert verifier.check(statement(f"{said} [1].", "text")).reason is None
    assert verifier.check(statement(f"{invented} [1].", "text")).reason == "no_evidence"
