"""The documentation as a site: every page has its place in the navigation. `mkdocs build --strict` checks the links."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def test_every_page_stands_in_the_navigation_once():
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    named = list(_pages(site["nav"]))
    there = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(named) == sorted(there)
    assert [next(iter(kind)) for kind in site["nav"]] == ["Start", "How-to", "Explanation", "Reference"]


def _pages(entries: object):
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, dict):
        for value in entries.values():
            yield from _pages(value)
    else:
        for entry in entries:
            yield from _pages(entry)
