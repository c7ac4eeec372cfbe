"""What the documentation tells people to type works."""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from program import Recollect, surroundings

ROOT = Path(__file__).resolve().parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run_python(recollect: Recollect, code: str) -> str:
    """Run a program as its own main module, and return what it prints. It fails where the program does."""
    with surroundings(recollect.folder, recollect.environment) as (out, _):
        exec(compile(code, "page", "exec"), vars(sys.modules["__main__"]))  # noqa: S102 - it is our own page's
        out.flush()
        return out.buffer.getvalue().decode()


def test_the_readmes_python_runs(recollect_with_model):
    (code,) = blocks("README.md", "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 12
    printed = run_python(replace(recollect_with_model, folder=ROOT), code)
    assert "remote_work_policy" in printed
    assert "The office in Leeds closes at 6 pm. [1]" in printed
    assert "1 leeds.txt 0 35 The office in Leeds closes at 6 pm." in printed


@pytest.mark.parametrize(
    "page", ["access", "agents", "async", "memory", "plugins", "providers", "sessions", "sources", "web"]
)
def test_the_python_of_a_page_runs(recollect, page: str):
    run_python(recollect, "\n".join(blocks(f"docs/how-to/{page}.md", "python")))


def test_the_python_of_the_page_on_permissions_runs(recollect):
    codes = blocks("docs/how-to/permissions.md", "python")
    assert len(codes) == 2
    for number, code in enumerate(codes):
        environment = recollect.environment | {"RECOLLECT_COLLECTION": f"page{number}"}
        run_python(replace(recollect, environment=environment), code)


def test_the_readme_gives_one_line_to_run_and_one_to_test():
    lines = [line for block in blocks("README.md", "console") for line in block.splitlines()]
    setups = [line for line in lines if line.startswith("python3 -m venv")]
    assert setups == [
        "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/recollect demo",
        "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && .venv/bin/pytest -q",
    ]
    assert setups[1] in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    # The continuous integration takes the test command from the README itself.
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    (pattern,) = re.findall(r"grep -m 1 -E '(.*)' README.md", script)
    assert [line for line in lines if re.search(pattern, line)] == setups[1:]
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_the_quickstarts_commands_run(recollect_with_model):
    commands = [
        line.removeprefix("$ recollect ")
        for block in blocks("docs/quickstart.md", "console")
        for line in block.splitlines()
        if line.startswith("$ ")
    ]
    assert len(commands) >= 10
    folder = recollect_with_model.folder
    (folder / "examples").symlink_to(ROOT / "examples")
    outputs = {command: recollect_with_model(*shlex.split(command)).out for command in commands}
    assert "38  added" in outputs["ingest examples/handbook"]
    assert "I don't have information" in outputs['ask "Does the company pay for a gym membership?"']


def test_the_python_of_the_page_on_tenants_runs(recollect):
    (code,) = blocks("docs/how-to/tenants.md", "python")
    run_python(recollect, code)


def test_links_between_pages_lead_somewhere():
    pages = [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *(ROOT / "docs").rglob("*.md"),
    ]
    links = [
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    assert links
    assert [(page.name, target) for page, target in links if not (page.parent / target).exists()] == []
