"""Which language a text is in."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.languages import DEFAULT_LANGUAGE, language_of_part, language_of_text, shares_script
from recollect.retrieval.relevance import load_anchors

SENTENCES = {
    "ar": "تأسست المدينة في القرن الثالث عشر على ضفاف النهر.",
    "bg": "Градът е основан през тринадесети век и се намира на брега на реката.",
    "cs": "Město bylo založeno ve třináctém století na břehu řeky, která se vlévá do moře.",
    "da": "Byen blev grundlagt i det trettende århundrede, og den ligger ved bredden af floden.",
    "de": "Die Stadt wurde im dreizehnten Jahrhundert am Ufer des Flusses gegründet.",
    "el": "Η πόλη ιδρύθηκε τον δέκατο τρίτο αιώνα στις όχθες του ποταμού.",
    "en": "The city was founded in the thirteenth century on the bank of the river.",
    "es": "La ciudad fue fundada en el siglo trece a orillas del río.",
    "fa": "این شهر در قرن سیزدهم در کنار رودخانه ساخته شد و پایتخت گردید.",
    "fi": "Kaupunki on perustettu joen rannalle, ja se oli silloin hyvin pieni.",
    "fr": "La ville a été fondée au treizième siècle sur les rives du fleuve.",
    "he": "העיר נוסדה במאה השלוש עשרה על גדות הנהר.",
    "hi": "शहर की स्थापना तेरहवीं शताब्दी में नदी के किनारे हुई थी।",
    "hu": "A várost a tizenharmadik században alapították, és az egyik folyó partján fekszik, amely széles.",
    "id": "Kota ini didirikan pada abad ketiga belas di tepi sungai yang besar.",
    "it": "La città è stata fondata nel tredicesimo secolo sulle rive del fiume.",
    "ja": "その町は十三世紀に川のほとりに建てられた。",
    "ko": "그 도시는 13세기에 강가에 세워졌다.",
    "nl": "De stad werd in de dertiende eeuw aan de oever van de rivier gesticht.",
    "pl": "Miasto zostało założone w trzynastym wieku i leży nad brzegiem rzeki.",
    "pt": "A cidade foi fundada no século treze às margens do rio.",
    "ro": "Orașul a fost întemeiat în secolul al treisprezecelea pe malul râului.",
    "ru": "Город был основан в тринадцатом веке на берегу реки.",
    "sv": "Staden grundades på trettonhundratalet och ligger vid floden som är mycket bred.",
    "ta": "இந்த நகரம் பதின்மூன்றாம் நூற்றாண்டில் ஆற்றங்கரையில் நிறுவப்பட்டது.",
    "th": "เมืองนี้ก่อตั้งขึ้นในศตวรรษที่สิบสามริมฝั่งแม่น้ำ",
    "tr": "Şehir on üçüncü yüzyılda nehrin kıyısında kurulmuştur ve çok eski bir tarihe sahiptir.",
    "uk": "Місто було засноване в тринадцятому столітті на березі річки.",
    "ur": "یہ شہر تیرہویں صدی میں دریا کے کنارے قائم کیا گیا تھا۔",
    "vi": "Thành phố được thành lập vào thế kỷ thứ mười ba bên bờ sông.",
    "zh": "这座城市建于十三世纪，位于河岸边。",
}


@pytest.mark.parametrize(("language", "sentence"), SENTENCES.items(), ids=SENTENCES)
def test_a_sentence_is_known_by_itself(language: str, sentence: str):
    assert language_of_text(sentence) == language


@pytest.mark.parametrize("text", ["", " \n", "😀😀", "4012", "x", "Kubernetes", "ERR-4012", "{}[]();"])
@pytest.mark.parametrize("expected", [None, "de", "ar"])
def test_what_says_nothing_is_in_the_expected_language_or_in_the_default(text: str, expected: str | None):
    found = language_of_text(text, expected=expected)
    letters = any(character.isalpha() for character in text)
    assert found == (DEFAULT_LANGUAGE if expected is None or (letters and expected == "ar") else expected)


def test_names_of_other_places_do_not_make_a_language():
    text = (
        "The sports teams that are in Southern California and in its largest city include the Los Angeles Rams, "
        + "Los Angeles Kings, " * 40
    )
    assert language_of_text(text) == "en"


def test_names_in_another_script_do_not_make_a_language():
    assert language_of_text("The novels of Фёдор Достоевский and Лев Толстой were read in the whole of Europe.") == "en"
    assert language_of_text("公司使用 PostgreSQL 和 Kubernetes 来存储数据并运行服务器") == "zh"


def test_a_part_is_in_the_language_of_the_whole_unless_it_is_clearly_in_another_one():
    assert language_of_part("Tabelle 3: 4.012 · 5.113", "de") == "de"
    assert language_of_part("Los Angeles Rams", "en") == "en"
    german = SENTENCES["de"] + " Sie ist nicht die einzige, aber sie war für uns die wichtigste, und das ist sie noch."
    assert language_of_part(german, "en") == "de"
    assert language_of_part(SENTENCES["ar"], "en") == "ar"
    assert language_of_part("PostgreSQL 18.4, pgvector 0.8.5", "ar") == "ar"


def test_a_long_text_is_read_in_part_and_the_middle_counts():
    heading = "ERR-4012 4013 4014\n" * 100
    assert language_of_text(heading + SENTENCES["de"] * 20_000) == "de"


@given(
    st.lists(st.sampled_from(["le", "la", "the", "und", "d'or", "l'", "'tis", "y''a", "IL", "'", "1", " ", "-"])).map(
        "".join
    )
)
def test_words_of_ascii_are_found_as_those_of_any_text(text: str):
    assert language_of_text(text) == language_of_text(f"{text} \N{MIDDLE DOT}")


@given(st.text(max_size=200), st.sampled_from([None, "de", "ja", "ar"]))
def test_every_text_has_a_language_and_always_the_same(text: str, expected: str | None):
    found = language_of_text(text, expected=expected)
    assert found == language_of_text(text, expected=expected)
    assert 2 <= len(found) <= 3
    assert language_of_part(text, found)


@pytest.mark.parametrize(
    ("language", "shared"), [("de", True), ("tr", True), ("vi", True), ("xx", True), ("ar", False), ("ja", False)]
)
def test_languages_share_a_script_with_english(language: str, shared: bool):
    assert shares_script(language) is shared


SHORT_QUESTIONS = [
    ("ar", "من يدفع"),
    ("de", "wer bezahlt"),
    ("el", "που βρισκεται η Αθηνα"),
    ("en", "who pays"),
    ("es", "Cuando se firmó el tratado"),
    ("es", "cuanto cuesta"),
    ("hi", "गूगल कब बना"),
    ("ro", "cate zile de concediu am"),
    ("ro", "cine plătește"),
    ("ru", "кто платит"),
    ("th", "ใครจ่าย"),
    ("tr", "kac gun iznim var"),
    ("tr", "Türkiye'nin başkenti neresi"),
    ("vi", "thu do cua Viet Nam la gi"),
    ("vi", unicodedata.normalize("NFD", "Không ai bị tước đoạt tài sản của mình một cách độc đoán.")),
    ("zh", "谁付钱"),
]


@pytest.mark.parametrize(("language", "question"), SHORT_QUESTIONS)
def test_a_short_question_is_known_also_without_its_marks(language: str, question: str):
    assert language_of_text(question) == language
    assert language_of_text(question, expected=language) == language


@pytest.mark.parametrize("language", ["ar", "el", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh"])
def test_the_questions_and_passages_of_the_anchors_are_known(language: str):
    texts = [text for pair in load_anchors()[language] for text in pair]
    assert sum(language_of_text(text) == language for text in texts) >= len(texts) - 2


ELIDED_AND_MIXED = [
    ("fr", "Qui a inventé l'imprimerie ?"),
    ("it", "Dov'è la stazione?"),
    ("de", "Wie heißt die zweite Verwaltungsebene in Polen?"),
    ("de", "Was kostet der Eintritt?"),
    ("zh", "NASUWT是什么？"),
    ("zh", "Energiprojekt AB公司位于何处?"),
    ("ja", "PostgreSQLとは何ですか"),
    ("ko", "Kubernetes란 무엇인가"),
    ("en", "The word 日本 is written in two characters, and the article says nothing else of it."),
    ("en", "Who was D'Artagnan in the novel?"),
]


@pytest.mark.parametrize(("language", "question"), ELIDED_AND_MIXED)
def test_articles_before_an_apostrophe_and_names_in_latin_letters_tell_what_they_are(language: str, question: str):
    assert language_of_text(question) == language
