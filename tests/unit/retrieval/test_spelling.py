"""Words that people write in several ways meet, in texts and in questions, in the twelve languages of XQuAD."""

from __future__ import annotations

import unicodedata

import pytest

from recollect.languages.detection import plain_digits
from recollect.retrieval.analysis import Analyzer, in_one_script

SPELLINGS = [
    ("ar", "المدرسة", "المدرسه"),
    ("ar", "إسلام", "اسلام", "اِسْلَام", "إســلام"),
    ("ar", "القرآن", "القران"),
    ("ar", "مستشفى", "مستشفي"),
    ("ar", "الكتاب", "والكتاب", "بالكتاب", "للكتاب", "وبالكتاب"),
    ("ar", "كتاب", "کتاب"),
    ("ar", "١٩٥٢", "1952", "۱۹۵۲"),
    ("ar", "٣٫٥", "3.5"),
    ("de", "Straße", "STRASSE", "strasse"),
    ("el", "Αθήνα", "ΑΘΗΝΑ", "αθηνα"),
    ("el", "λόγος", "ΛΟΓΟΣ", "λογοσ"),
    ("el", "προϊόν", "προιον", "ΠΡΟΪΟΝ"),
    ("el", "ἀνθρώπων", "ανθρώπων"),
    ("es", "canción", "cancion", "CANCIÓN"),
    ("es", "pingüino", "pinguino"),
    ("hi", "हिन्दी", "हिंदी"),
    ("hi", "क़लम", "कलम"),
    ("hi", "पढ़ना", "पढना"),
    ("hi", "चाँद", "चांद"),
    ("hi", "सम्बन्ध", "संबंध"),
    ("hi", "विद्वान्", "विद्वान"),
    ("hi", "१९४७", "1947"),
    ("ro", "știință", "ştiinţă", "stiinta", "ȘTIINȚĂ"),
    ("ro", "învățământ", "învăţământ", "invatamant"),
    ("ru", "ёлка", "елка", "ЁЛКА"),
    ("ru", "за́мок", "замок"),
    ("th", "น้ำ", "นํ้า", "น\u0e49\u0e4d\u0e32"),
    ("th", "แม่น้ำ", "เเม่น้ำ"),
    ("th", "๒๕๔๐", "2540"),
    ("tr", "İstanbul", "istanbul", "ISTANBUL", "İSTANBUL", "İstanbul'da"),
    ("tr", "öğrenciler", "ogrenciler", "ÖĞRENCİLER"),
    ("tr", "ışık", "IŞIK", "isik"),
    ("es", "año", "años", "AÑOS"),
    ("es", "islas", "isla"),
    ("en", "Amazon", "\u0410m\u0430zon"),
    ("ru", "страна", "cтрана", "странa"),
    ("el", "Αθήνα", "Aθήνα"),
    ("vi", "Đà Nẵng", "Da Nang", "ĐÀ NẴNG"),
    ("vi", "hòa", "hoà"),
    ("vi", "ủy ban", "uỷ ban", "uy ban"),
    ("vi", "kỹ thuật", "kĩ thuật", "ki thuat", "ky thuat"),
    ("zh", "一九四九年", "1949年", "１９４９年"),
]


@pytest.mark.parametrize(("language", "spellings"), [(code, words) for code, *words in SPELLINGS])
def test_whatever_is_written_is_found_however_it_is_typed(language: str, spellings: list[str]):
    analyzer = Analyzer(language)
    for form in ("NFC", "NFD"):
        for text in spellings:
            held = set(analyzer.terms(unicodedata.normalize(form, text)))
            for question in spellings:
                assert held & set(analyzer.query_terms(question)), (text, question)


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("es", "año", "ano"),
        ("vi", "má", "ma"),
        ("tr", "öz", "oz"),
        ("ar", "علي", "عالي"),
        ("hi", "कल", "काल"),
        ("th", "มา", "ม้า"),
        ("zh", "一九四九", "1949"),
    ],
)
def test_other_words_are_told_apart(language: str, one: str, other: str):
    analyzer = Analyzer(language)
    assert analyzer.terms(one) != analyzer.terms(other)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("ar", "من إلى على هذه التي كانت"),
        ("el", "ΚΑΙ και στην ήταν ηταν"),
        ("hi", "का में हैं और क्या"),
        ("ro", "și si care este până pana"),
        ("tr", "ve için icin çok nedir"),
        ("vi", "và của những được"),
    ],
)
def test_function_words_are_no_terms(language: str, words: str):
    assert Analyzer(language).terms(words) == []


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("ar", "علي"),
        ("ro", "AI CE mai nouă"),
        ("tr", "su"),
        ("vi", "AI Anh không"),
    ],
)
def test_words_that_resemble_function_words_stay(language: str, words: str):
    analyzer = Analyzer(language)
    assert all(analyzer.terms(word) for word in words.split())


@pytest.mark.parametrize("language", ["ro", "tr", "vi"])
def test_a_word_with_marks_counts_as_much_in_a_question_as_one_without(language: str):
    analyzer = Analyzer(language)
    assert len(analyzer.query_terms("müzakere")) == len(analyzer.query_terms("komisyon")) == 2
    assert analyzer.terms("komisyon") == analyzer.query_terms("komisyon")[:1]


@pytest.mark.parametrize("word", ["μm", "Δx", "USBпорт", "кВт", "αβ"])
def test_letters_of_their_own_stay_in_their_script(word: str):
    assert in_one_script(word) == word


def test_a_letter_that_only_looks_like_one_is_found_typed_right():
    assert Analyzer("en").terms("P\u0430yP\u0430l") == Analyzer("en").terms("PayPal")


def test_vietnamese_words_of_two_syllables_are_terms_with_marks_and_without():
    analyzer = Analyzer("vi")
    assert "thanh pho" in analyzer.terms("Thành phố Hồ Chí Minh")
    assert analyzer.query_terms("thanh pho")[-1:] == analyzer.query_terms("thành phố")[-1:] == ["thanh pho"]
    assert not any(" " in term for term in analyzer.terms("của những, ERR-4012 và 15"))
    # English words are none of its words, and an English question is no harder to answer for them.
    assert not any(" " in term for term in Analyzer("auto", languages=["vi", "ru"]).query_terms("Who runs the city?"))
    assert "chi minh" in Analyzer("auto", languages=["en", "vi"]).query_terms("Thành phố Hồ Chí Minh ở đâu?")


def test_digits_of_every_script_are_plain_ones_at_the_same_places():
    text = "١٩٥٢ १९५२ ๑๙๕๒ ۱۹۵۲ 一九五二年"
    assert plain_digits(text) == "1952 1952 1952 1952 1952年"
    # A count is no row of digits.
    assert plain_digits("一千九百年 三百二十年 ½ ²") == "一千九百年 三百二十年 ½ ²"
