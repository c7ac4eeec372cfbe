#!/usr/bin/env python3
"""Build the PDF and DOCX files of the example handbook from their text sources.

The sources under ``handbook_sources/`` are a small subset of Markdown with a
header of ``key: value`` lines between two ``---`` lines:

    format        pdf or docx (required)
    title         document title (required)
    doc_id        identifier shown in the page header, for example POL-017
    version       version shown in the page header
    date          ISO date, written into the file's metadata (required)
    headings      "caps" prints level-1 headings of a PDF in capitals

Supported in the body: ``##`` and ``###`` headings, paragraphs, ``-`` and
``1.`` lists, pipe tables, and in DOCX also ``**bold**`` and `` `code` ``.

The output is deterministic: building twice gives the same bytes as long as
the versions of fpdf2 and python-docx stay the same.

Requires: pip install fpdf2 python-docx
"""

from __future__ import annotations

import argparse
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from docx import Document
from fpdf import FPDF
from fpdf.enums import XPos, YPos

HERE = Path(__file__).resolve().parent
COMPANY = "Fennmark Instruments GmbH"
ZIP_DATE = (1980, 1, 1, 0, 0, 0)

Meta = dict[str, str]

# The first pattern that matches a line decides its kind.
LINES = (
    ("h3", re.compile(r"### (.+)")),
    ("h2", re.compile(r"## (.+)")),
    ("bullet", re.compile(r"- (.+)")),
    ("number", re.compile(r"(\d+\. .+)")),
    ("table", re.compile(r"\|(.+)\|")),
    ("p", re.compile(r"(.+)")),
)
TABLE_RULE = re.compile(r"\|[-:| ]+\|")


@dataclass
class Block:
    """One block of a source; ``kind`` is one of those named in LINES."""

    kind: str
    text: str = ""
    rows: list[list[str]] = field(default_factory=list)


def parse(source: str) -> tuple[Meta, list[Block]]:
    """Split a source text into its header fields and its blocks."""
    _, header, body = source.split("---\n", 2)
    fields = (line.partition(":") for line in header.splitlines() if line.strip())
    meta = {key.strip(): value.strip() for key, _, value in fields}
    blocks = [block for part in re.split(r"\n\s*\n", body) for block in parse_part(part)]
    return meta, blocks


def parse_part(part: str) -> Iterator[Block]:
    """Yield the blocks of the lines between two blank lines."""
    block: Block | None = None
    for line in filter(None, map(str.strip, part.splitlines())):
        if TABLE_RULE.fullmatch(line):
            continue
        kind, content = next((kind, match[1]) for kind, pattern in LINES if (match := pattern.fullmatch(line)))
        if block and kind == "table" == block.kind:
            block.rows.append(cells_of(content))
        elif block and kind == "p" and block.kind in {"p", "bullet", "number"}:
            block.text += " " + content  # the paragraph or list item goes on
        else:
            if block:
                yield block
            block = Block("table", rows=[cells_of(content)]) if kind == "table" else Block(kind, content)
    if block:
        yield block


def cells_of(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")]


def plain(text: str) -> str:
    """Text without the inline marks for bold and code."""
    return re.sub(r"\*\*(.+?)\*\*|`(.+?)`", lambda match: match[1] or match[2], text)


def label_of(meta: Meta, *keys: str) -> list[str]:
    """The header's values under ``keys`` that are there, the version with a v."""
    return [("v" if key == "version" else "") + meta[key] for key in keys if meta.get(key)]


class HandbookPdf(FPDF):
    """A PDF with the company's page header and footer."""

    # Bullet in the encoding of the standard fonts.
    BULLET = "\x95 "

    def __init__(self, meta: Meta) -> None:
        super().__init__(format="A4")
        self.label = "  ".join(label_of(meta, "doc_id", "title", "version"))
        self.caps = meta.get("headings") == "caps"
        self.set_margins(22, 14, 22)
        self.set_auto_page_break(True, margin=22)
        self.set_title(meta["title"])
        self.set_author(COMPANY)
        self.set_lang("en")
        self.set_creation_date(datetime.fromisoformat(meta["date"]).replace(tzinfo=UTC))

    def header(self) -> None:
        self.set_font("Helvetica", size=8)
        self.set_text_color(110)
        self.cell(self.epw / 2, 5, COMPANY)
        self.cell(self.epw / 2, 5, self.label, align="R", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
        self.set_draw_color(180)
        self.line(self.l_margin, self.get_y() + 1, self.w - self.r_margin, self.get_y() + 1)
        self.set_text_color(0)
        self.ln(7)

    def footer(self) -> None:
        self.set_y(-15)
        self.set_font("Helvetica", size=8)
        self.set_text_color(110)
        self.cell(0, 5, f"Internal - Page {self.page_no()} of {{nb}}", align="C")
        self.set_text_color(0)

    def put(self, text: str, *, style: str = "", size: float = 10.5, height: float = 5.3, indent: float = 0) -> None:
        self.set_font("Helvetica", style=style, size=size)
        self.set_x(self.l_margin + indent)
        self.multi_cell(self.epw - indent, height, text, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    def put_heading(self, text: str, size: float, before: float, after: float) -> None:
        if self.will_page_break(before + 28):  # keep a heading with its first lines
            self.add_page()
        else:
            self.ln(before)
        self.put(text, style="B", size=size, height=6)
        self.ln(after)

    def put_table(self, rows: list[list[str]]) -> None:
        self.ln(1)
        self.set_font("Helvetica", size=9.5)
        with self.table(line_height=5.2, padding=1, text_align="LEFT") as table:
            for cells in rows:
                row = table.row()
                for cell in cells:
                    row.cell(plain(cell))
        self.ln(4)

    def put_block(self, block: Block) -> None:
        text = plain(block.text)
        match block.kind:
            case "h2":
                self.put_heading(text.upper() if self.caps else text, 13, 4, 1.5)
            case "h3":
                self.put_heading(text, 11, 2, 1)
            case "table":
                self.put_table(block.rows)
            case "p":
                self.put(text)
                self.ln(2.5)
            case kind:
                self.put(self.BULLET + text if kind == "bullet" else text, indent=5)
                self.ln(1)


def write_pdf(meta: Meta, blocks: list[Block], target: Path) -> None:
    pdf = HandbookPdf(meta)
    pdf.add_page()
    pdf.put(meta["title"], style="B", size=18, height=9)
    pdf.ln(3)
    for block in blocks:
        pdf.put_block(block)
    target.write_bytes(bytes(pdf.output()))


def fill(paragraph, text: str) -> None:
    """Write ``text`` into a Word paragraph, with its bold and code marks."""
    for part in filter(None, re.split(r"(\*\*.+?\*\*|`.+?`)", text)):
        run = paragraph.add_run(plain(part))
        if part.startswith("**"):
            run.bold = True
        elif part.startswith("`"):
            run.font.name = "Courier New"


def fill_table(document, rows: list[list[str]]) -> None:
    table = document.add_table(rows=0, cols=len(rows[0]), style="Light Grid Accent 1")
    for cells in rows:
        for cell, text in zip(table.add_row().cells, cells, strict=True):
            fill(cell.paragraphs[0], text)
    document.add_paragraph()


def write_docx(meta: Meta, blocks: list[Block], target: Path) -> None:
    document = Document()
    properties = document.core_properties
    properties.title = meta["title"]
    properties.author = properties.last_modified_by = COMPANY
    properties.created = properties.modified = datetime.fromisoformat(meta["date"])
    properties.comments = ""
    header = document.sections[0].header.paragraphs[0]
    header.text = "  |  ".join([COMPANY, *label_of(meta, "doc_id", "version")])

    document.add_heading(meta["title"], level=0)
    for block in blocks:
        match block.kind:
            case "h2" | "h3" as kind:
                document.add_heading(plain(block.text), level=1 if kind == "h2" else 2)
            case "table":
                fill_table(document, block.rows)
            case "bullet":
                fill(document.add_paragraph(style="List Bullet"), block.text)
            case _:
                # Numbers are kept as text, so that every list starts at 1.
                fill(document.add_paragraph(), block.text)

    buffer = BytesIO()
    document.save(buffer)
    # python-docx stamps the archive's members with the current time.
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            member = zipfile.ZipInfo(name, ZIP_DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(member, old.read(name))


WRITERS = {"pdf": write_pdf, "docx": write_docx}


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the PDF and DOCX files of the handbook.")
    parser.add_argument("--sources", type=Path, default=HERE / "handbook_sources")
    parser.add_argument("--output", type=Path, default=HERE / "handbook")
    args = parser.parse_args()

    for source in sorted(args.sources.rglob("*.md")):
        meta, blocks = parse(source.read_text(encoding="utf-8"))
        target = args.output / source.relative_to(args.sources).with_suffix("." + meta["format"])
        target.parent.mkdir(parents=True, exist_ok=True)
        WRITERS[meta["format"]](meta, blocks, target)
        print(target.relative_to(args.output))


if __name__ == "__main__":
    main()
