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
from dataclasses import dataclass, field
from datetime import datetime, timezone
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMPANY = "Fennmark Instruments GmbH"
ZIP_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass
class Block:
    """One block of a source: kind is h2, h3, p, bullet, number or table."""

    kind: str
    text: str = ""
    rows: list[list[str]] = field(default_factory=list)


def parse(source: str) -> tuple[dict[str, str], list[Block]]:
    """Split a source text into its header fields and its blocks."""
    _, header, body = source.split("---\n", 2)
    meta = {}
    for line in header.splitlines():
        if line.strip():
            key, _, value = line.partition(":")
            meta[key.strip()] = value.strip()

    blocks: list[Block] = []
    paragraph: list[str] = []

    def flush() -> None:
        if paragraph:
            blocks.append(Block("p", " ".join(paragraph)))
            paragraph.clear()

    for raw in body.splitlines():
        line = raw.strip()
        if not line:
            flush()
        elif line.startswith("### "):
            flush()
            blocks.append(Block("h3", line[4:]))
        elif line.startswith("## "):
            flush()
            blocks.append(Block("h2", line[3:]))
        elif line.startswith("- "):
            flush()
            blocks.append(Block("bullet", line[2:]))
        elif re.match(r"\d+\. ", line):
            flush()
            blocks.append(Block("number", line))
        elif line.startswith("|"):
            flush()
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if all(re.fullmatch(r":?-+:?", cell) for cell in cells):
                continue  # the rule between the head and the body of a table
            if not blocks or blocks[-1].kind != "table":
                blocks.append(Block("table"))
            blocks[-1].rows.append(cells)
        elif raw.startswith("  ") and blocks and blocks[-1].kind in ("bullet", "number"):
            blocks[-1].text += " " + line  # continuation of a list item
        else:
            paragraph.append(line)
    flush()
    return meta, blocks


def plain(text: str) -> str:
    """Text without the inline marks for bold and code."""
    return re.sub(r"\*\*(.+?)\*\*|`(.+?)`", lambda m: m.group(1) or m.group(2), text)


def write_pdf(meta: dict[str, str], blocks: list[Block], target: Path) -> None:
    from fpdf import FPDF
    from fpdf.enums import XPos, YPos

    label = "  ".join(
        part
        for part in (meta.get("doc_id"), meta["title"], meta.get("version") and f"v{meta['version']}")
        if part
    )

    class Document(FPDF):
        def header(self) -> None:
            self.set_font("Helvetica", size=8)
            self.set_text_color(110)
            self.cell(self.epw / 2, 5, COMPANY)
            self.cell(self.epw / 2, 5, label, align="R", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
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

    pdf = Document(format="A4")
    pdf.set_margins(22, 14, 22)
    pdf.set_auto_page_break(True, margin=22)
    pdf.set_title(meta["title"])
    pdf.set_author(COMPANY)
    pdf.set_lang("en")
    pdf.set_creation_date(datetime.fromisoformat(meta["date"]).replace(tzinfo=timezone.utc))
    pdf.add_page()

    def write(text: str, style: str, size: float, height: float, indent: float = 0) -> None:
        pdf.set_font("Helvetica", style=style, size=size)
        pdf.set_x(pdf.l_margin + indent)
        pdf.multi_cell(
            pdf.epw - indent, height, text, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT
        )

    def heading(text: str, size: float, before: float, after: float) -> None:
        if pdf.will_page_break(before + 28):  # keep a heading with its first lines
            pdf.add_page()
        else:
            pdf.ln(before)
        write(text, "B", size, 6)
        pdf.ln(after)

    caps = meta.get("headings") == "caps"
    write(meta["title"], "B", 18, 9)
    pdf.ln(3)
    for block in blocks:
        text = plain(block.text)
        if block.kind == "h2":
            heading(text.upper() if caps else text, 13, 4, 1.5)
        elif block.kind == "h3":
            heading(text, 11, 2, 1)
        elif block.kind == "p":
            write(text, "", 10.5, 5.3)
            pdf.ln(2.5)
        elif block.kind == "bullet":
            write("\u2022 ".encode("cp1252").decode("latin-1") + text, "", 10.5, 5.3, indent=5)
            pdf.ln(1)
        elif block.kind == "number":
            write(text, "", 10.5, 5.3, indent=5)
            pdf.ln(1)
        else:
            pdf.ln(1)
            pdf.set_font("Helvetica", size=9.5)
            with pdf.table(line_height=5.2, padding=1, text_align="LEFT") as table:
                for cells in block.rows:
                    row = table.row()
                    for cell in cells:
                        row.cell(plain(cell))
            pdf.ln(4)
    target.write_bytes(bytes(pdf.output()))


def write_docx(meta: dict[str, str], blocks: list[Block], target: Path) -> None:
    from docx import Document

    document = Document()
    stamp = datetime.fromisoformat(meta["date"])
    properties = document.core_properties
    properties.title = meta["title"]
    properties.author = properties.last_modified_by = COMPANY
    properties.created = properties.modified = stamp
    properties.comments = ""

    header = [COMPANY, meta.get("doc_id", ""), f"v{meta['version']}" if meta.get("version") else ""]
    document.sections[0].header.paragraphs[0].text = "  |  ".join(part for part in header if part)

    def fill(paragraph, text: str) -> None:
        for part in re.split(r"(\*\*.+?\*\*|`.+?`)", text):
            if part.startswith("**"):
                paragraph.add_run(part[2:-2]).bold = True
            elif part.startswith("`"):
                paragraph.add_run(part[1:-1]).font.name = "Courier New"
            elif part:
                paragraph.add_run(part)

    document.add_heading(meta["title"], level=0)
    for block in blocks:
        if block.kind in ("h2", "h3"):
            document.add_heading(plain(block.text), level=1 if block.kind == "h2" else 2)
        elif block.kind == "table":
            table = document.add_table(rows=0, cols=len(block.rows[0]), style="Light Grid Accent 1")
            for cells in block.rows:
                for cell, text in zip(table.add_row().cells, cells, strict=True):
                    fill(cell.paragraphs[0], text)
            document.add_paragraph()
        elif block.kind == "bullet":
            fill(document.add_paragraph(style="List Bullet"), block.text)
        else:
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
