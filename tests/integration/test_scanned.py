"""Scanned pages and photographs from end to end: recognised, found, cited; and named where they cannot be."""

from __future__ import annotations

import ctypes
import json

import pypdfium2
import pypdfium2.raw as pdfium
import pytest

from recollect.documents import formats, reader
from recollect.documents.ocr import readings
from recollect.model.record import json_of
from recollect.pipeline.job_tasks import _told

pytest.importorskip("rapidocr", reason="text is recognised with the extra ocr")

from PIL import Image, ImageDraw, ImageFont

PAGES = [
    ["The gate code is changed", "on the first Monday of a month."],
    ["Hotels cost 140 euros a night", "at most, breakfast included."],
    ["The boiler is serviced every May", "by Osterholt and Sons."],
]
PHOTOGRAPH = ["Fire drill: meet behind the barn", "and wait for the warden."]


def drawn(lines):
    picture = Image.new("L", (760, 330), 255)
    draw = ImageDraw.Draw(picture)
    for at, line in enumerate(lines):
        draw.text((50, 80 + 42 * at), line, font=ImageFont.load_default(size=30), fill=0)
    return picture


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = tmp_path / "docs"
    made.mkdir()
    first, *others = map(drawn, PAGES)
    first.save(made / "handbook.pdf", save_all=True, append_images=others, resolution=100)
    drawn(PHOTOGRAPH).convert("RGB").rotate(2, fillcolor="white").save(made / "notice.jpg")
    Image.new("RGB", (200, 200), "teal").save(made / "logo.png")
    return made


def test_scanned_pages_and_a_photograph_are_found_and_cited_with_their_page(pipeline, folder):
    told = []
    report = pipeline.ingest([folder], on_progress=told.append)
    assert (report.added, report.failed, report.skip_reasons) == (2, 0, {"without_text": 1})
    assert report.without_text == ()
    pages = [(one.done, one.total) for one in told if one.stage == "recognising"]
    assert pages[-1] == (5, 5)
    for first, _ in PAGES:
        best = pipeline.search(first).results[0]
        assert best.source == "handbook.pdf"
        assert first in best.content
    assert pipeline.search("fire drill behind the barn").results[0].source == "notice.jpg"
    for question, page in (("What do hotels cost a night?", 2), ("Who services the boiler every May?", 3)):
        (citation, *_) = pipeline.ask(question).citations
        assert (citation.source, citation.page) == ("handbook.pdf", page)
        # The two lines are drawn at 50 and 80, and at 50 and 122 pixels, of 760 by 330.
        assert {box.page for box in citation.boxes} == {page}
        for box, top in zip(citation.boxes, (80, 122), strict=True):
            assert box.top < (top + 15) / 330 < box.bottom
            assert box.left == pytest.approx(50 / 760, abs=0.02)
    (told, *_) = json_of(pipeline.ask("What do hotels cost a night?"))["citations"]
    assert told["boxes"][0]["page"] == 2
    assert pipeline.ingest([folder]).unchanged == 2


def test_without_the_extra_an_ingest_names_what_it_could_not_read(pipeline, folder, monkeypatch):
    for module in (formats, reader, readings):
        monkeypatch.setattr(module, "can_recognise", lambda: False)
    report = pipeline.ingest([folder])
    assert (report.added, report.failed, report.skip_reasons) == (0, 1, {"unsupported": 2})
    (error,) = report.errors
    assert error.error == "has no text in it: 3 of 3 pages hold no text: pip install '.[ocr]'"
    pictures = ["is a picture: pip install '.[ocr]' reads the text in it"] * 2
    assert [told.error for told in report.without_text] == pictures


def test_pages_that_were_not_read_are_named_in_every_report(pipeline, folder, monkeypatch):
    for module in (formats, reader, readings):
        monkeypatch.setattr(module, "can_recognise", lambda: False)
    scan = pypdfium2.PdfDocument(folder / "handbook.pdf")
    page = scan[0]
    page.insert_obj(_words(scan, "A cover that was typed: Handbook of the house, second edition."))
    page.gen_content()
    scan.save(folder / "handbook.pdf", flags=2)
    report = pipeline.ingest([folder])
    expected = [{"path": "handbook.pdf", "error": "2 of 3 pages hold no text: pip install '.[ocr]'"}]
    for told in (json_of(report), json.loads(json.dumps(_told(report)))):
        assert [one for one in told["without_text"] if one["path"] == "handbook.pdf"] == expected
    (document,) = pipeline.documents.list()
    assert document.metadata["pages_without_text"] == 2


def _words(document, text):
    thing = pdfium.FPDFPageObj_NewTextObj(document.raw, b"Helvetica", 14)
    units = (text + "\0").encode("utf-16-le")
    buffer = (ctypes.c_ushort * (len(units) // 2)).from_buffer_copy(units)
    pdfium.FPDFText_SetText(thing, buffer)
    return pypdfium2.PdfObject(thing, pdf=document)
