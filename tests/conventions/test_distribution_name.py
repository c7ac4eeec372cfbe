"""`recollect` on PyPI is another project: nothing that people read tells them to install it."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from recollect.installation import DISTRIBUTION

ROOT = Path(__file__).resolve().parents[2]
# What a command installs may stand on its next line, and behind options. An extra has no quotes: a Python object called
# `recollect` may have items.
_INSTALLED = re.compile(
    r"(?:\bpip[x3]?|\buv|\bpoetry|\bpdm)\b[^\n|;&`]{0,40}?\b(?:install|add)\b"
    r"(?:[ \t]*\\?\n[ \t#>*]*|[ \t]+)(?:-\S+[ \t]+)*(?:[^\n|;&`\"]*[ \t])?['\"]?recollect(?![\w/.-])",
    re.IGNORECASE,
)
_WITH_EXTRA = re.compile(r"(?<![\w./-])recollect\\?\[[a-z][a-z, -]*\\?\]")
_NO_TEXT = (".onnx", ".woff2", ".png", ".pdf")


def texts() -> list[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if listed.returncode:
        pytest.skip("there is no Git repository here that tells which files are the project's")
    names = [name for name in listed.stdout.split("\0") if name and not name.endswith(_NO_TEXT)]
    own = Path(__file__).relative_to(ROOT).as_posix()
    paths = [ROOT / name for name in names if name != own and "/vendor/" not in name]
    return [
        (path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8", errors="ignore"))
        for path in paths
        if path.is_file()
    ]


def wrong(text: str) -> list[str]:
    return [match.group() for pattern in (_INSTALLED, _WITH_EXTRA) for match in pattern.finditer(text)]


@pytest.mark.parametrize(
    "text",
    [
        "pip install recollect",
        "$ pip install -q 'recollect[server]'",
        "`pip install\n'recollect[ocr]'`",
        ".venv/bin/pip install --upgrade recollect==1.0",
        "python -m pip install numpy recollect",
        "uv pip install recollect",
        "uv add recollect",
        "pipx install recollect",
        "needs `recollect[pii]`",
    ],
)
def test_wrong_names_are_found(text):
    assert wrong(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install 'recollect-rag[server]'",
        "pip install '.[server]' && recollect serve",
        "pip install . && .venv/bin/recollect demo",
        "python3 -m venv /opt/recollect && /opt/recollect/bin/pip install '.[server]'",
        'reply.recollect["citations"]',
    ],
)
def test_right_names_are_left_alone(text):
    assert not wrong(text)


def test_nothing_installs_the_other_project():
    assert {name: found for name, text in texts() if (found := wrong(text))} == {}


def test_the_name_is_the_same_wherever_it_stands():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    wheel = f"{DISTRIBUTION.replace('-', '_')}-*.whl"
    for name in (".ci/run", "deploy/Containerfile", "benchmarks/footprint.py"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert wheel in text and "recollect-*.whl" not in text, name
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "not on PyPI yet" in readme and DISTRIBUTION in readme
