"""Whatever is typed behind `recollect`, a command ends with 0, 1 or 2, and with one clear line where it is not 0."""

from __future__ import annotations

import inspect
import os
from enum import Enum

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hostile
from program import Recollect
from recollect.cli.main import app

# What would start a server, fetch a model, print tracebacks as it should, take all of a core for a while, or never end.
LEFT_OUT = {"--data-dir", "--dsn", "--verbose", "--help", "--version"}
ELSEWHERE = {"demo", "models pull", "db restore", "db backup", "watch", "worker", "serve"}


def commands(command, path=()):
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))
    if not hasattr(command, "commands"):
        yield " ".join(path), command


COMMANDS = {name: command for name, command in commands(typer.main.get_command(app)) if name not in ELSEWHERE}


def typed(text: str) -> bool:
    """Whether a shell can hand a text on: what is no character stands for a byte that is no UTF-8."""
    return "\0" not in text and not any(
        "\ud800" <= letter < "\udc80" or "\udcff" < letter <= "\udfff" for letter in text
    )


WORDS = hostile.texts.filter(typed)


def choices_of(parameter) -> list[str]:
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return [one.value for one in kind]
    return list(getattr(getattr(parameter, "type", None), "choices", ()))


@st.composite
def lines(draw: st.DrawFn, name: str):
    """A command line: its arguments, and at most three of its options."""
    parameters = COMMANDS[name].params
    options = [one for one in parameters if one.opts[0].startswith("-") and not LEFT_OUT & set(one.opts)]
    typed_words: list[str] = []
    for option in draw(st.lists(st.sampled_from(options), max_size=3)) if options else []:
        typed_words.append(draw(st.sampled_from(option.opts)))
        if not getattr(option, "is_flag", False):
            typed_words.append(draw(st.sampled_from(choices_of(option) or ["1"]) | WORDS))
    arguments = [one for one in parameters if not one.opts[0].startswith("-")]
    given_words = [draw(WORDS) for one in arguments if one.required or draw(st.booleans())]
    return [*name.split(), *typed_words, *(["--"] if draw(st.booleans()) else []), *given_words]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_answers_or_says_what_is_wrong(peopled, stored, name: str, tmp_path_factory):
    dsn = peopled.config.storage.dsn.get_secret_value()
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("RECOLLECT_", "FORCE_COLOR"))}
    environment = inherited | {"RECOLLECT_DSN": dsn, "RECOLLECT_EMBEDDING__PROVIDER": "hashing"}
    recollect = Recollect(tmp_path_factory.mktemp("typed"), environment)
    (recollect.folder / "leave.md").write_text("# Leave\n\nAnnual leave is 30 days.\n", encoding="utf-8")

    @settings(max_examples=3 * hostile.EFFORT, suppress_health_check=list(HealthCheck), deadline=None)
    @given(words=lines(name))
    def run(words):
        before = stored.rows()
        outcome = recollect(*words, status=None)
        assert outcome.status in {0, 1, 2}, outcome
        assert "Traceback" not in outcome.err and "This is a defect" not in outcome.err, outcome
        if outcome.status == 2:
            assert outcome.err.strip().splitlines()[-1], outcome
            assert stored.rows() == before, outcome

    run()
    peopled.tenants.resume(1)
