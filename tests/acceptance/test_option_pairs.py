"""Every pair of options of the commands of every day works, or is refused with a line that names one of them.

The options are those that the command line declares, so that a new one is tried with all others; whether a pair is
taken is settled before the store is opened, and `test_options_that_are_taken_work` runs what was taken.
"""

from __future__ import annotations

import itertools

import pytest
import typer

from recollect.cli.main import app
from recollect.errors import StoreUnavailableError, UsageError
from recollect.pipeline.assembly import Assembly
from recollect.store.store import Store

ARGUMENTS = {"query": ["annual leave"], "ask": ["How much leave?"], "context": ["annual leave"], "ingest": ["docs"]}
#: A value for each option that is no flag, by its name; what a name does not tell has a value for the command.
VALUES = {
    "--mode": "hybrid", "--top-k": "3", "--fusion": "rrf", "--dense-weight": "0.5", "--rrf-k": "30",
    "--candidates": "20", "--min-similarity": "0.1", "--min-relevance": "0.1", "--rerank": "bm25",
    "--rerank-candidates": "20", "--min-score": "0.0", "--mmr": "0.7", "--neighbours": "1", "--department": "hr",
    "--source": "hr/leave.md", "--tag": "policies", "--where": "format=markdown", "--filter": '{"department": "hr"}',
    "--token-budget": "200", "--max-context-length": "900", "--as-of": "now", "--event-window": "7d",
    "--event-from": "2020", "--event-to": "2030", "--ingested-from": "2020", "--ingested-to": "2035", "--as": "ann",
    "--roles": "hr", "--groups": "g", "--session": "desk", "--with": "default", "--collection": "default",
    "--strategy": "hybrid", "--focus": "rag", "--user": "ann", "--chunking": "recursive", "--chunk-size": "400",
    "--chunk-overlap": "50", "--chunking-option": "unit=characters", "--grant": "role:hr", "--max-file-size": "1MB",
    "--ttl": "30d", "--model": "extractive", "--method": "POST", "--header": "X-Team: hr", "--data": "{}",
    "--depth": "1", "--max-pages": "5", "--below": "/docs", "--delay": "0",
}  # fmt: skip
#: Refused beside each other, so that nothing is passed over in silence: (commands, one option, the other).
REFUSED = {
    ("query", "--context", "--explain"),
    ("query", "--everywhere", "--context"),
    ("query", "--everywhere", "--session"),
    ("query", "--everywhere", "--collection"),
    ("ask", "--everywhere", "--session"),
    ("ask", "--everywhere", "--collection"),
    ("query", "--rerank=none", "--rerank-candidates"),
    *(
        (name, "--mode=dense", other)
        for name in ("query", "ask")
        for other in ("--fusion", "--dense-weight", "--rrf-k")
    ),
    *((name, "--mode=lexical", "--rerank-candidates") for name in ("query", "ask")),
    *((name, "--fusion=weighted", "--rrf-k") for name in ("query", "ask")),
    *((name, "--session", "--collection") for name in ("query", "ask", "ingest")),
    *(("context", "--strategy=documents", other) for other in ("--focus", "--session", "--user")),
    ("context", "--strategy=episodic", "--focus"),
    *(("ingest", "--background", other) for other in ("--ttl", "--max-file-size")),
    *(("ingest", "--session", other) for other in ("--sync", "--grant", "--chunking", "--chunk-size")),
}
#: Alone they mean nothing, and say so.
NEEDS = {
    "--token-budget": "--context", "--max-context-length": "--context", "--roles": "--as", "--groups": "--as",
    "--with": "--session", "--rrf-k": "--fusion",
}  # fmt: skip


def options_of(name: str) -> dict[str, list[str]]:
    """Every option of a command as it is written, by its name, without those that every command takes."""
    command = typer.main.get_command(app).commands[name]
    found = {}
    for option in command.params:
        if option.param_type_name == "argument" or getattr(option, "rich_help_panel", None) == "Everywhere":
            continue
        long = next(text for text in option.opts if text.startswith("--"))
        if long == "--help":
            continue
        flag = getattr(option, "is_flag", False) or getattr(option, "is_bool_flag", False)
        found[long] = [long] if flag else [long, VALUES[long]]
    return found


@pytest.fixture
def refusal(monkeypatch, tmp_path):
    """Run a command up to where it would open the store: why it is refused before, None where it is not."""

    def closed(_: Assembly) -> Store:
        raise StoreUnavailableError("closed")

    monkeypatch.setattr(Assembly, "store", property(closed))
    # A query loads its model while the store opens: a thousand times the built-in one would take minutes.
    monkeypatch.setenv("RECOLLECT_EMBEDDING__PROVIDER", "hashing")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    # Built once: the whole command line takes a hundred times as long as one of its commands.
    commands = typer.main.get_command(app).commands

    def run(name: str, *given: str) -> str | None:
        try:
            commands[name].main([*ARGUMENTS[name], *given], standalone_mode=False)
        except UsageError as exc:
            return str(exc)
        except StoreUnavailableError:
            return None
        raise AssertionError((name, given, "ran to its end"))

    return run


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_pair_of_options_is_taken_or_refused_with_a_clear_line(refusal, name: str):
    options = options_of(name)
    for one, other in itertools.combinations(options, 2):
        told = refusal(name, *options[one], *options[other])
        if told is not None:
            assert one in told or other in told, (one, other, told)
        else:
            lacking = [NEEDS[given] for given in (one, other) if NEEDS.get(given, one) not in {one, other}]
            assert not [needed for needed in lacking if needed in options], (one, other, "nothing is said")


@pytest.mark.parametrize(("name", "one", "other"), sorted(REFUSED))
def test_what_would_be_passed_over_is_refused(refusal, name: str, one: str, other: str):
    given = [one] if "=" in one else options_of(name)[one]
    told = refusal(name, *given, *options_of(name)[other])
    assert told is not None
    assert one.split("=")[0] in told or other in told


@pytest.mark.parametrize("name", ["query", "ask"])
def test_options_that_are_taken_work(recollect, office, name: str):
    """All at once, in the few groups that exclude one another."""
    recollect("ingest", office, "--tag", "policies")
    recollect("sessions", "create", "desk")
    alone = {"--collection", "--session", "--with", "--everywhere", "--context", "--explain", *NEEDS}
    options = options_of(name)
    common = [part for long, given in options.items() if long not in alone for part in given]
    groups = [["--as", "ann", "--roles", "hr", "--groups", "g"], ["--collection", "default"], ["--rrf-k", "9"]]
    groups += [["--explain"], ["--context", "--token-budget", "200", "--max-context-length", "900"], ["--everywhere"]]
    for group in groups:
        if all(part in options for part in group if part.startswith("--")):
            outcome = recollect(name, *ARGUMENTS[name], *common, *group)
            assert outcome.out or outcome.err
