"""Permissions in the front matter of Markdown files."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.documents.reader import read_file
from recollect.errors import ParseError


def read(folder: Path, matter: str):
    file = folder / "note.md"
    file.write_text(f"---\ntitle: T\n{matter}\n---\n# Heading\n\nText.\n", encoding="utf-8")
    return read_file(file, source="note.md")


@pytest.mark.parametrize(
    ("matter", "permissions"),
    [
        ("permissions: role:hr", ("role:hr",)),
        ("permissions: [role:hr, '!user:bob']", ("role:hr", "!user:bob")),
        ('Permissions: "*"', ("*",)),
        ("permissions:\n  - role:hr\n  - !group:interns\nauthor: A", ("role:hr", "!group:interns")),
        ("permissions:\n- *\ntags: x", ("*",)),
        ("author: A", None),
        ("extra:\n  permissions: role:hr", None),
    ],
)
def test_they_are_read_in_every_form_that_people_use(tmp_path: Path, matter: str, permissions):
    assert read(tmp_path, matter).permissions == permissions


@pytest.mark.parametrize("matter", ["permissions:", "permissions: hr", "permissions: []", "permissions:\n  role: hr"])
def test_what_cannot_be_read_fails_the_file_rather_than_open_it_to_everybody(tmp_path: Path, matter: str):
    with pytest.raises(ParseError, match="permissions in the front matter"):
        read(tmp_path, matter)


def test_a_heading_in_the_text_is_no_front_matter(tmp_path: Path):
    file = tmp_path / "note.md"
    file.write_text("# Heading\n\npermissions: role:hr\n", encoding="utf-8")
    assert read_file(file, source="note.md").permissions is None
