from __future__ import annotations

from datetime import UTC, datetime

from recollect.documents import read_bytes

from .made_files import docx, epub, odt, pptx, xlsx

BODY = "Employees are entitled to thirty days of paid leave in every calendar year."


def shape(document):
    for one in document.headings:
        assert one.title in document.content[one.start_offset : one.end_offset]
    return [(one.level, one.title) for one in document.headings]


def test_word():
    document = read_bytes(
        docx(
            [
                ("Heading1", "1. Leave_Policy *new*"),
                ("", f"{BODY} See a_b_c & <d>."),
                ("Heading2", "Carry-over"),
                [["Office", "Days", "Until"], ["Bremen", "8", "June"], ["Lyon", "5", ""]],
                ("Heading3", "Details"),
                ("", "Größe: 5 €."),
            ],
            title="Untitled",
        ),
        name="leave.docx",
    )
    assert shape(document) == [(1, "1. Leave_Policy *new*"), (2, "Carry-over"), (3, "Details")]
    assert document.content == (
        f"# 1. Leave_Policy *new*\n\n{BODY} See a_b_c & <d>.\n\n## Carry-over\n\n"
        "| Office | Days | Until |\n|---|---|---|\n| Bremen | 8 | June |\n| Lyon | 5 |  |\n\n### Details\n\nGröße: 5 €."
    )
    assert document.title == "1. Leave_Policy *new*"
    assert document.event_time == datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert document.metadata == {"format": "docx", "author": "Ann Author"}
    assert document.mime_type.endswith("wordprocessingml.document")


def test_characters_that_xml_escapes():
    body = [("Heading1", "R&D"), ("", "if a < b && b > c: \"Q&A\" 'x' &amp;")]
    document = read_bytes(docx(body, title="R&amp;D &#8211; &lt;Plan&gt;"), name="a.docx")
    assert document.content == "# R&D\n\nif a < b && b > c: \"Q&A\" 'x' &amp;"
    assert document.headings[0].title == "R&D"
    assert document.title == "R&D – <Plan>"


def test_word_without_styles_falls_back_on_the_lines():
    document = read_bytes(docx([("", "LEAVE POLICY"), ("", BODY), ("", "Annual Leave"), ("", BODY)]), name="a.docx")
    assert shape(document) == [(1, "LEAVE POLICY"), (2, "Annual Leave")]


def test_a_paragraph_in_a_heading_style_is_no_heading():
    document = read_bytes(docx([("Heading1", BODY * 5), ("Heading1", "Short"), ("", BODY)]), name="a.docx")
    assert shape(document) == [(1, "Short")]
    assert BODY * 5 in document.content


def test_excel():
    document = read_bytes(
        xlsx({"Rates": [["Country", "Per day", "Hotel"], ["Italy", 40, 120.5], ["Spain", 35, 110]], "Empty": []}),
        name="rates.xlsx",
    )
    assert "| Italy | 40 | 120.5 |" in document.content
    assert (2, "Rates") in shape(document)


def test_powerpoint():
    document = read_bytes(
        pptx([("Welcome to Fennmark", ["First line", "Second line"]), ("Next Steps", ["Do_it"])]), name="a.pptx"
    )
    assert [title for _, title in shape(document)] == ["Welcome to Fennmark", "Next Steps"]
    assert "First line" in document.content
    assert "Do_it" in document.content
    assert document.section_path(document.content.index("Do_it")) == ("Next Steps",)


def test_opendocument():
    document = read_bytes(odt([(1, "Leave"), (0, BODY), (2, "Carry-over"), (0, "Until *June*.")]), name="a.odt")
    assert shape(document) == [(1, "Leave"), (2, "Carry-over")]
    assert "Until *June*." in document.content


def test_rtf():
    document = read_bytes(rb"{\rtf1\ansi\ansicpg1252 Gr\'f6\'dfe und mehr Text.\par Second line.}", name="a.rtf")
    assert "Größe und mehr Text." in document.content
    assert "Second line." in document.content


def test_epub_follows_the_spine():
    document = read_bytes(epub([f"<h1>Two</h1><p>{BODY}</p>", "<h1>One</h1><p>Begin &amp; go.</p>"]), name="book.epub")
    assert shape(document) == [(1, "One"), (1, "Two")]
    assert document.content.startswith("# One\n\nBegin & go.\n\n# Two")
    assert document.title == "A Small Book"
    assert document.metadata["author"] == "Bo Writer"
    assert document.event_time == datetime(2020, 5, 6, tzinfo=UTC)
