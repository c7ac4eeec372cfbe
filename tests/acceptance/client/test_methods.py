"""What a client gives is what a view gives: the same types, and the same JSON made of them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from recollect import Answer, Document, Principal, RetrievalOptions, SearchReply
from recollect.errors import (
    AuthenticationError,
    ConflictError,
    IdempotencyKeyReusedError,
    NotFoundError,
    PermissionDeniedError,
    UsageError,
    VersionChangedError,
)
from recollect.model.document_session import SessionConfig
from recollect.model.memory import RecallOptions
from recollect.model.page import cursor_at
from recollect.model.record import json_of
from recollect.model.search_options import RecallKeywords, SearchKeywords
from recollect.model.tenant import TenantQuota
from recollect.replies.contexts import assembled_context_json
from recollect.replies.retrieval import why_not_json
from wires import ASKED, untimed

ADA = Principal(user_id="ada")
# A server always looks the outline up.
OUTLINED = RetrievalOptions(outline=True)
FULL = RetrievalOptions(
    top_k=5,
    outline=True,
    explain=True,
    neighbours=1,
    merge_adjacent=True,
    department=("hr",),
    metadata_filters={"year": 2026},
    filters={"metadata.year": {"gte": 2020}},
    min_relevance=0,
    mmr_lambda=0.7,
    collapse_duplicates=False,
    ingestion_time_range=("2020-01-01", None),
    rerank="bm25",
    rerank_candidates=20,
)


def shown(reply: SearchReply) -> Any:
    return json_of(reply)


#: Both give an object of a view's type; this is the JSON of it.
SAME = {
    "search": lambda v: shown(v.search(ASKED, OUTLINED)),
    "search with everything": lambda v: shown(v.search(ASKED, FULL)),
    "search everywhere": lambda v: shown(v.view(collections="*").search("ERR-4012 leave", OUTLINED)),
    "search of a collection": lambda v: shown(v.view(collections="it").search("ERR-4012", OUTLINED)),
    "search of a session": lambda v: shown(v.view(session="desk").search(ASKED, OUTLINED)),
    "search of both": lambda v: shown(v.view(session="desk", collections=["it"]).search(ASKED, OUTLINED)),
    "search of the past": lambda v: shown(v.view(as_of="2020-01-01").search(ASKED, OUTLINED)),
    "search as somebody": lambda v: shown(v.view(principal=Principal(user_id="ada")).search(ASKED, OUTLINED)),
    "nothing found": lambda v: shown(v.search("zzz", RetrievalOptions(mode="lexical", explain=True))),
    "answer": lambda v: json_of(v.ask(ASKED)),
    "refusal": lambda v: json_of(v.ask("Who won the cup of 1954 in football?", RetrievalOptions(explain=True))),
    "context": lambda v: assembled_context_json(ASKED, v.context(ASKED, token_budget=500), collection="default"),
    "why not": lambda v: why_not_json(v.why_not(ASKED, "hr/pay.txt")),
    "collections": lambda v: json_of(v.collections.list()),
    "collection": lambda v: json_of(v.collections.get("it")),
    "documents": lambda v: json_of(v.documents.list()),
    "documents, filtered": lambda v: json_of(v.documents.list(tags=("official",), newest_first=True, limit=1)),
    "documents behind one": lambda v: json_of(v.documents.list(cursor=cursor_at(1))),
    "document": lambda v: json_of(v.documents.get("hr/leave.md")),
    "duplicates": lambda v: repr(v.documents.duplicates(1)),
    "hints": lambda v: v.documents.filter_hints(RetrievalOptions(tags=("no-such-tag",))),
    "refusal, unexplained": lambda v: json_of(v.ask("Who won the cup of 1954?")),
    "history": lambda v: json_of(v.documents.history(1)),
    "outline": lambda v: json_of(v.contents.outline(1)),
    "part": lambda v: json_of(v.contents.read(1, start=3, length=20)),
    "chunks": lambda v: json_of(v.contents.chunks(1)),
    "chunks of some characters": lambda v: json_of(v.contents.chunks(1, start=60, end=70)),
    "chunks from a character on": lambda v: json_of(v.contents.chunks(1, start=60)),
    "conversation": lambda v: json_of(v.view(user="ada").memory.get("talk")),
    "conversations": lambda v: json_of(v.memory.list()),
    "conversations with a word": lambda v: json_of(v.memory.list(text="LISBON")),
    "conversations without": lambda v: json_of(v.memory.list(text="Madrid")),
    "turns": lambda v: json_of(v.memory.turns("talk")),
    "turns behind one": lambda v: json_of(v.memory.turns("talk", after=1)),
    "session": lambda v: json_of(v.sessions.get("desk")),
    "sessions": lambda v: json_of(v.sessions.list()),
    "how sessions are": lambda v: repr(v.sessions.default_config().lifetime),
    "recall": lambda v: json_of(v.recall("Where does my sister live?")),
    "recall of one": lambda v: json_of(
        v.view(session="talk").recall("sister", RecallOptions(top_k=1, mode="lexical", before=0, after=0))
    ),
    "facts": lambda v: json_of(v.facts.list(superseded=True)),
    "fact": lambda v: json_of(v.facts.get(1)),
    "fact's history": lambda v: json_of(v.facts.history(1)),
    "facts found": lambda v: json_of(v.facts.search("sister")),
    "weights": lambda v: json_of(v.feedback.weights()),
    "grants": lambda v: json_of(v.grants.of_collection()),
    "grants of documents": lambda v: [json_of(one) for one in v.grants.of_documents([1, "hr/pay.txt"])],
    "keys": lambda v: json_of(v.keys.list()),
    "tenants": lambda v: json_of(v.tenants.list()),
    "tenant": lambda v: json_of(v.tenants.get("default")),
    "audit": lambda v: v.audit.list(limit=3),
    "audit's chain": lambda v: v.audit.verify(),
    "audit's lines": lambda v: list(v.audit.export()),
    "requests": lambda v: [list(v.audit.requests()), list(v.audit.request_totals())],
    "status": lambda v: json_of(v.maintenance.status()),
    "default options": lambda v: repr(v.default_options()),
}


@pytest.fixture(scope="module", autouse=True)
def facts(served):
    served.rag.view(user="ada").recall("sister")
    served.rag.facts.consolidate(min_retrievals=1)
    served.rag.keys.create("somebody's", principal=Principal(user_id="ada", roles=("hr",)), expires="90d")
    assert served.rag.facts.list()


@pytest.mark.parametrize("name", SAME)
def test_a_client_gives_what_a_view_gives(served, client, name):
    make = SAME[name]
    while True:
        before, given, after = untimed(make(served.rag)), untimed(make(client)), untimed(make(served.rag))
        # The server's own upkeep may have come in between.
        if before == after:
            break
    assert given == after


def test_options_are_keywords_and_a_reply_is_its_results(served, client):
    for keywords, options in ((SearchKeywords, RetrievalOptions), (RecallKeywords, RecallOptions)):
        types = {name: one.__forward_arg__ for name, one in keywords.__annotations__.items()}
        assert types == options.__annotations__
    for view in (served.rag, client):
        best, *rest = view.search("leave", top_k=2)
        assert len(rest) == 1 and len(view.search("leave", RetrievalOptions(top_k=2), top_k=1)) == 1
        reply = view.search("leave", top_k=None, mode="lexical")
        assert reply.mode == "lexical" and reply[0].rank == 1 and reply[:1] == reply.results[:1]
        assert view.retrieve("leave", top_k=1)[0].content == best.content
        assert len(view.context("leave", top_k=1).blocks) == 1
        assert view.ask("How long is annual leave?", mode="lexical").citations
        assert len(view.view(user="ada").recall("sister", top_k=1)) <= 1
        with pytest.raises(UsageError, match="top_k must be a whole number"):
            view.search("leave", top_k="many")
        with pytest.raises(TypeError, match="top_k"):
            view.search("leave", limit=3)


def test_lists_are_gone_through_and_a_conversation_is_held_by_both(served, client):
    for view in (served.rag, client):
        assert [*view.collections.each()] == [*view.collections.list()]
        assert [*view.documents.each()] == [*view.documents.list(limit=1_000)]
        assert [*view.documents.each(newest_first=True)] == [*view.documents.list(newest_first=True, limit=1_000)]
        first = view.documents.list()[0].document_id
        assert [*view.contents.each_chunk(first)] == [*view.contents.chunks(first, limit=1_000)]
        found = view.contents.grep("annual leave", limit=3)
        assert found.documents and found == served.rag.contents.grep("annual leave", limit=3)
        assert view.contents.list(limit=2) == served.rag.contents.list(limit=2)
        talk = f"held by {type(view).__name__}"
        answer = view.chat("How long is annual leave?", session=talk, top_k=3)
        assert answer.citations
        assert [one.content for one in view.memory.each_turn(talk)] == [answer.question, answer.text]
        assert view.view(session=talk).feedback.judge(2, helpful=True)
        assert not view.view(session=talk).feedback.judge(2, helpful=False)
        *_, last = view.chat_events("And how long is it?", session=talk)
        assert isinstance(last, Answer) and len([*view.memory.each_turn(talk)]) == 4
        with pytest.raises(UsageError, match="no session of its own"):
            view.view(session=talk).chat("How long is it?", session=talk)


def test_what_is_given_has_the_types_of_a_view(served, client):
    ours, theirs = served.rag.search(ASKED), client.search(ASKED)
    assert type(ours) is type(theirs)
    assert theirs.results[0].parts == ours.view.results[0].parts if hasattr(ours, "view") else theirs.results
    found = theirs.results[0]
    # What the reply does not tell is what the type has where nothing is said.
    assert (found.tags, found.similarity, found.chunk_ids) == ((), None, ())
    assert {one.name for one in fields(found)} == {one.name for one in fields(ours.results[0])}


def test_an_answer_comes_as_it_is_written(served, client):
    events = list(client.ask_events(ASKED))
    assert [type(one).__name__ for one in events] == [type(one).__name__ for one in _with_citations(served.rag)]
    assert isinstance(events[-1], Answer)
    *pieces, answer = client.ask_stream(ASKED)
    assert "".join(pieces) == answer.text


def _with_citations(view):
    """Over HTTP quotes and passages come as events of their own before the answer that has them."""
    *events, answer = view.ask_events(ASKED)
    return [*events, *answer.citations, *answer.passages, answer]


def test_a_conversation_is_held_and_remembered(served, client):
    answer = client.chat(ASKED, session="chat-1")
    assert "30 days" in answer.text
    said = client.memory.turns("chat-1")
    assert [one.role for one in said] == ["user", "assistant"]
    assert said[1].metadata["rag_sources"][0]["source"] == "hr/leave.md"
    assert client.memory.forget("chat-1", [2]) == 1
    assert client.memory.delete("chat-1") == 1
    with pytest.raises(NotFoundError):
        client.memory.get("chat-1")


def test_documents_are_stored_described_and_closed(served, client):
    client.collections.create("work", description="Work")
    assert client.collections.update("work", description="Our work").description == "Our work"
    work = client.view(collections="work")
    added = work.ingest(Document(content="A first text.", source="a.md", metadata={"n": 1}))
    assert (added.status, added.version) == ("added", 1)
    assert [one.status for one in work.ingest(["Another text.", "A third."])] == ["added", "added"]
    described = work.documents.update("a.md", title="A", tags=["new"], if_version=1)
    assert described.version == 2
    with pytest.raises(VersionChangedError):
        work.documents.update(added.document_id, title="B", if_version=1)
    assert work.documents.diff(added.document_id, from_version=1, to_version=2).added == 0
    assert len(list(work.documents.each())) == 3
    receipt = work.documents.erase(["a.md"], reason="asked to")
    assert receipt.complete
    assert work.documents.delete([one.document_id for one in work.documents.each()]) == 2
    for n in (1, 2):
        work.ingest(Document(content=f"Turn {n} of the talk.", source="chat", id=f"turn-{n}"))
    assert {(one.source, one.id) for one in work.retrieve("talk")} == {("chat", "turn-1"), ("chat", "turn-2")}
    assert work.documents.get("turn-2").id == "turn-2"
    with pytest.raises(UsageError, match="'turn-1', 'turn-2'"):
        work.documents.get("chat")
    assert work.documents.delete(["chat"]) == 2
    assert client.collections.delete("work") is None
    with pytest.raises(NotFoundError, match="work"):
        client.collections.get("work")


def test_files_are_sent_stored_and_downloaded_again(served, client, tmp_path: Path):
    folder = tmp_path / "office"
    (folder / "hr").mkdir(parents=True)
    (folder / "hr" / "notes.md").write_text("# Notes\n\nThe canteen opens at noon.")
    (folder / "notes.md").write_text("# Notes\n\nThe gate closes at ten.")
    (folder / "empty.txt").touch()
    (folder / "picture.xyz").write_bytes(b"\x00\x01")
    client.collections.create("office")
    office = client.view(collections="office")
    seen = []
    report = office.ingest(folder, tags=["sent"], on_progress=seen.append)
    assert (report.added, report.failed) == (2, 1)
    assert report.errors[0].path == "empty.txt"
    assert seen[-1].done == seen[-1].total == 2
    documents = {one.source: one for one in office.documents.list()}
    assert {name: (one.department, one.tags) for name, one in documents.items()} == {
        "hr/notes.md": ("hr", ("sent",)),
        "notes.md": (None, ("sent",)),
    }
    again = office.ingest_files(str(folder), tags=["sent"])
    assert (again.added, again.unchanged) == (0, 2)
    original = office.contents.original(documents["notes.md"].document_id)
    assert (original.read(), original.byte_count) == ((folder / "notes.md").read_bytes(), 32)
    assert b"".join(office.contents.download(documents["notes.md"].document_id)) == original.read()
    (job,) = office.jobs.upload(folder / "notes.md")
    assert office.jobs.wait(job.job_id).status == "succeeded"
    assert [one.status for one in office.jobs.events(job.job_id)][-1] == "succeeded"
    assert office.jobs.get(job.job_id) in office.jobs.list(kind="ingest_upload")
    assert office.documents.reread("notes.md").status in {"updated", "unchanged"}
    with pytest.raises(ConflictError):
        office.jobs.retry(job.job_id)


def test_two_files_of_one_name_are_not_made_one_document(client, tmp_path: Path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.txt").write_text(f"Of {folder}.")
    client.collections.create("twice")
    report = client.view(collections="twice").ingest([tmp_path / "a" / "same.txt", tmp_path / "b" / "same.txt"])
    assert (report.added, report.failed) == (1, 1)
    assert "one document" in report.errors[0].error


def test_a_page_that_may_not_be_asked_for_says_so(client):
    job = client.ingest_url("http://127.0.0.1:9/private")
    assert job.status in {"failed", "cancelled"}
    assert job.error


def test_people_rights_and_keys(served, client):
    made = client.keys.create("reader", scopes=["read"], expires="1d", principal=Principal(user_id="bob"))
    assert client.keys.get(made.key.key_id) == made.key
    rotated = client.keys.rotate(made.key.key_id, grace=0)
    assert rotated.secret != made.secret
    with served.client(rotated.secret) as bob:
        assert bob.me()["principal"]["user_id"] == "bob"
        assert bob.search(ASKED).results
        with pytest.raises(PermissionDeniedError):
            bob.keys.list()
        with pytest.raises(PermissionDeniedError):
            bob.ingest("A text.")
        with pytest.raises(PermissionDeniedError):
            bob.view(principal=Principal(user_id="ada")).search(ASKED)
    assert client.keys.revoke(made.key.key_id).status == "revoked"
    with served.client(rotated.secret) as bob, pytest.raises(AuthenticationError):
        bob.me()
    assert client.grants.deny("user:bob", documents=["hr/pay.txt"]) == 1
    assert client.grants.of_documents("hr/pay.txt")[0].permissions.denials == ("user:bob",)
    assert client.grants.remove("!user:bob", documents=["hr/pay.txt"]) == 1
    tenant = client.tenants.create("acme", quota=TenantQuota(max_documents=5))
    assert client.tenants.set_quota("acme", TenantQuota(max_chunks=7)).quota == TenantQuota(max_chunks=7)
    assert client.tenants.suspend("acme").status == "suspended"
    assert client.tenants.resume(tenant.tenant_id).status == "active"
    assert client.tenants.set_pii("acme", "refuse").pii == "refuse"
    assert client.tenants.get("acme").shared_with_it == ()
    assert client.tenants.erase("acme", reason="gone").name == "acme"


def test_sessions_feedback_and_facts_change(client):
    made = client.sessions.create("mine", SessionConfig(ttl="2h", max_documents=3, when_full="oldest"))
    assert (made.max_documents, made.when_full, made.ttl.total_seconds()) == (3, "oldest", 7200)
    assert client.sessions.renew("mine").expires_at >= made.expires_at
    assert client.sessions.documents("desk")[0].source == "draft.md"
    assert client.sessions.end("mine") == 0
    client.view(session="talk-2").remember("Tea is at five.", role="ada")
    assert client.view(session="talk-2").feedback.give("memory:talk-2", helpful=True).session.memory_helpful == 1
    assert client.view(session="talk-2").feedback.reset() == 1
    assert client.facts.consolidate(min_retrievals=1000).examined == 0


def test_changes_are_made_of_what_was_read(client):
    seen = []
    asking = client.with_options(on_reply=seen.append)
    asking.tenants.get("default")
    etag = seen[-1].etag
    assert seen[-1].request_id
    client.tenants.set_quota("default", TenantQuota(max_documents=1_000_000), if_match=etag)
    with pytest.raises(VersionChangedError):
        client.tenants.set_quota("default", TenantQuota(max_documents=5), if_match=etag)


def test_a_key_of_ones_own_makes_a_write_once(client):
    once = client.with_options(idempotency_key="0f-once")
    first = once.ingest(Document(content="Made once.", source="once.md"))
    assert once.ingest(Document(content="Made once.", source="once.md")) == first
    with pytest.raises(IdempotencyKeyReusedError):
        once.ingest(Document(content="Made twice.", source="once.md"))
    client.documents.delete(["once.md"])


ODD = RetrievalOptions(filters={"metadata.a": {"near": 1}})
ERRORS = {
    "no such collection": (NotFoundError, lambda v: v.view(collections="nowhere").search(ASKED, OUTLINED)),
    "no such document": (NotFoundError, lambda v: v.documents.get(4711)),
    "no such source": (NotFoundError, lambda v: v.documents.get("no/such.md")),
    "no such session": (NotFoundError, lambda v: v.view(session="none").search(ASKED, OUTLINED)),
    "an empty query": (UsageError, lambda v: v.search("  ")),
    "a filter that is none": (
        UsageError,
        lambda v: v.search(ASKED, RetrievalOptions(filters={"metadata.a": {"near": 1}})),
    ),
    "a collection that is there": (ConflictError, lambda v: v.collections.create("it")),
    "a fact that is not there": (NotFoundError, lambda v: v.facts.get(4711)),
    "a tenant that is there": (ConflictError, lambda v: v.tenants.create("default")),
    "several collections": (UsageError, lambda v: v.view(collections=["it", "default"]).documents.list()),
    "the past": (UsageError, lambda v: v.view(as_of="7d").ingest("A text.")),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_that_of_the_library(served, client, name):
    kind, do = ERRORS[name]
    with pytest.raises(kind) as ours:
        do(served.rag)
    with pytest.raises(kind) as theirs:
        do(client)
    assert type(theirs.value) is type(ours.value)
    if name not in {"no such source", "no such session", "the past"}:
        assert str(theirs.value) == str(ours.value)


def test_contexts_say_why_they_are_empty(served, client):
    served.rag.collections.ensure("bare")
    at = client.view(collections="bare")
    told = ("The collection 'bare' is empty.",)
    assert at.context("leave").warnings == told
    assert at.memory.assemble("leave", "documents").context.warnings == told
    served.rag.collections.delete("bare")
