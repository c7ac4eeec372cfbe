"""What is said where nothing is found: in the language of the question."""

from __future__ import annotations

import pytest

from recollect.answer.absence import REFUSALS, is_refusal, sentence_of
from recollect.answer.extractive import extract_answer
from recollect.answer.prompt import build_prompt
from recollect.embedding.hashing import HashingEmbedder
from recollect.languages import language_of_text
from recollect.model.answer import REFUSAL

QUESTIONS = {
    "ar": "كم يوم إجازة لدي؟",
    "de": "Wie viele Urlaubstage habe ich?",
    "el": "Πόσες ημέρες άδειας έχω;",
    "en": "How many days of leave do I have?",
    "es": "¿Cuántos días de vacaciones tengo?",
    "hi": "मुझे कितने दिन की छुट्टी मिलती है?",
    "ro": "Câte zile de concediu am?",
    "ru": "Сколько дней отпуска у меня есть?",
    "th": "ฉันลาพักร้อนได้กี่วัน",
    "tr": "Kaç gün iznim var?",
    "vi": "Tôi có bao nhiêu ngày nghỉ phép?",
    "zh": "我有多少天年假？",
}


@pytest.mark.parametrize(("language", "question"), QUESTIONS.items(), ids=QUESTIONS)
@pytest.mark.parametrize("texts", ["en", "auto"])
def test_an_answer_is_refused_in_the_questions_language(language: str, question: str, texts: str):
    answer = extract_answer(question, [], embedder=HashingEmbedder(64), language=texts)
    assert answer.refused
    assert answer.text == REFUSALS[language]
    assert language_of_text(answer.text) == language


@pytest.mark.parametrize(("language", "question"), QUESTIONS.items(), ids=QUESTIONS)
def test_a_model_is_told_the_sentence_and_understood(language: str, question: str):
    assert REFUSALS[language] in build_prompt(question, []).messages[0].content
    assert is_refusal(f"**{REFUSALS[language]}**")
    assert not is_refusal(question)


@pytest.mark.parametrize(
    ("question", "texts", "language"),
    [
        # Words that German and Dutch share, and a noun with a capital.
        ("Wie lange dauert die Probezeit?", "auto", "de"),
        ("Wie lange dauert die Probezeit?", "en", "de"),
        ("Wie lange dauert die Probezeit?", "nl", "nl"),
        ("wie lange die", "auto", "en"),
        ("wie lange die", "fr", "fr"),
        ("Hoe lang duurt de proeftijd?", "en", "nl"),
        ("How long is probation?", "de", "en"),
        ("Combien de temps dure la période d'essai ?", "auto", "fr"),
        ("Quanto dura il periodo di prova?", "en", "it"),
    ],
)
def test_a_language_that_is_not_certain_is_that_of_the_texts(question: str, texts: str, language: str):
    assert sentence_of(REFUSALS, question, texts) == REFUSALS[language]


def test_what_says_nothing_of_its_language_is_refused_in_that_of_the_texts():
    assert sentence_of(REFUSALS, "ERR-4012?", "de") == REFUSALS["de"]
    assert sentence_of(REFUSALS, "ERR-4012?", "auto") == sentence_of(REFUSALS, "ERR-4012?") == REFUSAL
    assert sentence_of(REFUSALS, "Inona no anaran'ny renivohitra?", "mg") == REFUSAL
