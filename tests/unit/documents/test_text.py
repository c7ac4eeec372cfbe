from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.documents._text import NotTextError, clean, decode

GERMAN = "Die Größe der Gebäude beträgt über fünf Meter. Für Äpfel gilt: „süß“ – 5 €.\n" * 3
RUSSIAN = "Сотрудники имеют право на тридцать дней оплачиваемого отпуска в течение календарного года. " * 5
POLISH = "Pracownicy mają prawo do urlopu. Wciąż żółte gęsi śpią, a łódź płynie dalej w świat.\n" * 3
JAPANESE = "従業員は暦年ごとに三十日間の有給休暇を取得する権利があります。申請は上司に行ってください。" * 5


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize("text", [GERMAN, RUSSIAN, JAPANESE, "plain ascii, of some length\n"])
def test_unicode_with_and_without_mark(text, encoding):
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (GERMAN, "cp1252"),
        ("Un élève âgé a reçu ça à Noël, où il était né.", "latin-1"),
        (POLISH, "cp1250"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
    ],
)
def test_legacy_encodings(text, encoding):
    assert decode(text.encode(encoding)) == text


def test_declared_encoding_is_used_when_the_text_is_not_utf8():
    greek = "Καλημέρα σε όλους"
    assert decode(greek.encode("iso8859-7"), declared="iso-8859-7") == greek
    assert decode(greek.encode(), declared="iso-8859-7") == greek
    assert decode("größer".encode("cp1252"), declared="no-such-encoding") == "größer"


def test_line_ends_and_control_characters():
    assert clean("a\r\nb\rc\nd\x0ce\x0bf") == "a\nb\nc\nd\ne\nf"
    assert clean("a\x00b\ufeffc\x07\x7fd\te") == "abcd\te"
    assert clean("x\ud800y\udfffz") == "x\ufffdy\ufffdz"


def test_a_stray_nul_is_dropped_and_many_are_binary():
    assert decode(b"some text\0 with one stray zero byte in it") == "some text with one stray zero byte in it"
    with pytest.raises(NotTextError, match="binary"):
        decode(bytes(range(256)) * 20)


@given(st.text(alphabet=st.characters(exclude_characters="\0"), min_size=1))
def test_utf8_round_trip(text):
    try:
        assert decode(text.encode("utf-8", "replace")) == clean(
            text.encode("utf-8", "replace").decode().removeprefix("\ufeff")
        )
    except NotTextError:
        assert any(ord(char) < 32 for char in text)


@given(st.text(alphabet=st.characters()))
def test_clean_is_idempotent_and_storable(text):
    once = clean(text)
    assert clean(once) == once
    assert "\0" not in once
    assert "\r" not in once
    once.encode("utf-8")
