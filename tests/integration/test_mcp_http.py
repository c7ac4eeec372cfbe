"""The Model Context Protocol over HTTP: a server at a port of loopback, real clients, and callers of every kind."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from recollect import Document, Principal, RAGConfig, RAGPipeline, View
from recollect.config.server import ServerConfig
from recollect.embedding.hashing import HashingEmbedder
from recollect.interruption import Interrupted, check
from recollect.server.app import create_app
from recollect.server.authentication import Authenticator
from recollect.server.limits import Limits
from recollect.server.mcp.http import Door

ERAS = ["2026-07-28", "legacy"]
ROOT = Path(__file__).resolve().parents[2]
ISSUER = "https://login.example.com/realms/acme"
HEADERS = {"Accept": "application/json, text/event-stream"}
MODERN = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "search"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
SEARCH = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "search", "arguments": {"query": "leave"}, "_meta": ENVELOPE},
}


@dataclass(frozen=True)
class Served:
    """A server, and the keys that it knows."""

    rag: RAGPipeline
    url: str
    keys: dict[str, str]

    def talk(self, key: str, main: Callable[[Client], Awaitable[Any]], era: str = ERAS[0], query: str = "") -> Any:
        """What a client finds that brings a key."""

        async def whole() -> Any:
            headers = {"Authorization": f"Bearer {self.keys[key]}"}
            async with asyncio.timeout(60), httpx2.AsyncClient(headers=headers, timeout=60) as http:
                transport = streamable_http_client(f"{self.url}/mcp{query}", http_client=http)
                async with Client(transport, mode=era) as client:
                    return await main(client)

        return asyncio.run(whole())

    def post(self, body: Any = SEARCH, *, key: str | None = "owner", path: str = "/mcp", **headers: str) -> Any:
        """What a request gets that no client of the SDK would send."""
        given = {"Authorization": f"Bearer {self.keys[key]}"} if key else {}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"Content-Type": "application/json", **HEADERS, **MODERN, **given, **named}
        return httpx2.post(f"{self.url}{path}", content=content, headers=sent, timeout=60)


@pytest.fixture(scope="module")
def served(clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    jwt = {"secret": "env:MCP_TEST_SECRET", "issuer": ISSUER}
    with clone() as dsn, pytest.MonkeyPatch.context() as environment:
        environment.setenv("MCP_TEST_SECRET", "0123456789abcdef" * 4)
        storage = {"data_dir": tmp_path_factory.mktemp("data") / "unused", "dsn": dsn}
        config = RAGConfig.load(
            storage=storage,
            embedding={"provider": "hashing"},
            server={"authentication": "required", "jwt": jwt, "max_body_bytes": 100_000},
        )
        with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
            fill(rag)
            keys = {name: rag.keys.create(name, scopes=scopes, principal=who).secret for name, scopes, who in CALLERS}
            acme = rag.view(tenant="acme")
            keys["acme"] = acme.keys.create("acme", scopes=("read", "write")).secret
            with serving(rag) as url:
                yield Served(rag, url, {**keys, "forged": keys["owner"][:-4] + "0000"})


CALLERS = [
    ("owner", ("read", "write"), None),
    ("reader", ("read",), None),
    ("bob", ("read", "write"), Principal(user_id="bob")),
    ("nothing", ("admin",), None),
]


def fill(rag: RAGPipeline) -> None:
    rag.ingest(Document(content="# Leave\n\nAnnual leave is 30 days.", source="leave.md"))
    rag.ingest(Document(content="Board pay ZX-9.", source="board.md", permissions=("role:board",)))
    rag.view(collections="other").ingest(Document(content="Elsewhere: leave by the door.", source="other.md"))
    rag.tenants.create("acme")
    rag.view(tenant="acme").ingest(Document(content="At Acme, ZX-9 is a lathe.", source="acme.md"))


class serving:  # noqa: N801 - a context manager
    """A server in a thread, for the time of a block."""

    def __init__(self, rag: RAGPipeline) -> None:
        config = uvicorn.Config(create_app(rag), log_config=None, access_log=False, timeout_graceful_shutdown=5)
        self._server = uvicorn.Server(config)
        # Named, so that what is sent is not held back until the other end has confirmed what was sent before.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})

    def __enter__(self) -> str:
        self._socket.listen()
        self._thread.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


@pytest.mark.parametrize("era", ERAS)
def test_each_caller_sees_and_changes_what_is_theirs(served: Served, era: str):
    async def main(client: Client) -> tuple[set[str], set[str]]:
        tools = {one.name for one in (await client.list_tools()).tools}
        documents = {one.name for one in (await client.list_resources()).resources}
        found = (await client.call_tool("grep", {"pattern": "ZX-9"})).structured_content
        assert {one["source"] for one in found["documents"]} == documents & {"board.md", "acme.md"}
        return tools, documents

    seen = {key: served.talk(key, main, era) for key in ("owner", "reader", "bob", "acme")}
    writing = {"remember", "add"}
    assert [writing & tools for tools, _ in seen.values()] == [writing, set(), writing, writing]
    assert [documents for _, documents in seen.values()] == [
        {"leave.md", "board.md"}, {"leave.md", "board.md"}, {"leave.md"}, {"acme.md"},
    ]  # fmt: skip
    # What nobody offered is not there, and what somebody may not write to refuses.
    remember = lambda client: client.call_tool("remember", {"text": "x"})  # noqa: E731
    with pytest.raises(BaseException) as caught:
        served.talk("reader", remember, era)
    assert "There is no tool 'remember'" in str(leaf(caught.value))
    added = served.talk("bob", lambda client: client.call_tool("add", {"text": "Bob was here."}), era)
    assert added.is_error and added.structured_content["error"]["kind"] == "denied"


def leaf(exc: BaseException) -> BaseException:
    """What went wrong, below the groups that carry it."""
    while isinstance(exc, BaseExceptionGroup):
        (exc,) = exc.exceptions
    return exc


@pytest.mark.parametrize("era", ERAS)
def test_the_address_says_where_is_looked(served: Served, era: str):
    async def names(client: Client) -> tuple[set[str], set[str]]:
        tools = {one.name for one in (await client.list_tools()).tools}
        return {one.name for one in (await client.list_resources()).resources}, tools & {"add", "remember"}

    talk = lambda query: served.talk("owner", names, era, query)  # noqa: E731
    assert talk("?collection=other&session=s") == ({"other.md"}, {"add", "remember"})
    assert "add" not in talk("?collection=*")[1] and len(talk("?collection=*")[0]) >= 3
    assert talk("?collection=other&read_only=true") == ({"other.md"}, set())
    assert talk("?as_of=2020-01-01") == (set(), set())


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("key", "query", "said"),
    [("forged", "", "checksum"), ("nothing", "", "read"), ("owner", "?collectio=other", "collectio")],
)
def test_a_refused_client_is_told_why(served: Served, era: str, key: str, query: str, said: str):
    with pytest.raises(BaseException) as caught:
        served.talk(key, lambda client: client.list_tools(), era, query)
    assert isinstance(leaf(caught.value), MCPError) and said in str(leaf(caught.value))


def test_conversations_are_their_callers_own(served: Served):
    served.talk("bob", lambda client: client.call_tool("remember", {"text": "My locker is 17."}))
    recall = lambda client: client.call_tool("recall", {"query": "locker"})  # noqa: E731
    assert served.talk("bob", recall, query="?session=another").structured_content["turns"]
    assert served.talk("acme", recall).structured_content["turns"] == []


def test_whoever_is_not_known_is_told_where_to_become_so(served: Served):
    metadata = f"{served.url}/.well-known/oauth-protected-resource/mcp"
    for key in (None, "forged"):
        refused = served.post(key=key)
        assert refused.status_code == 401 and refused.json()["type"].endswith("unauthenticated")
        assert f'resource_metadata="{metadata}"' in refused.headers["www-authenticate"]
    for address in (metadata, metadata.removesuffix("/mcp")):
        told = httpx2.get(address).json()
        assert (told["resource"], told["authorization_servers"]) == (f"{served.url}/mcp", [ISSUER])
        assert told["bearer_methods_supported"] == ["header"] and "read" in told["scopes_supported"]
    assert served.post(key="nothing").status_code == 403
    both = served.post(X_API_Key=served.keys["owner"])
    assert both.status_code == 401 and served.post(key=None, X_API_Key=served.keys["owner"]).status_code == 200


def test_behind_a_proxy_addresses_are_those_that_clients_use(served: Served, monkeypatch):
    monkeypatch.setenv("MCP_TEST_SECRET", "0123456789abcdef" * 4)
    own = served.rag.config.server.model_copy(update={"public_url": "https://knowledge.example.com/kb/"})
    config = served.rag.config.model_copy(update={"server": own})
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag, serving(rag) as url:
        told = httpx2.get(f"{url}/.well-known/oauth-protected-resource/mcp").json()
        refused = Served(rag, url, {}).post(key=None)
    assert told["resource"] == "https://knowledge.example.com/kb/mcp"
    metadata = "https://knowledge.example.com/kb/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{metadata}"' in refused.headers["www-authenticate"]


def test_requests_that_no_client_sends_are_refused(served: Served):
    assert served.post().json()["result"]["structuredContent"]["results"]
    for answered, status in (
        (served.post(Origin="https://evil.example"), 403),
        (served.post(Host="evil.example"), 403),
        (served.post(path="/mcp?collection=a&collection=b"), 400),
        (served.post(path="/mcp?tenant=acme"), 400),
        (served.post(path="/mcp?as_of=whenever"), 400),
        (served.post(b"{"), 400),
        (served.post([SEARCH]), 400),
        (served.post(b"x" * 200_000), 413),
        (served.post(Content_Type="text/plain"), 400),
        (served.post(Accept="text/html"), 406),
        (served.post(MCP_Protocol_Version="1999-01-01"), 400),
        (served.post(MCP_Protocol_Version="2025-11-25", Accept="text/html"), 406),
        (served.post(b"{", MCP_Protocol_Version="2025-11-25"), 400),
        (served.post(Mcp_Name="read"), 400),
        (httpx2.get(f"{served.url}/mcp"), 405),
        (httpx2.delete(f"{served.url}/mcp"), 405),
    ):
        assert answered.status_code == status, (answered.status_code, answered.text)
    # Documents of others are told as what is not there.
    foreign = served.rag.view(tenant="acme").contents.list()[0].document_id
    errors = []
    for uri in (f"recollect://documents/{foreign}", "recollect://documents/999999"):
        with pytest.raises(BaseException) as caught:
            served.talk("bob", lambda client, uri=uri: client.read_resource(uri))
        errors.append(leaf(caught.value))
    assert all(isinstance(one, MCPError) for one in errors)
    assert {(one.code, one.message) for one in errors} == {(-32602, errors[0].message)}


def test_without_credentials_this_machines_user_is_served_and_nobody_through_it(served: Served):
    storage = served.rag.config.storage
    config = RAGConfig.load(
        storage={"data_dir": storage.data_dir, "dsn": storage.dsn}, embedding={"provider": "hashing"}
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag, serving(rag) as url:
        own = Served(rag, url, {})
        assert own.post(key=None).json()["result"]["structuredContent"]["results"]
        for headers in ({"X_Forwarded_For": "10.0.0.7"}, {"Sec_Fetch_Site": "cross-site"}, {"Via": "1.1 proxy"}):
            refused = own.post(key=None, **headers)
            assert refused.status_code == 401 and "resource_metadata" not in refused.headers["www-authenticate"]
        assert own.post(key=None, Host="evil.example").status_code == 403
        assert httpx2.get(f"{url}/.well-known/oauth-protected-resource").status_code == 404


def test_calls_count_against_the_limits_of_their_kind(served: Served, monkeypatch):
    monkeypatch.setenv("MCP_TEST_SECRET", "0123456789abcdef" * 4)
    limits = {"search": 3, "answer": 1, "ingest": 1, "upload_bytes_per_day": 1_000}
    own = ServerConfig.model_validate({**served.rag.config.server.model_dump(), "limits": limits})
    config = served.rag.config.model_copy(update={"server": own})
    keys = {"carl": served.rag.keys.create("carl", scopes=("read", "write")).secret}

    async def main(client: Client) -> list[Any]:
        calls = [
            ("search", {"query": "leave"}),
            ("ask", {"question": "How long is leave?"}),
            ("remember", {"text": "x"}),
        ]
        replies = [await client.call_tool(name, arguments) for name, arguments in calls * 2]
        await client.list_resources()
        with pytest.raises(MCPError, match="Too many requests of the kind 'search'"):
            await client.list_resources()
        # What is told once is not counted: which tools there are.
        await client.list_tools()
        return replies

    async def too_long(client: Client) -> Any:
        return await client.call_tool("remember", {"text": "x" * 2_000})

    with RAGPipeline(config, embedder=HashingEmbedder()) as rag, serving(rag) as url:
        replies = Served(rag, url, keys).talk("carl", main)
        keys["dora"] = rag.keys.create("dora", scopes=("read", "write")).secret
        over = Served(rag, url, keys).talk("dora", too_long)
        assert "may upload 1,000 bytes a day" in over.structured_content["error"]["message"]
    assert [one.is_error for one in replies] == [False, False, False, False, True, True]
    refused = [one.structured_content["error"] for one in replies[4:]]
    assert {one["kind"] for one in refused} == {"busy"}
    assert all(1 <= one["retry_after_seconds"] <= 60 for one in refused)


@pytest.mark.parametrize("era", ERAS)
def test_an_agent_answers_in_two_hops_over_http(served: Served, era: str, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import agent_loop

    monkeypatch.delitem(sys.modules, "agent_loop")
    served.rag.view(collections="it").ingest(agent_loop.HANDBOOK)

    async def main(client: Client) -> str:
        messages = [{"role": "system", "content": ""}, {"role": "user", "content": agent_loop.QUESTION}]
        while True:
            reply = agent_loop.scripted(messages, [])
            messages.append(reply)
            if "tool_calls" not in reply:
                return reply["content"]
            (call,) = reply["tool_calls"]
            result = await client.call_tool(call["function"]["name"], json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result.content[0].text})

    answer = served.talk("owner", main, era, "?collection=it")
    assert "The setting is max_sessions [1]. Its default was 3 before [2]." in answer


@pytest.fixture
def slow(monkeypatch) -> tuple[threading.Event, threading.Event]:
    """Searches that go on until they are stopped: when one has begun, and when it was stopped."""
    begun, stopped = threading.Event(), threading.Event()

    def search(*_: Any, **__: Any) -> None:
        begun.set()
        try:
            while True:
                check()
        except Interrupted:
            stopped.set()
            raise

    monkeypatch.setattr(View, "retrieve", search)
    return begun, stopped


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_cancels_stops_the_work_and_talks_on(served: Served, era: str, slow):
    begun, stopped = slow

    async def main(client: Client) -> None:
        call = asyncio.create_task(client.call_tool("search", {"query": "leave"}))
        await asyncio.to_thread(begun.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(stopped.wait, 30)
        assert not (await client.call_tool("list_documents", {})).is_error

    served.talk("owner", main, era)


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_a_client_that_vanishes_stops_the_work(served: Served, version: str, slow):
    begun, stopped = slow
    body = json.dumps(SEARCH).encode()
    headers = {**HEADERS, **MODERN, "MCP-Protocol-Version": version, "Authorization": f"Bearer {served.keys['owner']}",
               "Host": "127.0.0.1", "Content-Type": "application/json", "Content-Length": str(len(body))}  # fmt: skip
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as raw:
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        raw.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
        assert begun.wait(30)
    assert stopped.wait(30)


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_a_client_that_vanishes_within_its_message_is_no_defect(served: Served, version: str, caplog):
    door = Door(served.rag, Authenticator(served.rag), Limits(served.rag, served.rag.config.server.limits))
    headers = {**HEADERS, "Content-Type": "application/json", "MCP-Protocol-Version": version, "Host": "127.0.0.1",
               "Authorization": f"Bearer {served.keys['owner']}"}  # fmt: skip
    sent = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": sent, "scheme": "http"}
    scope["app"] = create_app(served.rag)
    messages = [{"type": "http.request", "body": b'{"jsonrpc": ', "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if len(messages) > 1 else messages[0]

    async def send(_: Any) -> None:
        pass

    async def main() -> None:
        async with door.open():
            await door(scope, receive, send)

    asyncio.run(main())
    assert [one for one in caplog.records if one.levelname in {"WARNING", "ERROR"}] == []


def test_nobody_cancels_what_another_asked_for(served: Served, slow):
    begun, stopped = slow
    old = {"MCP_Protocol_Version": "2025-11-25"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    named = served.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening}, **old)
    name = {"Mcp_Session_Id": named.headers["mcp-session-id"]}
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    replies: list[Any] = []
    call = threading.Thread(target=lambda: replies.append(served.post(SEARCH, **old, **name)))
    call.start()
    assert begun.wait(30)
    for others in ({"key": "bob", **name}, {"Mcp_Session_Id": "0" * 32}, {}):
        assert served.post(cancel, **old, **others).status_code == 202
    assert not stopped.is_set()
    assert served.post(cancel, **old, **name).status_code == 202
    call.join()
    assert stopped.wait(30) and "Request cancelled" in replies[0].text


def test_many_calls_at_once_are_answered(served: Served):
    async def main(client: Client) -> list[Any]:
        calls = (client.call_tool("list_documents", {"limit": 1}) for _ in range(50))
        return await asyncio.gather(*calls)

    results = served.talk("owner", main)
    assert len(results) == 50 and not any(one.is_error for one in results)
