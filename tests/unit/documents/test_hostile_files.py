"""Files that are made to hang, to lose or to swallow what reads them: a clear reason, or all that can be told."""

from __future__ import annotations

import io
import struct

import pytest

from recollect.documents.formats import UnreadableError
from recollect.documents.ocr.recognising import picture_pages
from recollect.documents.reader import parse

from .made_files import docx, pdf, pptx, xlsx
from .test_office_details import changed
from .test_office_seen import chart, ods, related, row


def test_a_tree_of_pages_that_goes_round_ends():
    data = pdf([["Hello page"]])
    told = parse(data.replace(b"/Count 1 /Kids [4 0 R]", b"/Count 1000000 /Kids [4 0 R 2 0 R]"), "a.pdf")
    assert told.content == "Hello page"
    assert told.metadata["pages_damaged"] == 1_000


def test_pages_that_cannot_be_opened_are_counted():
    data = pdf([["First page"], ["Second page"], ["Third page"]])
    told = parse(data.replace(b"/Kids [4 0 R 6 0 R 8 0 R]", b"/Kids [4 0 R 99 0 R 8 0 R]"), "a.pdf")
    assert "First page" in told.content
    assert "Third page" in told.content
    assert (told.metadata["page_count"], told.metadata["pages_damaged"]) == (3, 1)
    with pytest.raises(UnreadableError, match="none of its pages can be opened"):
        parse(data.replace(b"/Kids [4 0 R 6 0 R 8 0 R]", b"/Kids [97 0 R 98 0 R 99 0 R]"), "a.pdf")


def test_an_outline_that_goes_round_ends():
    entry = b"<< /Title (loop) /Parent 7 0 R /Next 8 0 R /First 8 0 R /Dest [4 0 R /Fit] >>"
    data = pdf([["Hello page"]]).replace(b"/AcroForm", b"/Outlines 7 0 R /AcroForm")
    objects = b"7 0 obj\n<< /First 8 0 R /Last 8 0 R /Count 9 >>\nendobj\n8 0 obj\n" + entry + b"\nendobj\n"
    assert parse(data.replace(b"1 0 obj", objects + b"1 0 obj", 1), "a.pdf").content == "Hello page"


def test_a_mail_of_parts_within_parts_is_read_or_says_so():
    message = multipart = b"Subject: s\r\nFrom: a@x.example\r\nContent-Type: text/plain\r\n\r\ninnermost\r\n"
    for at in range(500):
        head = b"Subject: s\r\nFrom: a@x.example\r\nContent-Type: "
        message = head + b"message/rfc822\r\n\r\n" + message
        if at < 100:
            multipart = (
                head
                + b"multipart/mixed; boundary=B%d\r\n\r\n--B%d\r\n" % (at, at)
                + multipart
                + b"\r\n--B%d--\r\n" % at
            )
    assert parse(multipart, "a.eml").content.endswith("innermost")
    with pytest.raises(UnreadableError, match="parts within parts, too deep"):
        parse(message, "a.eml")


def test_a_mail_with_hundreds_of_attachments_gives_them_all_away():
    part = b'--B\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename="%d.txt"\r\n\r\nText %d.\r\n'
    head = b"Subject: s\r\nFrom: a@x.example\r\nContent-Type: multipart/mixed; boundary=B\r\n\r\n"
    body = b"--B\r\nContent-Type: text/plain\r\n\r\nOur words.\r\n"
    told = parse(head + body + b"".join(part % (at, at) for at in range(300)) + b"--B--\r\n", "a.eml")
    assert told.content.endswith("Our words.")
    assert len(told.attached) == 300
    assert len(str(told.metadata["attachments"])) <= 500


def test_a_sender_without_end_is_cut_off():
    told = parse(b"Subject: s\r\nFrom: " + b"a@x.example, " * 50_000 + b"\r\n\r\nbody\r\n", "a.eml")
    assert len(str(told.metadata["author"])) == 500


def test_a_cell_that_is_nested_without_end_is_damage():
    cell = "<table:table-cell><text:p>" + "<text:span>" * 50_000 + "x" + "</text:span>" * 50_000
    with pytest.raises(UnreadableError, match="is damaged"):
        parse(ods(row(cell + "</text:p></table:table-cell>")), "a.ods")


def test_a_chart_that_is_shown_again_and_again_is_told_once():
    space = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    drawing = (
        '<w:p><w:r><w:drawing><c:chart xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" '
        f'xmlns:r="{space}" r:id="rId7"/></w:drawing></w:r></w:p>'
    )
    data = changed(
        docx([("", "MARK")]),
        {
            "word/charts/chart1.xml": chart().encode(),
            "word/_rels/document.xml.rels": related("chart", "charts/chart1.xml"),
        },
        replaced={
            "word/document.xml": (
                b'<w:p><w:r><w:t xml:space="preserve">MARK</w:t></w:r></w:p>',
                drawing.encode() * 5_000,
            )
        },
    )
    assert parse(data, "a.docx").content.count("Sales by region") == 1


def tiff(frames: int) -> bytes:
    out = io.BytesIO()
    out.write(b"II*\0" + struct.pack("<I", 8))
    for at in range(frames):
        pixels = out.tell() + 2 + 8 * 12 + 4
        tags = [
            (256, 3, 8),
            (257, 3, 8),
            (258, 3, 1),
            (259, 3, 1),
            (262, 3, 1),
            (273, 4, pixels),
            (278, 3, 8),
            (279, 4, 8),
        ]
        out.write(struct.pack("<H", len(tags)))
        out.writelines(struct.pack("<HHII", name, kind, 1, value) for name, kind, value in tags)
        out.write(struct.pack("<I", pixels + 8 if at + 1 < frames else 0) + b"\xff" * 8)
    return out.getvalue()


def test_pages_of_a_picture_are_read_all_or_none():
    assert picture_pages(tiff(3)) == 3
    with pytest.raises(UnreadableError, match=r"has 2,001 pages: 2,000 of a picture can be read"):
        picture_pages(tiff(2_001))


def test_a_picture_of_nothing_says_no_more_than_that():
    with pytest.raises(UnreadableError, match=r"is damaged: the picture cannot be read$"):
        picture_pages(b"II*\0\x08\0\0\0\0\0\x08\0\0\0")


@pytest.mark.parametrize("made", [docx([("", "Words.")]), pptx([("Plan", ["Words."])]), xlsx({"Plan": [["Words"]]})])
def test_a_damaged_archive_of_any_office_program_says_so(made: bytes):
    damaged = bytearray(made)
    damaged[40 : len(made) * 2 // 3] = bytes(len(made) * 2 // 3 - 40)
    with pytest.raises(UnreadableError, match="is damaged"):
        parse(bytes(damaged), "a.docx")
    with pytest.raises(UnreadableError, match="is damaged"):
        parse(made[: len(made) // 2], "a.docx")
