"""What a server makes once is made before somebody visits it."""

from __future__ import annotations

import asyncio

import httpx2
import jinja2
import pydantic

from recollect.server.app import create_app
from recollect.server.running import make_ready
from recollect.ui import install, templates


def test_the_first_visitor_of_a_server_waits_for_nothing_that_is_made_once(pipeline, monkeypatch):
    templates._environment.cache_clear()
    app = create_app(pipeline)
    install(app)
    make_ready(app)

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("this was to be made before")

    monkeypatch.setattr(jinja2.Environment, "compile", refused)
    monkeypatch.setattr(pydantic.TypeAdapter, "__init__", refused)
    transport = httpx2.ASGITransport(app, client=("127.0.0.1", 1))

    async def visit() -> list[int]:
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return [(await client.get(path)).status_code for path in ("/chat", "/library", "/dashboard")]

    assert asyncio.run(visit()) == [200, 200, 200]
