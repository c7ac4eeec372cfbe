"""CSV, TSV and JSON as text that can be read, found and quoted line by line."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator

from recollect.documents._parsed import Parsed, table_lines
from recollect.documents._text import clean, decode

_DELIMITERS = ",;\t|"
_MAX_DEPTH = 60


def parse_table(data: bytes, *, tabs: bool) -> Parsed:
    """A table with one line a row, each cell named by its column (see `table_lines`).

    Args:
        data: The file.
        tabs: Whether its name says that tabs separate; otherwise the separator is the one that splits the first
            lines most evenly.
    """
    text = decode(data)
    delimiter = "\t" if tabs else _delimiter(text)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error:
        # A field beyond the csv module's limit, usually an unpaired quotation mark: the lines themselves will do.
        rows = [line.split(delimiter) for line in text.split("\n")]
    lines = table_lines(rows)
    facts = {"rows": len(lines), "columns": max(map(len, rows), default=0)}
    return Parsed(content="\n".join(lines), metadata=facts)


def _delimiter(text: str) -> str:
    sample = [line for line in text[:20_000].split("\n")[:30] if line.strip()]

    def evenness(delimiter: str) -> tuple[int, int]:
        widths = Counter(line.count(delimiter) for line in sample)
        widths.pop(0, None)
        width, lines = max(widths.items(), key=lambda pair: (pair[1], pair[0]), default=(0, 0))
        return lines, width

    return max(_DELIMITERS, key=evenness)


def parse_json(data: bytes) -> Parsed:
    """A JSON value as an indented outline, ``key: value`` a line, without braces, quotes and escapes.

    What is no valid JSON (comments, several values, too deep) is read as it stands.
    """
    text = decode(data)
    try:
        value = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return Parsed(content=text)
    try:
        content = clean("\n".join(_outline(value, 0)))
    except RecursionError:
        content = text
    return Parsed(content=content)


def _outline(value: object, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if depth > _MAX_DEPTH:
        raise RecursionError
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _entry(f"{indent}{key}:", item, depth)
    elif isinstance(value, list):
        for item in value:
            yield from _entry(f"{indent}-", item, depth)
    else:
        yield indent + _scalar(value)


def _entry(label: str, item: object, depth: int) -> Iterator[str]:
    if isinstance(item, dict | list) and item:
        yield label
        yield from _outline(item, depth + 1)
    else:
        yield f"{label} {_scalar(item)}".rstrip()


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return "" if isinstance(value, dict | list) else str(value)
