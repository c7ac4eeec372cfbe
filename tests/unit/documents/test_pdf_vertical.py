"""Chinese and Japanese text in PDF files: in columns from right to left, and lines that are joined without spaces."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from recollect.documents.reader import parse

#: A text, its left edge and its baseline (of vertical text: the middle of the column and its top), in which font.
Placed = tuple[str, float, float]
SIZE = 12


def font(name: str, ordering: str, encoding: str) -> bytes:
    return (
        f"<< /Type /Font /Subtype /Type0 /BaseFont /{name} /Encoding /{encoding} /DescendantFonts [ << /Type /Font "
        f"/Subtype /CIDFontType0 /BaseFont /{name} /DW 1000 /CIDSystemInfo << /Registry (Adobe) /Ordering ({ordering}) "
        f"/Supplement 2 >> /FontDescriptor << /Type /FontDescriptor /FontName /{name} /Ascent 880 /Descent -120 "
        "/CapHeight 700 /Flags 6 /FontBBox [0 -120 1000 880] /ItalicAngle 0 /StemV 70 >> >> ] >>"
    ).encode()


def shown(text: str, x: float, y: float, *, name: str, size: float = SIZE, turned: bool = False) -> bytes:
    """A text in a font of the page: ``V`` down a column, ``H`` along a line, ``T`` the same with Latin letters."""
    matrix = f"0 -1 1 0 {x} {y}" if turned else f"1 0 0 1 {x} {y}"
    return f"BT /{name} {size} Tf {matrix} Tm <{text.encode('utf-16-be').hex()}> Tj ET\n".encode()


def upright(text: str, x: float, y: float) -> bytes:
    """Characters that each stand upright below the one before, as browsers print columns."""
    return b"".join(
        shown(one, x - SIZE / 2, y - SIZE * (at + 0.88), name="H", size=0.6 * SIZE if one.isascii() else SIZE)
        for at, one in enumerate(text)
    )


def made(*contents: bytes, chinese: bool = False) -> bytes:
    fonts = [font("STSong-Light", "GB1", f"UniGB-UCS2-{way}") for way in "VH"] if chinese else [
        font("HeiseiMin-W3", "Japan1", f"UniJIS-UCS2-{way}") for way in "VH"
    ]  # fmt: skip
    count = len(contents)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {count} /Kids [{' '.join(f'{5 + 2 * at} 0 R' for at in range(count))}] >>".encode(),
        *fonts,
    ]
    for at, content in enumerate(contents):
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 595] /Contents {6 + 2 * at} 0 R "
            "/Resources << /Font << /V 3 0 R /H 4 0 R >> >> >>".encode(),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        ]
    out = bytearray(b"%PDF-1.5\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)
    return bytes(out)


def columns(texts: Sequence[str], *, right: float = 360, top: float = 540, step: float = 22) -> bytes:
    return b"".join(shown(text, right - at * step, top, name="V") for at, text in enumerate(texts))


def read(data: bytes) -> str:
    return parse(data, name="page.pdf").content


CAT = [
    "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつか",
    "ぬ。何でも薄暗いじめじめした所でニャーニャー泣いていた事だけは",
    "記憶している。",
]
TAIPEI = ["這座城市建於十三世紀，位於河岸邊。人口約為三百萬，是全國最大的城", "市，也是經濟和文化中心。"]
CITY = ["这座城市建于十三世纪，位于河岸边。城市的人口约为三百万，是该国", "最大的城市，也是全国的经济和文化中心。"]


def test_columns_are_read_from_right_to_left_and_joined_without_spaces():
    assert read(made(columns(CAT))) == "".join(CAT)
    assert read(made(columns(TAIPEI))) == "".join(TAIPEI)


def test_a_larger_column_at_the_right_is_the_title():
    found = parse(made(shown("吾輩は猫である", 380, 540, name="V", size=24) + columns(CAT, right=330)), name="cat.pdf")
    assert found.title == "吾輩は猫である"
    assert found.content == f"吾輩は猫である\n\n{''.join(CAT)}"


def test_numbers_that_stand_upright_in_a_column_belong_to_it():
    text = "第一回は1905年1月、全十一回の連載であった。"
    assert (
        read(made(upright(text, 360, 540) + upright("著者は夏目漱石である。", 338, 540)))
        == f"{text}著者は夏目漱石である。"
    )


def test_latin_words_lie_on_their_side_in_a_column():
    content = (
        shown("著者は", 360, 540, name="V")
        + shown("Natsume", 356, 540 - 3 * SIZE, name="H", turned=True)
        + shown("氏である。", 360, 540 - 3 * SIZE - 7 * SIZE, name="V")
    )
    assert "".join(read(made(content)).split()) == "著者はNatsume氏である。"


def test_the_upper_tier_comes_before_the_lower_one():
    upper = ["上の段は右から左へ読む。", "次の行も上の段にある。", "三行目もまだ上の段だ。", "上の段はここで終わる。"]
    lower = ["下の段はその後に読む。", "二行目も下の段にある。", "三行目もまだ下の段だ。", "下の段はここで終わる。"]
    found = read(made(columns(upper) + columns(lower, top=270)))
    assert found.split() == [*upper, *lower]


def test_a_page_number_along_the_line_does_not_break_columns():
    found = read(made(columns(CAT) + shown("12", 200, 30, name="H")))
    assert found.startswith("".join(CAT))


@pytest.mark.parametrize("step", [15, 22])
def test_lines_along_the_page_are_joined_without_spaces(step: int):
    content = b"".join(shown(text, 40, 540 - at * step, name="H") for at, text in enumerate(CITY))
    assert read(made(content, chinese=True)) == "".join(CITY)
