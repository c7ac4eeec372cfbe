r"""URL jobs from a local site with faults, by a worker that is killed with ``kill -9`` again and again.

One page in a hundred has a fault: slow, 500 and then well, 404, binary, endless, a redirect loop, a length that is
wrong, a gzip bomb. Every page has a job of its own; ``recollect worker`` runs them and is killed at moments spread over
the work. Then every job must have ended, every sound page be stored once and once only, every faulty one be an error
with its reason, the queue be empty, and ``db check`` find nothing.

Run from the repository root::

    python benchmarks/killed_workers.py --pages 10000 --kills 20
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import psycopg
from harness import machine, say, store_folder

from recollect import RAGConfig, RAGPipeline
from recollect.model.job import NewJob
from recollect.pipeline.jobs import enqueue_all
from recollect.pipeline.web import PageRequest, UrlRequest

FAULTS = ("slow", "flaky", "missing", "binary", "endless", "loop", "short", "bomb")
#: What becomes well in the end.
SOUND = {"slow", "flaky"}
MAX_BYTES = 200_000


def fault_of(number: int) -> str | None:
    return FAULTS[number // 100 % len(FAULTS)] if number % 100 == 50 else None


class Site(BaseHTTPRequestHandler):
    """Pages by number."""

    protocol_version = "HTTP/1.1"
    tried: ClassVar[Counter[int]] = Counter()

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        if not self.path.startswith("/page/"):
            self.answer(b"", status=404)
            return
        number = int(self.path.rpartition("/")[2])
        self.tried[number] += 1
        page = (
            f"<html><head><title>Page {number}</title></head><body><main><h1>Page {number}</h1><p>This is page {number}"
            f" of the site. It says that the number of this page is {number}, and nothing about any other page.</p>"
            "</main></body></html>"
        ).encode()
        match fault_of(number):
            case "flaky" if self.tried[number] == 1:
                self.answer(b"", status=500)
            case "missing":
                self.answer(b"", status=404)
            case "binary":
                self.answer(os.urandom(500), kind="application/octet-stream")
            case "endless":
                self.endless()
            case "loop":
                self.answer(b"", status=302, location=self.path)
            case "short":
                self.answer(page, length=len(page) + 1000)
                self.close_connection = True
            case "bomb":
                self.answer(gzip.compress(b"\0" * 20_000_000), encoding="gzip")
            case fault:
                time.sleep(1.0 if fault == "slow" else 0)
                self.answer(page)

    def answer(
        self,
        body: bytes,
        *,
        status: int = 200,
        kind: str = "text/html; charset=utf-8",
        length: int | None = None,
        location: str | None = None,
        encoding: str | None = None,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in (("Location", location), ("Content-Encoding", encoding)):
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def endless(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                self.wfile.write(b"<p>and so on</p>" * 1000)
        except OSError:
            return


def count(connection: psycopg.Connection, statement: str) -> int:
    row = connection.execute(statement).fetchone()
    assert row is not None, "it counts"
    return int(row[0])


ENDED = "SELECT count(*) FROM recollect.jobs WHERE status NOT IN ('pending', 'running')"


def killed_run(dsn: str, environment: dict[str, str], *, pages: int, kills: int, concurrency: int) -> float:
    """Work all jobs off; returns the seconds that it took, with starts and kills."""
    command = [sys.executable, "-m", "recollect.cli.main", "worker", "--concurrency", str(concurrency), "--until-empty"]
    begun = time.monotonic()
    with psycopg.connect(dsn, autocommit=True) as connection:
        for kill in range(kills + 1):
            worker = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
            wanted = pages * (kill + 1) // (kills + 1)
            while kill < kills and worker.poll() is None and count(connection, ENDED) < wanted:
                time.sleep(0.05)
            if kill < kills:
                worker.kill()
                say("kill", kill + 1, "after", count(connection, ENDED), "pages")
            worker.wait()
    return time.monotonic() - begun


def judged(dsn: str, pages: int) -> dict[str, int]:
    """What is wrong afterwards, counted; all zero is well."""
    well = {number for number in range(pages) if fault_of(number) is None or fault_of(number) in SOUND}
    with psycopg.connect(dsn) as connection:
        stored = [
            (int(uri.rpartition("/")[2]), version, known_to == "infinity")
            for uri, version, known_to in connection.execute(
                "SELECT uri, version, known_to::text FROM document_versions"
            )
        ]
        jobs = connection.execute("SELECT document, status, error FROM recollect.jobs").fetchall()
        queue = count(connection, "SELECT count(*) FROM recollect_jobs.procrastinate_jobs")
    numbers = Counter(number for number, _, _ in stored)
    return {
        "lost": len(well - set(numbers)),
        "twice": sum(times > 1 for times in numbers.values()),
        "stored although faulty": len(set(numbers) - well),
        "jobs that have not ended": sum(status in {"pending", "running"} for _, status, _ in jobs),
        "errors without a reason": sum(status in {"failed", "cancelled"} and not error for _, status, error in jobs),
        "sound pages whose job failed": sum(
            status != "succeeded" and int(document.rpartition("/")[2]) in well for document, status, _ in jobs
        ),
        "left in the queue": queue,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--concurrency", type=int, default=2)
    given = parser.parse_args()
    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    site.daemon_threads = True
    threading.Thread(target=site.serve_forever, daemon=True).start()
    with store_folder() as folder:
        settings = {
            "RECOLLECT_DATA_DIR": str(Path(folder) / "data"),
            "RECOLLECT_EMBEDDING__PROVIDER": "hashing",
            "RECOLLECT_SOURCES__ALLOW_PRIVATE_ADDRESSES": "true",
            "RECOLLECT_SOURCES__MAX_BYTES": str(MAX_BYTES),
            "RECOLLECT_SOURCES__TIMEOUT_SECONDS": "5",
            "RECOLLECT_JOBS__BACKOFF_SECONDS": "1",
            "RECOLLECT_JOBS__HEARTBEAT_SECONDS": "0.5",
        }
        os.environ.update(settings)
        with RAGPipeline(RAGConfig()) as rag:
            base = f"http://127.0.0.1:{site.server_port}/page/"
            jobs: list[NewJob] = [
                UrlRequest(page=PageRequest(url=f"{base}{number}")).checked().as_job() for number in range(given.pages)
            ]
            begun = time.monotonic()
            enqueue_all(rag.standpoint, jobs)
            asked = time.monotonic() - begun
            dsn = rag.standpoint.store.dsn
            seconds = killed_run(
                dsn, dict(os.environ), pages=given.pages, kills=given.kills, concurrency=given.concurrency
            )
            wrong = judged(f"{dsn} options='-c search_path=recollect'", given.pages)
            wrong["findings of db check"] = len(rag.maintenance.check())
    say(machine())
    print(
        json.dumps(
            {
                "pages": given.pages,
                "kills": given.kills,
                "asked_for_seconds": round(asked, 1),
                "seconds": round(seconds, 1),
                "pages_a_second": round(given.pages / seconds, 1),
                **wrong,
            },
            indent=1,
        )
    )
    sys.exit(1 if any(wrong.values()) else 0)


if __name__ == "__main__":
    main()
