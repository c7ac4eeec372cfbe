"""Retrieval quality with the default settings, through the command line: ``recollect eval``.

Runs ``eval beir`` on Cranfield and ``eval spans`` on the chunking data, each in a fresh store of its own, and prints
what they report as a table. Run from the repository root::

    python benchmarks/quality.py
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from harness import CHUNKING, CRANFIELD, machine, say, store_folder, table

ASKED = {"nDCG@10": "≥ 0.56", "R@100": "≥ 0.80", "recall": "≥ 0.90"}


def main() -> None:
    parser = argparse.ArgumentParser(description="Retrieval quality with the default settings.")
    parser.add_argument("--beir", type=Path, default=CRANFIELD)
    parser.add_argument("--spans", type=Path, default=CHUNKING)
    arguments = parser.parse_args()
    rows = []
    for kind, folder in (("beir", arguments.beir), ("spans", arguments.spans)):
        report = evaluate(kind, folder)
        say(report)
        command = f"`recollect eval {kind} {folder} --json`"
        rows += [[name, ASKED.get(name, ""), f"{value:.4f}", command] for name, value in report["metrics"].items()]
        if "query_ms" in report:
            times = report["query_ms"]
            rows.append(["a query, p50 / p95", "", f"{times['p50']:.1f} / {times['p95']:.1f} ms", command])
            rows.append(["ingest and queries", "", f"{report['seconds']:.1f} s", command])
    print(f"{machine()}\n\n{table(['figure', 'asked', 'measured', 'command'], rows)}")


def evaluate(kind: str, folder: Path) -> dict:
    with store_folder() as store:
        # A configuration file in the working directory is none of the defaults.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
        command = [sys.executable, "-m", "recollect.cli.main", "eval", kind, str(folder.resolve())]
        done = subprocess.run(
            [*command, "--json", "--data-dir", f"{store}/data"],
            env=environment,
            cwd=store,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
