from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest


def test_version(recollect):
    assert recollect("--version").out == f"recollect {version('recollect')}\n"


def test_the_package_can_be_run_as_a_module(recollect):
    command = [sys.executable, "-m", "recollect", "--version"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=recollect.environment, check=True)
    assert done.stdout == recollect("--version").out


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["ingest", "--help"], ["db", "restore", "-h"]])
def test_help_goes_to_standard_output(recollect, arguments):
    outcome = recollect(*arguments)
    assert "Usage:" in outcome.out
    assert outcome.err == ""


@pytest.mark.parametrize("arguments", [[], ["db"], ["documents"]])
def test_a_group_alone_shows_its_help(recollect, arguments):
    outcome = recollect(*arguments, status=2)
    assert "Usage:" in outcome.out + outcome.err


@pytest.mark.parametrize("arguments", [["demolish"], ["db", "burn"], ["query"], ["query", "a", "b"], ["--fast"]])
def test_unknown_commands_and_options(recollect, arguments):
    outcome = recollect(*arguments, status=2)
    assert outcome.out == ""
    assert "Usage: recollect" in outcome.err
    assert outcome.err.strip().splitlines()[-1].startswith("Error: ")
