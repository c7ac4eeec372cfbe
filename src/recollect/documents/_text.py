"""Bytes to clean text: encodings, and the characters that must not get into a store."""

from __future__ import annotations

import codecs
import re
import unicodedata

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 65_536
_CONTROLS = bytes([*range(9), *range(14, 27), *range(28, 32)])
_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\ud800-\udfff\r]")
_NEWLINES = re.compile("\r\n?|[\x0b\x0c]")
_DROPPED = re.compile("[\x00-\x08\x0e-\x1f\x7f\ufeff]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_JOINTS = re.compile("[ \n、。，\u3040-\u309f]")
# Single-byte encodings of Latin scripts, most common first; a tie goes to the earlier one.
_LATIN = ("cp1252", "cp1250", "iso8859-15", "mac_roman")
# What programs write under the names of smaller encodings; web browsers read them so (https://encoding.spec.whatwg.org).
_MEANT = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
}
_ODD_IN_WORD = re.compile(r"(?<=[^\W\d_])[^\w\s'’\-‐.,/&@:;()\[\]]+(?=[^\W\d_])|(?<=[^\W\d_])[¹²³ºª]|[\x80-\x9f]")


class NotTextError(ValueError):
    """The bytes are no text in any encoding that is tried; the message says why."""


def clean(text: str) -> str:
    """``text`` with line feeds as the only line end and without what PostgreSQL or UTF-8 refuses.

    NUL and other control characters and byte order marks vanish, form feeds become line ends, lone surrogates
    become U+FFFD.
    """
    if not _UNWANTED.search(text):
        return text
    return _SURROGATES.sub("\ufffd", _DROPPED.sub("", _NEWLINES.sub("\n", text)))


def decode(data: bytes, *, declared: str | None = None) -> str:
    """Decodes text of unknown encoding and cleans it.

    The order is: byte order mark, UTF-8, UTF-16 and UTF-32 by their zero bytes or by what they give, ``declared``,
    then the legacy encodings: Latin ones by how few letters turn into symbols, the rest by ``charset-normalizer``.

    Args:
        data: The whole text.
        declared: An encoding that the text itself names (an HTML ``meta`` element); wrong names are ignored.

    Raises:
        NotTextError: It is binary.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return clean(data[len(mark) :].decode(encoding, "replace"))
    text = _try(data, "utf-8")
    wide = _decode_wide(data) if text is None or "\0" in text else None
    if wide is not None:
        return clean(wide)
    _refuse_binary(data)
    if text is None and declared is not None:
        text = decode_declared(data, declared)
    return clean(_decode_legacy(data) if text is None else text)


def decode_declared(data: bytes, declared: str) -> str | None:
    """Text in the encoding that it says it has, as programs mean that name; None where it has another."""
    try:
        name = codecs.lookup(declared).name
    except (LookupError, ValueError):
        return None
    return _try(data, _MEANT.get(name, name))


def _try(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError, ValueError):
        return None


def _decode_wide(data: bytes) -> str | None:
    """UTF-16 or UTF-32 without a byte order mark, or None."""
    sample = data[:_SAMPLE]
    for encoding, width in (("utf-32-le", 4), ("utf-32-be", 4), ("utf-16-le", 2), ("utf-16-be", 2)):
        if len(data) % width == 0 and _looks_like_text(_try(sample, encoding)):
            return _try(data, encoding)
    return None


def _looks_like_text(text: str | None) -> bool:
    if not text or "\0" in text:
        return False
    plain = sum(1 for char in text if char in "\t\n\r" or unicodedata.category(char)[0] in "LNPZMS")
    # Other bytes read two by two land all over the CJK blocks; real text stays in few or has spaces and punctuation.
    blocks = len({ord(char) >> 8 for char in text})
    joints = len(_JOINTS.findall(text))
    return plain >= 0.97 * len(text) and (blocks <= max(3, len(text) // 20) or joints >= 0.05 * len(text))


def _refuse_binary(data: bytes) -> None:
    sample = data[:_SAMPLE]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if controls > max(1, len(sample) // 50):
        raise NotTextError("is a binary file, not text")


def _decode_legacy(data: bytes) -> str:
    sample = data[:_SAMPLE]
    high = sum(1 for byte in sample if byte >= 0x80)
    letters = sum(1 for byte in sample if byte >= 0x80 or chr(byte).isalpha())
    # Latin scripts write most of their letters in ASCII; Cyrillic, Greek, Chinese and others hardly any.
    if high <= max(4, 0.25 * letters):
        return _decode_latin(data)
    from charset_normalizer import from_bytes

    best = from_bytes(sample).best()
    text = None if best is None else _try(data, best.encoding)
    if text is None and best is not None:
        text = data.decode(best.encoding, "replace")
    if text is None:
        raise NotTextError("is a binary file, or text in an unknown encoding; save it as UTF-8")
    return text


def _decode_latin(data: bytes) -> str:
    def oddities(encoding: str) -> int:
        return len(_ODD_IN_WORD.findall(data[:_SAMPLE].decode(encoding, "replace")))

    best = min(_LATIN, key=oddities)
    # cp1252 leaves five bytes undefined; Latin-1 reads them as controls that are of no use to anyone.
    return data.decode(best, "replace")
