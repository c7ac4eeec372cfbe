"""Traditional and simplified Chinese: either finds the other, is understood alike, and refused in its characters."""

from __future__ import annotations

import pytest

from recollect.answer.absence import REFUSALS, is_refusal, sentence_of
from recollect.languages.detection import simplified
from recollect.retrieval.analysis import Analyzer

#: Each in the characters of the mainland, then in those of Taiwan or Hong Kong.
PAIRS = [
    ("台湾的图书馆在哪里", "臺灣的圖書館在哪裡"),
    ("软件发展后头发干燥", "軟件發展後頭髮乾燥"),
    ("占领游击周期群众", "佔領遊擊週期羣眾"),
    ("线上证书收费表", "綫上証書收費錶"),
    ("为什么著作权没了", "為什麼著作權沒了"),
]


@pytest.mark.parametrize(("mainland", "traditional"), PAIRS)
def test_the_same_words_are_the_same_terms(mainland: str, traditional: str):
    analyzer = Analyzer("zh")
    assert analyzer.terms(traditional) == analyzer.terms(mainland)
    assert analyzer.query_terms(traditional) == analyzer.query_terms(mainland)
    assert [analyzer.token_terms(token) for token in analyzer.tokens(traditional)] == [
        analyzer.token_terms(token) for token in analyzer.tokens(mainland)
    ]


def test_other_texts_stay_as_they_are_and_no_character_is_lost():
    plain = "PostgreSQL 18 東京 👩‍👩‍👧 កម្ពុជា ไทย\ud800"
    assert simplified(plain) == plain.replace("東", "东")
    assert simplified(simplified("龍鬱麤𠀀")) == simplified("龍鬱麤𠀀")
    assert simplified("") == ""


def test_japanese_keeps_its_characters():
    assert Analyzer("ja").terms("國際") != Analyzer("ja").terms("国际")


def test_a_refusal_is_written_in_the_characters_of_the_question():
    assert sentence_of(REFUSALS, "這份報告說了什麼？") == REFUSALS["zh-Hant"]
    assert sentence_of(REFUSALS, "这份报告说了什么？") == REFUSALS["zh"]
    assert is_refusal(REFUSALS["zh-Hant"])
