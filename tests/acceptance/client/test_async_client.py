"""The client that awaits: the same methods, events as they come, and calls that are given up."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from recollect import Answer, AsyncClient, Document
from recollect.errors import NotFoundError, ServerUnavailableError, UsageError
from recollect.model.record import json_of
from wires import ASKED, Cutter, answering, request_of, untimed


def test_it_gives_what_the_other_gives(served, client, tmp_path):
    (tmp_path / "sent.txt").write_text("Sent and awaited.")

    async def main() -> None:
        async with AsyncClient(served.url) as asking:
            assert untimed(json_of(await asking.search(ASKED))) == untimed(json_of(client.search(ASKED)))
            *pieces, answer = [piece async for piece in asking.ask_stream(ASKED)]
            assert isinstance(answer, Answer)
            assert "".join(pieces) == answer.text == (await asking.ask(ASKED)).text
            assert [one.source async for one in asking.documents.each()] == [
                one.source for one in client.documents.each()
            ]
            report = await asking.view(collections="it").ingest(tmp_path / "sent.txt")
            assert report.added == 1
            number = (await asking.view(collections="it").documents.get("sent.txt")).document_id
            assert b"".join([piece async for piece in asking.contents.download(number)]) == b"Sent and awaited."
            # What was shown is written to the audit a moment later: more may come between the two.
            served.rag.standpoint.assembly.access_log.flush()
            audit = [line async for line in asking.audit.export()]
            assert audit
            assert list(client.audit.export())[: len(audit)] == audit
            jobs = await asking.jobs.list(limit=1)
            assert [job.status async for job in asking.jobs.events(jobs[0].job_id)] == ["succeeded"]
            await asking.view(collections="it").documents.delete(["sent.txt"])
            with pytest.raises(NotFoundError):
                await asking.documents.get(4711)
            texts = await asyncio.gather(*(asking.search(f"leave {n}") for n in range(20)))
            assert all(one.results for one in texts)

    asyncio.run(main())


def test_a_model_is_changed_and_changed_back(served, client):
    """By both clients, each its half; what they are told is what the view says."""
    served.rag.view(collections="choir").ingest(Document(content="The choir sings at dawn.", source="choir.md"))
    view, asking = served.rag.view(collections="choir"), client.view(collections="choir")
    job = asking.jobs.reembed("hashing:96", samples=0, rest=0, minimum={})
    assert asking.jobs.wait(job.job_id).status == "succeeded"
    told, known = asking.spaces.status(), view.spaces.status()
    assert (told.used.model, told.used.space_id, told.used.since) == (
        "hashing:96",
        known.used.space_id,
        known.used.since,
    )
    assert [(one.status, one.filled, one.total, one.kept_until) for one in told.beside] == [
        (one.status, one.filled, one.total, one.kept_until) for one in known.beside
    ]

    async def main() -> None:
        async with AsyncClient(served.url) as other:
            there = other.view(collections="choir")
            assert (await there.jobs.wait((await there.jobs.rollback()).job_id)).status == "succeeded"
            assert (await there.spaces.status()).used.model == "hashing:64"
            assert [one.model for one in await there.spaces.drop()] == ["hashing:96"]
            for refused in (there.jobs.contextualise(), there.maintenance.estimate_contexts()):
                with pytest.raises(UsageError, match="contextualise"):
                    await refused

    asyncio.run(main())
    assert view.spaces.status().beside == ()
    served.rag.collections.delete("choir")


def test_it_may_be_used_in_one_loop_after_the_other(served):
    client = AsyncClient(served.url)

    async def main() -> int:
        found = await client.search(ASKED)
        await client.close()
        return len(found.results)

    assert asyncio.run(main()) == asyncio.run(main()) > 0


def test_a_write_whose_reply_is_lost_takes_effect_once(served, client):
    cut = Cutter(served.url, [5])

    async def main(url: str) -> None:
        async with AsyncClient(url) as asking:
            made = await asking.ingest(Document(content="Awaited while the line broke.", source="cut.md"))
            assert made.status == "added"

    with answering(cut) as url:
        asyncio.run(main(url))
    client.documents.delete(["cut.md"])


def test_a_call_that_is_given_up_closes_its_connection():
    closed: list[bytes] = []
    asked, ended = threading.Event(), threading.Event()

    def handle(connection: socket.socket, _: int) -> None:
        request_of(connection)
        asked.set()
        closed.append(connection.recv(1))
        ended.set()

    async def main(url: str) -> None:
        async with AsyncClient(url) as asking:
            call = asyncio.create_task(asking.search("words"))
            assert await asyncio.to_thread(asked.wait, 60)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await asyncio.to_thread(ended.wait, 60)

    with answering(handle) as url:
        asyncio.run(main(url))
    assert closed == [b""]


def test_nobody_who_listens_is_said_to_be_nobody():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    async def main() -> None:
        async with AsyncClient(f"http://127.0.0.1:{port}", retries=0) as asking:
            with pytest.raises(ServerUnavailableError):
                await asking.search("words")

    asyncio.run(main())
