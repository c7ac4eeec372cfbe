"""Sentence boundaries with exact character offsets."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import sentencex

from recollect.languages import AUTO, language_of_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.chunking.base import Span


# Where sentences do not end although a full stop stands there, and where they end without one: by language. Pure.
#
# What the library that finds sentences lacks: titles and other abbreviations of languages that it has few of, ordinals
# ("19. yüzyıl"), and Thai, which ends sentences by a space, and writes full stops in abbreviations alone.


# Words that are followed by what they belong to: whatever stands behind them, the sentence goes on.
_BEFORE_NAMES = {
    "ar": "د أ أ.د م.د ا.د ص.ب",
    "el": "κ κα κος κκ δρ καθ αγ βλ αρ άρθ σελ τηλ π.χ λ.χ δηλ οδ λεωφ",
    "es": "sr sra srta sres dr dra d dña prof ing lic pág págs art arts núm nº av avda gral cap vol fig p.ej ej sto",
    "hi": """
        डॉ डा श्री श्रीमती सुश्री प्रो पं स्व रु रू सं क्र मो कु इंजी ई.पू वि.सं
        ए बी सी डी एफ एच आई जे एल एम एन ओ पी आर एस टी यू वी
    """,
    "ro": """
        dl d-l dlui dna d-na dnei dra d-ra dr prof ing acad conf av arh lt cpt mr pr pt sf str bd șos nr art alin lit
        pct bl sc et ap jud com mun or sec cca ex pag vol fig tab cf
    """,
    "ru": """
        г-н г-жа проф акад доц ул просп пр пер пл наб д корп стр кв обл р-н пос дер о-в оз гл ст п пп рис табл см ср
        напр т.е т.к т.н т.наз св тов гр ред изд вып др.-греч лат англ нем фр итал греч
    """,
    "tr": """
        dr doç yrd prof öğr gör uzm av op müh mim alb gen kur bşk bkz krş örn ör md mad no nu cad mah apt bul blv çev
        m.ö m.s i\u0307.ö i\u0307.s sn
    """,
    "vi": "tp tx tt pgs gs ts ths th.s bs ks cn ls gv q nxb tr vd",
}
# Words that end a sentence as often: it goes on where a small letter or a digit follows.
_BEFORE_SMALL = {
    "ar": "ق.م م هـ ص ج ط كم سم إلخ الخ",
    "el": "μ.χ κ.ά κ.λπ κλπ κ.ο.κ χλμ εκατ δισ χιλ ευρ αι",
    "es": "etc ee.uu a.c d.c ud uds cía",
    "hi": "ई कि.मी मी कि.ग्रा लि कं",
    "ro": "etc ș.a ş.a a.c î.hr d.hr mil mld",
    "ru": "млн млрд трлн тыс руб коп долл г гг в вв др т.д т.п чел экз ч мин сек род",
    "tr": "vb vs vd ltd şti a.ş tic san yy dk sa tl ölm d",
    "vi": "v.v",
}
_ROMAN = re.compile(r"[ivxlc]{1,6}")
_LAST_WORD = re.compile(r"(?:^|[\s(\[«\"“„'’])([^\s(\[«\"“„'’]{1,12})[.．]$")
# Whose ordinals are a number with a full stop. The library knows those of German.
_ORDINALS = frozenset({"tr"})
#: So many characters before a full stop hold every word that is known here.
LONGEST_WORD = 24

# Thai: a space ends a sentence or a part of one, and stands around numbers, names and in lists. A sentence ends at one
# where both the part before and the one behind say something of something, the former is not left open (by a title and
# a first name, by "namely"), and the latter begins with no word that joins it.
_THAI_SPACE = re.compile(
    r"(?<=[\d\u0e01-\u0e5b]) +(?=[\u0e01-\u0e4e])|(?<=[!?…])\s+|(?<=[\u0e01-\u0e5b]{6}\.)\s+|"
    r"(?<=\d น\.) +|(?<!\s)\s*\n\s*"
)
# Behind other numbers stands what they count.
_THAI_YEAR_OR_NUMBER = re.compile(r"(?:ปี|ที่|คือ|ชั้น|เลข|ร้อยละ|[พค]\.ศ\.) ?[\d.,]+$")
_THAI_JOINS = re.compile(
    "(?:และ|หรือ|ที่|ซึ่ง|โดย|แต่|เพราะ|เนื่องจาก|เพื่อ|จึง|กับ|ของ|ใน|จาก(?!นั้น)|ถึง|ว่า|คือ|ได้|เช่น|เป็น|ตาม|รวม|พร้อม|ด้วย|อัน|ก็|แล้ว|ตลอดจน|"
    "ไม่|มิ|มี|ถูก|อยู่|ต้อง|จะ|พ\\.ศ|ค\\.ศ|ยัง|ทำให้|นั้น|นี้|ไป|มา|ๆ|ฯ|ณ)"
)
_THAI_LEFT_OPEN = re.compile(
    r"(?:ว่า|คือ|ได้แก่|เช่น|และ|หรือ|ของ|ที่|โดย|จาก|กับ|ใน|เป็น|ตาม|ถึง|ให้|เพื่อ|นาย|นาง|นางสาว|ข้อ|มาตรา|ประมาณ|ปี|วันที่|เดือน|ประกอบด้วย|อาทิ|ทั้งนี้|ณ|"
    r"เมื่อ|ตั้งแต่|[,:]|(?:\.|นาย|นางสาว|นาง) ?[\u0e01-\u0e4e]{2,20}|(?<![\u0e01-\u0e5b])(?!น\.$)[\u0e01-\u0e5b.]{1,6}\.)$"
)
# Verbs and what stands for one, of which nearly every sentence has one; parts of other words are left out.
_THAI_SAYS = re.compile(
    "เป็น|คือ|(?<!เค)มี|ได้(?!แก่)|ต้อง|อยู่|ถูก|ให้|ไม่|จะ|ควร|สามารถ|ทำ|ใช้|กิน|นอน|เดิน|วิ่ง|เปิด|ปิด|เริ่ม|หยุด|เกิด|ตาย|เสียชีวิต|อาศัย|"
    "(?<!นัก)(?<!โรง)(?<!ทุ)เรียน|สอน|(?<!นัก)เขียน|อ่าน|พูด|บอก|กล่าว|ขาย|ซื้อ|จ่าย|(?<!สำห)รับ|ส่ง|โทรแจ้ง|แจ้ง|ขอ(?!ง)|ห้าม|ตั้ง(?!แต่)|สร้าง|ไหล|ฝนตก|"
    "ตกหนัก|ท่วม|รถติด|พบ|ชนะ|แพ้|แบ่ง|เรียก|หมายถึง|ชื่อ|ชอบ|เห็น|คิด|เชื่อ|อยาก|เพิ่ม|ลด|เปลี่ยน|พัฒนา|ผลิต|นำ|เข้า|ออกเดิน|ออกเวลา|บุก|ประกาศ|"
    "โจมตี|ปกครอง|เสด็จ|ประสูติ|สวรรคต|แต่งตั้ง|เลือก|ลาพัก|ลาป่วย|ลากิจ|ลาคลอด|แต่งกาย|ประดิษฐาน|ปรับ|เก็บ|โอน|แนบ|กรุณา|โปรด|อย่า|จบ|พิมพ์|สะดวก|"
    "ยืม|อายุ|วาง|ระเบิด|ดำรง|เสิร์ฟ|ครอบคลุม|เกี่ยว|แสดง|ช่วย|ปลูก|เลี้ยง|ย้าย|กลับ|ถึง|จัด|ดำเนิน|เสนอ|ตัดสิน|อนุญาต|ยกเลิก|สิ้นสุด|หมด|เหลือ|เสีย|เฉลี่ย|"
    "ติดตั้ง|ตรวจ|ตัด|แก้|เล่า|ถาม|ตอบ|สั่ง|เกษียณ|แต่งงาน|ร่วม|หนี|ต่อสู้|ยึด|ล้ม|แพร่|กระจาย|ป้องกัน|รักษา|คำนวณ|ติดต่อ|ลงทะเบียน|สมัคร|ชำระ|"
    "(?:ราคา|(?<!ร้อย)ละ|ยาว|สูง|หนัก|กว้าง|ลึก|นาน) ?\\d"
)
_THAI_LOOKED_AT = 30


def goes_on(before: str, after: str, language: str) -> bool:
    """Whether a sentence goes on where the rules that languages share would end it.

    Args:
        before: The text up to there; a word of it is enough.
        after: What follows, without whitespace in front.
        language: ISO 639-1 code.
    """
    names, small = _abbreviations(language)
    if not names and language not in _ORDINALS:
        return False
    match = _LAST_WORD.search(before.rstrip())
    if match is None or not after:
        return False
    word = match.group(1).casefold()
    if word in names:
        return True
    follows = unicodedata.category(after[0])
    if language in _ORDINALS and (word.isdecimal() and len(word) < 4 and follows == "Ll"):
        return True
    if language in _ORDINALS and _ROMAN.fullmatch(word) and match.group(1).isupper() and len(word) > 1:
        return True
    # A script without capitals does not tell.
    return word in small and follows in {"Ll", "Nd"}


def thai_starts(text: str) -> list[int]:
    """Where sentences, or parts that can stand alone, begin in a Thai text, ascending.

    Args:
        text: A paragraph.
    """
    starts: list[int] = []
    said = False
    begin = 0
    gaps = [gap for gap in _THAI_SPACE.finditer(text) if not _left_open(text, gap)]
    for gap, following in zip_longest(gaps, gaps[1:]):
        said = said or _THAI_SAYS.search(text, begin, gap.start()) is not None
        begin = gap.end()
        end = len(text) if following is None else following.start()
        says = _THAI_SAYS.search(text, begin, end) and not _THAI_JOINS.match(text, begin)
        if (said and says) or "\n" in gap.group() or text[gap.start() - 1] in "!?…":
            starts.append(begin)
            said = False
    return starts


def _left_open(text: str, gap: re.Match[str]) -> bool:
    """Whether what stands before a space in Thai asks for something behind it."""
    if "\n" in gap.group():
        return False
    before = text[max(0, gap.start() - _THAI_LOOKED_AT) : gap.start()]
    if before[-1].isdecimal() and not _THAI_YEAR_OR_NUMBER.search(before):
        return True
    return _THAI_LEFT_OPEN.search(before) is not None


@cache
def _abbreviations(language: str) -> tuple[frozenset[str], frozenset[str]]:
    names = frozenset(_BEFORE_NAMES.get(language, "").split())
    return names, frozenset(_BEFORE_SMALL.get(language, "").split())


# sentencex skips the line breaks between paragraphs of long texts, and its time grows with the square of a
# paragraph's length in some scripts: it gets one bounded paragraph at a time.
_LONGEST_PIECE = 4000
_PARAGRAPH_BREAK = re.compile(r"(?:\r\n?|[\n\x0b\x0c\x85\u2028\u2029])\s*")
_LINE_BREAK = re.compile(r"\r\n?|[\n\x0b\x0c\x85\u2028\u2029]")
# sentencex panics on some whitespace of two or more bytes; a space of the same length keeps the offsets.
_UNUSUAL_SPACE = re.compile(r"[^\S\n ]")
# Half a surrogate pair cannot cross into Rust; any other character of the same length can.
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_END = re.compile(r"[.!?…][\"'”’»)\]]*\s+|[。！？]+\s*|[؟।॥]\s*")


def sentence_spans(text: str, language: str = "en") -> list[Span]:
    """The sentences of a text.

    Every character that is not whitespace lies in exactly one sentence; a sentence neither begins nor ends with
    whitespace, and never reaches over a blank line. Uses sentencex (rules for over 40 languages, with fallbacks), and
    more abbreviations for some of them; in Thai, which has no sign for the end of a sentence, a part between spaces
    that is long enough counts as one.

    Args:
        text: Any text of any length; the time is linear in it.
        language: ISO 639-1 code; an unknown one is treated by the rules that most languages share; ``auto``: the
            text's own.

    Returns:
        Character spans, in order.

    Example:
        >>> sentence_spans("Dr. Wu left. Nobody saw it.")
        [(0, 12), (13, 27)]
    """
    if language == AUTO:
        language = language_of_text(text)
    spans: list[Span] = []
    for start, end in _pieces(text):
        _segment(text, start, end, language, spans)
    return spans


def _pieces(text: str) -> Iterator[Span]:
    start = 0
    for gap in _PARAGRAPH_BREAK.finditer(text):
        if gap.end() < len(text) and len(_LINE_BREAK.findall(gap.group())) > 1:
            yield from _bounded(text, start, gap.end())
            start = gap.end()
    yield from _bounded(text, start, len(text))


def _bounded(text: str, start: int, end: int) -> Iterator[Span]:
    while end - start > _LONGEST_PIECE:
        window = text[start : start + _LONGEST_PIECE]
        # The last sentence end or line break in the window keeps sentences whole where there is one.
        cut = max(window.rfind(mark) for mark in (". ", "? ", "! ", "\n", "。", "؟ ", "। ")) + 1
        if cut < _LONGEST_PIECE // 4:
            cut = len(window.rsplit(None, 1)[0]) if " " in window.strip() else 0
        step = cut or _LONGEST_PIECE
        yield start, start + step
        start += step
    yield start, end


def _segment(text: str, start: int, end: int, language: str, spans: list[Span]) -> None:
    piece = text[start:end]
    starts = [position for position in _starts(piece, language) if 0 < position < len(piece)]
    for first, last in zip([0, *starts], [*starts, len(piece)], strict=True):
        sentence = piece[first:last]
        left = len(sentence) - len(sentence.lstrip())
        length = len(sentence.strip())
        if length:
            spans.append((start + first + left, start + first + left + length))


def _starts(piece: str, language: str) -> list[int]:
    """Offsets at which sentences begin, ascending."""
    if language == "th":
        return thai_starts(piece)
    try:
        plain = _SURROGATE.sub("\ufffd", _UNUSUAL_SPACE.sub(" ", piece))
        found: list[dict[str, Any]] = sentencex.get_sentence_boundaries(language, plain)
    except BaseException as error:
        # A panic in Rust is no Exception, and its class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        return [match.end() for match in _PLAIN_END.finditer(piece)]
    starts = sorted({int(sentence["start_index"]) for sentence in found})
    return [
        start
        for start in starts
        if not goes_on(piece[max(0, start - LONGEST_WORD) : start], piece[start : start + 1], language)
    ]
