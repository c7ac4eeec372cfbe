"""Cursors of other lists, of nobody, and cut to hurt: every list refuses them, or begins where they say."""

from __future__ import annotations

import base64
import json
import re
from functools import partial
from itertools import product

from fastapi.testclient import TestClient
from httpx2 import Response

from recollect import Document, Principal, RAGPipeline
from recollect.model.page import cursor_at
from recollect.server.app import create_app

NOW = "2026-01-01T00:00:00+00:00"
POSITIONS = (
    *(
        0,
        7,
        2**63 - 1,
        2**63,
        -1,
        "a",
        "",
        "\0",
        ["a"],
        ["a", "b"],
        ["a", "b", "c"],
        [1, 2],
        ["a", 1],
        [None, 1],
        [1.5, 2],
    ),
    *([NOW, 5], [NOW[:19], 5], [NOW, True], [NOW, 2**63], ["0001-01-01T00:00:00+23:59", 5]),
    *(["9999-12-31T23:59:59.999999-23:59", 5], ["\ud800", 1], ["\0", "b", "c"], ["x" * 1_000, 1], [[["a"]]]),
)
BYTES = (b"1e400", b"NaN", b"9" * 1_400, b"[" * 1_400, b"{}", b"null", b"true")
CURSORS = [
    *map(cursor_at, POSITIONS),
    *(base64.urlsafe_b64encode(one).rstrip(b"=").decode() for one in BYTES),
    *("%%%", "é", "a" * 1_999),
]


def test_every_list_refuses_cursors_that_are_not_its_own_and_gives_each_entry_once(pipeline: RAGPipeline):
    for number in range(3):
        pipeline.ingest(Document(content=f"Plan {number} grants {number} days.", source=f"{number}.md"))
        pipeline.view(session=f"s{number}").remember("I live in Lisbon.", role="ada")
    scopes = ["read", "write", "admin"]
    owner = pipeline.keys.create("all", scopes=[*scopes, "operator"]).secret
    ann = pipeline.keys.create("ann", scopes=scopes, principal=Principal(user_id="ann")).secret
    document = next(iter(pipeline.documents.list())).document_id
    with TestClient(create_app(pipeline), base_url="http://127.0.0.1:8321", raise_server_exceptions=False) as client:
        described = client.get("/v1/openapi.json", headers=_as(owner)).json()["paths"]
        lists = [
            (method, path, path != "/v1/contents")
            for path, methods in described.items()
            for method, operation in methods.items()
            if path == "/v1/contents" or any(one["name"] == "cursor" for one in operation.get("parameters", []))
        ]
        assert len(lists) >= 16
        for (method, path, in_query), secret in product(lists, (owner, ann)):
            where = re.sub(r"{\w+}", str(document), path.replace("{name}", "default").replace("{session}", "s1"))
            ask = partial(_asked, client, method, where, secret, in_query=in_query)
            statuses = {ask(cursor=cursor).status_code for cursor in CURSORS}
            assert statuses <= {200, 400, 403, 404}, (path, statuses)
            found, reply = [], ask(limit=1)
            while reply.status_code == 200:
                told = reply.json()
                found += [
                    json.dumps(one, sort_keys=True) for part in told.values() if isinstance(part, list) for one in part
                ]
                if told["next_cursor"] is None:
                    break
                reply = ask(limit=1, cursor=told["next_cursor"])
            assert reply.status_code in {200, 403, 404} and len(set(found)) == len(found), path


def _asked(client: TestClient, method: str, path: str, secret: str, *, in_query: bool, **given: object) -> Response:
    return client.request(method, path, headers=_as(secret), **({"params": given} if in_query else {"json": given}))


def _as(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}
