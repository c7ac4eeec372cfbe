"""Texts of documents on a terminal: harmless, short, with what matters marked; times and sizes in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from datetime import datetime

    from rich.console import Console, RenderableType
    from rich.text import Text

    from recollect.model import PassageNote
    from recollect.retrieval.analysis import Analyzer


# ANSI escape sequences: CSI, then OSC and its kin up to their terminator, then two-character ones.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|\x9b[0-?]*[ -/]*[@-~]"
)


# C0 and C1 controls but line feed and tab; marks that override the direction of what follows; lone surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


_EMPHASIS = re.compile(r"\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*|(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])|`([^`\n]+)`")


_WORD = re.compile(r"\w+(?:[-.'@]\w+)*")


_SPACE = re.compile(r"\s+")


def plain(text: str) -> str:
    """The text without anything that a terminal would obey."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text)).replace("\t", "    ")


def one_line(text: str) -> str:
    """`plain`, with every run of white space as one blank."""
    return _SPACE.sub(" ", plain(text.replace("\r", " "))).strip()


def shortened(text: str, length: int) -> str:
    """One line of at most ``length`` characters."""
    line = one_line(text)
    return line if len(line) <= length else line[: max(1, length - 1)].rstrip() + "…"


def inline_markup(text: str) -> Text:
    """A text whose Markdown emphasis is shown as such, without its asterisks; nothing else is interpreted."""
    from rich.text import Text

    shown = Text()
    end = 0
    for match in _EMPHASIS.finditer(text):
        strong, weak, code = match.groups()
        shown.append(text[end : match.start()])
        shown.append(strong or weak or code, "bold" if strong else "italic" if weak else "cyan")
        end = match.end()
    return shown.append(text[end:])


def print_indented(console: Console, text: Text, *, by: int) -> None:
    """Print a text below the line before it, wrapped to the console's width."""
    for line in text.wrap(console, max(20, console.width - by)):
        line.rstrip()
        console.print(" " * by, line, sep="", end="\n", soft_wrap=True)


def print_table(
    console: Console,
    head: Sequence[str],
    rows: Iterable[Sequence[RenderableType]],
    *,
    left: Collection[int] = (0,),
    gap: int = 2,
) -> None:
    """Print a table of figures.

    Args:
        console: Where.
        head: Titles of the columns; empty: there are none.
        rows: Cells.
        left: Numbers of the columns that hold words, from 0; the others hold figures.
        gap: Blanks between columns.
    """
    from rich.table import Table

    shown = list(rows)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, gap, 0, 0), show_header=bool(head))
    for index, title in enumerate(head or [""] * max(map(len, shown), default=0)):
        if index in left:
            table.add_column(title, overflow="fold", min_width=10 if title else None)
        else:
            table.add_column(title, justify="right", no_wrap=True)
    for row in shown:
        table.add_row(*row)
    console.print(table)


_COLUMNS: dict[str, dict[str, Any]] = {
    "": {},
    "fold": {"overflow": "fold"},
    "whole": {"no_wrap": True},
    "right": {"justify": "right"},
    "figure": {"justify": "right", "no_wrap": True},
}


def print_list(console: Console, columns: Mapping[str, str], rows: Iterable[Sequence[RenderableType]]) -> None:
    """Print a list of things as a table.

    Args:
        console: Where.
        columns: How each column is laid out, by title: ``fold`` shows long texts in several lines, ``whole`` never
            wraps, ``right`` is for numbers, ``figure`` for those that never wrap.
        rows: Cells.
    """
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title, layout in columns.items():
        table.add_column(title, **_COLUMNS[layout])
    for row in rows:
        table.add_row(*row)
    console.print(table)


def print_facts(console: Console, facts: Iterable[tuple[str, RenderableType]]) -> None:
    """Print what is known of one thing: names, and values beside them."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, value)
    console.print(table)


class Highlighter:
    """Finds the words of a query in a text, whatever their endings.

    Args:
        query: In plain words.
        analyzer: Of the searched collection's language.
    """

    def __init__(self, query: str, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._terms = frozenset(analyzer.query_terms(query))

    def snippet(self, text: str, *, length: int) -> Text:
        """The part of a text that holds most of the query's words, those words marked.

        Args:
            text: A passage.
            length: Characters at most.
        """
        from rich.text import Text

        line = one_line(text)
        hits = [match.span() for match in _WORD.finditer(line) if self._matches(match.group())]
        start, end = _best_window(len(line), [first for first, _ in hits], length)
        start, end = _at_blanks(line, start, end)
        snippet = Text("… " if start else "")
        offset = len(snippet) - start
        snippet.append(line[start:end] + (" …" if end < len(line) else ""))
        for first, last in hits:
            if start <= first and last <= end:
                snippet.stylize("bold yellow", first + offset, last + offset)
        return snippet

    def _matches(self, word: str) -> bool:
        return not self._terms.isdisjoint(self._analyzer.terms(word))


def _best_window(total: int, hits: Collection[int], length: int) -> tuple[int, int]:
    if total <= length:
        return 0, total
    starts = [max(0, min(hit - length // 6, total - length)) for hit in hits] or [0]
    count: Callable[[int], int] = lambda start: sum(start <= hit < start + length for hit in hits)  # noqa: E731
    best = max(starts, key=lambda start: (count(start), -start))
    return best, best + length


def _at_blanks(line: str, start: int, end: int) -> tuple[int, int]:
    """Move both ends inwards to the nearest blank, if there is one near."""
    if start:
        blank = line.find(" ", start, start + 30)
        start = blank + 1 if blank >= 0 else start
    if end < len(line):
        blank = line.rfind(" ", end - 30, end)
        end = blank if blank > start else end
    return start, end


def moment_words(moment: datetime | None) -> str:
    """A time to the minute, in UTC; a day's first moment as the day."""
    if moment is None:
        return "undated"
    midnight = (moment.hour, moment.minute, moment.second) == (0, 0, 0)
    return moment.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M")


def show_notes(console: Console, notes: Sequence[PassageNote]) -> None:
    """Print why a passage is not the last word, each note a line."""
    from rich.text import Text

    for note in notes:
        print_indented(console, Text("! ", style="bold yellow").append(one_line(note.text), "yellow not bold"), by=4)


def moment_text(moment: datetime | None) -> str:
    """A time for people, in UTC; nothing where there is none."""
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment else ""


def size(count: int) -> str:
    """A number of bytes for people."""
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:,.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:,.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"
