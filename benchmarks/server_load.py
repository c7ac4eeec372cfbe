r"""The server under load, asked by a generator on the same machine.

Uses a store of the chunks that ``growth.py data`` has made. Run from the repository root::

    python benchmarks/server_load.py build --work ../query-bench --documents ../growth/data/100000/documents.jsonl
    python benchmarks/server_load.py search --work ../query-bench     # requests a second, latencies, 16 callers
    python benchmarks/server_load.py share --work ../query-bench      # what a request costs beside its search
    python benchmarks/server_load.py cost --work ../query-bench       # CPU time of a request, by process; also of
                                                                      # another version: --against ../before/src
    python benchmarks/server_load.py streams --work ../query-bench    # 200 answers at once from a scripted model
    python benchmarks/server_load.py stall --work ../query-bench      # a tenant's latencies beside another one's six
                                                                      # heaviest searches in a loop

The server is a process of its own, `recollect.server.running.serve`. Each search embeds its question with the real
model, reranking is as configured, and no reply comes from the cache. The server is warm: before it is measured it has
said that the collection is resident, where it has such copies. The generator speaks HTTP over kept connections itself:
a client library would take as much of the two cores as the server does.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import synthetic
from harness import machine, model_cache, percentile, say, server_processes, table, versions

from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.base import Vectors

COLLECTION = "large"
QUESTIONS = 450
RESIDENT_SECONDS = 60.0
# As long as answers of models are, in pieces as they come.
SENTENCES, PIECES_A_SECOND = 40, 20
# As much as one search may ask for, and a tenant that asks for little meanwhile.
HEAVIEST = {"candidates": 10_000, "rerank_candidates": 1_000, "top_k": 100, "neighbours": 10}
OTHER = "other"


class QueryModel:
    """The real model for questions, under the name of the store's vectors, which were made beforehand."""

    model_name = "known-beforehand"
    dimension = 384

    def __init__(self) -> None:
        from recollect.embedding.local import LocalEmbedder
        from recollect.embedding.models import ModelCache

        self._model = LocalEmbedder(cache=ModelCache(model_cache()))

    def embed_query(self, text: str) -> Vectors:
        return self._model.embed_query(text)

    def embed_documents(self, texts: list[str]) -> Vectors:
        return self._model.embed_documents(texts)


class SlowModel:
    """Streams sentences about nothing, a piece at a time, as a model does."""

    model_name = "scripted"

    async def stream(self, _messages: object, **_: object) -> AsyncIterator[str]:
        for number in range(SENTENCES):
            for word in f"Sentence {number} says what was said before. ".split(" "):
                await asyncio.sleep(1 / PIECES_A_SECOND)
                yield f"{word} " if word else ""


def settings(work: Path, *, before_reply: bool = False) -> RAGConfig:
    """What the environment says, so that ways of searching can be compared, and nothing that keeps replies."""
    return RAGConfig.load(
        storage={"data_dir": (work / "data").resolve()},
        embedding={"cache": False},
        retrieval={"cache_entries": 0, "query_cache_entries": 0, "probe_rate": 0},
        server={"port": 0, "audit": {"before_reply": before_reply}},
    )


def open_store(work: Path, *, scripted: bool = False, before_reply: bool = False) -> RAGPipeline:
    config = settings(work, before_reply=before_reply)
    return RAGPipeline(config, embedder=QueryModel(), chat_model=SlowModel() if scripted else None)


def build(arguments: argparse.Namespace) -> None:
    with open_store(arguments.work) as rag:
        report = rag.view(collections=COLLECTION).collections.import_file(arguments.documents)
    if report.failed:
        raise SystemExit(f"not everything is stored: {report.errors[:3]}")
    (arguments.work / "questions.json").write_text(json.dumps(synthetic.questions(QUESTIONS)), encoding="utf-8")
    say(f"{report.chunks:,} chunks stored")


def serve(work: Path, *, scripted: bool, before_reply: bool) -> None:
    from recollect.server.running import serve as run

    with open_store(work, scripted=scripted, before_reply=before_reply) as rag:
        run(rag, worker=False, on_ready=lambda url: print(url, flush=True))


@contextmanager
def served(
    work: Path, *, scripted: bool = False, before_reply: bool = False, source: Path | None = None
) -> Iterator[tuple[str, int, psutil.Process]]:
    """A server; ``source``: of the version whose packages lie there."""
    command = [sys.executable, __file__, "serve", "--work", str(work), *(["--scripted"] if scripted else [])]
    command += ["--before-reply"] if before_reply else []
    environment = os.environ if source is None else {**os.environ, "PYTHONPATH": str(source.resolve())}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().removeprefix("http://").partition(":")
        try:
            if source is None and getattr(settings(work).retrieval, "resident_memory_mb", 0) != 0:
                asyncio.run(until_resident(host, int(port), work))
            yield host, int(port), psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(30)


def request(path: str, body: dict, *, accept: str = "application/json", key: str = "") -> bytes:
    sent = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: {accept}\r\n"
        f"{f'X-API-Key: {key}' + chr(13) + chr(10) if key else ''}Content-Length: {len(sent)}\r\n\r\n"
    )
    return head.encode() + sent


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes) -> bytes:
    writer.write(sent)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    body = await reader.readexactly(length)
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"{head.decode()}{body[:500].decode()}")
    return body


async def until_resident(host: str, port: int, work: Path) -> None:
    """Search until replies come from the copy in the server's process, for a minute at most."""
    questions = json.loads((work / "questions.json").read_text(encoding="utf-8"))
    reader, writer = await asyncio.open_connection(host, port)
    end, path = time.perf_counter() + RESIDENT_SECONDS, None
    while path != "resident" and time.perf_counter() < end:
        reply = await ask(reader, writer, request("/v1/search", {"query": questions[0], "collection": COLLECTION}))
        path = json.loads(reply)["paths"].get("dense")
        await asyncio.sleep(0.05)
    writer.close()
    say(f"vectors are found by: {path}")


def search(arguments: argparse.Namespace) -> None:
    questions = json.loads((arguments.work / "questions.json").read_text(encoding="utf-8"))
    rows = []
    with served(arguments.work, before_reply=arguments.before_reply) as (host, port, process):
        asyncio.run(callers(host, port, questions, count=4, seconds=5))
        for count in (1, 4, 16):
            times = asyncio.run(callers(host, port, questions, count=count, seconds=arguments.seconds))
            p50, p95 = (f"{percentile(times, share):.1f}" for share in (50, 95))
            rows.append([count, f"{len(times) / arguments.seconds:.1f}", p50, p95])
            say(rows[-1])
        memory = process.memory_info().rss >> 20
    print(f"{machine()}\n\n{table(['callers', 'requests/s', 'p50, ms', 'p95, ms'], rows)}\n\nserver: {memory} MiB")
    print(f"Versions: {', '.join(versions())}")


async def callers(
    host: str, port: int, questions: list[str], *, count: int, seconds: float = 0, requests: int = 0, **asked: Any
) -> list[float]:
    """Milliseconds of every request of so many callers; one request each where neither time nor number is given."""
    numbers, times = itertools.count(), list[float]()
    end = time.perf_counter() + seconds

    async def call() -> None:
        reader, writer = await asyncio.open_connection(host, port)
        while True:
            question = questions[next(numbers) % len(questions)]
            key, options = asked.get("key", ""), asked.get("options", {})
            sent = request("/v1/search", {"query": question, "collection": COLLECTION, **options}, key=key)
            begun = time.perf_counter()
            await ask(reader, writer, sent)
            times.append((time.perf_counter() - begun) * 1000)
            if time.perf_counter() >= end and len(times) + count > requests:
                break
        writer.close()

    await asyncio.gather(*(call() for _ in range(count)))
    return times


def share(arguments: argparse.Namespace) -> None:
    """CPU milliseconds of the server's process a request: through HTTP, and of the same search alone."""
    questions = json.loads((arguments.work / "questions.json").read_text(encoding="utf-8"))
    with served(arguments.work) as (host, port, process):
        asyncio.run(callers(host, port, questions, count=1, seconds=3))
        before = process.cpu_times()
        count = len(asyncio.run(callers(host, port, questions, count=1, seconds=arguments.seconds)))
        after = process.cpu_times()
    through = ((after.user + after.system) - (before.user + before.system)) * 1000 / count
    with open_store(arguments.work) as rag:
        view = rag.view(collections=COLLECTION)
        for question in questions[:50]:
            view.search(question)
        begun, begun_wall = time.process_time(), time.perf_counter()
        for number in range(count):
            view.search(questions[number % len(questions)])
        alone, wall = ((time.process_time() - begun) * 1000 / count, (time.perf_counter() - begun_wall) * 1000 / count)
    print(f"{machine()}\n\n{count:,} searches: {through:.2f} ms CPU of the server's process each through HTTP,")
    print(f"{alone:.2f} ms in the library ({wall:.1f} ms by the clock): its own share is {through - alone:.2f} ms")


def cost(arguments: argparse.Namespace) -> None:
    """CPU milliseconds of a request of 16 callers, by process; two versions in turn have the same pace."""
    questions = json.loads((arguments.work / "questions.json").read_text(encoding="utf-8"))
    sources = {"this": None, **({"the other": arguments.against} if arguments.against else {})}
    spent: dict[str, list[list[float]]] = {name: [] for name in sources}
    with ExitStack() as stack:
        servers = {name: stack.enter_context(served(arguments.work, source=at)) for name, at in sources.items()}
        for host, port, _ in servers.values():
            asyncio.run(callers(host, port, questions, count=16, requests=len(questions)))
        for _ in range(arguments.rounds):
            for name, (host, port, process) in servers.items():
                before = _processor_seconds(process, arguments.work)
                asyncio.run(callers(host, port, questions, count=16, requests=arguments.requests))
                after = _processor_seconds(process, arguments.work)
                parts = [(now - then) * 1000 / arguments.requests for now, then in zip(after, before, strict=True)]
                spent[name].append(parts)
                say(name, [f"{one:.2f}" for one in parts])
    rows = []
    for name, rounds in spent.items():
        parts = [statistics.median(part) for part in zip(*rounds, strict=True)]
        rows.append([name, *(f"{part:.2f}" for part in (*parts, sum(parts))), f"{2_000 / sum(parts):.0f}"])
    print(f"{machine()}\n\nMedians of {arguments.rounds} rounds of {arguments.requests} requests:\n")
    print(table(["version", "server, ms", "PostgreSQL, ms", "generator, ms", "together", "two cores can do/s"], rows))


def _processor_seconds(server: psutil.Process, work: Path) -> tuple[float, float, float]:
    """CPU time so far: the server's, its database's, this process's."""
    return (
        sum(server.cpu_times()[:2]),
        sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in server_processes(work / "data")),
        time.process_time(),
    )


def streams(arguments: argparse.Namespace) -> None:
    """So many answers at once: each whole, and what the server's memory grew by."""
    with served(arguments.work, scripted=True) as (host, port, process):
        asyncio.run(together(host, port, 8))
        before, peak = process.memory_info().rss, 0
        begun = time.perf_counter()
        told, peak = asyncio.run(together(host, port, arguments.streams, watch=process))
        seconds = time.perf_counter() - begun
        again, _ = asyncio.run(together(host, port, arguments.streams, watch=process))
        after = process.memory_info().rss
    whole = f"{SENTENCES} sentences"
    print(
        f"{machine()}\n\n{len(told)} streams at once in {seconds:.1f} s: {sum(told)} with {whole}, {sum(again)} again;"
    )
    print(
        f"memory {(peak - before) / len(told) / (1 << 20):.2f} MiB a stream at the peak, "
        f"{(after - before) / (1 << 20):.1f} MiB in all after two rounds"
    )
    if not all(told) or not all(again):
        raise SystemExit(1)


def stall(arguments: argparse.Namespace) -> None:
    """What one tenant waits while another one loops over six of the heaviest searches that there are."""
    questions = json.loads((arguments.work / "questions.json").read_text(encoding="utf-8"))
    with open_store(arguments.work) as rag:
        if OTHER not in {one.name for one in rag.tenants.list()}:
            rag.tenants.create(OTHER)
        other = rag.view(tenant=OTHER, collections=COLLECTION)
        texts = (f"{question} Nobody has written down more than that." for question in questions[:100])
        other.ingest([Document(content=text, source=f"{n}.md") for n, text in enumerate(texts)])
        keys = [view.keys.create("stall").secret for view in (rag, rag.view(tenant=OTHER))]
    with served(arguments.work) as (host, port, process):
        for key in keys:
            asyncio.run(callers(host, port, questions, count=4, seconds=3, key=key))
        idle = asyncio.run(callers(host, port, questions, count=1, seconds=arguments.seconds, key=keys[1]))
        before = process.memory_info().rss
        beside, heavy, peak = asyncio.run(stalled(host, port, questions, keys, process, arguments.seconds))
    p95 = [percentile(times, 95) for times in (idle, beside)]
    print(f"{machine()}\n\np95 of the other tenant: {p95[0]:.1f} ms idle, {p95[1]:.1f} ms beside ({len(heavy)} heavy")
    print(f"searches, median {statistics.median(heavy):.0f} ms): {p95[1] / p95[0]:.1f} times; memory grew by ")
    print(f"{(peak - before) / (1 << 20):.0f} MiB at the peak")
    if p95[1] > 3 * p95[0] or peak - before > 200 << 20:
        raise SystemExit(1)


async def stalled(
    host: str, port: int, questions: list[str], keys: list[str], process: psutil.Process, seconds: float
) -> tuple[list[float], list[float], int]:
    """Milliseconds of the light and of the heavy requests, and the greatest memory."""
    peak, going = 0, True

    async def look() -> None:
        nonlocal peak
        while going:
            peak = max(peak, process.memory_info().rss)
            await asyncio.sleep(0.1)

    looking = asyncio.create_task(look())
    attack = asyncio.create_task(
        callers(host, port, questions, count=6, seconds=seconds + 2, key=keys[0], options=HEAVIEST)
    )
    await asyncio.sleep(1)
    beside = await callers(host, port, questions, count=1, seconds=seconds, key=keys[1])
    heavy = await attack
    going = False
    await looking
    return beside, heavy, peak


async def together(host: str, port: int, count: int, *, watch: psutil.Process | None = None) -> tuple[list[bool], int]:
    peak, going = 0, True

    async def one(number: int) -> bool:
        reader, writer = await asyncio.open_connection(host, port, limit=1 << 24)
        body = {"question": f"What was said about number {number}?", "collection": COLLECTION, "top_k": 3}
        writer.write(request("/v1/ask", body, accept="text/event-stream"))
        text = bytearray()
        while not text.endswith(b"0\r\n\r\n"):
            part = await reader.read(1 << 16)
            if not part:
                break
            text += part
        writer.close()
        missing = [n for n in range(SENTENCES) if f"Sentence {n} says".encode() not in text]
        if missing or b"event: done" not in text:
            say(f"stream {number}: {len(missing)} sentences missing: {bytes(text[-300:])!r}")
        return not missing and b"event: done" in text

    async def look() -> None:
        nonlocal peak
        while going and watch is not None:
            peak = max(peak, watch.memory_info().rss)
            await asyncio.sleep(0.25)

    looking = asyncio.create_task(look())
    told = await asyncio.gather(*(one(number) for number in range(count)))
    going = False
    await looking
    return told, peak


def main() -> None:
    parser = argparse.ArgumentParser(description="The server under load.")
    parser.add_argument("step", choices=("build", "search", "share", "cost", "streams", "stall", "serve"))
    parser.add_argument("--work", type=Path, required=True, help="a folder for the store and the questions")
    parser.add_argument("--documents", type=Path, help="of growth.py data: what build stores")
    parser.add_argument("--seconds", type=float, default=20.0, help="each number of callers asks so long")
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument(
        "--before-reply", action="store_true", help="what is shown is in the log of accesses before it is sent"
    )
    parser.add_argument("--against", type=Path, help="the folder of another version's packages: its cost in turn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=320, help="in a round, about")
    parser.add_argument("--scripted", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step == "serve":
        serve(arguments.work, scripted=arguments.scripted, before_reply=arguments.before_reply)
    else:
        steps = {"build": build, "search": search, "share": share, "cost": cost, "streams": streams, "stall": stall}
        steps[arguments.step](arguments)


if __name__ == "__main__":
    main()
