"""How the server listens."""

from __future__ import annotations

import asyncio
import socket

from recollect.server.running import _listening


def test_responses_are_sent_at_once():
    async def main(bound: socket.socket) -> int:
        seen: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(answer, sock=bound):
            _, writer = await asyncio.open_connection(*bound.getsockname())
            writer.close()
            return await seen

    with _listening("127.0.0.1", 0) as (bound, _):
        assert asyncio.run(main(bound)) != 0
