"""The command line as tests run it: in the process of the tests, or in its own where the process is the subject."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

PROGRAM = Path(sys.executable).with_name("recollect")


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one document on standard output."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Recollect:
    """Runs commands in one folder with one environment."""

    folder: Path
    environment: dict[str, str]

    def __call__(self, *arguments: object, status: int | None = 0, stdin: str = "") -> Outcome:
        """Run a command to its end in this process, which saves the start of an interpreter.

        Args:
            arguments: Behind the program's name.
            status: What it must exit with; None: anything.
            stdin: What it reads.
        """
        with surroundings(self.folder, self.environment, arguments, stdin) as (out, err):
            from recollect.cli.main import main

            outcome = Outcome(main(), _written(out), _written(err))
        if status is not None:
            assert outcome.status == status, outcome
            assert "Traceback" not in outcome.err, outcome.err
        return outcome

    def process(self, *arguments: object, stdin: str = "") -> Outcome:
        """Run a command to its end in a process of its own."""
        done = subprocess.run(
            [PROGRAM, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=240,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Start a command in a process of its own and leave it running."""
        return subprocess.Popen(
            [PROGRAM, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )


@contextmanager
def surroundings(
    folder: Path, environment: dict[str, str], arguments: tuple[object, ...] = (), stdin: str = ""
) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """What a new process would find: folder, environment, arguments, three streams, nothing set up for logging.

    All of it is as before at the end.

    Yields:
        Standard output and standard error.
    """
    streams = [io.TextIOWrapper(io.BytesIO(content), encoding="utf-8") for content in (stdin.encode(), b"", b"")]
    # Where nothing else is said a pipe is 80 columns wide; the terminal that pytest runs in may be any.
    environment = {"COLUMNS": "80", **environment}
    root = logging.getLogger()
    with ExitStack() as restored:
        restored.callback(os.chdir, Path.cwd())
        os.chdir(folder)
        restored.enter_context(mock.patch.dict(os.environ, environment, clear=True))
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            restored.enter_context(mock.patch.object(sys, name, stream))
        restored.enter_context(mock.patch.object(sys, "argv", [str(PROGRAM), *map(str, arguments)]))
        # A program's name is taken from its main module, and worker processes import that again.
        restored.callback(sys.modules.__setitem__, "__main__", sys.modules["__main__"])
        sys.modules["__main__"] = types.ModuleType("__main__")
        restored.enter_context(mock.patch.object(root, "handlers", []))
        restored.callback(root.setLevel, root.level)
        for number in (signal.SIGINT, signal.SIGTERM):
            restored.callback(signal.signal, number, signal.getsignal(number))
        yield streams[1], streams[2]


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    content = stream.buffer.getvalue()  # type: ignore[attr-defined]
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8").read()
