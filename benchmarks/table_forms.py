"""Cells of tables, asked for: rows that name their columns (``Department: Sales; 2023: 10``) against pipe tables.

The tables are those of the development filings, as the PDF reader gives them; each filing's are one document, written
in either form, in a collection of its own. Asked is for 25 cells a filing, drawn by chance: "What was Net income in
2018?". A passage counts that holds a line with the row's label and the cell. Searches run through the engine, with its
defaults::

    python benchmarks/table_forms.py [--shared ../shared/data]
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import SHARED, machine, say, store_folder, table, versions

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.documents import read_file
from recollect.documents._parsed import pipe_table, table_lines

_DASHES = re.compile(r"\|[-:| ]+")
_TABLES, _QUESTIONS, _PASSAGES = 60, 25, 10

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Question:
    """A cell that is asked for."""

    document: str
    text: str
    label: str
    value: str


def tables_of(text: str) -> Iterator[tuple[str, Rows]]:
    """The tables of a filing, each with the line above it."""
    blocks = text.split("\n\n")
    for before, block in zip(["", *blocks], blocks, strict=False):
        lines = block.split("\n")
        if len(lines) < 6 or not lines[0].startswith("|") or not _DASHES.fullmatch(lines[1]):
            continue
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]
        whole = [row for row in rows if len(row) == len(rows[0])]
        if len(rows[0]) >= 3:
            caption = before.rpartition("\n")[2]
            yield caption if len(caption) <= 150 else "", whole


def questions_of(document: str, tables: Sequence[tuple[str, Rows]], chance: random.Random) -> list[Question]:
    """Cells with figures, of rows and columns with names."""
    found = [
        Question(document, f"What was {row[0].replace(' › ', ' ')} in {name.replace(' › ', ' ')}?", row[0], value)
        for _, rows in tables
        for row in rows[1:]
        if re.search(r"[A-Za-z]{4}", row[0])
        for name, value in zip(rows[0][1:], row[1:], strict=True)
        if re.search(r"\d{2}", value) and re.search(r"[A-Za-z\d]{3}", name)
    ]
    return chance.sample(found, min(_QUESTIONS, len(found)))


def named_rows(rows: Rows) -> str:
    """The other form."""
    return "\n".join(table_lines(rows, header=True))


def piped(rows: Rows) -> str:
    """The form that is used."""
    return pipe_table(rows, header=True)


def measure(
    form: Callable[[Rows], str], filings: dict[str, list[tuple[str, Rows]]], asked: Sequence[Question]
) -> list[str]:
    """A line of the results."""
    hits, passages = [0, 0, 0], 0
    with store_folder() as folder, RAGPipeline(RAGConfig(storage={"data_dir": folder})) as rag:
        for name, tables in filings.items():
            text = "\n\n".join("\n\n".join(filter(None, (caption, form(rows)))) for caption, rows in tables)
            view = rag.view(collections=name)
            view.ingest(Document(content=text, source=name, title=name))
            passages += view.documents.get(name).chunk_count
        for one in asked:
            options = RetrievalOptions(top_k=_PASSAGES)
            results = rag.view(collections=one.document).search(one.text, options=options).results
            lines = (result.content.split("\n") for result in results)
            holds = [any(one.label in line and one.value in line for line in own) for own in lines]
            hits = [count + any(holds[:top]) for count, top in zip(hits, (1, 5, _PASSAGES), strict=True)]
    return [form.__name__, str(passages), *(f"{100 * count / len(asked):.1f}" for count in hits)]


def main() -> None:
    """Print both forms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, default=SHARED)
    folder = parser.parse_args().shared / "filings/pdf"
    filings = {
        path.stem.lower().replace("_", "-"): list(tables_of(read_file(path, source=path.name).content))[:_TABLES]
        for path in sorted(folder.glob("*.pdf"))
    }
    chance = random.Random(7)
    asked = [one for name, tables in filings.items() for one in questions_of(name, tables, chance)]
    say(machine(), versions())
    say(f"{len(asked)} cells of {sum(map(len, filings.values()))} tables")
    lines = [measure(form, filings, asked) for form in (named_rows, piped)]
    print(table(["form", "passages", "hit@1", "hit@5", "hit@10"], lines))


if __name__ == "__main__":
    main()
