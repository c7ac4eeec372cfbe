"""Files of personas: read strictly, with complaints that name the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.persona_audit import PersonaFile, load_personas
from recollect.model.principal import Permissions, Principal

EXAMPLE = Path(__file__).parents[3] / "examples/personas.yaml"


def load(folder: Path, text: str | bytes) -> PersonaFile:
    file = folder / "personas.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_personas(file)


def test_personas_are_read_as_people_write_them(tmp_path: Path):
    read = load(
        tmp_path,
        "personas:\n  ann: {user: ann, roles: clerk, department: hr, groups: [b, a]}\n  nobody: {}\n"
        "  חנה: {user_id: חנה}\ngrants:\n  hr/*: role:clerk\n  hr/x: ['*', '!user:bob']\n",
    )
    assert read.principals() == {
        "ann": Principal(user_id="ann", roles=("clerk",), department="hr", groups=("a", "b")),
        "nobody": Principal(),
        "חנה": Principal(user_id="חנה"),
    }
    assert read.permissions() == {
        "hr/*": Permissions(grants=("role:clerk",)),
        "hr/x": Permissions(grants=("*",), denials=("user:bob",)),
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("- a", "expected a mapping"),
        ("grants: {}", ":1: personas: is missing"),
        ("personas: {}", ":1: personas: there must be one at least"),
        ("personas:\n  a: {role: x}", ":2: personas.a.role: there is no such key"),
        ("personas:\n  a: {user: ''}", ":2: personas.a.user: is empty"),
        ("personas:\n  a: {user: ' '}", ":2: personas.a: user_id"),
        ("personas:\n  a: {user: 7}", ":2: personas.a.user: must be text"),
        ("personas:\n  a: {roles: {x: y}}", ":2: personas.a.roles: must be a list"),
        ("personas:\n  a: boss", ":2: personas.a: must be a mapping"),
        ("personas:\n  a: {}\n  a: {}", "twice"),
        ("personas:\n  a: &x {}\n  b: *x", "aliases"),
        ("personas:\n  a: {}\ngrants:\n  x: hr", "names nobody"),
        ("personas:\n  a: {}\ngrants:\n  x: []", "is empty"),
        (b"personas:\n  \xff: {}", "not UTF-8"),
        (b"\x00\x01", "not valid YAML"),
    ],
)
def test_what_is_no_file_of_personas_is_refused(tmp_path: Path, text, complaint: str):
    with pytest.raises(UsageError) as error:
        load(tmp_path, text)
    assert complaint in str(error.value) and "personas.yaml" in str(error.value)


def test_a_file_that_is_missing_is_named(tmp_path: Path):
    with pytest.raises(NotFoundError, match="nowhere"):
        load_personas(tmp_path / "nowhere.yaml")


def test_the_example_is_one():
    read = load_personas(EXAMPLE)
    assert {"intern", "stranger"} <= set(read.principals())
    assert read.permissions()["security/*"].denials == ("group:interns",)
