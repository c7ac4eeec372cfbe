from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.errors import UsageError
from recollect.retrieval import analysis
from recollect.retrieval.analysis import LEXEME_SPACE, Analyzer, lexeme, term_frequencies

ENGLISH = Analyzer("en")


def test_words_are_folded_stemmed_and_freed_of_function_words():
    terms = ENGLISH.terms("The Servers were restarting; the SERVER restarts!")
    assert terms == ["server", "restart", "server", "restart"]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("see ERR-4012 in the log", "ERR-4012"),
        ("see ERR-4012 in the log", "err-4012"),
        ("see ERR-4012 in the log", "4012"),
        ("ERR-4012's cause", "ERR-4012"),
        ("POL-017 (superseded).", "POL-017"),
        ("upgrade to v0.8.0.", "0.8.0"),
        ("upgrade to 0.8.0.", "v0.8.0"),
        ("call foo_bar()", "foo_bar"),
        ("call foo_bar()", "bar"),
        ("written in C++, not C", "C++"),
        ("written in C#.", "c#"),
        ("gateway 192.168.0.1:8080", "192.168.0.1"),
        ("write to jane.doe@example.com, please", "jane.doe@example.com"),
        ("write to jane.doe@example.com, please", "example.com"),
        ("hr/leave_policy.pdf", "leave_policy.pdf"),
        ("hr/leave_policy.pdf", "leave policy"),
        ("at most 1,000 euros", "1000"),
        ("the value 3.14", "3.14"),
        ("on 2024-01-15", "2024"),
        ("by e-mail", "email"),
        ("by email", "e-mail"),
        ("in the U.S.A. since", "USA"),
        ("a three-dimensional flow", "three dimensional"),
        ("the company\u2019s rules", "company's rule"),
        ("non\u2011breaking", "non-breaking"),
        ("co\u00adoperation", "cooperation"),
        ("na\u00efve caf\u00e9", "naive cafe"),
        ("nai\u0308ve", "na\u00efve"),
        ("\ufb01ne print", "fine"),
        ("\uff21\uff22\uff23", "abc"),
    ],
)
def test_a_question_finds_the_text(text, question):
    assert set(ENGLISH.query_terms(question)) & set(ENGLISH.terms(text))


def test_an_exact_identifier_shares_more_terms_than_its_parts():
    asked = set(ENGLISH.query_terms("ERR-4012"))
    assert len(asked & set(ENGLISH.terms("ERR-4012"))) > len(asked & set(ENGLISH.terms("ERR 4012")))


def test_a_decimal_number_is_not_its_digits():
    assert ENGLISH.terms("0.5") == ["0.5"]


def test_it_is_a_department_only_in_capitals():
    assert ENGLISH.terms("IT") == ["it"]
    assert ENGLISH.terms("it") == ENGLISH.terms("It") == []


def test_a_question_of_function_words_has_no_terms():
    assert ENGLISH.query_terms("what is it to be or not to be, and don't they?") == []


@pytest.mark.parametrize(
    ("language", "text", "question"),
    [
        ("de", "die gefährlichen Straßen", "GEFÄHRLICHE STRASSE"),
        ("de", "Überstunden", "ueberstunden"),
        ("fr", "l\u2019école d'été", "ecole"),
        ("it", "dell'azienda", "azienda"),
        ("es", "las canciones", "cancion"),
        ("ru", "новые ёлки", "елка"),
        ("pt-BR", "as políticas", "politica"),
        ("tr", "IŞIK", "ışık"),
        ("el", "Ελλάδα", "ελλαδα"),
        ("he", "שָׁלוֹם", "שלום"),
        ("ar", "العَرَبِيَّة", "العربية"),
        ("hi", "हिन्दी में", "हिन्दी"),
        ("vi", "tiếng Việt", "tieng viet"),
        ("zh", "我住在东京都", "东京"),
        ("zh", "我的猫", "猫"),
        ("ja", "iPhoneケースを買う", "iphone"),
        ("ja", "iPhoneケースを買う", "ケース"),
        ("ko", "학교에서", "학교"),
        ("th", "สวัสดีครับ", "สวัสดี"),
    ],
)
def test_languages_and_scripts(language, text, question):
    analyzer = Analyzer(language)
    assert set(analyzer.query_terms(question)) & set(analyzer.terms(text))


def test_letters_of_a_languages_own_alphabet_are_kept_apart():
    assert Analyzer("sv").terms("år") != Analyzer("sv").terms("ar")
    assert Analyzer("es").terms("año") != Analyzer("es").terms("ano")
    assert Analyzer("en").terms("año") == Analyzer("en").terms("ano")
    assert Analyzer("ru").terms("йод") != Analyzer("ru").terms("иод")


def test_ideographs_are_indexed_in_pairs_and_one_by_one_but_asked_for_in_pairs():
    assert ENGLISH.terms("東京都") == ["東京", "京都", "東", "京", "都"]
    assert ENGLISH.query_terms("東京都") == ["東京", "京都"]


@pytest.mark.parametrize("language", ["", "english!", "e", "../en", "12"])
def test_what_is_no_language_code_is_refused(language):
    with pytest.raises(UsageError, match="ISO 639"):
        Analyzer(language)


@given(st.text())
@example("\ud800 a\ud800b")
@example("____ ' - . @ ++ #")
@example("a'''b--c..d")
@example("\u0301\u0301 \u200d\u200d \ufeff")
def test_any_text_has_terms_that_can_be_stored(text):
    terms = ENGLISH.terms(text)
    assert terms == ENGLISH.terms(text)
    assert all(0 < len(term) <= 64 * 3 and not any(sign.isspace() for sign in term) for term in terms)
    assert set(ENGLISH.query_terms(text)) <= set(terms)
    assert all(1 <= number <= LEXEME_SPACE for number in term_frequencies(terms, salt=1))


@given(st.lists(st.sampled_from(["alpha", "ERR-4012", "the", "東京", "c++", "don't"]), max_size=8))
def test_a_text_has_the_terms_of_its_words(words):
    expected = [term for word in words for term in ENGLISH.terms(word)]
    assert ENGLISH.terms(" ".join(words)) == expected


def test_one_enormous_word_becomes_one_bounded_term():
    assert [len(term) for term in ENGLISH.terms("x" * 1_000_000)] == [64]


def test_the_memory_of_tokens_is_bounded(monkeypatch):
    monkeypatch.setattr(analysis, "_MAX_CACHED_TOKENS", 10)
    analyzer = Analyzer("en")
    words = [f"word{i}" for i in range(100)]
    assert analyzer.terms(" ".join(words)) == words
    assert len(analyzer._known) <= 10


def test_threads_share_one_analyzer():
    texts = [" ".join(f"relational{i}ly running{j}s hopping" for j in range(50)) for i in range(40)]
    expected = [Analyzer("en").terms(text) for text in texts]
    shared = Analyzer("en")
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(shared.terms, texts)) == expected


def test_lexemes_are_the_same_in_every_process():
    code = "from recollect.retrieval.analysis import lexeme; print(lexeme('err-4012', 7))"  # a string hash would differ
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(output) == lexeme("err-4012", 7) == 428624877


def test_lexemes_differ_between_collections_and_hardly_collide():
    assert lexeme("leave", 1) != lexeme("leave", 2)
    assert len({lexeme(f"term{i}", 1) for i in range(20_000)}) >= 19_995


def test_term_frequencies_count_repetitions():
    frequencies = term_frequencies(["a", "b", "a"], salt=3)
    assert frequencies == {lexeme("a", 3): 2, lexeme("b", 3): 1}


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Đại học", ["đại", "dai", "học", "hoc", "dai hoc"]),
        ("dai hoc", ["dai", "hoc", "dai hoc"]),
        ("PostgreSQL 18.4", ["postgresql", "18.4"]),
        ("ho\u0323c", ["học", "hoc"]),
    ],
)
def test_vietnamese_words_are_found_with_their_tones_and_without(text: str, terms: list[str]):
    assert Analyzer("vi").terms(text) == terms
    assert set(Analyzer("vi").query_terms(text)) == set(terms)


@pytest.mark.parametrize(
    ("language", "text", "found", "other"),
    [
        ("ja", "東京タワーの高さ", "東京タワー", "京都"),
        ("zh", "这座城市建于十三世纪", "十三世纪", "十四日"),
        ("th", "เมืองนี้ก่อตั้งขึ้น", "ก่อตั้ง", "แม่น้ำ"),
        ("hi", "शहर की स्थापना", "स्थापना", "नदी"),
        ("ko", "도시는 강가에", "도시가", "바다"),
    ],
)
def test_scripts_of_their_own_are_found_by_pairs_and_marks_whatever_the_language_is_set_to(
    language: str, text: str, found: str, other: str
):
    for code in (language, "en", "auto"):
        indexed = set(Analyzer(code).terms(text))
        assert indexed & set(Analyzer(code, languages=("en", language)).query_terms(found))
        assert not indexed & set(Analyzer(code, languages=("en", language)).query_terms(other))
