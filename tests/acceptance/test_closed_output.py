"""Commands whose output nobody takes: they end, say why where somebody can be told, and write into nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMMAND = f"{sys.executable} -m recollect"


def run(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", f"set -o pipefail; {line}"], capture_output=True, text=True, timeout=120)


def test_closed_output_is_refused_before_anything_is_done(tmp_path):
    done = run(f"{COMMAND} --data-dir {tmp_path}/store collections list >&-")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "Standard output is closed" in done.stderr
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("closed", ["2>&-", "<&-", "<&- 2>&-"])
def test_what_else_is_closed_is_not_missed(closed):
    done = run(f"{COMMAND} --version {closed}")
    assert (done.returncode, done.stderr, done.stdout.startswith("recollect ")) == (0, "", True)


def test_output_that_nobody_reads_ends_the_command_quietly():
    done = run(f"{COMMAND} config show | head -1")
    assert (done.stderr, done.stdout.count("\n")) == ("", 1)


def test_output_that_cannot_be_written_is_told():
    done = run(f"{COMMAND} config show >/dev/full")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "No space left on device" in done.stderr
