"""Every operation of the API has a method: a new route without one fails."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import GeneratorType

import pytest

import recollect.operations
from recollect import AsyncClient, Client, Document, Principal, RetrievalOptions
from recollect.client import async_groups, groups
from recollect.client.calls.base import Call, Calls, EventStream, FileToSend, Pages
from recollect.client.calls.collections import CollectionCalls, ModelCalls, SpaceCalls, send_lines
from recollect.client.calls.conversations import (
    ConfiguredSessionCalls,
    FactCalls,
    FeedbackCalls,
    MemoryCalls,
    RecallCalls,
)
from recollect.client.calls.documents import ContentCalls, DocumentCalls, VersionCalls
from recollect.client.calls.ingesting import IngestCalls, UploadCalls
from recollect.client.calls.jobs import SourceCalls
from recollect.client.calls.people import AuditCalls, GrantCalls, KeyCalls, TenantCalls
from recollect.client.calls.retrieval import RetrievalCalls
from recollect.client.place import Known, Place
from recollect.operations.declaring import operations_of
from recollect.server.app import create_app

#: Other programs' doors, with clients of their own.
OTHERS = re.compile(
    r"/(api|mcp|healthz|readyz|metrics)|/v1/(chat/completions|responses|embeddings|models|files|vector_stores)"
)
#: The stream that a client goes on with by itself.
BY_ITSELF = re.compile(r"/v1/streams/")

AT = Place(known=Known({"principal": None, "settings": {"collection": "default", "session": {}}}), session=None)
TALK = Place(session="talk")

#: What each method asks, by the method and path of HTTP.
ASKS = [
    RetrievalCalls(AT).search("q"),
    RetrievalCalls(AT).context("q"),
    RetrievalCalls(AT).why_not("q", 1),
    RetrievalCalls(AT).ask_events("q"),
    RetrievalCalls(AT).chat_events("q", session="talk"),
    CollectionCalls(AT).update("a", description=""),
    CollectionCalls(AT).export_lines(),
    CollectionCalls(AT).ensure(),
    send_lines("a", Path(__file__), force=False, on_progress=None),
    DocumentCalls(AT).get(1),
    DocumentCalls(AT).resolve(["a.md"]),
    DocumentCalls(AT).diff_evidence("q", from_time="1d"),
    DocumentCalls(AT).duplicates(1),
    DocumentCalls(AT).filter_hints(RetrievalOptions()),
    DocumentCalls(AT).history(1),
    DocumentCalls(AT).diff(1),
    VersionCalls(AT).restore(1, 1),
    VersionCalls(AT).set_ttl(1, "1d"),
    VersionCalls(AT).list_duplicates(),
    DocumentCalls(AT).reread(1),
    DocumentCalls(AT).update(1, title="a"),
    DocumentCalls(AT).delete([1]),
    DocumentCalls(AT).erase([1]),
    DocumentCalls(AT).list(),
    ContentCalls(AT).outline(1),
    ContentCalls(AT).read(1),
    ContentCalls(AT).chunks(1),
    ContentCalls(AT).original(1),
    ContentCalls(AT).grep("a"),
    ContentCalls(AT).list(),
    IngestCalls(AT).text(Document(content="a")),
    IngestCalls(AT).files([FileToSend(path=Path("a"), name="a")]),
    IngestCalls(AT).url("https://example.com"),
    MemoryCalls(AT).get("talk"),
    MemoryCalls(AT).turns("talk"),
    MemoryCalls(AT).delete("talk"),
    MemoryCalls(AT).forget("talk", [1]),
    MemoryCalls(AT).rename("talk", "Leave"),
    MemoryCalls(AT).assemble("q"),
    MemoryCalls(AT).list(),
    ConfiguredSessionCalls(AT).create("a"),
    ConfiguredSessionCalls(AT).renew("a"),
    ConfiguredSessionCalls(AT).end("a"),
    RecallCalls(TALK).remember("a"),
    RecallCalls(TALK).recall("a"),
    FactCalls(AT).search("a"),
    FeedbackCalls(AT).give("a", helpful=True),
    FeedbackCalls(AT).weights(),
    UploadCalls(AT).events(1),
    SpaceCalls(AT).status(),
    SpaceCalls(AT).drop(),
    ModelCalls(AT).reembed("hashing:96"),
    ModelCalls(AT).rollback(),
    ModelCalls(AT).contextualise(),
    ModelCalls(AT).estimate_contexts(),
    SourceCalls(AT).add("s3://bucket"),
    SourceCalls(AT).ask_for_refresh("s3://bucket"),
    Calls(AT).me(),
    GrantCalls(AT).add("user:a", documents=[1]),
    GrantCalls(AT).of_documents([1]),
    GrantCalls(AT).of_collection(),
    GrantCalls(AT).set_collection(owners=["user:a"]),
    KeyCalls(AT).create("a", principal=Principal(user_id="a")),
    KeyCalls(AT).rotate("a"),
    TenantCalls(AT).create("a"),
    TenantCalls(AT).suspend("a"),
    AuditCalls(AT).export(),
]


def declared() -> Iterator[tuple[str, str]]:
    """The method and path of every operation that is declared, of which both clients are made."""
    for module in pkgutil.iter_modules(recollect.operations.__path__, "recollect.operations."):
        for group in vars(importlib.import_module(module.name)).values():
            if isinstance(group, type):
                for one in operations_of(group).values():
                    yield one.http.method, re.sub(r"{[^}]+}", "1", one.http.path)


def asked(made) -> tuple[str, str]:
    """The method and path of what a method asks first."""
    if isinstance(made, GeneratorType):
        steps, made = made, next(made)
        steps.close()
    if isinstance(made, Pages | EventStream):
        made = made.call
    assert isinstance(made, Call)
    return made.method, made.path


def test_every_operation_has_a_method(served):
    paths = create_app(served.rag).openapi()["paths"]
    operations = {
        (method.upper(), path)
        for path, methods in paths.items()
        for method in methods
        if not OTHERS.match(path) and not BY_ITSELF.match(path)
    }
    assert len(operations) > 60
    made = [*map(asked, ASKS), *declared()]
    missed = {
        f"{method} {path}"
        for method, path in operations
        if not any(one == method and re.fullmatch(_pattern(path), given) for one, given in made)
    }
    assert not missed
    # And nothing is asked that no server has.
    assert not [one for one in made if not any(_is(one, operation) for operation in operations)]


def _pattern(path: str) -> str:
    return re.sub(r"\\\{[^}]+\\\}", "[^/]+", re.escape(path))


def _is(given: tuple[str, str], operation: tuple[str, str]) -> bool:
    return given[0] == operation[0] and re.fullmatch(_pattern(operation[1]), given[1]) is not None


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_both_clients_have_the_same_methods():
    assert public(Client) == public(AsyncClient)
    names = [name for name, kind in vars(groups).items() if isinstance(kind, type) and name[0].isupper()]
    kinds = [name for name in names if getattr(groups, name).__module__ == groups.__name__ and name != "Groups"]
    assert len(kinds) >= 13
    # Bytes that are fetched when they are read: what awaits has `download`.
    waiting = {"Contents": {"original"}}
    for name in kinds:
        one, other = getattr(groups, name), getattr(async_groups, f"Async{name}")
        assert public(one) - waiting.get(name, set()) == public(other), name


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_method_is_described(kind):
    for name in public(kind):
        assert getattr(kind, name).__doc__, name
