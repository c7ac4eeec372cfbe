r"""An ingest killed with ``kill -9`` at random moments, again and again.

Each round ingests a folder of generated files with the real command line into a fresh store, lets it work for a random
time (from before the server starts until after the last file), kills it with SIGKILL (in every third round the
PostgreSQL postmaster too, in every third the postmaster alone), and then requires:

- the store opens, and ``recollect db check`` finds nothing;
- each document that is there is whole: its content is the file's, its chunks are numbered without gaps and reach from
  its first character to its last, and each chunk's text is what stands at its offsets;
- nothing acknowledged is lost: every document that another process could read before the kill is still there;
- the same command again completes the work: every file is stored once, and ``db check`` finds nothing.

Run from the repository root::

    python benchmarks/crash_test.py --rounds 20 --real-rounds 4
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import synthetic
from harness import Clock, machine, say, store_folder, table

COMMAND = [sys.executable, "-m", "recollect.cli.main"]
TARGETS = ("process", "process and PostgreSQL", "PostgreSQL")

DOCUMENTS = """
    SELECT v.uri, v.version, x.content, v.chunk_count, v.known_to = 'infinity',
           (SELECT json_agg(json_build_array(c.position, c.start_offset, c.end_offset, c.text) ORDER BY c.position)
            FROM chunks c WHERE c.tenant_id = v.tenant_id AND c.version_id = v.version_id)
    FROM document_versions v LEFT JOIN document_contents t USING (tenant_id, version_id)
    LEFT JOIN texts x USING (tenant_id, text_hash)
"""
VISIBLE = "SELECT uri FROM document_versions WHERE known_to = 'infinity'"


class BrokenPromiseError(Exception):
    """A promise was not kept."""


@dataclass
class Round:
    """What happened."""

    number: int
    embedder: str
    target: str
    delay: float
    killed: bool = False
    acknowledged: set[str] = field(default_factory=set)
    found: int = 0
    opened_seconds: float = 0.0
    completed_seconds: float = 0.0
    verdict: str = "sound"


def main() -> None:
    parser = argparse.ArgumentParser(description="An ingest killed at random moments.")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--real-rounds", type=int, default=4, help="how many of them with the real model")
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--real-files", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    rounds: list[Round] = []
    with store_folder() as work:
        durations = {}
        for embedder, count in (("hashing", arguments.files), ("local", arguments.real_files)):
            make_files(Path(work) / embedder, count, generator)
            durations[embedder] = undisturbed(Path(work), embedder)
            say(f"undisturbed, {embedder}: {durations[embedder]:.1f} s for {count} files")
        for number in range(arguments.rounds):
            embedder = "local" if number < arguments.real_rounds else "hashing"
            delay = generator.uniform(0.05, durations[embedder])
            played = play(Path(work), Round(number + 1, embedder, TARGETS[number % 3], delay))
            rounds.append(played)
            say(f"round {played.number}: {played.found} documents after {delay:.1f} s, {played.verdict}")
    show(rounds)


def make_files(folder: Path, count: int, generator: random.Random) -> None:
    source = "\n\n".join(synthetic.source_texts())
    for number in range(count):
        place = folder / ("hr", "it", "finance", "legal")[number % 4]
        place.mkdir(parents=True, exist_ok=True)
        length = int(generator.triangular(100, 12_000, 1_500))
        start = generator.randrange(len(source) - length)
        (place / f"{number}.txt").write_text(f"{number}\n{source[start : start + length]}\n", encoding="utf-8")


def environment(embedder: str) -> dict[str, str]:
    return {**os.environ, "RECOLLECT_EMBEDDING__PROVIDER": embedder}


def ingest_command(work: Path, embedder: str) -> list[str]:
    return [*COMMAND, "ingest", str(work / embedder), "--data-dir", str(work / "data"), "--json"]


def undisturbed(work: Path, embedder: str) -> float:
    """How long an ingest takes that nobody kills: the moments are drawn from this time."""
    with Clock() as clock:
        subprocess.run(ingest_command(work, embedder), env=environment(embedder), check=True, capture_output=True)
    shutil.rmtree(work / "data")
    return clock.seconds


def play(work: Path, this: Round) -> Round:
    data = work / "data"
    try:
        disturb(work, this)
        with Clock() as clock:
            check(data, this.embedder)
        this.opened_seconds = clock.seconds
        found = read_store(data)
        this.found = len(found)
        require_whole(found, work / this.embedder)
        lost = this.acknowledged - set(found)
        if lost:
            raise BrokenPromiseError(f"{len(lost)} acknowledged documents are lost, {min(lost)} among them")
        complete(work, this)
    except BrokenPromiseError as exc:
        this.verdict = f"**{exc}**"
    stop_server(data)
    shutil.rmtree(data, ignore_errors=True)
    return this


def disturb(work: Path, this: Round) -> None:
    """Start an ingest, read along what it commits, and kill it."""
    end = threading.Event()
    data = work / "data"
    process = subprocess.Popen(
        ingest_command(work, this.embedder),
        env=environment(this.embedder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    reader = threading.Thread(target=read_along, args=(data, this.acknowledged, end))
    reader.start()
    time.sleep(this.delay)
    this.killed = process.poll() is None
    # Before the kill: while it is killed, nobody knows what it has yet committed.
    end.set()
    server_killed = this.target != "process" and kill_server(data)
    # A server that does not run yet cannot be killed: then the process is.
    if this.target != "PostgreSQL" or not server_killed:
        process.kill()
        this.target = "process and PostgreSQL" if server_killed else "process"
    process.wait(timeout=120)
    reader.join()


def kill_server(data: Path) -> bool:
    try:
        postmaster = int((data / "pg" / "postmaster.pid").read_text(encoding="ascii").split()[0])
        os.kill(postmaster, signal.SIGKILL)
    except (OSError, ValueError, IndexError):
        return False
    return True


def stop_server(data: Path) -> None:
    """Ask a server that is left over to stop, and wait for it."""
    with suppress(OSError, ValueError, IndexError):
        postmaster = int((data / "pg" / "postmaster.pid").read_text(encoding="ascii").split()[0])
        os.kill(postmaster, signal.SIGQUIT)
        for _ in range(200):
            os.kill(postmaster, 0)
            time.sleep(0.05)


def read_along(data: Path, seen: set[str], end: threading.Event) -> None:
    """What another reader of the same store sees while the ingest works: that much is acknowledged."""
    import psycopg

    while not end.is_set():
        with suppress(psycopg.Error, OSError):
            rows = query(data, VISIBLE)
            if not end.is_set():
                seen.update(row[0] for row in rows)
        end.wait(0.05)


def query(data: Path, statement: str) -> list[tuple]:
    import psycopg

    from recollect.store._server_files import Layout, connection_string

    dsn = connection_string(Layout(data), database="recollect")
    with psycopg.connect(dsn, connect_timeout=2) as connection:
        connection.execute("SET search_path = recollect, public; SET recollect.tenant_id = 1")
        return connection.execute(statement).fetchall()


def read_store(data: Path) -> dict[str, list[tuple]]:
    """Every version of every document, by URI, read through a server that is started for it."""
    from recollect.store.embedded import EmbeddedServer

    found: dict[str, list[tuple]] = {}
    with EmbeddedServer(data):
        for uri, *rest in query(data, DOCUMENTS):
            found.setdefault(uri, []).append(tuple(rest))
    return found


def check(data: Path, embedder: str) -> None:
    done = subprocess.run(
        [*COMMAND, "db", "check", "--data-dir", str(data), "--json"],
        env=environment(embedder),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not json.loads(done.stdout)["ok"]:
        raise BrokenPromiseError(f"db check: {done.stdout.strip()[:300]} {done.stderr.strip()[:300]}")


def require_whole(found: dict[str, list[tuple]], folder: Path) -> None:
    for uri, versions in found.items():
        if len(versions) != 1:
            raise BrokenPromiseError(f"{uri} is there {len(versions)} times")
        version, content, chunk_count, current, chunks = versions[0]
        text = (folder / uri).read_text(encoding="utf-8")
        if content is None or content.strip() != text.strip() or version != 1 or not current:
            raise BrokenPromiseError(f"{uri} is not the file")
        if chunks is None or [chunk[0] for chunk in chunks] != list(range(chunk_count)):
            raise BrokenPromiseError(f"{uri} lacks chunks")
        if any(content[start:end] != part for _, start, end, part in chunks):
            raise BrokenPromiseError(f"{uri} has a chunk that is not its text")
        covered = bytearray(len(content))
        for _, start, end, _ in chunks:
            covered[start:end] = b"\x01" * (end - start)
        if any(not there and not letter.isspace() for there, letter in zip(covered, content, strict=True)):
            raise BrokenPromiseError(f"{uri} has characters that are in no chunk")


def complete(work: Path, this: Round) -> None:
    with Clock() as clock:
        done = subprocess.run(
            ingest_command(work, this.embedder),
            env=environment(this.embedder),
            capture_output=True,
            text=True,
            check=False,
        )
    this.completed_seconds = clock.seconds
    if done.returncode:
        raise BrokenPromiseError(f"the next run ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    counts = json.loads(done.stdout)
    files = sum(1 for path in (work / this.embedder).rglob("*.txt"))
    if counts["added"] != files - this.found or counts["unchanged"] != this.found or counts["failed"]:
        raise BrokenPromiseError(f"the next run did {counts}, with {this.found} of {files} there before")
    check(work / "data", this.embedder)
    found = read_store(work / "data")
    require_whole(found, work / this.embedder)
    if len(found) != files:
        raise BrokenPromiseError(f"{len(found)} of {files} documents after the next run")


def show(rounds: list[Round]) -> None:
    rows = [
        [
            one.number,
            one.embedder,
            one.target if one.killed else f"{one.target} (ingest had ended)",
            f"{one.delay:.2f}",
            len(one.acknowledged),
            one.found,
            f"{one.opened_seconds:.1f}",
            f"{one.completed_seconds:.1f}",
            one.verdict,
        ]
        for one in rounds
    ]
    head = ["round", "embedder", "killed", "after, s", "acknowledged", "found", "opened and checked in, s"]
    print(f"{machine()}\n\n{table([*head, 'next run, s', 'verdict'], rows)}")
    verdicts = Counter("sound" if one.verdict == "sound" else "broken" for one in rounds)
    print(f"\n{len(rounds)} rounds, {sum(one.killed for one in rounds)} killed at work: {dict(verdicts)}")
    if verdicts["broken"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
