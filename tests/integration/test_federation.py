"""A store and other servers, searched together: two servers on this machine, and what pretends to be one."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from recollect import (
    Client,
    ContextAssembler,
    Document,
    HybridRetriever,
    Principal,
    RAGConfig,
    RAGPipeline,
    Remote,
    RetrievalOptions,
    RetrievedContext,
)
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ConfigurationError, PluginError, ServerError, UsageError
from recollect.pipeline.federation import _calls
from recollect.retrieval.retrievers import checked_passages
from recollect.server.app import create_app
from served import serving

QUESTION = "How long is annual leave?"
DAYS = {"here": "thirty", "north": "forty", "south": "fifty"}


def say(place: str) -> str:
    return f"In the {place} office annual leave is {DAYS[place]} days long."


opened: list[Client] = []


@pytest.fixture(autouse=True)
def closed():
    """Closes every client that the test has opened."""
    yield
    while opened:
        opened.pop().close()


def client_of(url: str, key: str | None = None) -> Client:
    opened.append(Client(url, key))
    return opened[-1]


@contextmanager
def server(clone, folder, name: str, *, more: str = ""):
    with clone() as dsn, serving(dsn, folder, worker=False) as served:
        served.rag.ingest(Document(content=say(name), source="leave.md", title=f"Leave in the {name}"))
        if more:
            served.rag.view(collections="staff").ingest(
                Document(content=more, source="staff.md", permissions=("role:hr",))
            )
        yield served


@pytest.fixture(scope="module")
def north(clone, tmp_path_factory):
    with server(
        clone, tmp_path_factory.mktemp("north"), "north", more="The annual leave of directors is sixty days long."
    ) as served:
        yield served


@pytest.fixture(scope="module")
def south(clone, tmp_path_factory):
    with server(clone, tmp_path_factory.mktemp("south"), "south") as served:
        yield served


@pytest.fixture(scope="module")
def here(clone, tmp_path_factory):
    storage = {"data_dir": tmp_path_factory.mktemp("here") / "unused"}
    with clone() as dsn:
        config = RAGConfig.load(storage={**storage, "dsn": dsn}, embedding={"provider": "hashing"})
        with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
            rag.ingest(Document(content=say("here"), source="leave.md"))
            rag.ingest(Document(content="Salaries are paid on the 25th.", source="pay.md"))
            yield rag


def remote(served, name: str) -> Remote:
    # A busy machine is no defect.
    return Remote(name, client_of(served.url), timeout_seconds=60)


def test_servers_are_searched_together(here, north, south):
    view = here.view(remotes=[remote(north, "north"), remote(south, "south")])
    reply = view.search(QUESTION)
    found = {one.content: one for one in reply.results}
    assert {found[say(name)].server for name in DAYS} == {None, "north", "south"}
    assert found[say("north")].source == "leave.md" and found[say("north")].title == "Leave in the north"
    assert reply.warnings == ()
    assert [one.rank for one in reply.results] == list(range(1, len(reply.results) + 1))
    assert [one.score for one in reply.results] == sorted((one.score for one in reply.results), reverse=True)
    assert all(one.document_id < 0 for one in reply.results if one.server)
    assert len({one.chunk_id for one in reply.results}) == len(reply.results)
    assert len({one.document_id for one in reply.results}) == len(reply.results)
    assert len(view.search(QUESTION, RetrievalOptions(top_k=2)).results) == 2
    # What is relevant is before what is not, wherever it is.
    assert reply.results[-1].content.startswith("Salaries")


def test_a_view_without_remotes_and_one_that_leaves_them_out_ask_nobody(here, north):
    configured = here.view(remotes=[remote(north, "north")])
    assert {one.server for one in configured.view(remotes=()).search(QUESTION).results} == {None}
    assert {one.server for one in configured.view(remotes=None).search(QUESTION).results} == {None}
    assert {one.server for one in here.search(QUESTION).results} == {None}


def test_contexts_and_answers_name_the_server(here, north):
    view = here.view(remotes=[remote(north, "north")])
    context = view.context(QUESTION)
    assert "Server: north" in context.text and say("north") in context.text and say("here") in context.text
    answer = view.ask("How long is annual leave in the north office?")
    assert not answer.refused
    cited = {one.server: one for one in answer.citations}
    assert "forty" in cited["north"].quote and cited["north"].source == "leave.md"
    memory = view.memory.assembler().assemble(QUESTION, "documents")
    assert {one.passage.server for one in memory.passages} == {None, "north"}


def test_a_remote_shows_what_its_key_may_read(here, north):
    hr = north.rag.keys.create("hr", principal=Principal(user_id="h", roles=("hr",)), scopes=("read",)).secret
    other = north.rag.keys.create("o", principal=Principal(user_id="o"), scopes=("read",)).secret
    for key, sees in ((hr, True), (other, False)):
        view = here.view(remotes=[Remote("north", client_of(north.url, key).view(collections="*"), 60)])
        assert any("directors" in one.content for one in view.search(QUESTION).results) is sees
    refused = here.view(remotes=[Remote("north", client_of(north.url, "rk_wrong_key"))]).search(QUESTION)
    assert [one.server for one in refused.results] == [None, None]
    assert refused.warnings == ("The remote 'north' does not accept the key: its passages are missing.",)


def test_a_server_that_goes_away_is_missed_and_named(here, clone, tmp_path, south):
    with server(clone, tmp_path, "north") as north:
        view = here.view(remotes=[remote(north, "north"), remote(south, "south")])
        assert {one.server for one in view.search(QUESTION).results} == {None, "north", "south"}
    reply = view.search(QUESTION)
    assert {one.server for one in reply.results} == {None, "south"}
    assert reply.warnings == ("The remote 'north' does not reply: its passages are missing.",)
    assert view.context(QUESTION).warnings == reply.warnings
    assert view.ask(QUESTION).warnings == reply.warnings
    assert view.memory.assembler().assemble(QUESTION, "documents").context.warnings == reply.warnings


class Pretender(BaseHTTPRequestHandler):
    """Replies with what the test says."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.reply(self)

    def log_message(self, *args):
        pass


@contextmanager
def pretending(reply):
    listener = ThreadingHTTPServer(("127.0.0.1", 0), Pretender)
    listener.reply, listener.daemon_threads = reply, True
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}"
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()


def replying(body: bytes, *, status: int = 200, **headers: str):
    def reply(request):
        request.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    return reply


def reply_of(**changes) -> bytes:
    content = changes.get("content", "Leave is endless.")
    result = {
        "rank": 1,
        "score": 1.0,
        "relevance": 1.0,
        "content": content,
        "chunk_id": 1,
        "document_id": 1,
        "title": "t",
        "source": "s",
        "department": None,
        "section": None,
        "page": None,
        "start_offset": 0,
        "end_offset": len(content) if isinstance(content, str) else 1,
        "parts": [{"start_offset": 0, "end_offset": 1, "section": None, "page": None}],
        "metadata": {},
    }
    results = [result | changes] * changes.pop("_times", 1)
    return json.dumps(
        {"query": "q", "collection": "c", "mode": "hybrid", "results": results, "timings_ms": {}}
    ).encode()


def test_what_pretends_well_is_believed(here):
    with pretending(replying(reply_of())) as url:
        found = here.view(remotes=[Remote("odd", client_of(url))]).search(QUESTION)
    assert (found.results[0].content, found.results[0].server) == ("Leave is endless.", "odd")


def test_what_is_no_reply_of_recollects_is_left_out(here):
    bodies = [
        b"",
        b"[]",
        b"null",
        b"no json",
        b'{"results": 7}',
        b"[" * 100_000,
        reply_of(content=7),
        reply_of(relevance="high"),
        reply_of(relevance=5.0),
        reply_of(relevance=float("nan")),
        reply_of(score=float("inf")),
        reply_of(document_id="x"),
        reply_of(end_offset=3),
        reply_of(start_offset=-9),
        reply_of(metadata=[1]),
        reply_of(parts=[{}]),
        reply_of(notes=[{"kind": "x"}]),
        reply_of(also_in=["x"]),
    ]
    for number, body in enumerate(bodies):
        with pretending(replying(body)) as url:
            view = here.view(remotes=[Remote("odd", client_of(url))])
            reply = view.search(QUESTION)
            assert [one.server for one in reply.results] == [None, None], body[:200]
            assert reply.warnings == ("The remote 'odd' gave no valid reply: its passages are missing.",), body[:200]
            if number == 0:
                asked = view.ask(QUESTION)
                assert asked.warnings == reply.warnings and not asked.refused


def test_no_more_passages_are_taken_than_were_asked_for(here):
    with pretending(replying(reply_of(_times=500))) as url:
        view = here.view(remotes=[Remote("odd", client_of(url))])
        reply = view.search(QUESTION, RetrievalOptions(top_k=4, collapse_duplicates=False))
    assert len(reply.results) == 4


def test_a_redirect_is_not_followed(here, north):
    redirect = replying(b"", status=307, Location=f"{north.url}/v1/search")
    with pretending(redirect) as url:
        reply = here.view(remotes=[Remote("odd", client_of(url, "secret"))]).search(QUESTION)
    assert [one.server for one in reply.results] == [None, None]
    assert reply.warnings == ("The remote 'odd' gave no valid reply: its passages are missing.",)


def test_a_reply_without_end_is_cut_off(here):
    written = []

    def endless(request):
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.end_headers()
        try:
            while True:
                request.wfile.write(b"[" * 1_000_000)
                written.append(1)
        except OSError:
            pass

    with pretending(endless) as url:
        reply = here.view(remotes=[Remote("odd", client_of(url), timeout_seconds=60)]).search(QUESTION)
    assert reply.warnings == ("The remote 'odd' gave no valid reply: its passages are missing.",)
    assert len(written) < 100


@pytest.mark.parametrize("drips", [False, True])
def test_a_slow_remote_is_not_waited_for_beyond_its_limit(here, drips):
    over = threading.Event()

    def slow(request):
        if drips:
            request.send_response(200)
            request.send_header("Content-Type", "application/json")
            request.end_headers()
        while not over.wait(0.02):
            try:
                request.wfile.write(b" " if drips else b"")
            except OSError:
                return

    with pretending(slow) as url:
        # The search comes back while the remote still has not replied: it never does before `over`.
        reply = here.view(remotes=[Remote("slow", client_of(url), timeout_seconds=0.3)]).search(QUESTION)
        assert not over.is_set()
        over.set()
    assert [one.server for one in reply.results] == [None, None]
    assert reply.warnings == ("The remote 'slow' does not reply: its passages are missing.",)


def test_a_reply_that_drips_for_ever_is_given_up(here):
    """Not only by the search: its thread ends too."""
    given_up = threading.Event()

    def dripping(request):
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.end_headers()
        try:
            while not given_up.wait(0.02):
                request.wfile.write(b" ")
                request.wfile.flush()
        except OSError:
            given_up.set()

    with pretending(dripping) as url:
        here.view(remotes=[Remote("drip", client_of(url), timeout_seconds=0.2)]).search(QUESTION)
        assert given_up.wait(30)


def test_searches_of_a_remote_that_hangs_are_bounded(here):
    over = threading.Event()

    class Hanging:
        def retrieve(self, query, options):
            over.wait(60)
            return []

    _calls.cache_clear()
    view = here.view(remotes=[Remote("hanging", Hanging(), timeout_seconds=0.01)])
    try:
        for _ in range(40):
            reply = view.search(QUESTION)
            assert len(reply.results) == 2
        assert sum(one.name == "recollect-remote-hanging" for one in threading.enumerate()) == 16
        assert reply.warnings == ("The remote 'hanging' does not reply: its passages are missing.",)
    finally:
        over.set()


def test_an_unreachable_port_is_named(here):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        reply = here.view(remotes=[client_of(url)]).search(QUESTION)
    host = url.removeprefix("http://")
    assert reply.warnings == (f"The remote '{host}' does not reply: its passages are missing.",)


class Board:
    def __init__(self, relevance: float | None = 0.5) -> None:
        self._relevance = relevance

    def retrieve(self, query: str, options: RetrievalOptions) -> list[RetrievedContext]:
        line = f"The board says on annual leave: {options.top_k} passages at most."
        return [
            RetrievedContext(
                rank=1,
                score=1.0,
                relevance=self._relevance,
                content=line,
                title="Board",
                source="board",
                chunk_id=1,
                document_id=1,
                section=None,
                page=None,
                start_offset=0,
                end_offset=len(line),
                metadata={},
            )
        ]


def test_whatever_retrieves_keeps_one_promise(here, north):
    for retriever in (here, client_of(north.url), Board(), here.view(remotes=[remote(north, "north")])):
        found = retriever.retrieve(QUESTION, RetrievalOptions(top_k=3))
        assert found and checked_passages("it", found, top_k=3) == list(found)


@pytest.mark.parametrize(("relevance", "place"), [(1.0, 0), (0.0, -1), (None, -1)])
def test_relevance_says_where_a_passage_stands(here, relevance, place):
    reply = here.view(remotes=[Remote("board", Board(relevance))]).search(QUESTION)
    assert reply.results[place].server == "board"


def test_equal_passages_are_shown_once(here):
    class Copy:
        def retrieve(self, query, options):
            return here.retrieve(query, options)

    view = here.view(remotes=[Remote("copy", Copy())])
    assert [one.server for one in view.search(QUESTION).results] == [None, None]
    assert len(view.search(QUESTION, RetrievalOptions(collapse_duplicates=False)).results) == 4


def test_contexts_take_anything_that_retrieves(here, north):
    for documents, server in ((client_of(north.url), north.url.removeprefix("http://")), (Board(), "Board")):
        found = ContextAssembler(documents).assemble(QUESTION, "documents")
        assert [one.passage.server for one in found.passages] == [server]
        both = HybridRetriever(documents, here.view(session="talk")).retrieve_hybrid(QUESTION)
        assert [one.passage.server for one in both.passages] == [server]
    with pytest.raises(UsageError, match="documents is a view, a Client, or anything with retrieve"):
        ContextAssembler(object()).assemble(QUESTION, "documents")
    with pytest.raises(UsageError, match=r"collections is for a view of this store: refine .* client.view"):
        ContextAssembler(client_of(north.url), collection="x").assemble(QUESTION, "documents")

    class Broken:
        def retrieve(self, query, options):
            raise RuntimeError("no board")

    with pytest.raises(PluginError, match="The retriever 'Broken' failed: RuntimeError: no board"):
        ContextAssembler(Broken()).assemble(QUESTION, "documents")
    with pretending(replying(b"{}")) as url, pytest.raises(ServerError):
        ContextAssembler(client_of(url)).assemble(QUESTION, "documents")


@pytest.mark.parametrize(
    ("remotes", "message"),
    [
        ("north", "remotes must be a list"),
        (["north"], r"There is no remote 'north'; none is configured"),
        ([object()], "has no retrieve"),
        ([Board(), Board()], "Two remotes are called 'Board'"),
    ],
)
def test_what_is_no_remote_is_refused(here, remotes, message):
    with pytest.raises(UsageError, match=message):
        here.view(remotes=remotes)
    with pytest.raises(UsageError, match="timeout_seconds of the remote 'b' is a number more than 0"):
        Remote("b", Board(), timeout_seconds=0)


# At the doors, as configured


@pytest.fixture(scope="module")
def configured(clone, tmp_path_factory, north):
    """A pipeline whose settings name a server that reads with a key."""
    key = north.rag.keys.create("reader", principal=Principal(user_id="r", roles=("hr",)), scopes=("read",)).secret
    folder = tmp_path_factory.mktemp("configured")
    path = folder / "recollect.toml"
    path.write_text(
        f'[[rag.remotes]]\nname = "north"\nurl = "{north.url}"\nkey = "env:NORTH_KEY"\ntimeout_seconds = 30\n'
    )
    with pytest.MonkeyPatch.context() as patched, clone() as dsn:
        patched.setenv("NORTH_KEY", key)
        storage = {"data_dir": folder / "unused", "dsn": dsn}
        config = RAGConfig.load(path, storage=storage, embedding={"provider": "hashing"})
        with RAGPipeline(config, embedder=HashingEmbedder(), remotes=[Remote("board", Board())]) as rag:
            rag.ingest(Document(content=say("here"), source="leave.md"))
            yield rag


def servers(results) -> set[str | None]:
    return {one.get("server") if isinstance(one, dict) else one.server for one in results}


def test_configured_remotes_are_searched(configured):
    assert servers(configured.search(QUESTION).results) == {None, "north", "board"}
    # All that the key may read.
    assert any("directors" in one.content for one in configured.search(QUESTION).results)
    assert servers(configured.view(remotes=["north"]).search(QUESTION).results) == {None, "north"}
    assert servers(configured.view(remotes=[]).search(QUESTION).results) == {None}


def test_other_tenants_and_sessions_ask_no_configured_remote(configured):
    configured.sessions.create("desk")
    desk = configured.view(session="desk")
    desk.ingest(Document(content="Annual leave in the draft is thirty-one days long.", source="draft.md"))
    assert servers(desk.search(QUESTION).results) == {None}
    assert servers(desk.view(collections="default").search(QUESTION).results) == {None, "north", "board"}
    acme = configured.tenants.create("acme")
    other = configured.view(tenant=acme.tenant_id)
    other.ingest(Document(content=say("south"), source="leave.md"))
    assert servers(other.search(QUESTION).results) == {None}


def test_a_retriever_that_knows_no_rights_is_not_asked_for_somebody(configured):
    ada = configured.view(principal=Principal(user_id="ada"))
    reply = ada.search(QUESTION)
    assert servers(reply.results) == {None, "north"}
    assert reply.warnings == ("The remote 'board' refuses the search: its passages are missing.",)


def test_requests_name_remotes(configured):
    client = TestClient(create_app(configured), base_url="http://127.0.0.1:8321", raise_server_exceptions=False)
    asked = {"query": QUESTION}
    reply = client.post("/v1/search", json=asked).json()
    assert servers(reply["results"]) == {None, "north", "board"} and "warnings" not in reply
    only = client.post("/v1/search", json={**asked, "remotes": ["north"]}).json()
    assert servers(only["results"]) == {None, "north"}
    assert servers(client.post("/v1/search", json={**asked, "remotes": []}).json()["results"]) == {None}
    refused = client.post("/v1/search", json={**asked, "remotes": ["west"]})
    assert refused.status_code == 400 and "no remote 'west'; there are board, north" in refused.json()["detail"]
    context = client.post("/v1/context", json=asked).json()
    assert servers(context["passages"]) == {None, "north", "board"}
    answer = client.post("/v1/ask", json={"question": "How long is annual leave in the north office?"}).json()
    assert "north" in servers(answer["citations"])
    chat = client.post(
        "/v1/chat/completions",
        json={
            "model": "default",
            "messages": [{"role": "user", "content": "How long is annual leave in the north office?"}],
        },
    ).json()
    assert "recollect" in chat, chat
    assert "north" in servers(chat["recollect"]["citations"])


def test_a_key_that_is_not_there_is_refused_when_the_pipeline_is_made(configured, monkeypatch):
    monkeypatch.delenv("NORTH_KEY")
    with pytest.raises(ConfigurationError, match=r"rag.remotes.0.key: the environment variable NORTH_KEY is not set"):
        RAGPipeline(configured.config)


def test_servers_that_name_one_another_end(here, north):
    """Each asks the other, whose own remotes have no part in that."""
    app_of_north = north.rag.standpoint.assembly
    with pretending(replying(reply_of())) as url:
        app_of_north.remotes = (Remote("odd", client_of(url)),)
        assert servers(client_of(north.url).search(QUESTION).results) == {None, "odd"}
        assert servers(here.view(remotes=[remote(north, "north")]).search(QUESTION).results) == {None, "north"}
        app_of_north.remotes = ()


def test_the_log_of_accesses_names_no_document_of_another_server(here, north):
    from recollect.model.activity import showing_to

    shown = []
    with showing_to(shown.append):
        here.view(remotes=[remote(north, "north")]).search(QUESTION)
    assert [len(one.documents) for one in shown] == [2]


def test_the_documentations_python_runs(here, north, monkeypatch, capsys):
    page = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "federation.md"
    code = "\n".join(part.partition("```")[0] for part in page.read_text("utf-8").split("```python\n")[1:])
    key = north.rag.keys.create("docs", principal=Principal(user_id="d"), scopes=("read",)).secret
    code = code.replace("https://north.example.org", north.url).replace("…", key)
    monkeypatch.setattr("recollect.RAGPipeline", lambda: here)
    names = {"__name__": "example"}
    exec(compile(code, str(page), "exec"), names)  # noqa: S102 - the documentation's own
    names["north"].close()
    said = capsys.readouterr().out
    assert "here leave.md" in said and "north leave.md" in said and "()" in said and say("north") in said
