"""Ctrl-C, an order to end and a closed terminal, at moments of a command's start."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from program import Recollect
from server import reachable_folder

# Sends itself a signal when a module is first asked for, and is the command otherwise.
SOURCE = """
import os, sys

class Signal:
    def find_spec(self, name, path, target=None):
        if name == module:
            os.kill(os.getpid(), int(number))

module, number, *sys.argv[1:] = sys.argv[1:]
sys.meta_path.insert(0, Signal())
from recollect_command import main
sys.exit(main())
"""
# While it loads, before it knows its options, and while it looks for the store's server.
MOMENTS = ["recollect.config", "recollect.cli._options", "psutil"]


def signalled(recollect: Recollect, module: str, number: signal.Signals) -> subprocess.CompletedProcess[str]:
    """The command ``status`` on a new store, which gets a signal when it imports a module."""
    with reachable_folder() as folder:
        done = subprocess.run(
            [sys.executable, "-c", SOURCE, module, str(int(number)), "--data-dir", str(folder / "data"), "status"],
            capture_output=True,
            encoding="utf-8",
            env={name: text for name, text in recollect.environment.items() if name != "RECOLLECT_DSN"},
            check=False,
            # Tests that nohup started ignore it, which a command inherits and respects.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )
        assert not (folder / "data" / "pg").exists()
    return done


@pytest.mark.parametrize("module", MOMENTS)
def test_an_interrupt_leaves_one_line(recollect, module):
    done = signalled(recollect, module, signal.SIGINT)
    assert done.returncode == 130
    assert done.stderr.startswith("interrupted")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_order_to_end_leaves_nothing(recollect, number: signal.Signals, status: int):
    done = signalled(recollect, "psutil", number)
    assert (done.returncode, done.stderr) == (status, "")


def test_below_nohup_a_closed_terminal_ends_nothing(recollect):
    command = [sys.executable, "-c", SOURCE, "recollect.pipeline.view", str(int(signal.SIGHUP)), "--version"]
    done = subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        env=recollect.environment,
        check=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert done.stdout.startswith("recollect ")
