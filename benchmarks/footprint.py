r"""What recollect takes: disk, time to the first answer, time of a cold query, memory of an ingest.

Run from the repository root::

    python benchmarks/footprint.py install          # a fresh environment from the built wheel
    python benchmarks/footprint.py demo             # git clone, the README's line, the demo's answers
    python benchmarks/footprint.py cold-query       # `recollect query` as a process, the server not running
    python benchmarks/footprint.py memory           # peaks of ingests of many small files and of one large one

``install`` and ``demo`` fetch packages with pip's cache switched off; ``demo`` has a home directory of its own, so it
fetches the model too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import synthetic
from harness import Clock, Memory, machine, say, size_on_disk, store_folder, table

COMMAND = [sys.executable, "-m", "recollect.cli.main"]
HANDBOOK = Path("examples/handbook")
QUESTIONS = Path("tests/data/handbook_questions.jsonl")


def main() -> None:
    parser = argparse.ArgumentParser(description="Disk, start-up times and memory.")
    parser.add_argument("step", choices=("install", "demo", "cold-query", "memory"))
    parser.add_argument("--rounds", type=int, default=9, help="cold queries")
    parser.add_argument("--files", type=int, default=3_000, help="small files with the real model")
    parser.add_argument("--hashed-files", type=int, default=30_000, help="small files with the hashing embedder")
    parser.add_argument("--large-mb", type=int, default=45, help="one text file with the hashing embedder")
    parser.add_argument("--large-real-mb", type=int, default=5, help="one text file with the real model")
    arguments = parser.parse_args()
    print(machine(), "\n")
    with store_folder() as work:
        steps = {"install": install, "demo": demo, "cold-query": cold_query, "memory": memory}
        print(steps[arguments.step](arguments, Path(work)))


def run(command: list[str], **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def clean_environment(home: Path) -> dict[str, str]:
    """Without settings, paths to other code, and anything fetched before."""
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RECOLLECT_", "PYTHON", "XDG_"))}
    return {**kept, "HOME": str(home), "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def install(_arguments: argparse.Namespace, work: Path) -> str:
    environment = clean_environment(work / "home")
    run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(work / "dist"), "."], env=environment)
    wheel = next((work / "dist").glob("recollect_rag-*.whl"))
    run([sys.executable, "-m", "venv", str(work / "venv")])
    python = str(work / "venv" / "bin" / "python")
    bare = size_on_disk(work / "venv")
    with Clock() as clock:
        run([python, "-m", "pip", "install", "-q", str(wheel)], env=environment)
    size = size_on_disk(work / "venv")
    packages = json.loads(run([python, "-m", "pip", "list", "--format", "json"], env=environment))
    names = {package["name"].lower() for package in packages}
    if names & {"torch", "tensorflow", "transformers", "sentence-transformers"}:
        raise SystemExit("a deep learning framework was installed")
    site = next((work / "venv").rglob("site-packages"))
    folders = {path.name: size_on_disk(path) for path in site.iterdir() if path.is_dir()}
    biggest = sorted(folders.items(), key=lambda item: -item[1])[:8]
    rows = [
        ["wheel", f"{wheel.stat().st_size / 1e6:.1f} MB"],
        ["environment with it", f"**{size:.0f} MB** (bare: {bare:.0f} MB), {len(names)} packages, no torch"],
        ["pip install", f"{clock.seconds:.0f} s, nothing cached"],
        ["largest", ", ".join(f"{name} {mb:.0f} MB" for name, mb in biggest)],
        ["model cache, fetched on first use", f"{model_size():.0f} MB"],
    ]
    return table(["", "measured"], rows)


def model_size() -> float:
    from harness import MODEL, model_cache

    return size_on_disk(model_cache() / MODEL)


def demo(_arguments: argparse.Namespace, work: Path) -> str:
    environment = clean_environment(work / "home")
    shell = "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/recollect demo"
    with Clock() as clone:
        run(["git", "clone", "-q", str(Path.cwd()), str(work / "clone")])
    with Clock() as whole:
        out = run(["bash", "-c", shell], cwd=work / "clone", env=environment)
    say(out[-1500:])
    with Clock() as again:
        run([".venv/bin/recollect", "demo"], cwd=work / "clone", env=environment)
    rows = [
        ["git clone", f"{clone.seconds:.1f} s"],
        [f"`{shell}`", f"**{whole.seconds:.0f} s**"],
        ["`recollect demo` a second time", f"{again.seconds:.1f} s"],
    ]
    return table(["", "measured"], rows)


def cold_query(arguments: argparse.Namespace, work: Path) -> str:
    data = work / "data"
    run([*COMMAND, "ingest", str(HANDBOOK), "--data-dir", str(data), "--json"])
    seconds, inside = [], []
    asked = QUESTIONS.read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in asked[: arguments.rounds]]
    for question in questions:
        wait_until_stopped(data)
        with Clock() as clock:
            out = run([*COMMAND, "query", question, "--data-dir", str(data), "--json"])
        if not json.loads(out)["results"]:
            raise SystemExit("nothing found")
        seconds.append(clock.seconds)
        inside.append(json.loads(out)["timings_ms"]["total"])
    with Clock() as imports:
        run([sys.executable, "-c", "import recollect.cli.main"])
    rows = [
        ["`recollect query`, whole process, server to be started", f"**{statistics.median(seconds):.2f} s**"],
        ["least–most", f"{min(seconds):.2f}–{max(seconds):.2f} s over {len(seconds)} runs"],
        ["of it the search, the loading of the model included", f"{statistics.median(inside):.0f} ms"],
        ["start of Python and import of the command line", f"{imports.seconds:.2f} s"],
    ]
    return table(["", "measured"], rows)


def wait_until_stopped(data: Path) -> None:
    while (data / "pg" / "postmaster.pid").exists():
        time.sleep(0.05)


def memory(arguments: argparse.Namespace, work: Path) -> str:
    rows = []
    for name, embedder, make in cases(arguments):
        folder, data = work / "files", work / "data"
        size = make(folder)
        found = watched_ingest(folder, data, embedder)
        say(name, found)
        peaks = found["peaks"]
        rows.append([name, embedder, f"{size / 1e6:.0f}", f"{found['report']['chunks']:,}", f"{found['seconds']:.0f}"])
        rows[-1] += [f"{peaks[key]:.0f}" for key in ("client RSS", "client PSS", "server PSS", "together PSS")]
        shutil.rmtree(folder)
        shutil.rmtree(data)
    head = ["ingest of", "embedder", "MB of text", "chunks", "s"]
    return table([*head, "process RSS, MB", "process PSS, MB", "PostgreSQL PSS, MB", "together PSS, MB"], rows)


def cases(arguments: argparse.Namespace) -> Iterator[tuple]:
    yield "nothing (an empty file)", "local", lambda folder: write_files(folder, 1, (1, 1))
    yield f"{arguments.files:,} files", "local", lambda folder: write_files(folder, arguments.files, (200, 4000))
    count = arguments.hashed_files
    yield f"{count:,} files", "hashing", lambda folder: write_files(folder, count, (200, 4000))
    yield "one text file", "hashing", lambda folder: write_large(folder, arguments.large_mb)
    yield "one text file", "local", lambda folder: write_large(folder, arguments.large_real_mb)


def write_files(folder: Path, count: int, sizes: tuple[int, int]) -> int:
    """Files of text in a hundred folders; lengths between ``sizes``, most of them short."""
    source = "\n\n".join(synthetic.source_texts())
    generator = random.Random(count)
    total = 0
    for number in range(count):
        place = folder / f"{number % 100:02}"
        place.mkdir(parents=True, exist_ok=True)
        length = int(generator.triangular(*sizes, sizes[0]))
        start = generator.randrange(len(source) - length)
        text = f"{number} {source[start : start + length]}\n"
        (place / f"{number}.txt").write_text(text, encoding="utf-8")
        total += len(text)
    return total


def write_large(folder: Path, megabytes: int) -> int:
    source = synthetic.source_texts()
    generator = random.Random(megabytes)
    folder.mkdir(parents=True)
    total = 0
    with (folder / "large.txt").open("w", encoding="utf-8") as out:
        while total < megabytes * 1e6:
            # Numbered, so that no two chunks are the same and the embedding cache helps nobody.
            total += out.write(f"{total} {generator.choice(source)}\n\n")
    return total


def watched_ingest(folder: Path, data: Path, embedder: str) -> dict:
    environment = {**os.environ, "RECOLLECT_EMBEDDING__PROVIDER": embedder}
    command = [*COMMAND, "ingest", str(folder), "--data-dir", str(data), "--json"]
    with (
        Clock() as clock,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process,
        Memory(data, pid=process.pid) as watch,
    ):
        out, _ = process.communicate()
    report = json.loads(out)
    if process.returncode not in {0, 1} or "chunks" not in report:
        raise SystemExit(f"the ingest failed: {report}")
    return {"report": report, "seconds": clock.seconds, "peaks": watch.peaks}


if __name__ == "__main__":
    main()
