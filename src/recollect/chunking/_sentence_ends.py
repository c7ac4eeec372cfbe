"""Where sentences do not end although a full stop stands there, and where they end without one: by language. Pure.

What the library that finds sentences lacks: titles and other abbreviations of languages that it has few of, ordinals
("19. yüzyıl"), and Thai, which ends sentences by a space, and writes full stops in abbreviations alone.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

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

# Thai: a space ends a sentence or a part of one, and stands around numbers and lists. A part that says something has
# some length, does not end with a title and a first name, and what follows begins with no word that joins it.
_THAI_SPACE = re.compile(
    r"(?<=[\u0e01-\u0e5b]) +(?=[\u0e01-\u0e4e])|(?<=[!?…])\s+|(?<=[\u0e01-\u0e5b]{6}\.)\s+|\s*\n\s*"
)
_THAI_JOINS = re.compile(
    "(?:และ|หรือ|ที่|ซึ่ง|โดย|แต่|เพราะ|เนื่องจาก|เพื่อ|จึง|กับ|ของ|ใน|จาก|ถึง|ว่า|คือ|ได้|เช่น|เป็น|ตาม|รวม|พร้อม|ด้วย|อัน|ก็|แล้ว|ตลอดจน|"
    "ไม่|มี|ถูก|อยู่|ต้อง|จะ|พ\\.ศ|ค\\.ศ|ยัง|ทำให้|นั้น|นี้|ไป|มา|ๆ|ฯ)"
)
_THAI_LEFT_OPEN = re.compile(
    r"(?:ว่า|คือ|ได้แก่|เช่น|และ|หรือ|ของ|ที่|โดย|จาก|กับ|ใน|เป็น|ตาม|ถึง|ให้|เพื่อ|นาย|นาง|นางสาว|ข้อ|มาตรา|ประมาณ|ปี|วันที่|เดือน|"
    r"เมื่อ|ตั้งแต่|[,:]|(?:\.|นาย|นางสาว|นาง) ?[\u0e01-\u0e4e]{2,20}|(?<![\u0e01-\u0e5b])[\u0e01-\u0e5b.]{1,6}\.)$"
)
_THAI_SHORTEST = 30


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
    begin = 0
    for gap in _THAI_SPACE.finditer(text):
        if "\n" not in gap.group() and (
            gap.start() - begin < _THAI_SHORTEST
            or _THAI_JOINS.match(text, gap.end())
            or _THAI_LEFT_OPEN.search(text, max(0, gap.start() - _THAI_SHORTEST), gap.start())
        ):
            continue
        begin = gap.end()
        starts.append(begin)
    if starts and len(text) - starts[-1] < _THAI_SHORTEST // 2 and "\n" not in text[starts[-1] - 1 :]:
        starts.pop()
    return starts


@cache
def _abbreviations(language: str) -> tuple[frozenset[str], frozenset[str]]:
    names = frozenset(_BEFORE_NAMES.get(language, "").split())
    return names, frozenset(_BEFORE_SMALL.get(language, "").split())
