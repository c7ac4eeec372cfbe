"""Every route of the document, asked by everybody who may not: a route without a rule fails."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage

import jwt
import psycopg
import pytest
from fastapi.testclient import TestClient

from recollect import Document, Principal, RAGConfig, RAGPipeline
from recollect.documents.reader import read_bytes
from recollect.embedding.hashing import HashingEmbedder
from recollect.model.key import ACCESS_SCOPES, draw_key, draw_login
from recollect.server.app import create_app

#: What a route needs, by its methods and path: the first that fits counts. None: any credential; "public": none at all;
#: of several scopes one is enough, and all are needed where they stand in one text.
RULES = [
    ("GET", r"/healthz|/readyz", "public"),
    ("GET", r"/metrics", "operator"),
    ("GET", r"/v1/me", None),
    (".*", r"/v1/tenants.*|/v1/cleanup", "operator"),
    (".*", r"/v1/grants.*", ("write", "admin")),
    (".*", r"/v1/(keys|logins|audit|requests|sources).*", "admin"),
    ("POST", r"/v1/collections/\{[^}]+\}/spaces", "operator"),
    (".*", r"/v1/collections/\{[^}]+\}/(spaces|spaces/rollback|contexts)", "admin"),
    ("GET", r"/v1/collections.*", "read"),
    ("POST", r"/v1/collections/\{[^}]+\}/(documents|files|urls|import)", "write"),
    ("POST|PATCH|PUT|DELETE", r"/v1/collections(/\{[^}]+\})?", "admin"),
    (
        "POST",
        r"/v1/(search(/hints)?|ask|context(/assembly)?|contents|grep|diff|why-not|recall|facts/search|embeddings|vector_stores/\{[^}]+\}/search)",
        "read",
    ),
    ("POST", r"/v1/chat", "read write"),
    ("POST", r"/v1/(chat/completions|responses)|/api/chat", "read"),
    ("POST|DELETE", r"/v1/vector_stores(/\{[^}]+\})?", "admin"),
    ("GET", r"/v1/.*|/api/.*", "read"),
    ("POST|PATCH|PUT|DELETE", r"/v1/(documents|sessions|facts|jobs|feedback|files|vector_stores|turns).*", "write"),
    ("DELETE", r"/v1/streams/\{[^}]+\}", "read"),
    ("DELETE", r"/v1/responses/\{[^}]+\}", "write"),
    ("POST", r"/api/rag/reload", ("write", "admin")),
]

SECRET = "a secret of thirty-two bytes or more"
WORD = "zebrafinch"
#: With each further forgery one operation of so many is asked.
SOME = 11


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    scopes: frozenset[str]
    has_body: bool
    together: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def rule(self) -> tuple[str | None, ...] | str:
        for methods, path, needed in RULES:
            if re.fullmatch(methods, self.method) and re.fullmatch(path, self.path):
                return needed if isinstance(needed, tuple) or needed == "public" else (needed,)
        raise AssertionError(f"{self}: say in RULES what it needs, and what it refuses")


@dataclass
class Served:
    rag: RAGPipeline
    client: TestClient
    operations: list[Operation]
    places: dict[str, str]

    def ask(self, operation: Operation, credential: str | None, *, cookie: str | None = None, own=True, **places: str):
        path = re.sub(r"\{([^}:]+)[^}]*\}", lambda found: (self.places | places).get(found[1], "4711"), operation.path)
        headers = {} if credential is None else {"Authorization": f"Bearer {credential}"}
        if cookie is not None:
            headers |= {"Cookie": f"recollect_login={cookie}", **({"Sec-Fetch-Site": "same-origin"} if own else {})}
        given = {"json": {}} if operation.has_body else {}
        return self.client.request(operation.method, path, headers=headers, **given)

    def wrong(self, credential: str | None, status: int, *, cookie: str | None = None, every: int = 1) -> list[str]:
        """The routes that are not public and do not refuse somebody like this: all of them, or one of so many."""
        found = []
        for operation in self.operations[::every]:
            reply = self.ask(operation, credential, cookie=cookie)
            if operation.rule == "public":
                if reply.status_code == 401:
                    found.append(f"{operation}: {reply.status_code}")
                continue
            told = reply.headers.get("content-type") == "application/problem+json"
            # The door for OpenAI's clients tells errors as these expect them.
            problem = told or (reply.status_code >= 400 and set(reply.json()) == {"error"})
            if reply.status_code != status or not problem or WORD in reply.text:
                found.append(f"{operation}: {reply.status_code} {reply.text[:200]}")
            if told and status == 401 and not reply.headers.get("www-authenticate", "").startswith("Bearer"):
                found.append(f"{operation}: no WWW-Authenticate")
        return found

    def login(self, key: str) -> str:
        """The cookie of a browser that logs in with a key."""
        told = self.client.post("/login", data={"key": key}, follow_redirects=False).headers["set-cookie"]
        self.client.cookies.clear()
        return told.partition("=")[2].partition(";")[0]

    def key(self, *scopes: str, tenant: str | None = None) -> str:
        return self.rag.view(tenant=tenant).keys.create("test", scopes=scopes).secret


@pytest.fixture(scope="module")
def served(clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for others, of a tenant with something to find and one that is nobody's business of that."""
    with clone() as dsn, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOKENS", SECRET)
        config = RAGConfig.load(
            storage={"data_dir": tmp_path_factory.mktemp("data") / "unused", "dsn": dsn},
            embedding={"provider": "hashing"},
            server={
                "host": "0.0.0.0",
                "jwt": {"secret": "env:TOKENS"},
                "limits": {"answer": None, "failed_credentials": None},
            },
        )
        with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
            stored = rag.view(collections="private").ingest(
                Document(content=f"The {WORD} sings.", source="bird.md", title=WORD)
            )
            rag.view(session="talk").remember([f"I saw a {WORD}.", "Noted."])
            rag.tenants.create("acme")
            (job,) = rag.view(collections="private").jobs.ingest([tmp_path_factory.mktemp(WORD)])
            client = TestClient(create_app(rag), base_url="http://knowledge.example", raise_server_exceptions=False)
            key = rag.keys.create(WORD, scopes="read").key.key_id
            document = client.get("/v1/openapi.json").json()
            places = {
                **dict.fromkeys(("name", "collection"), "private"),
                **dict.fromkeys(("id", "document_id"), str(stored.document_id)),
                **dict.fromkeys(("job_id",), str(job.job_id)),
                **dict.fromkeys(("session", "session_id"), "talk"),
                "key_id": key,
                "login_id": "4711",
                "tenant": "default",
            }
            yield Served(rag, client, list(operations_of(document)), places)
            client.close()


def operations_of(document: dict) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            needs = [frozenset(named) for needed in operation.get("security", []) for named in needed.values()]
            fewest = min(needs, key=len, default=frozenset())
            together = fewest if len(fewest) > 1 else frozenset()
            yield Operation(
                method.upper(), path, frozenset().union(*needs), "requestBody" in operation, together=together
            )


def test_every_route_has_a_rule_and_its_document_says_the_same(served):
    assert len(served.operations) >= 12
    wrong = []
    for operation in served.operations:
        rule = operation.rule
        told = tuple(scope for scope in ACCESS_SCOPES if scope in operation.scopes)
        needed = () if rule in {"public", (None,)} else rule[0].split() if len(rule) == 1 else rule
        if not (told == tuple(needed) or (len(rule) > 1 and told and set(told) <= set(needed))):
            wrong.append(f"{operation} needs {told}, and should {needed}")
    assert wrong == []


def test_a_route_without_a_rule_fails():
    with pytest.raises(AssertionError, match="say in RULES"):
        _ = Operation("POST", "/v1/unheard-of", frozenset(), has_body=False).rule


def test_nobody_in_particular_is_let_in(served):
    assert served.wrong(None, 401) == []


def test_a_forged_key_opens_nothing(served):
    real = served.rag.keys.create("real", scopes=ACCESS_SCOPES)
    # That every route reads the credential is shown once; what it takes for one, on some.
    assert served.wrong(draw_key(1, real.key.key_id).text, 401) == []
    for forged in (draw_key(1).text, draw_key(2, real.key.key_id).text):
        assert served.wrong(forged, 401, every=SOME) == []


def test_an_expired_and_a_revoked_key_open_nothing(served):
    expired = served.rag.keys.create("expired", scopes=ACCESS_SCOPES, expires="1h")
    with psycopg.connect(served.rag.config.storage.dsn.get_secret_value(), autocommit=True) as connection:
        connection.execute("UPDATE recollect.api_keys SET expires_at = now() WHERE key_id = %s", [expired.key.key_id])
    revoked = served.rag.keys.create("revoked", scopes=ACCESS_SCOPES)
    served.rag.keys.revoke(revoked.key.key_id)
    assert served.wrong(expired.secret, 401, every=SOME) == []
    assert served.wrong(revoked.secret, 401, every=SOME) == []


def token(key=SECRET, algorithm="HS256", **claims) -> str:
    said = {"sub": "eve", "tenant": 1, "scope": " ".join(ACCESS_SCOPES), "exp": int(time.time()) + 6000, **claims}
    return jwt.encode(said, key, algorithm)


def test_a_forged_token_opens_nothing(served):
    head, body, signature = token().split(".")
    none = base64.urlsafe_b64encode(json.dumps({"alg": "none"}).encode()).rstrip(b"=").decode()
    for forged in (
        token("another secret of thirty-two bytes"),
        token(exp=int(time.time()) - 6000),
        token(nbf=int(time.time()) + 6000),
        f"{none}.{body}.",
        f"{head}.{body}.{signature[::-1]}",
    ):
        assert served.wrong(forged, 401, every=SOME) == []
    assert served.wrong(f"{none}.{body}.", 401) == []


def test_keys_of_a_suspended_tenant_open_nothing(served):
    served.rag.tenants.create("gone")
    key = served.key(*ACCESS_SCOPES, tenant="gone")
    served.rag.tenants.suspend("gone")
    assert served.wrong(key, 403) == []


def test_a_cookie_of_no_login_opens_nothing(served):
    """Forged ones, one that names another tenant, and those whose time is over."""
    key = served.rag.keys.create("browser", scopes=ACCESS_SCOPES)
    real = served.login(key.secret)
    _, _, login_id, rest = real.split("_")
    for forged in (f"rl_2_{login_id}_{rest}", draw_login(1).text):
        assert served.wrong(None, 401, cookie=forged, every=SOME) == []
    with psycopg.connect(served.rag.config.storage.dsn.get_secret_value(), autocommit=True) as connection:
        connection.execute("UPDATE recollect.logins SET expires_at = now() WHERE login_id = %s", [login_id])
    assert served.wrong(None, 401, cookie=real) == []
    revoked = served.login(key.secret)
    served.rag.keys.revoke(key.key.key_id)
    assert served.wrong(None, 401, cookie=revoked, every=SOME) == []


def test_a_cookie_changes_nothing_for_other_sites_pages(served):
    """With every scope, but without the browser's word that a page of this server asks."""
    cookie = served.login(served.key(*ACCESS_SCOPES))
    wrong = [
        f"{operation}: {reply.status_code}"
        for operation in served.operations
        if operation.method not in {"GET", "HEAD"}
        and operation.rule != "public"
        and ((reply := served.ask(operation, None, cookie=cookie, own=False)).status_code != 403 or WORD in reply.text)
    ]
    assert wrong == []


def test_a_cookie_opens_what_its_key_does_and_nothing_else(served):
    reader, unknown = served.login(served.key("read")), dict.fromkeys(served.places, "4711")
    wrong = [
        f"{operation}: {reply.status_code}"
        for operation in served.operations
        if operation.rule != "public"
        and ((reply := served.ask(operation, None, cookie=reader, **unknown)).status_code == 403)
        == (operation.scopes <= {"read"})
    ]
    assert wrong == []
    other = served.login(served.key("read", "write", "admin", tenant="acme"))
    wrong = []
    for operation in served.operations:
        if "operator" not in operation.scopes and str(operation) != "DELETE /v1/logins":
            reply = served.ask(operation, None, cookie=other)
            named = "{" in operation.path
            if WORD in reply.text or (named and reply.status_code not in {400, 404, 405, 409, 415, 422}):
                wrong.append(f"{operation}: {reply.status_code} {reply.text[:200]}")
    assert wrong == []


def test_a_credential_opens_nothing_that_its_scopes_do_not_name(served):
    keys = {scopes: served.key(*scopes) for scopes in map(tuple, _all_but_one())}
    wrong = []
    for operation in served.operations:
        if operation.scopes:
            others = tuple(scope for scope in ACCESS_SCOPES if scope not in operation.scopes)
            key = keys.get(others) or served.key(*others)
            reply = served.ask(operation, key)
            if reply.status_code != 403 or WORD in reply.text:
                wrong.append(f"{operation} with {others}: {reply.status_code}")
    assert wrong == []


def test_every_scope_that_is_needed_is_needed(served):
    together = [operation for operation in served.operations if operation.rule != "public" and operation.together]
    assert "POST /v1/chat" in map(str, together)
    wrong = [
        f"{operation} without {missing}: {reply.status_code}"
        for operation in together
        for missing in operation.together
        if (reply := served.ask(operation, served.key(*operation.together - {missing}))).status_code != 403
    ]
    assert wrong == []


def test_who_only_writes_is_shown_no_document(served):
    """Every write with a body that is right: what documents say is in no reply."""
    writer = {"Authorization": f"Bearer {served.key('write')}"}
    asked = {"question": f"What does the {WORD} do?", "session": "talk", "collection": "private"}
    replies = {
        path: served.client.post(path, json=body, headers=writer)
        for path, body in {
            "/v1/chat": asked,
            "/v1/chat/completions": {
                "model": "private",
                "messages": [{"role": "user", "content": asked["question"]}],
                "recollect": {"conversation": "talk"},
            },
            "/v1/responses": {"model": "private", "input": asked["question"], "conversation": "talk"},
            "/v1/sessions/talk/turns": {"turns": [{"content": "Noted."}]},
            "/v1/facts/consolidate": {},
            "/v1/feedback": {"session": "talk", "position": 2, "helpful": True},
            f"/v1/documents/{served.places['id']}/reingest": {},
            f"/v1/vector_stores/private/files/{served.places['id']}": {"attributes": {"a": "b"}},
            "/api/chat": {"query": asked["question"]},
        }.items()
    }
    assert {path: reply.text for path, reply in replies.items() if WORD in reply.text} == {}
    assert replies["/v1/chat"].status_code == 403
    assert replies["/v1/sessions/talk/turns"].status_code == 201


def _all_but_one() -> Iterator[list[str]]:
    for scope in ACCESS_SCOPES:
        yield [other for other in ACCESS_SCOPES if other != scope]


def test_a_reader_reads_and_does_nothing_else(served):
    reader = served.key("read")
    wrong = [
        f"{operation}: {reply.status_code}"
        for operation in served.operations
        if not operation.scopes <= {"read"} and (reply := served.ask(operation, reader)).status_code != 403
    ]
    assert wrong == []


def test_a_token_opens_no_more_than_tokens_may(served):
    wrong = [
        f"{operation}: {reply.status_code}"
        for operation in served.operations
        if "operator" in operation.scopes and (reply := served.ask(operation, token())).status_code != 403
    ]
    assert wrong == []


def test_another_tenant_finds_nothing_of_this_one(served):
    """With every scope but those of whoever runs the store, and the very ids: as though there were no such thing."""
    other = served.key("read", "write", "admin", tenant="acme")
    wrong = []
    for operation in served.operations:
        if "operator" in operation.scopes:
            continue
        reply = served.ask(operation, other)
        named = "{" in operation.path
        if WORD in reply.text or (named and reply.status_code not in {400, 404, 405, 409, 415, 422}):
            wrong.append(f"{operation}: {reply.status_code} {reply.text[:200]}")
    assert wrong == []


def test_whoever_has_the_scope_is_not_refused(served):
    """And nothing breaks for want of a body, or of what the path names."""
    wrong = []
    for operation in served.operations:
        if operation.rule == "public":
            continue
        needed = tuple(operation.scopes) or ("write",)
        reply = served.ask(operation, served.key(*needed), **dict.fromkeys(served.places, "4711"))
        if reply.status_code in {401, 403} or reply.status_code >= 500:
            wrong.append(f"{operation}: {reply.status_code} {reply.text[:200]}")
    assert wrong == []


def test_a_key_made_over_http_opens_nothing_more(served):
    """Whoever has keys to give gives none that goes beyond their own."""
    admin = {"Authorization": f"Bearer {served.key('read', 'admin')}"}
    for scopes in (["write"], ["operator"], ["read", "admin", "write"]):
        refused = served.client.post("/v1/keys", json={"name": "x", "scopes": scopes}, headers=admin)
        assert refused.status_code == 403, scopes
    made = served.client.post("/v1/keys", json={"name": "x", "scopes": ["read"], "expires": "1d"}, headers=admin)
    assert made.status_code == 201 and made.headers["cache-control"] == "no-store"
    key_id, secret = made.json()["key"]["key_id"], made.json()["secret"]
    me = served.client.get("/v1/me", headers={"X-API-Key": secret}).json()
    assert (me["tenant"]["tenant_id"], me["principal"], me["scopes"]) == (1, None, ["read"])
    assert me["credential"]["id"] == key_id
    rotated = served.client.post(f"/v1/keys/{key_id}/rotate", json={"grace": "0"}, headers=admin).json()
    assert served.client.get("/v1/me", headers={"X-API-Key": secret}).status_code == 401
    assert served.client.get("/v1/me", headers={"X-API-Key": rotated["secret"]}).status_code == 200
    listed = served.client.get("/v1/keys?limit=1", headers=admin)
    assert secret not in listed.text and len(listed.json()["items"]) == 1
    cursor = listed.json()["next_cursor"]
    behind = served.client.get(f"/v1/keys?limit=1&cursor={cursor}", headers=admin)
    assert behind.json()["items"] != listed.json()["items"]
    revoked = served.client.delete(f"/v1/keys/{key_id}", headers=admin).json()
    assert revoked["status"] == "revoked"
    assert served.client.get("/v1/me", headers={"X-API-Key": rotated["secret"]}).status_code == 401
    strong = served.rag.keys.create("operations", scopes="operator").key.key_id
    assert served.client.post(f"/v1/keys/{strong}/rotate", json={}, headers=admin).status_code == 403


def test_somebody_in_particular_makes_keys_as_themselves(served):
    ann = {"Authorization": f"Bearer {token(sub='ann', roles=['clerk'], scope='read admin')}"}
    own = served.client.post("/v1/keys", json={"name": "mine"}, headers=ann)
    assert own.json()["key"]["principal"]["user_id"] == "ann" and own.json()["key"]["expires_at"] is None
    refused = served.client.post("/v1/keys", json={"name": "his", "as": {"user": "bob"}}, headers=ann)
    assert refused.status_code == 403
    me = served.client.get("/v1/me", headers=ann).json()
    assert (me["principal"]["roles"], me["credential"]["kind"]) == (["clerk"], "jwt")


ZOO = dict.fromkeys(("name", "collection", "vector_store_id"), "zoo")
HOPS = "What hops and waves, and what is QHW?"


def asked_of_everything(number: int) -> Iterator[tuple[str, dict]]:
    """Reads whose bodies are right: questions that denied documents alone would answer, and their number."""
    where, every = {"collection": "zoo"}, {"everywhere": True}
    for place in (where, every, {**where, "as_of": "now"}):
        yield "/v1/search", {"query": HOPS, "explain": True, "top_k": 50, "neighbours": 5, "collapse": True, **place}
        yield "/v1/ask", {"question": HOPS, "explain": True, **place}
        yield "/v1/context", {"query": HOPS, "explain": True, **place}
    yield "/v1/search/hints", {"tag": ["quokk"], "department": ["quokk"], "where": {"anima": "quokk"}, **where}
    yield "/v1/context/assembly", {"query": HOPS, "explain": True, **where}
    yield "/v1/diff", {"question": HOPS, "from": "7d", **where}
    yield "/v1/why-not", {"query": HOPS, "document": number, **where}
    yield "/v1/recall", {"query": HOPS}
    yield "/v1/facts/search", {"query": HOPS}
    yield "/v1/chat", {"question": HOPS, "session": "bobs", "explain": True, **where}
    yield "/v1/chat/completions", {"model": "zoo", "messages": [{"role": "user", "content": HOPS}]}
    yield "/v1/responses", {"model": "zoo", "input": HOPS, "include": ["file_search_call.results"]}
    yield "/v1/vector_stores/zoo/search", {"query": HOPS, "max_num_results": 50}
    yield "/api/chat", {"query": HOPS}
    for tool, given in {
        "search": {"query": HOPS},
        "knowledge_search": {"query": HOPS},
        "grep": {"pattern": "hops"},
        "list_documents": {"name": "q"},
        "outline": {"document_id": number},
        "read": {"document_id": number},
        "ask": {"question": HOPS},
        "recall": {"query": HOPS},
    }.items():
        yield "/mcp?collection=*", mcp("tools/call", {"name": tool, "arguments": given})
    yield "/mcp?collection=zoo", mcp("resources/list", {})
    yield "/mcp?collection=zoo", mcp("resources/read", {"uri": f"recollect://documents/{number}"})


def mcp(method: str, params: dict) -> dict:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def unnumbered(text: str, number: str) -> str:
    """A reply without its own id, and without the number that was asked for."""
    return re.sub(rf'"request_id":"[^"]*"|\(request [0-9a-f]+\)|\b{number}\b', "", text)


def test_what_is_denied_to_somebody_is_in_no_reply_to_them(served):
    """A grant for the collection and a denial for documents: by number as though there were none, and never found."""
    rag, zoo = served.rag, served.rag.view(collections="zoo")
    message = EmailMessage()
    message["Subject"], message["From"] = "The quokka", "Quokka <q@x.example>"
    message.set_content("The quokka hops and waves.")
    message.add_attachment(b"# Quokka\n\nIt hops and waves.", maintype="text", subtype="markdown", filename="quokka.md")
    about = {"title": "Quokka", "department": "quokkas", "tags": ("quokka",), "metadata": {"animal": "quokka"}}
    zoo.ingest(Document(content="The wombat digs and sleeps.", source="wombat.md", department="animals"))
    zoo.ingest(
        [
            Document(content="The wombat digs and sleeps.", source="quokka-copy.md", **about),
            Document(content="The quokka sleeps.", source="quokka.md", **about),
            Document(content="The quokka has gone.", source="quokka-gone.md", **about),
            read_bytes(bytes(message), name="quokka.eml"),
        ]
    )
    zoo.ingest(Document(content="The quokka hops and waves. (QHW means Quokka Hop Wave.)", source="quokka.md", **about))
    denied = {one.source: one.document_id for one in zoo.documents.list() if "quokka" in one.source}
    assert len(denied) == 5
    zoo.grants.set_collection(readers=["user:bob"])
    zoo.grants.add("user:bob", documents=list(denied))
    zoo.grants.deny("user:bob", documents=list(denied))
    zoo.documents.delete(["quokka-gone.md"])
    bob = rag.keys.create("bob", scopes=("read", "write"), principal=Principal(user_id="bob")).secret
    replies: dict[str, str] = {}
    for operation in served.operations:
        for number in map(str, denied.values()) if re.search(r"\{(document_id|file|id)\b", operation.path) else ["1"]:
            named = {"document_id": number, "id": number, "file": f"file-{number}"}
            there = served.ask(operation, bob, **ZOO, **named)
            replies[f"{operation} {number}"] = there.text
            if number != "1":
                nowhere = served.ask(
                    operation, bob, **ZOO, **{name: one.replace(number, "987654") for name, one in named.items()}
                )
                told = [(there.status_code, unnumbered(there.text, number))]
                assert told == [(nowhere.status_code, unnumbered(nowhere.text, "987654"))], operation
    headers = {"Authorization": f"Bearer {bob}", "Accept": "application/json, text/event-stream"}
    with served.client:
        for path, body in asked_of_everything(min(denied.values())):
            reply = served.client.post(path, json=body, headers=headers)
            assert reply.status_code in {200, 404}, (path, body, reply.text)
            replies[f"{path} {body}"] = reply.text
    assert {asked: text[:1000] for asked, text in replies.items() if "quokka" in text.lower()} == {}
