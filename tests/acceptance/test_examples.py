"""The examples do what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_agent_answers_in_two_hops_over_two_documents(recollect):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/agent_loop.py")],
        cwd=recollect.folder,
        env=recollect.environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    calls = [line.split()[0] for line in done.stdout.splitlines() if line and not line.startswith((" ", "[", "The"))]
    assert calls == ["grep", "read", "grep", "read"]
    assert "error:" not in done.stdout
    *_, said, first, second = done.stdout.splitlines()
    assert said == "The setting is max_sessions [1]. Its default was 3 before [2]."
    assert first.startswith("[1] troubleshooting_guide.md ") and second.startswith("[2] fenbase_admin_guide.pdf ")
