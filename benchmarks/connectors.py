"""Connectors against real servers: a thousand items, changes, deletions, grants, and runs that are killed.

    python connectors.py s3 --items 1000 --kills 5
    python connectors.py git --items 1000 --kills 5

The bucket stands in a server that speaks S3 (moto), the repository behind Git's own ``git daemon``, both on this
machine. ``recollect sources refresh`` runs in a process of its own and is killed (SIGKILL) while it stores; the last
run ends. Then the store is compared with the source: nothing lost, nothing twice.
"""

from __future__ import annotations

import argparse
import atexit
import json
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("recollect")
RULES = "* role:staff\nhr/ role:hr\n"


def page(number: int, note: str = "") -> str:
    return f"# Page {number}\n\nThis is page {number} of the handbook. {note}\n"


def names(items: int) -> list[str]:
    return [f"{'hr' if number % 10 == 0 else 'general'}/page-{number:05d}.md" for number in range(items)]


def bucket() -> tuple[str, list[str], Callable[[dict[str, str | None]], None]]:
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {"AWS_ACCESS_KEY_ID": "a-key-id", "AWS_SECRET_ACCESS_KEY": "a-secret-key"}
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
    client.create_bucket(Bucket="handbook")

    def write(files: dict[str, str | None]) -> None:
        for name, text in files.items():
            if text is None:
                client.delete_object(Bucket="handbook", Key=name)
            else:
                client.put_object(Bucket="handbook", Key=name, Body=text.encode())

    return "s3://handbook", ["--set", f"endpoint_url=http://{host}:{port}"], write


def repository(work: Path) -> tuple[str, list[str], Callable[[dict[str, str | None]], None]]:
    folder = work / "handbook.git"
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True, env=environment)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    daemon = ["git", "daemon", "--listen=127.0.0.1", f"--port={port}", "--export-all", f"--base-path={work}", str(work)]
    serving = subprocess.Popen(daemon, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
    atexit.register(os.killpg, serving.pid, signal.SIGTERM)
    commits = 0

    def write(files: dict[str, str | None]) -> None:
        nonlocal commits
        lines = [b"commit refs/heads/main\ncommitter A <a@example.org> 0 +0000\ndata 1\nm\n"]
        lines += [b"from refs/heads/main^0\n"] if commits else []
        for name, text in files.items():
            data = b"" if text is None else text.encode()
            lines.append(
                f"D {name}\n".encode()
                if text is None
                else f"M 100644 inline {name}\ndata {len(data)}\n".encode() + data + b"\n"
            )
        command = ["git", "-C", str(folder), "fast-import", "--quiet"]
        subprocess.run(command, input=b"".join(lines) + b"\n", check=True, env=environment)
        commits += 1

    return f"git://127.0.0.1:{port}/handbook.git", [], write


class Store:
    """The command line on a store of its own."""

    def __init__(self, work: Path) -> None:
        self.environment = {
            **os.environ,
            "RECOLLECT_DATA_DIR": str(work / "data"),
            "RECOLLECT_EMBEDDING__PROVIDER": "hashing",
            "RECOLLECT_SOURCES__ALLOW_PRIVATE_ADDRESSES": "true",
        }

    def run(self, *words: str) -> dict:
        done = subprocess.run([PROGRAM, *words, "--json"], env=self.environment, capture_output=True, check=False)
        if done.returncode:
            sys.exit(done.stdout.decode() + done.stderr.decode())
        return json.loads(done.stdout)

    def killed(self, seconds: float) -> None:
        process = subprocess.Popen(
            [PROGRAM, "sources", "refresh"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def documents(self) -> dict[str, int]:
        from recollect import RAGConfig, RAGPipeline

        storage = {"data_dir": self.environment["RECOLLECT_DATA_DIR"]}
        with RAGPipeline(RAGConfig(storage=storage, embedding={"provider": "hashing"})) as rag:
            return {one.source: one.version for one in rag.documents.each()}


def require(what: bool, why: str) -> None:
    if not what:
        sys.exit(f"WRONG: {why}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["s3", "git"])
    parser.add_argument("--items", type=int, default=1_000)
    parser.add_argument("--kills", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        work.chmod(0o755)  # the server's own account has to come to its data
        measure(work, options)


def measure(work: Path, options: argparse.Namespace) -> None:
    location, how, write = bucket() if options.kind == "s3" else repository(work)
    write({name: page(number) for number, name in enumerate(names(options.items))} | {"RULES": RULES})
    store, chance = Store(work), random.Random(7)
    store.run("sources", "add", location, *how, "--set", "grants_file=RULES", "--no-refresh")
    for _ in range(options.kills):
        store.killed(chance.uniform(2.0, 6.0))
    start = time.perf_counter()
    store.run("sources", "refresh")
    found = store.documents()
    require(found == dict.fromkeys(names(options.items), 1), f"{len(found)} documents, versions {set(found.values())}")
    print(
        f"{options.items:,} items, {options.kills} runs killed: nothing lost, nothing twice; the last run "
        f"{time.perf_counter() - start:.1f} s"
    )
    changed = names(options.items)[1::10]
    gone = names(options.items)[2::10]
    write(
        {name: page(0, f"changed {name}") for name in changed}
        | dict.fromkeys(gone)
        | {"RULES": RULES + "*5.md role:hr\n"}
    )
    store.killed(chance.uniform(2.0, 4.0))
    start = time.perf_counter()
    report = store.run("sources", "refresh")["refreshed"][0]
    found = store.documents()
    require(
        {name: version for name, version in found.items() if name in set(changed)} == dict.fromkeys(changed, 2),
        "a change",
    )
    require(not set(found) & set(gone) and len(found) == options.items - len(gone), "a deletion")
    print(
        f"{len(changed)} changes, {len(gone)} deletions, {options.items // 10} grants, a run killed: "
        f"{time.perf_counter() - start:.1f} s, {report['added']} added, "
        f"{report['updated']} updated, {report['removed']} removed"
    )
    start = time.perf_counter()
    store.run("sources", "refresh")
    print(f"nothing changed: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
