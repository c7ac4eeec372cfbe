"""What a server makes once is made before somebody visits it."""

from __future__ import annotations

import jinja2
import pydantic
from fastapi.testclient import TestClient

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
    client = TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 1))
    assert [client.get(path).status_code for path in ("/chat", "/library", "/dashboard")] == [200, 200, 200]
    client.close()
