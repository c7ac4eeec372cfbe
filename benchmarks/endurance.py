r"""The server under mixed load for a long time: what grows that the data does not explain?

Requests of every kind come at a fixed rate: searches, questions (whole, streamed, and left in the middle), texts,
uploads, chats and other turns, recall, jobs and their events, OpenAI's door, MCP calls, reads, figures for Prometheus,
and failed credentials. What is stored is kept at one size: for each document above a number the oldest is erased, and
conversations are removed likewise. So after a warm-up nothing may grow but logs, which are told by what was asked, and
are bounded by their retention.

Every few seconds memory, threads, descriptors and connections of the server, the worker and PostgreSQL are noted, and
rows and bytes of every table. A line is fitted through what came after the warm-up; what it would grow by in an hour is
told, and the program ends with 1 where something grows. Run from the repository root::

    python benchmarks/endurance.py --minutes 30 --rate 10
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psutil
import synthetic
from harness import machine, say, store_folder, table, versions
from service import Program, Service, running, until

SETTINGS = {"RECOLLECT_JOBS__BACKOFF_SECONDS": "1"}
SAMPLE_SECONDS = 5.0
DOCUMENTS, CONVERSATIONS = 200, 60
#: Logs: a row for what is asked, kept as long as is configured.
LOGS = {
    "activity": "a row a minute and figure; 31 days",
    "access_log": "a row a batch of two seconds; access_retention_days",
    "audit": "a row an erasure; partition_retention_days",
    "idempotent_requests": "a row a write with a key; 24 hours",
    "jobs": "a row an upload; [rag.jobs] keep_days",
    "request_log": "a row a request to a provider; request_retention_days",
    "api_keys": "a row a key",
}
#: What may grow within an hour of what was there, and in itself, before it counts.
SHARE, NOISE = 0.05, {"bytes": 8 << 20, "count": 8, "rows": 60}


class Model:
    """Writes a few sentences, a word at a time."""

    model_name = "scripted"

    async def stream(self, _messages: object, **_: object) -> AsyncIterator[str]:
        for number in range(8):
            for word in f"Sentence {number} says what was said before [1]. ".split(" "):
                await asyncio.sleep(0.01)
                yield f"{word} " if word else ""


def serve(port: int, provider: str) -> None:
    from recollect import RAGConfig, RAGPipeline
    from recollect.server.running import serve as run

    # Limits are counted, and high enough for one credential to do everything.
    limits = {"answer": 6_000, "ingest": 6_000}
    config = RAGConfig.load(embedding={"provider": provider}, server={"port": port, "limits": limits})
    with RAGPipeline(config, chat_model=Model()) as rag:
        run(rag, worker=False)


@dataclass
class Load:
    """Requests of every kind, each of them a coroutine.

    Attributes:
        client: Which asks.
        asked: How many requests of each kind were made.
        unexpected: What was replied otherwise than it should be.
    """

    client: httpx2.AsyncClient
    texts: list[str]
    asked: Counter[str] = field(default_factory=Counter)
    unexpected: Counter[str] = field(default_factory=Counter)
    _numbers: itertools.count = field(default_factory=itertools.count)
    _conversations: deque[str] = field(default_factory=deque)
    _jobs: deque[int] = field(default_factory=lambda: deque(maxlen=20))
    _random: random.Random = field(default_factory=lambda: random.Random(1))

    def kinds(self) -> dict[str, tuple[int, Callable[[], Awaitable[None]]]]:
        """Every kind of request, and how often it comes."""
        return {
            "search": (30, self.search),
            "ask": (4, self.ask),
            "ask, streamed": (5, self.streamed),
            "ask, left in the middle": (5, self.left),
            "text": (8, self.text),
            "upload": (5, self.upload),
            "chat": (6, self.chat),
            "turn": (4, self.turn),
            "recall": (3, self.recall),
            "jobs": (3, self.jobs),
            "events of a job": (2, self.events),
            "read": (8, self.read),
            "OpenAI": (4, self.openai),
            "MCP": (5, self.mcp),
            "failed credential": (4, self.forged),
            "metrics": (2, self.metrics),
            "key": (1, self.keys),
        }

    async def _send(self, method: str, path: str, *, wanted: int = 200, **given: object) -> httpx2.Response:
        reply = await self.client.request(method, path, **given)
        # What was listed may have been erased by another request before it is read.
        if reply.status_code == 404 and path.startswith(("/v1/documents/", "/v1/sessions/")):
            raise LookupError
        if reply.status_code != wanted:
            self.unexpected[f"{method} {path.partition('?')[0]}: {reply.status_code} {reply.text[:150]}"] += 1
            raise LookupError
        return reply

    def _question(self) -> str:
        return " ".join(self._random.choice(self.texts).split()[:6])

    def _content(self) -> str:
        return f"Number {next(self._numbers)}.\n\n{self._random.choice(self.texts)}"

    async def search(self) -> None:
        await self._send("POST", "/v1/search", json={"query": self._question()})

    async def ask(self) -> None:
        await self._send("POST", "/v1/ask", json={"question": self._question()})

    async def streamed(self) -> None:
        await self._stream("/v1/ask", {"question": self._question()}, b"event: done")

    async def left(self) -> None:
        body = {"question": self._question()}
        async with self.client.stream("POST", "/v1/ask", json=body, headers={"Accept": "text/event-stream"}) as reply:
            async for _ in reply.aiter_raw():
                break

    async def _stream(self, path: str, body: dict, end: bytes) -> None:
        text = b""
        async with self.client.stream("POST", path, json=body, headers={"Accept": "text/event-stream"}) as reply:
            async for part in reply.aiter_raw():
                text += part
        if end not in text:
            self.unexpected[f"{path}: a stream without its end: {text[-150:]!r}"] += 1

    async def text(self) -> None:
        headers = {"Idempotency-Key": f"text-{next(self._numbers)}"} if self._random.random() < 0.3 else {}
        body = {"content": self._content(), "source": f"text-{next(self._numbers)}"}
        await self._send("POST", "/v1/collections/default/documents", wanted=201, json=body, headers=headers)
        await self._trim()

    async def upload(self) -> None:
        name = f"file-{next(self._numbers)}.md"
        files = {"file": (name, self._content().encode(), "text/markdown")}
        reply = await self._send("POST", "/v1/collections/default/files", wanted=202, files=files)
        self._jobs.append(reply.json()["jobs"][0]["job_id"])

    async def _trim(self) -> None:
        """Erase some of the oldest documents, where there are more than are to be kept."""
        total = (await self._send("GET", "/v1/collections/default")).json()["documents"]
        page = (await self._send("GET", "/v1/collections/default/documents?limit=50")).json()["items"]
        # Any of them: others are at it at the same time.
        for one in self._random.sample(page, max(0, min(4, len(page), total - DOCUMENTS))):
            with suppress(LookupError):
                await self._send("POST", f"/v1/documents/{one['document_id']}/erase", json={})
                self.asked["erasure"] += 1

    async def chat(self) -> None:
        session = f"chat-{next(self._numbers)}"
        for _ in range(2):
            await self._stream("/v1/chat", {"session": session, "question": self._question()}, b"event: done")
        await self._remembered(session)

    async def turn(self) -> None:
        session = f"talk-{next(self._numbers)}"
        body = {"turns": [{"content": self._question()}, {"content": "Noted.", "role": "assistant"}]}
        await self._send("POST", f"/v1/sessions/{session}/turns", wanted=201, json=body)
        await self._remembered(session)

    async def _remembered(self, session: str) -> None:
        self._conversations.append(session)
        if len(self._conversations) > CONVERSATIONS:
            oldest = self._conversations.popleft()
            try:
                await self._send("DELETE", f"/v1/sessions/{oldest}")
            except httpx2.HTTPError:
                # On a machine that is too busy to reply in time it is removed later: it would stay for ever else.
                self._conversations.append(oldest)
                raise

    async def recall(self) -> None:
        await self._send("POST", "/v1/recall", json={"query": self._question()})

    async def jobs(self) -> None:
        await self._send("GET", "/v1/jobs?limit=20")

    async def events(self) -> None:
        if self._jobs:
            async with self.client.stream("GET", f"/v1/jobs/{self._random.choice(self._jobs)}/events") as reply:
                async for _ in reply.aiter_raw():
                    break

    async def read(self) -> None:
        page = (await self._send("GET", "/v1/collections/default/documents?sort=newest&limit=50")).json()["items"]
        if page:
            path = f"/v1/documents/{self._random.choice(page)['document_id']}"
            behind = self._random.choice(("", "/content", "/outline", "/chunks", "/history"))
            with suppress(LookupError):
                await self._send("GET", path + behind)
        await self._send("GET", self._random.choice(("/v1/stats", "/v1/collections", "/v1/sessions", "/v1/me")))

    async def openai(self) -> None:
        messages = [{"role": "user", "content": self._question()}]
        stream = self._random.random() < 0.5
        body = {"model": "default", "messages": messages, "stream": stream}
        if stream:
            await self._stream("/v1/chat/completions", body, b"[DONE]")
        else:
            await self._send("POST", "/v1/chat/completions", json=body)

    async def mcp(self) -> None:
        name = "io.modelcontextprotocol"
        envelope = {f"{name}/protocolVersion": "2026-07-28", f"{name}/clientCapabilities": {}}
        call = {"name": "search", "arguments": {"query": self._question()}, "_meta": envelope}
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "search",
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        await self._send("POST", "/mcp", json=body, headers=headers)

    async def forged(self) -> None:
        forged = f"rk_{self._random.randbytes(6).hex()}_{self._random.randbytes(24).hex()}"
        await self._send("GET", "/v1/me", wanted=401, headers={"Authorization": f"Bearer {forged}"})

    async def metrics(self) -> None:
        await self._send("GET", "/metrics")

    async def keys(self) -> None:
        made = (await self._send("POST", "/v1/keys", wanted=201, json={"name": "x"})).json()
        await self._send("DELETE", f"/v1/keys/{made['key']['key_id']}")

    async def run(self, rate: float, seconds: float) -> None:
        """Requests at a fixed rate for so long, whether or not earlier ones have been answered."""
        kinds = self.kinds()
        names, weights = list(kinds), [weight for weight, _ in kinds.values()]
        open_ones: set[asyncio.Task[None]] = set()
        begun = time.perf_counter()
        for number in itertools.count():
            due = begun + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if time.perf_counter() - begun > seconds:
                break
            name = self._random.choices(names, weights)[0]
            task = asyncio.create_task(self._one(name, kinds[name][1]))
            open_ones.add(task)
            task.add_done_callback(open_ones.discard)
        await asyncio.gather(*open_ones)

    async def _one(self, name: str, act: Callable[[], Awaitable[None]]) -> None:
        self.asked[name] += 1
        try:
            await act()
        except LookupError:
            pass
        except httpx2.TransportError as exc:
            self.unexpected[f"{name}: {type(exc).__name__}"] += 1


class Watch:
    """Notes what grows, in series by name."""

    def __init__(self, service: Service, temporary: Path) -> None:
        self._service = service
        self._temporary = temporary
        self.times: list[float] = []
        self.series: dict[str, list[float]] = defaultdict(list)

    def look(self) -> None:
        """One more point of every series."""
        self.times.append(time.perf_counter())
        for program in (self._service.server, self._service.worker):
            self._program(program)
        sessions = [one for one in self._service.postgres.family() if one.is_running()]
        self._note("bytes PostgreSQL, memory of all sessions", sum(map(_private, sessions)))
        with self._service.connect() as connection:
            (count,) = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE usename IS NOT NULL").fetchone()
            self._note("count PostgreSQL, connections", count - 1)
            for name, size, live, dead in connection.execute(_TABLES):
                self._note(f"bytes table {name}", size)
                self._note(f"rows table {name}", live)
                self._note(f"dead table {name}", dead)
        self._note("count temporary files", len(list(self._temporary.iterdir())))

    def _program(self, program: Program) -> None:
        with suppress(psutil.NoSuchProcess, IndexError):
            process, *children = program.family()
            self._note(f"bytes {program.name}, memory", process.memory_info().rss)
            self._note(f"count {program.name}, threads", process.num_threads())
            self._note(f"count {program.name}, descriptors", process.num_fds())
            self._note(f"count {program.name}, processes below", len(children))

    def _note(self, name: str, value: float) -> None:
        # What appears later was nothing before.
        self.series[name] += [0.0] * (len(self.times) - 1 - len(self.series[name]))
        self.series[name].append(float(value))

    def growth(self, warm_up: float) -> list[tuple[str, str, float, float, float]]:
        """Of every series after the warm-up: kind, name, first and last level, and what it grows by in an hour."""
        import numpy as np

        times = np.array(self.times) - self.times[0]
        warm = times >= warm_up
        found = []
        for name, values in self.series.items():
            kind, _, what = name.partition(" ")
            held = np.array(values + [values[-1]] * (len(times) - len(values)))[warm]
            third = max(1, len(held) // 3)
            first, last = float(np.median(held[:third])), float(np.median(held[-third:]))
            slope = float(np.polyfit(times[warm], held, 1)[0]) * 3600 if len(held) > 2 else 0.0
            found.append((kind, what, first, last, slope))
        return found


_TABLES = """
    SELECT coalesce(parent.relname, c.relname), sum(pg_total_relation_size(c.oid))::bigint,
           sum(s.n_live_tup)::bigint, sum(s.n_dead_tup)::bigint
    FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
    LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class parent ON parent.oid = i.inhparent
    GROUP BY 1 ORDER BY 1
"""


def _private(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        return process.memory_full_info().uss
    return 0


def grows(kind: str, what: str, first: float, last: float, slope: float) -> bool:
    """Whether a series grows by more than its noise, by the line and by its levels, and no log explains it."""
    if kind == "dead" or what.removeprefix("table ") in LOGS:
        return False
    noise = max(NOISE[kind], SHARE * first)
    return slope > noise and last - first > noise / 3


def shown(kind: str, value: float) -> str:
    return f"{value / (1 << 20):,.1f} MiB" if kind == "bytes" else f"{value:,.0f}"


async def loaded(service: Service, arguments: argparse.Namespace, watch: Watch) -> Load:
    words = synthetic.source_texts()
    texts = [part for text in words for part in text.split("\n\n") if 200 < len(part) < 1_500]
    limits = httpx2.Limits(max_connections=100, max_keepalive_connections=50)
    async with httpx2.AsyncClient(base_url=service.url, timeout=120, limits=limits) as client:
        made = await client.post(
            "/v1/keys", json={"name": "endurance", "scopes": ["read", "write", "admin", "operator"]}
        )
        client.headers["Authorization"] = f"Bearer {made.json()['secret']}"
        load = Load(client, texts)
        stopped = asyncio.Event()

        async def looking() -> None:
            while not stopped.is_set():
                await asyncio.to_thread(watch.look)
                if len(watch.times) % 24 == 0:
                    say(f"{(watch.times[-1] - watch.times[0]) / 60:.0f} min:", sum(load.asked.values()), "requests;",
                        {name: shown(name.split()[0], series[-1]) for name, series in watch.series.items()
                         if "memory" in name or "connections" in name}, dict(load.unexpected))  # fmt: skip
                with suppress(TimeoutError):
                    await asyncio.wait_for(stopped.wait(), SAMPLE_SECONDS)

        task = asyncio.create_task(looking())
        await load.run(arguments.rate, arguments.minutes * 60)
        stopped.set()
        await task
        return load


def tell(arguments: argparse.Namespace, watch: Watch, load: Load) -> bool:
    """Print the figures; whether nothing grew and every reply was as it should be."""
    growth = watch.growth(arguments.warm_up * 60)
    bad = [one for one in growth if grows(*one)]
    print(f"{machine()}\n{'; '.join(versions())}\n")
    print(f"{sum(load.asked.values()):,} requests in {arguments.minutes:g} minutes: {dict(load.asked)}\n")
    rows = [
        [one[1], *(shown(one[0], value) for value in one[2:]), "GROWS" if one in bad else ""]
        for one in growth
        if not one[1].startswith("table ")
    ]
    print(table(["", f"after {arguments.warm_up:g} min", "at the end", "an hour, by fit", ""], rows))
    tables: dict[str, dict[str, tuple[float, float, float]]] = defaultdict(dict)
    for kind, what, first, last, slope in growth:
        if what.startswith("table "):
            tables[what.removeprefix("table ")][kind] = (first, last, slope)
    named = {what.removeprefix("table ") for _, what, *_ in bad}
    print("\n" + table(
        ["table", "rows", "at the end", "bytes", "at the end", "dead rows at the end", ""],
        [
            [name, shown("rows", one["rows"][0]), shown("rows", one["rows"][1]), shown("bytes", one["bytes"][0]),
             shown("bytes", one["bytes"][1]), shown("dead", one["dead"][1]),
             "GROWS" if name in named else LOGS.get(name, "")]
            for name, one in sorted(tables.items())
            if max(one["rows"]) > 0 or name in named
        ],
    ))  # fmt: skip
    for line, count in load.unexpected.most_common():
        print(f"unexpected, {count} times: {line}")
    return not bad and not load.unexpected


def main() -> None:
    parser = argparse.ArgumentParser(description="The server under mixed load for a long time.")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--warm-up", type=float, default=8.0, help="minutes")
    parser.add_argument("--rate", type=float, default=10.0, help="requests a second")
    parser.add_argument("--provider", default="local", choices=("local", "hashing"))
    parser.add_argument("--series", type=Path, help="write every point there, as JSON")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, arguments.provider)
        return
    command = [sys.executable, __file__, "--serve", "{port}", "--provider", arguments.provider]
    with store_folder() as folder:
        temporary = Path(folder) / "tmp"
        temporary.mkdir()
        settings = {**SETTINGS, "RECOLLECT_EMBEDDING__PROVIDER": arguments.provider, "TMPDIR": str(temporary)}
        with running(Path(folder), environment=settings, server=command) as service:
            until(lambda: _answers(service), what="the server answers")
            watch = Watch(service, temporary)
            load = asyncio.run(loaded(service, arguments, watch))
            if arguments.series:
                arguments.series.write_text(json.dumps({"times": watch.times, **watch.series}), encoding="utf-8")
            fine = tell(arguments, watch, load)
    if not fine:
        raise SystemExit(1)


def _answers(service: Service) -> bool:
    with suppress(httpx2.TransportError):
        return httpx2.get(f"{service.url}/readyz", timeout=40).status_code == 200
    return False


if __name__ == "__main__":
    main()
