from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from recollect.installation import version


def test_version(recollect):
    assert recollect("--version").out == f"recollect {version()}\n"


def test_the_package_can_be_run_as_a_module(recollect):
    command = [sys.executable, "-m", "recollect", "--version"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=recollect.environment, check=True)
    assert done.stdout == recollect("--version").out


def test_help_goes_to_standard_output(recollect):
    for arguments in [["--help"], ["-h"], ["ingest", "--help"], ["db", "restore", "-h"]]:
        outcome = recollect(*arguments)
        assert "Usage:" in outcome.out
        assert outcome.err == ""


@pytest.mark.parametrize("arguments", [[], ["db"], ["documents"]])
def test_a_group_alone_shows_its_help(recollect, arguments):
    outcome = recollect(*arguments, status=2)
    assert "Usage:" in outcome.out + outcome.err


def test_unknown_commands_and_options(recollect):
    for arguments in [
        ["demolish"],
        ["db", "burn"],
        ["query"],
        ["query", "a", "b"],
        ["--fast"],
        ["query", "a", "--fusion", "b"],
    ]:
        outcome = recollect(*arguments, status=2)
        assert outcome.out == ""
        assert "Usage: recollect" in outcome.err
        assert outcome.err.strip().splitlines()[-1].startswith("Error: ")
        assert "Value error" not in outcome.err


def test_a_mode_that_no_retriever_has_is_wrong_usage(recollect):
    outcome = recollect("query", "a", "--mode", "b", status=2)
    assert (outcome.out, outcome.err) == ("", "Error: There is no retriever 'b'; there are dense, hybrid, lexical.\n")


def test_a_wrong_setting_in_the_environment_is_wrong_usage(recollect):
    for name, value, words in [
        ("RECOLLECT_RAG__RETRIEVAL__TOP_K", "3", "Did you mean RECOLLECT_RETRIEVAL__TOP_K?"),
        ("RECOLLECT_RETREIVAL__TOP_K", "3", "Did you mean RECOLLECT_RETRIEVAL__TOP_K?"),
        ("RECOLLECT_RETRIEVAL__TOP_K", "0", "greater than or equal to 1"),
        ("RECOLLECT_CHUNKING__SIZZE", "3", "'sizze'"),
    ]:
        wrong = replace(recollect, environment=recollect.environment | {name: value})
        outcome = wrong("status", "--json", status=2)
        assert words in outcome.err
        assert outcome.json["error"]["type"] in {"ConfigurationError", "UsageError"}
