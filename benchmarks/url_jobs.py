r"""A site of many pages, one of a hundred faulty, stored by URL jobs while their worker is killed again and again.

Five figures, on the same pages:

- fetched: pages a second through the guarded client alone, eight at a time;
- ingest: pages a second as files of a folder;
- crawl: pages a second as one job that reads the site's sitemap, its attempts at faulty pages included;
- jobs: pages a second as URL jobs, from the first to the last, by one worker, its start included;
- killed: the same by workers that are killed with SIGKILL one after the other, each at a random moment of its share of
  the pages; the starts of the workers are included. Of each is told how long after its start its first page ended, and
  how many a second from there to its kill.

Afterwards the queue is empty, and every page is stored once, with its own text and its chunks whole (``db check``), or
its job has ended with its reason. A page that is neither is told as lost. Every kind of fault is met from 800 pages on.

Run from the repository root::

    python benchmarks/url_jobs.py --pages 10000 --kills 20
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psycopg
import synthetic
from harness import machine, say, store_folder, table, versions

COMMAND = [sys.executable, "-m", "recollect.cli.main"]
FAULTS = ("slow", "500 then well", "404", "binary", "endless", "redirect loop", "wrong length", "gzip bomb")
#: What becomes of each in the end.
WELL = {"slow", "500 then well"}
SLOW_SECONDS = 1.0
MAX_BYTES = 4 << 20


def fault(number: int) -> str | None:
    """One page of a hundred, each kind in turn."""
    return FAULTS[number // 100 % len(FAULTS)] if number % 100 == 50 else None


def page(number: int, text: str) -> str:
    """A page as sites write them: its main part, and what stands around it."""
    title = f"Page {number}"
    menu = "".join(f'<li><a href="/{(number + step) % 1000}">Page {step}</a></li>' for step in range(20))
    body = "".join(f"<p>{part}</p>" for part in text.split("\n\n"))
    return (
        f"<!doctype html><html lang=en><head><title>{title}</title></head><body><nav><ul>{menu}</ul></nav>"
        f"<main><h1>{title}</h1>{body}</main><footer>Copyright</footer></body></html>"
    )


def texts(count: int) -> list[str]:
    """Different texts of one chunk or two each."""
    generator = np.random.default_rng(1)
    words = synthetic.made_up_words(generator)
    return [
        f"Number {number} is about {words[generator.integers(len(words))]}.\n\n"
        + " ".join(words[generator.integers(0, len(words), 90)])
        for number in range(count)
    ]


class Site:
    """Serves the pages, from a process of its own."""

    def __init__(self, count: int) -> None:
        self._bodies = [page(number, text).encode() for number, text in enumerate(texts(count))]
        self._asked: dict[int, int] = {}
        self._bomb = gzip.compress(bytes(64 << 20), 9)

    async def serve(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=256)
        print(server.sockets[0].getsockname()[1], flush=True)
        async with server:
            await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                if not await self._answer(path, writer):
                    break
        writer.close()

    async def _answer(self, path: str, writer: asyncio.StreamWriter) -> bool:
        """Answer; whether the connection stays."""
        name = path.strip("/")
        if name == "sitemap.xml":
            listed = "".join(f"<url><loc>/{number}</loc></url>" for number in range(len(self._bodies)))
            return await self._send(writer, f"<urlset>{listed}</urlset>".encode(), kind="application/xml")
        if not name.isdigit() or int(name) >= len(self._bodies):
            return await self._send(writer, b"no", status="404 Not Found")
        number = int(name)
        self._asked[number] = self._asked.get(number, 0) + 1
        body = self._bodies[number]
        kind = fault(number)
        if kind == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        if kind == "500 then well" and self._asked[number] == 1:
            return await self._send(writer, b"no", status="500 Internal Server Error")
        if kind in {None, *WELL}:
            return await self._send(writer, body)
        return await self._fail(kind, path, writer)

    async def _fail(self, kind: str, path: str, writer: asyncio.StreamWriter) -> bool:
        match kind:
            case "404":
                return await self._send(writer, b"no", status="404 Not Found")
            case "binary":
                return await self._send(writer, b"\x89PNG\r\n\x1a\n" + bytes(1000), kind="image/png")
            case "redirect loop":
                return await self._send(writer, b"", status="302 Found", more=f"Location: {path}\r\n")
            case "gzip bomb":
                return await self._send(writer, self._bomb, more="Content-Encoding: gzip\r\n")
            case "wrong length":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 999999\r\n\r\nhalf")
                await writer.drain()
                return False
            case _:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
                while True:
                    writer.write(bytes(65_536))
                    await writer.drain()

    @staticmethod
    async def _send(
        writer: asyncio.StreamWriter, body: bytes, *, status: str = "200 OK", kind: str = "text/html", more: str = ""
    ) -> bool:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        return True


@contextmanager
def site(count: int):
    process = subprocess.Popen([sys.executable, __file__, "--serve", str(count)], stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def fetched(base: str, count: int) -> float:
    """Pages a second through the client alone."""
    from recollect.errors import FetchError
    from recollect.fetching.client import Fetcher
    from recollect.fetching.guard import Guard

    def one(number: int) -> None:
        with suppress(FetchError):
            fetcher.fetch(f"{base}/{number}")

    with Fetcher(Guard(allow_private_addresses=True), max_bytes=MAX_BYTES) as fetcher, ThreadPoolExecutor(8) as pool:
        start = time.perf_counter()
        list(pool.map(one, range(count)))
        return count / (time.perf_counter() - start)


def environment(folder: Path, provider: str) -> dict[str, str]:
    return {
        **os.environ,
        "RECOLLECT_DATA_DIR": str(folder),
        "RECOLLECT_EMBEDDING__PROVIDER": provider,
        "RECOLLECT_SOURCES__ALLOW_PRIVATE_ADDRESSES": "true",
        "RECOLLECT_SOURCES__MAX_BYTES": str(MAX_BYTES),
        "RECOLLECT_JOBS__BACKOFF_SECONDS": "0.5",
    }


def ingested(work: Path, count: int, provider: str) -> float:
    """Pages a second as files of a folder."""
    files = work / "files"
    files.mkdir()
    for number, text in enumerate(texts(count)):
        if fault(number) in {None, *WELL}:
            (files / f"{number}.html").write_text(page(number, text), encoding="utf-8")
    start = time.perf_counter()
    subprocess.run(
        [*COMMAND, "ingest", str(files)], env=environment(work / "a", provider), check=True, capture_output=True
    )
    return len(list(files.iterdir())) / (time.perf_counter() - start)


def crawled(work: Path, base: str, count: int, provider: str) -> float:
    """Pages a second as one job that reads the site's sitemap."""
    command = ["ingest", f"{base}/0", "--crawl", "--depth", "0", "--sitemaps", "--delay", "0"]
    start = time.perf_counter()
    done = subprocess.run(
        [*COMMAND, *command, "--max-pages", str(count + 1), "--json"],
        env=environment(work / "c", provider), check=False, capture_output=True, text=True,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    result = json.loads(done.stdout)["jobs"][0]["result"]
    say(f"crawl: {result['added']:,} added, {result['failed']:,} failed")
    return count / seconds


def stored(folder: Path, base: str, count: int, provider: str, *, kills: int, concurrency: int, seed: int) -> dict:
    """Pages a second as jobs, and what became of each."""
    from recollect import RAGConfig, RAGPipeline
    from recollect.embedding.hashing import HashingEmbedder
    from recollect.fetching.client import PageRequest
    from recollect.pipeline.jobs import enqueue_all
    from recollect.pipeline.web import UrlRequest

    own = environment(folder, provider)
    settings = {"storage": {"data_dir": folder}, "embedding": {"provider": provider}}
    given = {"embedder": HashingEmbedder()} if provider == "hashing" else {}
    with RAGPipeline(RAGConfig(**settings), **given) as rag:
        wanted = [UrlRequest(page=PageRequest(url=f"{base}/{number}")).as_job() for number in range(count)]
        start = time.perf_counter()
        jobs = [job.job_id for job in enqueue_all(rag.standpoint, wanted)]
        say(f"{len(jobs):,} jobs asked for in {time.perf_counter() - start:.1f} s")
        command = [*COMMAND, "worker", "--until-empty", "--concurrency", str(concurrency)]
        with psycopg.connect(rag.store.dsn, autocommit=True) as connection:
            start = time.perf_counter()
            workers = [
                Worked.until(command, own, connection, enough) for enough in moments(count, kills, random.Random(seed))
            ]
            seconds = time.perf_counter() - start
            told = outcome(rag, jobs, base, connection)
    check = subprocess.run([*COMMAND, "db", "check", "--json"], env=own, check=False, capture_output=True, text=True)
    return {
        **told,
        "pages_per_second": count / seconds,
        "seconds": seconds,
        "workers": [worked.__dict__ for worked in workers],
        "kills": sum(worked.killed for worked in workers),
        "check": "sound" if check.returncode == 0 else check.stdout[-500:],
    }


ENDED = "SELECT count(*) FROM recollect.jobs WHERE status NOT IN ('pending', 'running')"
QUEUED = "SELECT count(*) FROM recollect_jobs.procrastinate_jobs WHERE task_name = 'recollect'"


def counted(connection: psycopg.Connection, statement: str) -> int:
    return connection.execute(statement).fetchone()[0]


def moments(count: int, kills: int, generator: random.Random) -> list[float | None]:
    """After how many pages each worker is killed; the last one is not."""
    return [*(count * (number + generator.random()) / (kills + 1) for number in range(kills)), None]


@dataclass
class Worked:
    """What one worker did, from its start until it was killed or nothing was left.

    Attributes:
        pages: That ended meanwhile.
        seconds: That it had.
        first_after: Seconds until its first page ended; None: none did.
        killed: Whether it was killed at its work.
    """

    pages: int
    seconds: float
    first_after: float | None
    killed: bool

    @classmethod
    def until(
        cls, command: list[str], own: dict[str, str], connection: psycopg.Connection, enough: float | None
    ) -> Worked:
        """Start a worker, and kill it once so many pages have ended."""
        before, start, first = counted(connection, ENDED), time.perf_counter(), None
        worker = subprocess.Popen(command, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while worker.poll() is None:
            ended = counted(connection, ENDED)
            if first is None and ended > before:
                first = time.perf_counter() - start
            if enough is not None and ended >= enough:
                break
            time.sleep(0.05)
        killed = worker.poll() is None
        if not killed and worker.returncode:
            raise subprocess.CalledProcessError(worker.returncode, command)
        worker.kill()
        worker.wait()
        seconds, ended = time.perf_counter() - start, counted(connection, ENDED)
        rate = (
            "" if first is None else f", first after {first:.1f} s, then {(ended - before) / (seconds - first):.1f}/s"
        )
        say(f"{'killed' if killed else 'done'} at {ended:,} pages, after {seconds:.1f} s{rate}")
        return cls(ended - before, seconds, first, killed)


def outcome(rag, jobs: list[int], base: str, connection: psycopg.Connection) -> dict:
    """What became of every page, and whether each kind of fault ended as it should."""
    scope = rag.scope
    versions = {}
    after = 0
    while found := rag.store.documents.list_page(scope, rag.standpoint.place(scope), after=after, limit=1000):
        after = found[-1].document_id
        for one in found:
            versions[one.source] = versions.get(one.source, 0) + one.version
    lost, twice, wrong = [], [], []
    reasons: dict[str, str] = {}
    for number, job_id in enumerate(jobs):
        job, url, kind = rag.jobs.get(job_id), f"{base}/{number}", fault(number)
        if not job.ended or (job.status == "succeeded") != (url in versions):
            lost.append(number)
        if versions.get(url, 1) > 1:
            twice.append(number)
        if (job.status == "succeeded") != (kind in {None, *WELL}) or not (job.status == "succeeded" or job.error):
            wrong.append((number, kind, job.status, job.error))
        if kind is not None:
            reasons[kind] = job.error.partition(": ")[2] if job.error else "stored"
    queued = counted(connection, QUEUED)
    return {
        "stored": len(versions), "lost": lost, "twice": twice, "wrong": wrong, "queued": queued, "faults": reasons
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="URL jobs from a site with faults, their worker killed meanwhile.")
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--provider", default="local", choices=("local", "hashing"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(Site(arguments.serve).serve())
        return
    count = arguments.pages
    with store_folder() as folder:
        work = Path(folder)
        with site(count) as base:
            fetching = fetched(base, count)
            say(f"fetched {fetching:.0f} pages/s")
        with site(count) as base:
            crawling = crawled(work, base, count, arguments.provider)
            say(f"crawled {crawling:.1f} pages/s")
        runs = []
        for kills in dict.fromkeys((0, arguments.kills)):
            with site(count) as base:
                told = stored(
                    work / f"jobs{kills}", base, count, arguments.provider,
                    kills=kills, concurrency=arguments.concurrency, seed=arguments.seed,
                )  # fmt: skip
                say(json.dumps(told, indent=1))
                runs.append(told)
        files = ingested(work, count, arguments.provider)
    print(machine(), "; ".join(versions()))
    print(
        table(
            ("pages", "fetched/s", "ingest/s", "crawl/s", "jobs/s", "share", "kills", "lost", "twice", "db check"),
            [
                (
                    f"{count:,}", f"{fetching:.0f}", f"{files:.1f}", f"{crawling:.1f}",
                    f"{told['pages_per_second']:.1f}", f"{told['pages_per_second'] / files:.2f}", told["kills"],
                    len(told["lost"]), len(told["twice"]), told["check"],
                )
                for told in runs
            ],
        )
    )  # fmt: skip
    print(table(("fault", "ends as"), told["faults"].items()))
    if any(one["lost"] or one["twice"] or one["wrong"] or one["queued"] or one["check"] != "sound" for one in runs):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
