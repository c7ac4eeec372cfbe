"""What pages are made of: texts in every language, nothing inline, vendored files that are what they say they are."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

UI = Path(__file__).parents[2] / "src/recollect/ui"
VENDOR = UI / "static/vendor"
MANIFEST = json.loads((VENDOR / "manifest.json").read_text(encoding="utf-8"))
TEMPLATES = sorted((UI / "templates").rglob("*.*"))
SCRIPTS = sorted((UI / "static/js").rglob("*.js"))
LANGUAGES = sorted(path.name for path in (UI / "locale").iterdir() if path.is_dir())
METHODS = [("**.py", "python"), ("templates/**.*", "jinja2.ext.babel_extract")]
OPTIONS = {"templates/**.*": {"extensions": "jinja2.ext.i18n,jinja2.ext.loopcontrols"}}


def texts() -> dict[str | tuple[str, str], str]:
    """Every text of the interface that is to be translated, with a place where it stands."""
    found = extract_from_dir(UI, METHODS, OPTIONS, keywords={"_": None, "gettext": None, "ngettext": (1, 2)})
    return {message: f"{file}:{line}" for file, line, message, *_ in found}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_in_every_language_and_nothing_else(language):
    translated: dict[str | tuple[str, str], object] = {}
    for path in sorted((UI / "locale" / language).glob("*.po")):
        with path.open("rb") as file:
            for message in read_po(file, locale=language, abort_invalid=True):
                if not message.id:
                    continue
                assert not list(message.check()), f"{path.name}: {message.id!r}"
                key = tuple(message.id) if isinstance(message.id, (list, tuple)) else message.id
                # Areas may share a text, and then say it alike.
                assert translated.setdefault(key, message.string) == message.string, f"{path.name}: {message.id!r}"
    wanted = texts()
    missing = {text: where for text, where in wanted.items() if not all(_strings(translated.get(text)))}
    assert missing == {}
    assert set(translated) - set(wanted) == set(), "texts that nothing shows any more"


def _strings(translation: object) -> list[object]:
    return list(translation) if isinstance(translation, tuple) else [translation]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.relative_to(UI).as_posix())
def test_templates_escape_everything_and_have_nothing_inline(path):
    text = path.read_text(encoding="utf-8")
    found = re.findall(
        r"\|\s*safe\b|autoescape false|\sstyle=|\son[a-z]+=|hx-on|javascript:|<script(?![^>]*\ssrc=)[^>]*>|<style", text
    )
    assert found == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(UI).as_posix())
def test_scripts_make_nothing_of_text_but_text(path):
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"\beval\(|new Function|outerHTML\s*=|document\.write|https?://(?!www\.w3\.org)", text) == []


def test_vendored_files_are_those_of_the_manifest():
    there = {path.relative_to(VENDOR).as_posix() for path in VENDOR.rglob("*") if path.is_file()} - {"manifest.json"}
    told = {f"{name}/{file}": told["sha256"] for name, one in MANIFEST.items() for file, told in one["files"].items()}
    assert there == set(told)
    for path, digest in told.items():
        assert hashlib.sha256((VENDOR / path).read_bytes()).hexdigest() == digest, path


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_vendored_packages_are_free_and_bring_their_licence(name):
    one = MANIFEST[name]
    assert re.fullmatch(r"\d+\.\d+\.\d+", one["version"]) and one["integrity"].startswith("sha512-")
    assert one["licence"] in {"MIT", "Apache-2.0", "0BSD", "BSD-2-Clause", "BSD-3-Clause", "ISC"}
    assert any(file.upper().startswith("LICEN") for file in one["files"])
