"""The web interface in a real Chromium: how soon a page can be used, what is sent for it, how soon a token is seen.

    python benchmarks/pages.py                    everything
    python benchmarks/pages.py first_page token   some of it: first_page, token, dashboard, tabs

A measurement is a function named in `MEASUREMENTS`: it is given a browser and what is served, and yields its figures.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import httpx2
import psutil
from harness import machine, percentile, say, store_folder, table
from starlette.responses import HTMLResponse
from starlette.routing import Route

from browser import chromium
from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.model.activity import Tally
from recollect.model.requests import LoggedRequest
from recollect.server.app import create_app
from recollect.server.running import make_ready
from recollect.ui import install
from served import listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.sync_api import Browser, BrowserContext

ROUNDS = 15
TOKENS = 100
TOKEN_SECONDS = 0.03
LEAVE = "Every employee has 30 days of annual leave."
TABS = 200
# Real ones among them, which cost Chromium more than the server.
REAL_TABS = 4
# One visitor may have 32 answers kept at once.
ANSWERS = 30
# Answers that take long enough for all tabs to be open while they are written.
SLOW_TOKEN_SECONDS = 0.3
DAYS = 30
# What any page takes in this browser and on this machine: one field, which has the focus.
FLOOR = '<!doctype html><title>floor</title><textarea id="question" autofocus></textarea>'

#: A name, a figure with its unit, and what it may be at most.
Figure = tuple[str, str, str]


class PacedModel:
    """Writes one long sentence, a numbered word at a time, and notes when."""

    model_name = "paced"

    def __init__(self, seconds: float = TOKEN_SECONDS) -> None:
        self.seconds = seconds
        self.sent: dict[int, float] = {}

    async def stream(self, *_: object, **__: object) -> AsyncIterator[str]:
        yield "Every employee has 30 days of annual leave [1] and "
        for number in range(TOKENS):
            await asyncio.sleep(self.seconds)
            self.sent[number] = time.time()
            yield f"w{number}w "


class Served:
    """A server with pages, in threads of this process."""

    def __init__(self, url: str, rag: RAGPipeline, model: PacedModel) -> None:
        self.url = url
        self.rag = rag
        self.model = model


def first_page(browser: Browser, served: Served) -> Iterator[Figure]:
    """The first page of somebody who was never here: nothing of it is kept in the browser."""
    seconds, floors, sizes = [], [], []
    for _ in range(ROUNDS):
        for path, times in (("/chat", seconds), ("/floor", floors)):
            context = browser.new_context()
            usable, size = _opened(context, served.url + path, "#question:focus")
            times.append(usable)
            sizes.append(size)
            context.close()
    yield "a page of one field, usable, median", f"{statistics.median(floors) * 1000:.0f} ms", ""
    yield "first page, usable, median", f"{statistics.median(seconds) * 1000:.0f} ms", "600 ms"
    yield "first page, usable, slowest", f"{max(seconds) * 1000:.0f} ms", ""
    yield "first page, sent", f"{max(sizes) / 1000:.0f} KB", "150 KB"


def token(browser: Browser, served: Served) -> Iterator[Figure]:
    """From when the model sends a token until it stands in the page."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{served.url}/chat")
    page.evaluate(
        """() => { window.seen = {};
        new MutationObserver(() => {
          const shown = document.querySelector("#turns").textContent;
          const now = performance.timeOrigin + performance.now();
          for (const [, number] of shown.matchAll(/w(\\d+)w/g)) window.seen[number] ??= now;
        }).observe(document.querySelector("#turns"), {subtree: true, childList: true, characterData: true}); }"""
    )
    page.fill("#question", "How many days of annual leave?")
    page.keyboard.press("Enter")
    page.locator(".exchange:not([data-pending]) .answer").wait_for(timeout=60_000)
    seen = {int(number): at / 1000 for number, at in page.evaluate("window.seen").items()}
    context.close()
    waits = [seen[number] - at for number, at in served.model.sent.items() if number in seen]
    yield "token on the screen, median", f"{statistics.median(waits) * 1000:.0f} ms", "100 ms"
    yield "token on the screen, 95 %", f"{percentile(waits, 95) * 1000:.0f} ms", "100 ms"
    yield "tokens seen", f"{len(waits)} of {len(served.model.sent)}", ""


def dashboard(browser: Browser, served: Served) -> Iterator[Figure]:
    """The dashboard over thirty days of figures: in the browser, and what its refresh costs the server."""
    _fill_dashboard(served.rag)
    seconds = []
    for _ in range(5):
        context = browser.new_context()
        seconds.append(_opened(context, f"{served.url}/dashboard?range=30d", "figure[data-drawn] canvas >> nth=0")[0])
        context.close()
    yield "dashboard of 30 days, first chart drawn, median", f"{statistics.median(seconds) * 1000:.0f} ms", ""
    with httpx2.Client(base_url=served.url, timeout=60) as client:
        for span in ("24h", "30d"):
            times = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                assert client.get(f"/dashboard?range={span}", headers={"HX-Request": "true"}).status_code == 200
                times.append(time.perf_counter() - began)
            yield f"dashboard of {span}, one refresh, median", f"{statistics.median(times) * 1000:.0f} ms", ""


def tabs(browser: Browser, _: Served) -> Iterator[Figure]:
    """What open tabs cost a server in a process of its own.

    Half of them are conversations, some with an answer that is being written, half are dashboards that ask for new
    figures again and again. A few are real; the others are clients that fetch what a page names over six connections,
    keep them, and then do what the page's script does.
    """
    with _served_apart() as (url, process):
        # What a server has once: modules, templates, connections, the threads of streams.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _visited(url, 4)).result()
            before = process.memory_info().rss
            context = browser.new_context()
            for number in range(REAL_TABS):
                context.new_page().goto(url + ("/dashboard" if number % 2 else "/chat"))
            most = [before]
            done = thread.submit(asyncio.run, _visited(url, TABS - REAL_TABS))
            while not done.done():
                most.append(process.memory_info().rss)
                time.sleep(0.1)
            done.result()
        context.close()
    yield "server before tabs", f"{before / 1e6:.0f} MB", ""
    yield f"{TABS} open tabs, {ANSWERS} with an answer, at most", f"{(max(most) - before) / 1e6:.0f} MB more", "200 MB"


MEASUREMENTS: dict[str, Callable[[Browser, Served], Iterator[Figure]]] = {
    "first_page": first_page,
    "token": token,
    "dashboard": dashboard,
    "tabs": tabs,
}


def _fill_dashboard(rag: RAGPipeline) -> None:
    """An hour after the other, as a server that is used all day leaves it."""
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    hours = [now - timedelta(hours=number) for number in range(DAYS * 24)]
    labels = [
        *(("search", stage) for stage in ("total", "embed", "dense", "lexical", "rerank")),
        *(("cache", "hit"), ("cache", "miss"), ("found", "nothing"), ("found", "low"), ("found", "some")),
        *(("answer", "answered"), ("answer", "refused"), ("feedback", "helpful"), ("limit", "search")),
    ]
    tally = Tally(count=100, total=4_000.0, histogram={20: 40, 30: 50, 45: 10})
    rag.store.activity.add(rag.scope, {(at, name, label): tally for at in hours for name, label in labels})
    for kind in ("embed", "answer"):
        rag.store.requests.append(
            rag.scope, [_logged(kind, at, minutes) for at in hours for minutes in (5, 20, 40, 55)]
        )


def _logged(kind: str, at: datetime, minutes: int) -> LoggedRequest:
    return LoggedRequest(
        at=at - timedelta(minutes=minutes),
        kind=kind,  # type: ignore[arg-type]
        provider="openai",
        model="m",
        inputs=1,
        input_tokens=100,
        output_tokens=7,
        tokens_estimated=False,
        attempts=1,
        milliseconds=float(minutes),
        success=True,
        error=None,
        status=None,
        cost=0.5,
    )


@contextmanager
def _served_apart() -> Iterator[tuple[str, psutil.Process]]:
    """The same server in a process of its own."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip(), psutil.Process(process.pid)
        finally:
            process.stdin.close()


async def _visited(url: str, count: int) -> None:
    """So many tabs at the same time, until the answers of some have come to their end."""
    opened = [_Tab(url) for _ in range(count)]
    for number, one in enumerate(opened):
        await one.open("/dashboard" if number % 2 else "/chat")
    talks = [asyncio.create_task(one.ask()) for one in opened[::2][:ANSWERS]]
    while not all(talk.done() for talk in talks):
        for one in opened[1::2]:
            await one.refresh()
        await asyncio.wait(talks, timeout=5)
    await asyncio.gather(*talks)
    for one in opened:
        await one.client.aclose()


class _Tab:
    """Does what a tab does: fetches what its page names, keeps its connections, asks or refreshes."""

    def __init__(self, url: str) -> None:
        limits = httpx2.Limits(max_connections=6, max_keepalive_connections=6, keepalive_expiry=300)
        self.client = httpx2.AsyncClient(base_url=url, limits=limits, timeout=300, verify=False)
        self.page = ""

    async def open(self, path: str) -> None:
        self.page = (await self.client.get(path)).text
        named = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', self.page))
        await asyncio.gather(*(self.client.get(one) for one in named))

    async def ask(self) -> None:
        [path] = re.findall(r'data-ask="([^"]+)"', self.page)
        headers = {"Accept": "text/event-stream", "HX-Request": "true", "Recollect-Keep-Stream": "60"}
        question = {"question": "How many days of annual leave?"}
        async with self.client.stream("POST", path, data=question, headers=headers) as reply:
            assert reply.status_code == 200, reply.status_code
            async for _ in reply.aiter_bytes():
                pass

    async def refresh(self) -> None:
        reply = await self.client.get("/dashboard", headers={"HX-Request": "true"})
        assert reply.status_code == 200, reply.status_code


def _opened(context: BrowserContext, url: str, usable: str) -> tuple[float, int]:
    """How long a page takes until something in it can be used, and how many bytes are sent for it."""
    page = context.new_page()
    devtools = context.new_cdp_session(page)
    devtools.send("Network.enable")
    sizes: list[int] = []
    devtools.on("Network.loadingFinished", lambda event: sizes.append(int(event["encodedDataLength"])))
    began = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.locator(usable).wait_for()
    taken = time.perf_counter() - began
    page.wait_for_load_state("networkidle")
    return taken, sum(sizes)


@contextmanager
def _serving(model: PacedModel) -> Iterator[Served]:
    with store_folder() as folder:
        config = RAGConfig.load(storage={"data_dir": Path(folder) / "data"}, embedding={"provider": "hashing"})
        with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=model) as rag:
            rag.ingest(Document(content=LEAVE, source="leave.md"))
            app = create_app(rag)
            install(app)
            app.router.routes.insert(0, Route("/floor", lambda _: HTMLResponse(FLOOR)))
            make_ready(app)
            with listening(app) as url:
                yield Served(url, rag, model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", nargs="*", choices=[*MEASUREMENTS, []], help="left out: all")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        with _serving(PacedModel(SLOW_TOKEN_SECONDS)) as served:
            print(served.url, flush=True)
            sys.stdin.read()
        return
    wanted = arguments.measurements or list(MEASUREMENTS)
    with _serving(PacedModel()) as served, chromium() as browser:
        say(machine(), f"Chromium {browser.version}", f"{threading.active_count()} threads")
        # What a server does once: connections, and what its pages import when they are first opened.
        _opened(browser.new_context(), f"{served.url}/chat", "#question:focus")
        rows = [row for name in wanted for row in MEASUREMENTS[name](browser, served)]
    print(table(("figure", "measured", "at most"), rows))


if __name__ == "__main__":
    main()
