"""Pages that are pictures: recognised with the extra ``ocr``, counted and named without it."""

from __future__ import annotations

import io
import random
import re
import struct
import zlib
from collections import Counter
from pathlib import Path

import pypdfium2
import pytest

from recollect.documents import formats, read_bytes, reader, walk
from recollect.documents.ocr import readings as ocr_readings
from recollect.documents.ocr.readings import PageReading, ReadingCache, ReadLine, picture_hash
from recollect.documents.workers import ParseLimits, ParserWorkers
from recollect.errors import ParseError
from recollect.model import Scope
from recollect.model.scope import asked_for

from .made_files import pdf

pytest.importorskip("rapidocr", reason="text is recognised with the extra ocr")

from recollect.documents.ocr import recognising

from .made_scans import columns, page, saved

LEAVE = ["Annual leave policy", "Every employee has thirty days", "of annual leave in a year."]
TRAVEL = ["Travel expenses", "Hotels cost 140 euros a night", "at most, breakfast included."]


@pytest.fixture(scope="module")
def readings(tmp_path_factory):
    return tmp_path_factory.mktemp("readings")


@pytest.fixture(scope="module")
def workers(readings):
    pool = ParserWorkers(ParseLimits(), at_once=2, readings=readings)
    yield pool
    pool.close()


@pytest.fixture
def kept(readings):
    """The pages that are kept by now."""
    return lambda: {one for one in readings.rglob("*") if one.is_file()}


@pytest.fixture
def without_extra(monkeypatch):
    for module in (formats, reader, ocr_readings):
        monkeypatch.setattr(module, "can_recognise", lambda: False)


def words(text):
    return Counter(re.findall(r"\w+", text.lower()))


def test_a_scanned_file_is_read_page_by_page(workers):
    told = []
    document = read_bytes(
        saved([page(LEAVE), page(TRAVEL)], "PDF"),
        name="policy.pdf",
        workers=workers,
        on_page=lambda *pages: told.append(pages),
    )
    first, second = (document.content[span.start_offset : span.end_offset] for span in document.pages)
    assert "Every employee has thirty days" in first
    assert "140 euros a night" in second
    for span in document.pages:
        # Drawn from 60 pixels from the left of 800 on, the first line 50 pixels from above, 52 pixels apart, of 600.
        for at, line in enumerate(span.lines):
            assert line.left == pytest.approx(60 / 800, abs=0.02)
            assert line.top < (50 + 52 * at + 13) / 600 < line.bottom
        assert [document.content[one.start_offset : one.end_offset] for one in span.lines] == (
            LEAVE if span.number == 1 else TRAVEL
        )
    assert document.metadata["pages_recognised"] == document.metadata["page_count"] == 2
    assert "pages_without_text" not in document.metadata
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_the_words_of_a_clean_page_are_recognised(workers):
    drawn = random.Random(5)
    syllables = ["ra", "ti", "mon", "de", "lor", "pan", "kes", "vi", "tu", "gen", "sal", "bro", "mi", "net"]
    said = [
        " ".join("".join(drawn.choices(syllables, k=drawn.randint(2, 3))) for _ in range(6)).capitalize()
        for _ in range(9)
    ]
    document = read_bytes(saved([page(said, size=(900, 620))], "PNG"), name="page.png", workers=workers)
    expected = words("\n".join(said))
    assert sum((expected & words(document.content)).values()) >= 0.95 * sum(expected.values())


def test_columns_of_a_scan_are_read_one_after_the_other(workers):
    left = [
        "The harbour was built in 1871",
        "and has been enlarged twice,",
        "the last time by the railway",
        "for its coal.",
    ]
    right = [
        "Ships of up to nine metres in",
        "depth can enter at high tide,",
        "with a pilot who waits behind",
        "the lighthouse.",
    ]
    document = read_bytes(saved([columns(left, right)], "PNG"), name="page.png", workers=workers)
    text = " ".join(document.content.split())
    assert "enlarged twice, the last time by the railway for its coal." in text
    assert "with a pilot who waits behind the lighthouse." in text


def test_pages_that_were_laid_sideways_or_upside_down(workers):
    turned = [page(LEAVE, turned=90), page(TRAVEL, turned=180)]
    document = read_bytes(saved(turned, "TIFF"), name="scan.tiff", workers=workers)
    first, second = (document.content[span.start_offset : span.end_offset] for span in document.pages)
    assert "Every employee has thirty days" in first
    assert first.index("Annual leave policy") < first.index("of annual leave")
    # Turned to the left, the first line stands at the left side and runs upwards.
    box = document.pages[0].lines[0]
    assert box.right - box.left < 0.15 < box.bottom - box.top
    assert box.left < 0.15
    assert second.index("Travel expenses") < second.index("140 euros a night")


def test_a_photograph_is_turned_as_its_camera_says(workers):
    from PIL import Image

    notes = Image.Exif()
    notes[0x0112] = 6  # to be turned to the right
    data = saved([page(LEAVE).rotate(90, expand=True)], "JPEG", exif=notes)
    document = read_bytes(data, name="IMG_1.JPG", workers=workers)
    assert "Every employee has thirty days" in document.content
    assert document.mime_type == "image/jpeg"


def test_what_was_recognised_is_not_recognised_again_but_for_another_tenant(tmp_path, monkeypatch):
    data = saved([page(LEAVE), page(TRAVEL)], "PDF")
    first = recognising.recognise_page(data, "a.pdf", None, 1, cache=tmp_path, owner="1")
    assert first.lines
    monkeypatch.setattr(recognising, "recognise", None)
    assert recognising.recognise_page(data, "a.pdf", None, 1, cache=tmp_path, owner="1") == first
    for number, owner in ((2, "1"), (1, "2")):  # another page is another picture, and another's time is theirs
        with pytest.raises(TypeError):
            recognising.recognise_page(data, "a.pdf", None, number, cache=tmp_path, owner=owner)
    (kept,) = (one for one in tmp_path.rglob("*") if one.is_file())
    assert kept.stat().st_mode & 0o077 == 0


def test_an_interrupted_reading_keeps_its_pages(workers, kept):
    class StopError(Exception):
        pass

    def stop(done, total):
        if done == 1:
            raise StopError

    before = kept()
    data = saved([page([f"Page {number}."]) for number in range(4)], "PDF")
    with pytest.raises(StopError):
        read_bytes(data, name="a.pdf", workers=workers, on_page=stop)
    assert 1 <= len(kept() - before) < 4


def test_pages_are_kept_for_whom_they_are_read(workers, kept):
    before = kept()
    try:
        for tenant in (1, 1, 2):
            asked_for(Scope(tenant_id=tenant))
            read_bytes(saved([page(["Of a tenant."])], "PDF"), name="a.pdf", workers=workers)
        assert len(kept() - before) == 2
    finally:
        asked_for(Scope())


def test_of_a_document_that_takes_too_long_the_pages_left_are_named(tmp_path):
    pool = ParserWorkers(ParseLimits(), at_once=1, ocr_seconds=1e-6)
    try:
        with pytest.raises(
            ParseError, match=r"pages 1-2 were left when 1e-06 s were over \(rag.documents.ocr_seconds\)"
        ):
            read_bytes(saved([page(LEAVE), page(TRAVEL)], "PDF"), name="a.pdf", workers=pool)
        document = read_bytes(_with_a_page_of_text(), name="a.pdf", workers=pool)
        told = ocr_readings.pages_without_text(document.metadata)
        assert document.content == "Typed words."
        assert told is not None
        assert told.endswith("pages 1 were left when 1e-06 s were over (rag.documents.ocr_seconds)")
    finally:
        pool.close()


def test_recognition_is_switched_off():
    pool = ParserWorkers(ParseLimits(), at_once=1, ocr=False)
    off = re.escape('recognition is switched off (rag.documents.ocr = "off")')
    try:
        with pytest.raises(ParseError, match=f"2 of 2 pages hold no text: {off}"):
            read_bytes(saved([page(LEAVE), page(TRAVEL)], "PDF"), name="a.pdf", workers=pool)
        document = read_bytes(_with_a_page_of_text(), name="a.pdf", workers=pool)
        assert re.fullmatch(
            f"1 of 2 pages holds no text: {off}", ocr_readings.pages_without_text(document.metadata) or ""
        )
        with pytest.raises(reader.PictureWithoutTextError):
            read_bytes(saved([page(LEAVE)], "PNG"), name="a.png", workers=pool)
    finally:
        pool.close()


def test_the_cache_gives_a_reading_to_who_has_the_picture_alone(tmp_path):
    cache = ReadingCache(tmp_path / "pages")
    one, other = (picture_hash("engine 1", (2, 2, 3), pixels) for pixels in (b"white", b"black"))
    reading = PageReading(612.0, 792.0, 0, 0.01, (ReadLine("A secret", 10.0, 20.0, 90.0, 32.0),))
    cache.put(one, reading)
    assert cache.get(one) == reading
    assert cache.get(other) is None
    (kept,) = (path for path in (tmp_path / "pages").rglob("*") if path.is_file())
    assert b"secret" not in kept.read_bytes()
    kept.write_bytes(b"damaged" + kept.read_bytes()[7:])
    assert cache.get(one) is None


@pytest.mark.parametrize(("quarters", "box"), [(0, (0.1, 0.2, 0.5, 0.3)), (2, (0.5, 0.7, 0.9, 0.8))])
def test_boxes_of_lines_are_told_on_the_page_as_it_is_shown(quarters, box):
    reading = PageReading(100.0, 200.0, quarters, 0.0, ())
    assert reading.box(10.0, 40.0, 50.0, 60.0) == pytest.approx(box)


def test_the_box_of_a_line_on_a_page_that_lay_on_its_side():
    # The page is 200 wide as it is shown and 100 wide as it is read, turned to the left.
    reading = PageReading(100.0, 200.0, 1, 0.0, ())
    assert reading.box(10.0, 40.0, 50.0, 60.0) == pytest.approx((0.7, 0.1, 0.8, 0.5))


def test_without_the_extra_scanned_pages_are_counted_and_named(without_extra):
    with pytest.raises(ParseError, match=re.escape("2 of 2 pages hold no text: pip install '.[ocr]'")):
        read_bytes(saved([page(LEAVE), page(TRAVEL)], "PDF"), name="a.pdf")
    document = read_bytes(_with_a_page_of_text(), name="a.pdf")
    assert document.content == "Typed words."
    assert document.metadata["pages_without_text"] == 1
    told = ocr_readings.pages_without_text(document.metadata)
    assert told == "1 of 2 pages holds no text: pip install '.[ocr]'"


def _with_a_page_of_text():
    document = pypdfium2.PdfDocument(saved([page(LEAVE)], "PDF"))
    document.import_pages(pypdfium2.PdfDocument(pdf([["Typed words."]])))
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_without_the_extra_pictures_are_left_aside(without_extra, tmp_path):
    (tmp_path / "a.png").write_bytes(saved([page(LEAVE)], "PNG"))
    (skipped,) = walk([tmp_path])
    assert (skipped.kind, skipped.reason) == (
        "unsupported",
        "is a picture: pip install '.[ocr]' reads the text in it",
    )
    with pytest.raises(ParseError, match="is a PNG image; pip install"):
        read_bytes((tmp_path / "a.png").read_bytes(), name="a.png")


def test_with_the_extra_pictures_of_a_folder_are_found(tmp_path):
    for name in ("a.png", "b.JPEG", "c.tif", "d.webp", "e.gif"):
        (tmp_path / name).write_bytes(b"x")
    assert [one.source for one in walk([tmp_path]) if hasattr(one, "size")] == ["a.png", "b.JPEG", "c.tif", "d.webp"]


def test_a_picture_without_text_is_told_apart(workers):
    from PIL import Image

    with pytest.raises(reader.PictureWithoutTextError, match="has no text in it"):
        read_bytes(saved([Image.new("RGB", (300, 200), "navy")], "PNG"), name="a.png", workers=workers)


def _huge_png(side):
    def part(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = zlib.compressobj(9)
    packed = b"".join(rows.compress(bytes(1 + side // 8)) for _ in range(side)) + rows.flush()
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", packed) + part(b"IEND", b"")


HEIC = (Path(__file__).parents[2] / "data" / "leave.heic").read_bytes()


def _enlarged(heic: bytes, side: int) -> bytes:
    """The picture with sizes that it does not have."""
    at = heic.index(b"ispe") + 8
    return heic[:at] + struct.pack(">II", side, side) + heic[at + 8 :]


def test_a_heic_picture_is_read_as_others_are(workers):
    pytest.importorskip("pi_heif", reason="pip install '.[heic]'")
    # By its content, whatever it is called.
    for name in ("leave.heic", "leave.jpg", "LEAVE.HEIF"):
        assert formats.can_read_name(name)
        document = read_bytes(HEIC, name=name, workers=workers)
        assert "thirty days" in document.content and "sick leave" in document.content
        assert (document.mime_type, document.pages[0].number) == ("image/heic", 1)


def test_without_what_opens_it_a_heic_picture_is_refused_with_the_name_of_that(monkeypatch, tmp_path):
    monkeypatch.setattr(formats, "can_open_heic", lambda: False)
    with pytest.raises(formats.UnreadableError, match=r"pip install '\.\[heic\]'"):
        formats.detect(HEIC, name="leave.jpg")
    assert not formats.can_read_name("leave.heic")
    assert formats.can_read_name("leave.jpg")
    (tmp_path / "leave.heic").write_bytes(HEIC)
    (skipped,) = walk([tmp_path])
    assert (skipped.kind, skipped.reason) == (
        "unsupported",
        "is a picture: pip install '.[heic]' reads the text in it",
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (lambda: _huge_png(30_000), "megapixels can be read"),
        (lambda: saved([page(LEAVE)], "JPEG")[:4000], "damaged"),
        (lambda: b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "damaged"),
        (lambda: b"\xff\xd8 \xc3", "is no picture"),
        (lambda: b"\0\0\0\x18ftypheic" + b"\0" * 100, "HEIC|damaged"),
        (lambda: HEIC[:2000], "HEIC|damaged"),
        (lambda: _enlarged(HEIC, 60_000), "HEIC|megapixels|damaged"),
        (lambda: b"\0\0\0\x18ftypmif1" + HEIC[12:3000] + b"\xff" * 2000, "HEIC|damaged"),
    ],
)
def test_hostile_and_damaged_pictures_are_refused(workers, data, reason):
    with pytest.raises(ParseError, match=reason):
        read_bytes(data(), name="a.png", workers=workers)


def test_blank_pages_of_a_scan_are_not_looked_for_words(monkeypatch, tmp_path):
    monkeypatch.setattr(recognising, "recognise", None)
    data = saved([page([])] * 2, "TIFF")
    assert recognising.recognise_page(data, "a.tif", None, 2, cache=tmp_path).lines == ()


def test_a_page_of_two_hundred_inches_is_read_within_bounds(workers):
    poster = page(TRAVEL[:2], type_size=40).resize((2000, 1500))
    document = read_bytes(saved([poster], "PDF", resolution=10), name="poster.pdf", workers=workers)
    assert "140 euros" in document.content
