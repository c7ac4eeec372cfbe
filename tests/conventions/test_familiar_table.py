"""Names of related systems: each leads to something that exists. As a program, this writes their table anew."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import recollect
from recollect.chunking.registry import parameter_names, strategy_names
from recollect.config import RAGConfig
from recollect.config._reading import places
from recollect.familiar_names import FAMILIAR

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/coming-from-another-system.md"
HEAD = "| elsewhere | here, as a setting | as an argument | |\n|---|---|---|---|\n"
SETTINGS = {".".join(place) for place in places(RAGConfig)} | {
    f"chunking.{name}" for strategy in strategy_names() for name in parameter_names(strategy)
}


def arguments() -> set[str]:
    """Every argument that the public classes take, and their methods."""
    found: set[str] = {name for place in SETTINGS for name in place.split(".")}
    for name in recollect.__all__:
        kind = getattr(recollect, name)
        for function in (kind, *(one for _, one in inspect.getmembers(kind, inspect.isfunction))):
            try:
                found |= set(inspect.signature(function).parameters)
            except ValueError:  # an error's
                continue
    return found


def table() -> str:
    lines = []
    for row in FAMILIAR:
        names, here = (", ".join(f"`{one}`" for one in several) for several in (row.names, row.arguments))
        setting = f"`rag.{row.setting}`" if row.setting else ""
        lines.append(f"| {names} | {setting} | {here} | {row.note} |")
    return HEAD + "\n".join(lines) + "\n"


def test_what_is_proposed_is_there():
    assert {row.setting for row in FAMILIAR if row.setting} - SETTINGS == set()
    assert [row.names for row in FAMILIAR if row.arguments and not set(row.arguments) & arguments()] == []
    assert [row.names for row in FAMILIAR if not (row.setting or row.arguments or row.note)] == []


def test_no_name_is_proposed_twice_or_a_setting_of_ours():
    names = [name for row in FAMILIAR for name in row.names]
    assert len(names) == len(set(names))
    assert set(names) & SETTINGS == set()


def test_the_page_has_them_all():
    assert table() in PAGE.read_text(encoding="utf-8"), f"run: python tests/conventions/{Path(__file__).name}"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    written = re.sub(re.escape(HEAD) + r"(?:\|.*\n)*", lambda _: table(), text)
    PAGE.write_text(written, encoding="utf-8")
