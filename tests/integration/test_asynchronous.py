"""The asynchronous view on a real store: real concurrency, and cancellations that leave nothing behind."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import psycopg
import pytest

from recollect import (
    Answer,
    AsyncRAGPipeline,
    AsyncView,
    Document,
    Principal,
    RAGConfig,
    RAGPipeline,
    View,
)
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, UsageError
from recollect.interruption import Interrupted, check
from recollect.tools import Toolbox


def run(main: Callable[[AsyncRAGPipeline], Awaitable[Any]], rag: RAGPipeline, **options: Any) -> Any:
    async def whole() -> Any:
        async with asyncio.timeout(60), AsyncRAGPipeline(rag, **options) as opened:
            return await main(opened)

    return asyncio.run(whole())


def ours() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith(("recollect-async", "recollect-stream"))]


@pytest.fixture
def filled(pipeline: RAGPipeline) -> RAGPipeline:
    pipeline.ingest(Document(content="# Leave\n\nAnnual leave is 30 days.", source="leave.md"))
    return pipeline


@pytest.fixture
def watch(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection of somebody else."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET search_path TO recollect")
        yield connection


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - what is waited for knows nothing of events
        await asyncio.sleep(0.002)


def blocked(watch: psycopg.Connection) -> bool:
    query = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock')"
    return bool(watch.execute(query).fetchone()[0])


def test_searches_views_groups_and_answers_are_awaited(filled: RAGPipeline):
    async def main(rag: AsyncRAGPipeline) -> None:
        await rag.ingest([Document(content="Salaries rise by 3 %.", source="pay.md", permissions=("role:hr",))])
        kim = rag.view(principal=Principal(user_id="kim"))
        assert isinstance(kim, AsyncView) and repr(kim) == f"Async{kim.view_of!r}"
        both = await asyncio.gather(*(one.search("salaries and leave") for one in (rag, kim) * 10))
        assert [len(one.results) for one in both] == [2, 1] * 10
        assert [one.source for one in await rag.documents.list()] == ["leave.md", "pay.md"]
        assert (await kim.contents.grep("30 days")).documents[0].source == "leave.md"
        pieces = [piece async for piece in rag.ask_stream("How long is annual leave?")]
        assert isinstance(pieces[-1], Answer) and pieces[-1].text == (await rag.ask("How long is annual leave?")).text
        assert len([line async for line in rag.collections.export_lines()]) == 2
        tools = Toolbox(kim.view_of)
        assert (await rag.in_thread(tools.execute, "grep", {"pattern": "Salaries"})).value["documents"] == []
        assert rag.default_options() == filled.default_options()
        with pytest.raises(NotFoundError):
            await rag.view(collections="nowhere").search("leave")
        with pytest.raises(UsageError):
            await rag.search("")
        with pytest.raises(UsageError):
            rag.view(as_of="soon")

    run(main, filled)
    assert ours() == []
    with pytest.raises(UsageError, match="max_threads"):
        AsyncRAGPipeline(filled, max_threads=0)


def test_a_pipeline_of_its_own_is_opened_closed_and_opened_again(dsn: str, tmp_path: Path):
    config = RAGConfig.load(storage={"data_dir": tmp_path, "dsn": dsn}, embedding={"provider": "hashing"})

    async def main() -> None:
        async with AsyncRAGPipeline(config) as rag:
            await rag.ingest("Annual leave is 30 days.")
        assert ours() == []
        assert len(await rag.retrieve("leave")) == 1
        await rag.close()

    asyncio.run(main())
    assert ours() == []


def test_threads_are_bounded_and_have_the_callers_context(filled: RAGPipeline):
    who: ContextVar[str] = ContextVar("who")
    running, most, lock = 0, 0, threading.Lock()
    both = threading.Barrier(2)

    def call() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait(30)
        with lock:
            running -= 1
        return who.get()

    async def main(rag: AsyncRAGPipeline) -> None:
        async def named(name: str) -> str:
            who.set(name)
            return await rag.in_thread(call)

        names = [f"caller {number}" for number in range(12)]
        assert await asyncio.gather(*map(named, names)) == names
        assert who.get("nobody") == "nobody"

    run(main, filled, max_threads=2)
    assert most == 2


def test_the_end_of_an_iterator_is_an_error_and_not_a_wait_for_ever(filled: RAGPipeline):
    async def main(rag: AsyncRAGPipeline) -> None:
        assert await rag.in_thread(next, iter([1])) == 1
        with pytest.raises(RuntimeError, match="StopIteration"):
            await rag.in_thread(next, iter([]))

    run(main, filled)


def test_several_event_loops_share_one(filled: RAGPipeline):
    rag = AsyncRAGPipeline(filled, max_threads=2)
    found: list[int] = []

    def loop() -> None:
        async def main() -> None:
            found.extend(len(one) for one in await asyncio.gather(*(rag.retrieve("leave") for _ in range(5))))

        asyncio.run(main())

    several = [threading.Thread(target=loop) for _ in range(3)]
    for one in several:
        one.start()
    for one in several:
        one.join()
    assert found == [1] * 15
    asyncio.run(rag.close())


def test_a_call_that_is_cancelled_while_the_database_waits_leaves_nothing_running(filled: RAGPipeline, watch, dsn):
    async def main(rag: AsyncRAGPipeline) -> None:
        with psycopg.connect(dsn) as holder:
            holder.execute("LOCK TABLE recollect.documents IN ACCESS EXCLUSIVE MODE")
            for call in (rag.documents.list(), rag.documents.delete(["leave.md"]), rag.ingest("Another text.")):
                task = asyncio.ensure_future(call)
                await until(lambda: blocked(watch))
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert not blocked(watch)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await rag.documents.list()
            assert not blocked(watch)
        # Every connection is as it was.
        found = await asyncio.gather(*(rag.documents.list() for _ in range(20)))
        assert {tuple(one.source for one in page) for page in found} == {("leave.md",)}

    run(main, filled, max_threads=2)
    assert ours() == []


def test_who_waits_for_the_answer_to_an_equal_question_gets_it_though_another_gives_up(filled, watch, dsn):
    async def main(rag: AsyncRAGPipeline) -> None:
        for _ in range(3):
            with psycopg.connect(dsn) as holder:
                holder.execute("LOCK TABLE recollect.chunks IN ACCESS EXCLUSIVE MODE")
                first = asyncio.ensure_future(rag.search("annual leave"))
                await until(lambda: blocked(watch))
                second = asyncio.ensure_future(rag.search("annual leave"))
                await asyncio.sleep(0)
                first.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await first
                await until(lambda: blocked(watch))  # the second asks itself now
            assert [one.source for one in (await second).results] == ["leave.md"]
            filled.standpoint.assembly.searcher.forget()

    run(main, filled)


def test_a_call_that_waits_for_a_thread_does_not_begin_when_it_is_cancelled(filled: RAGPipeline):
    begun, go, ran = threading.Event(), threading.Event(), []

    def hold() -> None:
        begun.set()
        go.wait(30)

    async def main(rag: AsyncRAGPipeline) -> None:
        holding = asyncio.ensure_future(rag.in_thread(hold))
        await until(begun.is_set)
        waiting = asyncio.ensure_future(rag.in_thread(ran.append, 1))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go.set()
        await holding

    run(main, filled, max_threads=1)
    assert ran == []


def test_what_cannot_be_interrupted_is_waited_for_however_often_it_is_cancelled(filled: RAGPipeline):
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(30)
        ended.set()
        check()  # the next step of something longer

    async def main(rag: AsyncRAGPipeline) -> None:
        task = asyncio.ensure_future(rag.in_thread(work))
        await until(begun.is_set)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    run(main, filled)


def test_an_ingest_that_is_cancelled_leaves_whole_documents(filled: RAGPipeline):
    given = threading.Event()

    def endless() -> Iterator[Document]:
        for number in itertools.count():
            if number == 300:
                given.set()
            yield Document(content=f"Note {number} about the leave of {number} people.", source=f"n{number}.md")

    async def main(rag: AsyncRAGPipeline) -> None:
        task = asyncio.ensure_future(rag.view(collections="notes").ingest(endless()))
        await until(given.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not [one for one in threading.enumerate() if "writer" in one.name or "embed-batch" in one.name]
        assert await rag.maintenance.check() == []
        assert (await rag.view(collections="notes").ingest("And it goes on.")).status == "added"

    run(main, filled)


class Endless:
    """A chat model that says some sentences, and then nothing for ever."""

    model_name = "endless"

    def __init__(self) -> None:
        self.closed = threading.Event()

    async def stream(self, messages: object, *, max_tokens: int | None = None) -> AsyncIterator[str]:
        try:
            for _ in range(5):
                yield "Annual leave is 30 days [1].\n\n"
            await asyncio.Event().wait()
        finally:
            self.closed.set()


@pytest.mark.parametrize("way", ["cancel", "break", "ask"])
def test_an_answer_that_nobody_waits_for_ends_in_the_model_too(filled: RAGPipeline, way: str):
    model = Endless()
    talking = RAGPipeline(filled.config, embedder=HashingEmbedder(), chat_model=model)

    async def main(rag: AsyncRAGPipeline) -> None:
        heard = asyncio.Event()

        async def listen() -> None:
            async for _ in rag.ask_stream("How long is annual leave?"):
                heard.set()
                if way == "break":
                    return

        task = asyncio.ensure_future(rag.ask("How long is annual leave?") if way == "ask" else listen())
        if way == "break":
            await task
        else:
            await until(lambda: heard.is_set() or (way == "ask" and "recollect-stream" in ours()))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        if way == "break":
            # Left behind, a stream is closed when it is collected, or by whoever has it.
            stream = rag.ask_stream("How long is annual leave?")
            await anext(stream)
            await stream.aclose()
            await until(lambda: "recollect-stream" not in ours())
        assert "recollect-stream" not in ours()
        assert model.closed.is_set()

    with talking:
        run(main, talking)
    assert ours() == []


def test_an_interrupt_is_no_error_that_somebody_could_take_for_another():
    assert not issubclass(Interrupted, Exception)
    check()  # where nobody can give up, nothing is asked


def test_pipelines_close_only_after_the_calls_that_run(filled: RAGPipeline, dsn: str):
    order: list[str] = []
    begun, go = threading.Event(), threading.Event()

    def work(view: View) -> None:
        begun.set()
        go.wait(30)
        view.search("leave")
        order.append("worked")

    async def main() -> None:
        rag = AsyncRAGPipeline(filled.config)
        rag.pipeline.close, close = (lambda: (order.append("closed"), close())), rag.pipeline.close
        task = asyncio.ensure_future(rag.in_thread(work, rag.view_of))
        await until(begun.is_set)
        closing = asyncio.ensure_future(rag.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.sleep(0)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await task

    asyncio.run(main())
    assert order == ["worked", "closed"] and ours() == []
