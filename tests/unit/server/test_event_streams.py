"""Events that are sent: whoever goes away ends what makes them, at whatever moment that is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from recollect.server.sse import frame_stream

SCOPE = {"type": "http", "method": "GET", "path": "/", "headers": [], "asgi": {"version": "3.0", "spec_version": "2.3"}}


@pytest.mark.parametrize("while_sending", [True, False])
def test_who_goes_away_ends_what_is_sent_before_the_response_has_ended(while_sending: bool):
    async def main() -> None:
        ended, begun, never = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def frames() -> AsyncIterator[bytes]:
            try:
                yield b"data: one\n\n"
                await never.wait()
            finally:
                ended.set()

        async def send(message: dict) -> None:
            if message["type"] == "http.response.body":
                begun.set()
                if while_sending:
                    await never.wait()

        async def receive() -> dict:
            await begun.wait()
            return {"type": "http.disconnect"}

        await frame_stream(frames())(SCOPE, receive, send)
        assert ended.is_set()

    asyncio.run(main())
