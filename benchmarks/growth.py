r"""How recollect and its peers fare as a store grows: speed, completeness, memory, disk.

Every system and size is filled in one process and measured in a fresh one, on data made beforehand (`growth_data.py`),
query vectors given. Run from the repository root, with recollect in this Python and the peers in another::

    python benchmarks/growth.py data --work ../growth --sizes 10000 100000
    python benchmarks/growth.py recollect --work ../growth --sizes 10000 100000
    python benchmarks/growth.py peer llamaindex --work ../growth --sizes 100000 --peer-python ../peers/bin/python
    python benchmarks/growth.py report --work ../growth

``data`` makes what is missing. ``recollect`` and ``peer`` write one JSON file a size into ``--work``/results, and leave
the filled stores in ``--work``/stores, so that ``--skip-fill`` can measure again. ``--flat`` makes and uses data where
every document is one chunk, as stores without documents export them. ``report`` prints the tables of RESULTS.md and
draws the curves into benchmarks/plots (it needs matplotlib).
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from harness import Clock, machine, offline, say
from peers.base import NAMES, make

#: Nobody reports home, txtai may call our function for vectors, LanceDB keeps its warnings about each query to itself.
ENVIRONMENT = {"ALLOW_RESOLVE_TRANSFORM": "True", "LANCEDB_LOG": "error"}
STEPS = ("fill", "measure", "callers", "repeated", "whole")


def main() -> None:
    arguments = parser().parse_args()
    run = {"data": data, "recollect": recollect, "peer": peer, "report": report, "step": step}
    run[arguments.command](arguments)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Growth of recollect and its peers.")
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--work", type=Path, required=True, help="a folder for data, stores and results")
    common.add_argument("--sizes", type=int, nargs="+", default=[10_000], help="numbers of chunks")
    common.add_argument("--flat", action="store_true", help="documents of one chunk each, instead of ten")
    running = argparse.ArgumentParser(add_help=False)
    running.add_argument("--skip-fill", action="store_true", help="measure the store that a run before has filled")
    running.add_argument("--seconds", type=float, default=20, help="at most for one cell of the table")
    running.add_argument("--whole", action="store_true", help="only questions in words, with the embedding model")
    commands.add_parser("data", parents=[common], help="make the data")
    commands.add_parser("recollect", parents=[common, running], help="fill and measure recollect")
    peers = commands.add_parser("peer", parents=[common, running], help="fill and measure a peer")
    peers.add_argument("name", choices=[name for name in NAMES if name != "recollect"])
    peers.add_argument("--peer-python", default="../peers/bin/python", help="a Python that has benchmarks/peers.txt")
    reporting = commands.add_parser("report", parents=[common], help="tables and curves of all results")
    reporting.add_argument("--plots", type=Path, default=Path("benchmarks/plots"))
    single = commands.add_parser("step")
    single.add_argument("name", choices=NAMES)
    single.add_argument("step", choices=STEPS)
    single.add_argument("data", type=Path)
    single.add_argument("store", type=Path)
    single.add_argument("--seconds", type=float, default=20)
    return parser


def data(arguments: argparse.Namespace) -> None:
    import synthetic
    from growth_data import Sizes
    from growth_data import make as make_data

    for size in arguments.sizes:
        with Clock() as clock:
            folder = make_data(arguments.work, Sizes(size, 1 if arguments.flat else synthetic.CHUNKS_A_DOCUMENT))
        say(f"{folder}: {clock.seconds:.0f} s")


def recollect(arguments: argparse.Namespace) -> None:
    run(arguments, "recollect", sys.executable)


def peer(arguments: argparse.Namespace) -> None:
    run(arguments, arguments.name, arguments.peer_python)


def run(arguments: argparse.Namespace, name: str, python: str) -> None:
    """Every size of a system, in processes of its own."""
    from growth_measure import write

    for size in arguments.sizes:
        label = f"{size}-by-1" if arguments.flat else str(size)
        folder, store = arguments.work / "data" / label, arguments.work / "stores" / f"{name}-{label}"
        file = arguments.work / "results" / f"{name}-{label}.json"
        if not (folder / "truth.json").is_file():
            raise SystemExit(f"There is no data of {size:,} chunks in {folder}: make it with `growth.py data` first.")
        found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        found |= {"system": name, "chunks": size, "flat": arguments.flat, "machine": machine(), "when": _now()}
        for wanted in steps(arguments, name):
            if wanted == "fill":
                shutil.rmtree(store, ignore_errors=True)
                store.mkdir(parents=True)
            elif not store.is_dir():
                raise SystemExit(f"{store} is not filled: leave --skip-fill and --whole away.")
            with Clock() as clock:
                found[wanted] = in_its_own_process(python, name, wanted, folder, store, arguments.seconds)
            found[wanted]["wall_seconds"] = round(clock.seconds, 1)
            say(f"{name}, {size:,} chunks, {wanted}: {clock.seconds:.0f} s")
            write(file, found)


def steps(arguments: argparse.Namespace, name: str) -> list[str]:
    """What is to be run of a system."""
    with_model = ["whole"] if name in {"recollect", "llamaindex"} else []
    if arguments.whole:
        return with_model
    filling = [] if arguments.skip_fill else ["fill"]
    return [*filling, "measure", "callers", *(["repeated"] if name == "recollect" else []), *with_model]


def in_its_own_process(python: str, name: str, wanted: str, folder: Path, store: Path, seconds: float) -> dict:
    """Run a step; what it says on the way is shown, and its last line is its result."""
    command = [python, __file__, "step", name, wanted, str(folder), str(store), "--seconds", str(seconds)]
    environment = {**offline(), **ENVIRONMENT}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode < 0 and wanted == "callers":
        # Not every peer survives callers in several threads.
        return {"crashed": signal.Signals(-done.returncode).name}
    if done.returncode:
        raise SystemExit(f"{name}, {wanted}: failed\n{done.stdout[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def step(arguments: argparse.Namespace) -> None:
    """One step of one system, in this process."""
    import growth_measure
    from growth_data import DataSet

    given = DataSet(arguments.data)
    system = make(arguments.name, arguments.store)
    try:
        if arguments.step == "fill":
            found = growth_measure.fill(system, given)
        elif arguments.step == "measure":
            found = growth_measure.measure(system, given, seconds=arguments.seconds)
        elif arguments.step == "callers":
            found = growth_measure.all_callers(system, given)
        else:
            system.open()
            found = again_or_whole(system, given, arguments.step)
    finally:
        system.close()
    print("\n" + json.dumps(found))


def again_or_whole(system, given, wanted: str) -> dict:
    from growth_measure import function_calls, repeated

    if wanted == "repeated":
        calls = function_calls(lambda query: system.search("hybrid", query), given.queries)
        return repeated(lambda query: system.search("from the cache", query), given.queries) | {"calls": calls}
    return system.whole([query.text for query in given.queries])


def report(arguments: argparse.Namespace) -> None:
    from growth_report import read, tables

    results = read(arguments.work / "results")
    print(tables(results))
    from growth_plots import draw

    for file in draw(results, arguments.plots):
        say(f"drawn: {file}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    main()
