"""HTML to text: headings, paragraphs, lists and tables, without scripts and page furniture; EPUB books and feeds too.

Written on the standard library's tokenizer because kreuzberg's HTML tree loses text (bare text in a ``div``, definition
lists, the first line of a quotation; seen with 4.10), and a passage that is not in the content can never be cited.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from recollect.documents._packed import parse_tree
from recollect.documents._parsed import Parsed, TextBuilder, one_line, parse_time
from recollect.documents._text import clean, decode
from recollect.documents.formats import UnreadableError
from recollect.model import Heading

if TYPE_CHECKING:
    from datetime import datetime


# Where the main content of a web page begins and ends, among menus, banners and footers.
#
# trafilatura decides; the text stays the reader's own. What it writes itself loses definition lists, the layout of
# tables and bare text, so its output serves to recognise blocks of the page: all from the first to the last of them
# stay.

# Too little to be sure of: the page is kept whole.
_LEAST_CHARACTERS = 200
# Above this a page is no article, and its tree takes memory for nothing.
_MOST_CHARACTERS = 2_000_000
_WORD = re.compile(r"\w+")
_RUN = 4
# A line about the author, a date, a line that sums up.
_BETWEEN = 3
_TABLE_LINE = re.compile(r"; | \| ")


def main_part(markup: str, content: str, headings: Sequence[Heading]) -> tuple[str, list[Heading]]:
    """The main content of a page.

    Args:
        markup: The page as it was sent.
        content: Its text as it was read, in blocks with blank lines between them.
        headings: Those in it.

    Returns:
        A part of ``content``, with its headings; all of it where no main content can be told.
    """
    everything = content, list(headings)
    if not _LEAST_CHARACTERS < len(content) <= _MOST_CHARACTERS:
        return everything
    found = _extracted(markup)
    if len(found) < _LEAST_CHARACTERS:
        return everything
    recognised = _Recognised(found)
    blocks = list(_blocks(content))
    main = [number for number, (start, end) in enumerate(blocks) if recognised.holds(content[start:end])]
    if not main:
        return everything
    first, last = main[0], main[-1]
    first = _title_above(blocks, first, headings)
    start, end = blocks[first][0], blocks[last][1]
    kept = [one for one in headings if start <= one.start_offset and one.end_offset <= end]
    moved = [replace(one, start_offset=one.start_offset - start, end_offset=one.end_offset - start) for one in kept]
    return content[start:end], moved


def _title_above(blocks: Sequence[tuple[int, int]], first: int, headings: Sequence[Heading]) -> int:
    """The block of the heading that a text begins below: extractors leave out titles, and what stands under them."""
    starts = {heading.start_offset for heading in headings}
    near = range(first - 1, max(first - 1 - _BETWEEN, -1), -1)
    above = next((number for number in near if blocks[number][0] in starts), first)
    while above and blocks[above - 1][0] in starts:
        above -= 1
    return above


def _extracted(markup: str) -> str:
    import logging

    from trafilatura import extract

    # It tells of every page that it finds odd, to whoever has logging on.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    try:
        return extract(markup, fast=True, include_comments=False, include_tables=True) or ""
    except Exception:  # noqa: BLE001 - whatever a contrived page provokes: it is read whole
        return ""


class _Recognised:
    """What was extracted, as something to compare blocks with: words and runs of words."""

    def __init__(self, text: str) -> None:
        words = _WORD.findall(text.lower())
        self._words = set(words)
        self._runs = set(_runs(words))
        self._lines = {" ".join(_WORD.findall(line)) for line in text.lower().split("\n")}

    def holds(self, block: str) -> bool:
        words = _WORD.findall(block.lower())
        if " ".join(words) in self._lines:
            return bool(words)
        runs = list(_runs(words))
        if len(runs) >= 2 and 2 * sum(run in self._runs for run in runs) >= len(runs):
            return True
        # A table's rows have pipes or names of columns between their words: other runs than in what was extracted.
        different = set(words)
        return (
            len(different) >= 6
            and _TABLE_LINE.search(block) is not None
            and len(different & self._words) >= 0.9 * len(different)
        )


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(_RUN)), strict=False)


def _blocks(content: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(content):
        end = content.find("\n\n", start)
        end = len(content) if end < 0 else end
        if end > start:
            yield start, end
        start = end + 2


_CHARSET = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]{2,40})""", re.IGNORECASE)
# Words in one string read better here than a name a line.
_WORDS = {
    "never": "script style noscript template svg math canvas iframe object audio video select datalist",
    "furniture": "nav footer button",
    "roles": "navigation banner contentinfo search",
    "void": "area base br col embed hr img input link meta param source track wbr",
    "blocks": "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol p pre section summary table tbody "
    "td tfoot th thead tr ul",
}
_NEVER, _FURNITURE, _FURNITURE_ROLES, _VOID, _BLOCKS = (frozenset(words.split()) for words in _WORDS.values())
_WIDEST, _MOST_CELLS = 1_000, 200_000
_HEADING = re.compile(r"h([1-6])$")
_UNSEEN = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|mso-hide:all|font-size:0(?:px|pt|em|rem|%)?(?:;|!|$)"
)
_DATES = ("article:modified_time", "last-modified", "dcterms.modified", "article:published_time", "date", "dc.date")


def parse_html(data: bytes, *, main_content: bool = False) -> Parsed:
    """A web page's text.

    Content inside ``main`` (or ``role="main"``) is preferred where there is enough of it.

    Args:
        data: The page.
        main_content: Whether a page without those is cut down to what its main content seems to be: right for pages of
            the web, and too much for files, whose authors put little around it.
    """
    declared = _CHARSET.search(data[:4096])
    text = decode(data, declared=declared[1].decode("ascii") if declared else None)
    return parse_markup(text, main_content=main_content)


def parse_markup(text: str, *, main_content: bool = False) -> Parsed:
    """As `parse_html`, from text."""
    page = _read(text, furniture=False)
    if not page.content()[0]:
        # An element that is never closed may have hidden the page; its menus are better than nothing.
        page = _read(text, furniture=True)
    content, headings = page.content()
    if main_content and not page.says_its_main_part:
        content, headings = main_part(text, content, headings)
    facts = {"author": page.meta.get("author"), "description": page.meta.get("description")}
    return Parsed(
        content=content,
        headings=headings,
        title=one_line(page.title) or None,
        event_time=next((time for name in _DATES if (time := parse_time(page.meta.get(name)))), None),
        metadata={name: value for name, value in facts.items() if value},
    )


def _read(text: str, *, furniture: bool) -> _Page:
    page = _Page(furniture=furniture)
    page.feed(_without_traps(text))
    page.close()
    page.finish()
    return page


def _without_traps(text: str) -> str:
    """``text`` without what makes the standard tokenizer take quadratic time: comments and tags that never end."""
    kept: list[str] = []
    start = 0
    while (comment := text.find("<!--", start)) >= 0:
        kept.append(text[start:comment])
        end = text.find("-->", comment + 4)
        if end < 0:
            kept.append(text[comment:].replace("<!--", ""))
            start = len(text)
        else:
            start = end + 3
    text = "".join([*kept, text[start:]]).replace("<![CDATA[", "").replace("]]>", "")
    last = text.rfind(">") + 1
    return text[:last] + text[last:].replace("<", "&lt;")


@dataclass(slots=True)
class _Cell:
    text: str = ""
    columns: int = 1
    rows: int = 1


@dataclass(slots=True)
class _Table:
    rows: list[list[_Cell]] = field(default_factory=list)
    header: bool = False
    layout: bool = False


class _Page(HTMLParser):
    """Collects a page's blocks, once as a whole and once for its main part."""

    def __init__(self, *, furniture: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.meta: dict[str, str] = {}
        self._furniture = furniture
        self._all, self._main = TextBuilder(), TextBuilder()
        self._text: list[str] = []
        self._hidden: list[str] = []
        self._main_depth = 0
        self._lists: list[int | None] = []
        self._marker: str | None = None
        self._tables: list[_Table] = []
        self._level = 0
        self._pre = 0
        self._in_title = False
        self._term = ""
        self._in_term = False

    @property
    def says_its_main_part(self) -> bool:
        """Whether enough of the page stands in its ``main`` to take that for all of it."""
        return len(self._main.result()[0]) > max(200, len(self._all.result()[0]) // 4)

    def content(self) -> tuple[str, list[Heading]]:
        """The main part's text and headings, or the whole page's."""
        return self._main.result() if self.says_its_main_part else self._all.result()

    # -- events of the tokenizer ------------------------------------------------------------------------------------

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        if self._hidden:
            if tag == self._hidden[-1]:
                self._hidden.append(tag)
            return
        values = {name: value or "" for name, value in attrs}
        if tag == "meta":
            self._note_meta(values)
        elif tag == "title":
            self._in_title = not self.title
        elif tag == "br":
            self._text.append("\n")
        elif tag not in _VOID and self._is_hidden(tag, values):
            self.flush()
            self._hidden.append(tag)
        elif tag in _BLOCKS:
            self._open_block(tag, values)

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        if self._hidden:
            if tag == self._hidden[-1]:
                self._hidden.pop()
        elif tag == "title":
            self._in_title = False
        elif tag in _BLOCKS:
            self._close_block(tag)

    def handle_data(self, data: str) -> None:
        """Text."""
        if self._in_title:
            self.title += data
        elif not self._hidden:
            self._text.append(data if self._pre else re.sub(r"\s+", " ", data))

    def unknown_decl(self, data: str) -> None:
        """``<![CDATA[…`` and the like outside XML: no text."""

    # -- blocks -----------------------------------------------------------------------------------------------------

    def _is_hidden(self, tag: str, values: dict[str, str]) -> bool:
        if tag in _NEVER:
            return True
        style = values.get("style", "").replace(" ", "").lower()
        if self._furniture or tag in {"html", "body"}:
            return False
        if "hidden" in values or values.get("aria-hidden") == "true" or _UNSEEN.search(style):
            return True
        page_level = not self._main_depth
        return tag in _FURNITURE or (page_level and values.get("role", "") in _FURNITURE_ROLES)

    def _note_meta(self, values: dict[str, str]) -> None:
        name = (values.get("name") or values.get("property") or values.get("http-equiv") or "").lower()
        if name and values.get("content"):
            self.meta.setdefault(name, one_line(values["content"])[:500])

    def _open_block(self, tag: str, values: dict[str, str]) -> None:
        if self._in_term and tag == "dd":
            self._close_block("dt")  # as HTML lets it be left out
        self.flush()
        if tag == "main" or values.get("role") == "main":
            self._main_depth += 1
        heading = _HEADING.match(tag)
        if heading:
            self._lay_out_tables()
            self._level = int(heading[1])
        elif tag in {"ul", "ol", "menu"}:
            self._lists.append(_number(values.get("start", ""), 1) - 1 if tag == "ol" else None)
        elif tag == "li":
            self._begin_item(values.get("value", ""))
        elif tag == "dt":
            self._in_term = True
        elif tag == "pre":
            self._pre += 1
        elif tag == "table":
            self._lay_out_tables()
            self._tables.append(_Table())
        elif tag in {"tr", "td", "th"} and self._tables:
            self._begin_cell(tag, values)

    def _close_block(self, tag: str) -> None:
        if tag == "dt":
            self._term, self._in_term = self._take(), False
            return
        self.flush()
        if tag == "main":
            self._main_depth = max(0, self._main_depth - 1)
        elif _HEADING.match(tag):
            self._level = 0
        elif tag in {"ul", "ol", "menu"} and self._lists:
            self._lists.pop()
            self._marker = None
        elif tag == "li":
            self._marker = None
        elif tag == "pre":
            self._pre = max(0, self._pre - 1)
        elif tag == "table" and self._tables:
            self._emit_table(self._tables.pop())

    def _begin_item(self, value: str) -> None:
        if self._lists and self._lists[-1] is not None:
            self._lists[-1] = _number(value, self._lists[-1] + 1)
            self._marker = f"{self._lists[-1]}."
        else:
            self._marker = "-"

    def _begin_cell(self, tag: str, values: dict[str, str]) -> None:
        table = self._tables[-1]
        if tag == "tr" or not table.rows:
            table.rows.append([])
        if tag != "tr":
            columns, rows = _span(values.get("colspan", "")), _span(values.get("rowspan", ""))
            table.rows[-1].append(_Cell(columns=columns, rows=rows))
            table.header |= tag == "th" and len(table.rows) == 1

    def _lay_out_tables(self) -> None:
        """What stands in a cell around a heading or another table is no table of facts: write it as paragraphs."""
        for table in self._tables:
            if not table.layout:
                table.layout = True
                self._emit_table(table)
                table.rows.clear()

    def _emit_table(self, table: _Table) -> None:
        if table.layout or max(map(len, table.rows), default=0) <= 1:
            text = "\n".join(cell.text for row in table.rows for cell in row if cell.text)
            self._each(lambda builder: builder.paragraph(text))
        else:
            rows = _spread(table.rows)
            self._each(lambda builder: builder.table(rows, header=table.header or None))

    def _take(self) -> str:
        text = clean("".join(self._text)).replace("\xa0", " ").replace("\xad", "")
        self._text.clear()
        if self._pre:
            return text.strip("\n")
        return "\n".join(line.strip() for line in text.split("\n")).strip()

    def finish(self) -> None:
        """Writes what is left, tables that were never closed among it."""
        self.flush()
        while self._tables:
            self._emit_table(self._tables.pop(0))

    def flush(self) -> None:
        """Writes the text collected so far as the block that it is."""
        text = self._take()
        if not text.strip():
            return
        if self._term:
            text, self._term = f"{one_line(self._term)}: {text}", ""
        if self._level:
            self._each(lambda builder: builder.heading(self._level, text))
        elif self._tables and not self._tables[-1].layout and self._tables[-1].rows:
            row = self._tables[-1].rows[-1]
            if row:
                row[-1].text = f"{row[-1].text} {text}".strip()
            else:
                row.append(_Cell(text))
        elif self._pre:
            self._each(lambda builder: builder.code(text))
        elif self._lists:
            marker, self._marker = self._marker or "", ""
            depth = len(self._lists) - 1
            self._each(lambda builder: builder.item(text, marker=marker, depth=depth))
        else:
            self._each(lambda builder: builder.paragraph(text))

    def _each(self, write: Callable[[TextBuilder], None]) -> None:
        write(self._all)
        if self._main_depth:
            write(self._main)


def _span(told: str) -> int:
    """How many columns or rows a cell takes; nonsense is one."""
    return max(1, min(int(told[:9]), _WIDEST)) if told.isascii() and told.isdigit() else 1


def _number(told: str, otherwise: int) -> int:
    """The number that a list begins with, or an item has."""
    return int(told) if told.isascii() and told.isdigit() and len(told) < 10 else otherwise


def _spread(rows: list[list[_Cell]]) -> list[list[str]]:
    """The rows with every cell at each place that it takes; of more than a table of facts has, as they were written."""
    if sum(min(cell.columns * cell.rows, _MOST_CELLS) for row in rows for cell in row) > _MOST_CELLS:
        return [[cell.text for cell in row] for row in rows]
    spread: list[dict[int, str]] = [{} for _ in rows]
    for at, row in enumerate(rows):
        column = 0
        for cell in row:
            while column in spread[at]:
                column += 1
            for below in spread[at : at + cell.rows]:
                below.update(dict.fromkeys(range(column, column + cell.columns), cell.text))
            column += cell.columns
    return [[row.get(column, "") for column in range(max(row, default=-1) + 1)] for row in spread]


# EPUB books: the chapters of the spine, in reading order.


_CONTAINER = "META-INF/container.xml"
_DC = "{http://purl.org/dc/elements/1.1/}"


def parse_epub(data: bytes) -> Parsed:
    """A book's chapters with their headings.

    Raises:
        UnreadableError: Its table of parts is damaged.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            package_path = _package_path(archive)
            package = ET.fromstring(archive.read(package_path))
            builder = TextBuilder()
            # The standard has a spine name each part once; read again for each time, a few bytes would be a library.
            for path in dict.fromkeys(_spine(package, posixpath.dirname(package_path))):
                if path in names:
                    builder.extend(parse_html(archive.read(path)))
    except Exception as error:  # zlib.error, struct.error, expat's and whatever else a hostile archive provokes
        raise UnreadableError("is damaged: the chapters of the book cannot be read") from error
    content, headings = builder.result()
    author = _dublin_core(package, "creator")
    return Parsed(
        content=content,
        headings=headings,
        title=_dublin_core(package, "title"),
        event_time=parse_time(_dublin_core(package, "date")),
        metadata={"author": author} if author else {},
    )


def _package_path(archive: zipfile.ZipFile) -> str:
    container = ET.fromstring(archive.read(_CONTAINER))
    for element in container.iter():
        if element.tag.endswith("}rootfile") and element.get("full-path"):
            return element.attrib["full-path"]
    raise UnreadableError("names no package")


def _spine(package: ET.Element, folder: str) -> list[str]:
    parts = {
        item.get("id"): item.get("href", "")
        for item in package.iter()
        if item.tag.endswith("}item") and "nav" not in item.get("properties", "").split()
    }
    order = [item.get("idref") for item in package.iter() if item.tag.endswith("}itemref")]
    return [posixpath.normpath(posixpath.join(folder, unquote(parts[part]))) for part in order if part in parts]


def _dublin_core(package: ET.Element, name: str) -> str | None:
    element = package.find(f".//{_DC}{name}")
    return one_line(element.text or "")[:500] or None if element is not None else None


# RSS and Atom feeds: one text, a heading an entry.


_ROOT = re.compile(rb"<(?:\w+:)?(rss|feed|RDF)[\s>]")
_MARKUP = re.compile(r"<[a-zA-Z!/]")
_MOST_ENTRIES = 10_000


def is_feed(data: bytes) -> bool:
    """Whether an XML file is a feed, by its first element."""
    start = data[:4096]
    root = re.search(rb"<[\w:]+", start)
    return root is not None and _ROOT.match(start, root.start()) is not None


def parse_feed(data: bytes) -> Parsed:
    """A feed's title and entries, newest as they come; what is no feed after all is read as it stands.

    Nothing that the file names is loaded, and none of its entities is expanded.
    """
    root = parse_tree(data)
    if root is None:
        return Parsed(content=decode(data))
    channel = next((one for one in root.iter() if _name(one) == "channel"), root)
    title, written = _own_text(channel, "title"), _time(channel)
    builder = TextBuilder()
    builder.heading(1, title)
    _paragraphs(builder, _own_text(channel, "description", "subtitle"))
    for number, entry in enumerate(_entries(root)):
        if number == _MOST_ENTRIES:
            break
        builder.heading(2, _own_text(entry, "title") or f"Entry {number + 1}")
        _paragraphs(builder, _own_text(entry, "encoded", "content") or _own_text(entry, "description", "summary"))
    content, headings = builder.result()
    return Parsed(content=content or decode(data), headings=headings, title=one_line(title) or None, event_time=written)


def _entries(root: Any) -> Iterator[Any]:  # noqa: ANN401 - an element of lxml, which has no types
    return (one for one in root.iter() if _name(one) in {"item", "entry"})


def _paragraphs(builder: TextBuilder, text: str) -> None:
    if _MARKUP.search(text):
        parsed = parse_markup(text)
        # Headings within an entry would cut it off from its title.
        builder.paragraph("\n\n".join(line.lstrip("# ") for line in parsed.content.split("\n\n")))
    else:
        builder.paragraph(text)


def _own_text(element: Any, *names: str) -> str:  # noqa: ANN401
    for name in names:
        for child in element:
            if _name(child) == name:
                return _inner(child)
    return ""


def _inner(element: Any) -> str:  # noqa: ANN401
    if len(element):  # Atom's type="xhtml"
        from lxml import etree

        return str(etree.tostring(element, encoding="unicode", with_tail=False))
    return (element.text or "").strip()


def _time(channel: Any) -> datetime | None:  # noqa: ANN401
    written = _own_text(channel, "updated", "lastBuildDate", "pubDate", "date")
    try:
        return parse_time(written or None) or parse_time(parsedate_to_datetime(written).isoformat())
    except ValueError:
        return None


def _name(element: Any) -> str:  # noqa: ANN401
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
