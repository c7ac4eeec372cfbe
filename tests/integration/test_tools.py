"""Tools of agents on a real store: what they find can be read, what somebody may not read does not exist for any."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect import AsyncRAGPipeline, Document, Principal, RAGConfig, RAGPipeline, RAGTool, View
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import NotFoundError, RecollectError, StoreUnavailableError, UsageError
from recollect.tools import KNOWLEDGE_SEARCH, TOOLS, Toolbox, ToolResult
from tool_results import require_declared

ANN, BOB = Principal(user_id="ann", roles=("clerk",)), Principal(user_id="bob")
ALL = (KNOWLEDGE_SEARCH, *TOOLS)

RULES = """# Rules

## Leave

Annual leave is 30 days. Ask in tool LV-77.

## Travel

### Hotels

A hotel in Bremen costs 130 euros at most.

### Trains

Second class, booked with LV-77 too.
"""
SECRET = "# Board\n\nThe board's leave is 99 days, says paper ZX-9."


def fill(pipeline: RAGPipeline) -> RAGPipeline:
    pipeline.ingest(Document(content=RULES, source="rules.md", title="Rules", department="hr", tags=("rules",)))
    pipeline.ingest(
        Document(content=SECRET, source="board.md", title="Board", department="board", permissions=("role:clerk",))
    )
    return pipeline


@pytest.fixture
def rag(pipeline: RAGPipeline) -> RAGPipeline:
    """For tests that change something."""
    return fill(pipeline)


@pytest.fixture(scope="module")
def read_only(clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RAGPipeline]:
    """For tests that only look."""
    with clone() as dsn:
        storage = {"data_dir": tmp_path_factory.mktemp("data") / "unused", "dsn": dsn}
        config = RAGConfig.load(storage=storage, embedding={"provider": "hashing"})
        with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
            yield fill(opened)


class Declared(Toolbox):
    """Tools whose results are what their schemas say, and nothing beside it."""

    def execute(self, name: str, arguments: Any = None) -> ToolResult:
        result = super().execute(name, arguments)
        if (tool := self.get(str(name))) is not None:
            require_declared(tool, result)
        return result


def box(view: View, **options: Any) -> Toolbox:
    return Declared(view, ALL, **options)


def value(result: ToolResult) -> dict[str, Any]:
    assert not result.is_error, result.text
    assert json.loads(result.text) == result.value
    return dict(result.value)


def error(result: ToolResult) -> dict[str, str]:
    assert result.is_error and "Traceback" not in result.text
    return json.loads(result.text)["error"]


def spans(found: Any) -> list[dict[str, Any]]:
    """Every object with a span, with the document that it is in."""
    if isinstance(found, list):
        return [inner for one in found for inner in spans(one)]
    if not isinstance(found, dict):
        return []
    own = [found] if {"start_offset", "end_offset"} <= found.keys() else []
    inner = [{"document_id": found.get("document_id"), **one} for part in found.values() for one in spans(part)]
    return own + inner


def replace_content(rag: RAGPipeline, document_id: int, content: str) -> None:
    """Below the pipeline: cutting and embedding a long text is not what these tests are about."""
    with rag.store.database.autocommit() as connection:
        connection.execute(
            "UPDATE texts SET content = %s WHERE text_hash = (SELECT content_hash FROM document_versions "
            "WHERE document_id = %s)",
            [content, document_id],
        )


def test_whatever_a_tool_finds_can_be_read(read_only: RAGPipeline):
    tools = box(read_only)
    results = [
        tools.execute("knowledge_search", {"query": "How many days of annual leave?"}),
        tools.execute("search", '{"query": "hotel in Bremen", "limit": null}'),
        tools.execute("grep", {"pattern": "LV-77"}),
        tools.execute("grep", {"pattern": r"\d+ (days|euros)", "regex": True}),
        tools.execute("outline", {"document_id": 1}),
    ]
    for result in results:
        found = spans(value(result))
        assert found, result
        for one in found:
            read = value(
                tools.execute("read", {key: one[key] for key in ("document_id", "start_offset", "end_offset")})
            )
            document = read_only.documents.get(one["document_id"])
            assert read["text"] == document.content[one["start_offset"] : one["end_offset"]]
            assert one.get("text", read["text"]) == read["text"]
            assert read["text"] in one.get("line", read["text"])
            assert (read["source"], read["characters"]) == (document.source, len(document.content))


def test_grep_tells_the_line_the_section_and_the_place(read_only: RAGPipeline):
    (found,) = value(box(read_only).execute("grep", {"pattern": "lv-77"}))["documents"]
    assert (found["document_id"], found["source"], found["title"]) == (1, "rules.md", "Rules")
    assert [(one["line"], one["section"]) for one in found["matches"]] == [
        ("Annual leave is 30 days. Ask in tool LV-77.", "Rules > Leave"),
        ("Second class, booked with LV-77 too.", "Rules > Travel > Trains"),
    ]
    assert value(box(read_only).execute("grep", {"pattern": "lv-77", "case_sensitive": True}))["documents"] == []
    assert (
        value(box(read_only).execute("grep", {"pattern": "leave", "department": "board"}))["documents"][0]["source"]
        == "board.md"
    )


def test_an_outline_gives_the_range_of_each_section(rag: RAGPipeline):
    told = value(box(rag).execute("outline", {"document_id": 1}))
    texts = {one["title"]: RULES[one["start_offset"] : one["end_offset"]] for one in told["headings"]}
    assert list(texts) == ["Rules", "Leave", "Travel", "Hotels", "Trains"]
    assert texts["Rules"] == RULES and "Trains" in texts["Travel"] and "Trains" not in texts["Hotels"]
    assert texts["Leave"].endswith("LV-77.\n\n")
    half = value(box(rag).execute("outline", {"document_id": 1, "after_offset": texts["Rules"].index("## Travel")}))
    assert [one["title"] for one in half["headings"]] == ["Travel", "Hotels", "Trains"]
    # A text that came without headings has those that were found when it was cut.
    plain = rag.ingest(Document(content="PAY\n\nOn the 25th.\n\nBONUS\n\nIn December.", source="pay.txt")).document_id
    assert "characters" in value(box(rag).execute("outline", {"document_id": plain}))


def test_the_parts_of_a_document_join_to_the_whole_of_it(rag: RAGPipeline):
    content = "".join(f'Line {number}: "quoted" and ä\\ö\t€ 💥\n' for number in range(1_500))
    number = rag.ingest(Document(content=content, source="long.txt")).document_id
    tools, arguments, parts = box(rag, max_characters=4_000), {"document_id": number}, []
    while arguments is not None:
        result = tools.execute("read", arguments)
        assert len(result.text) <= 4_000
        told = value(result)
        parts.append(told["text"])
        more = told.get("continue_with")
        arguments = None if more is None else {"document_id": number, **more}
    assert "".join(parts) == content


def test_what_is_cut_is_bounded_and_says_how_to_go_on(rag: RAGPipeline):
    texts = (
        (f"{'deep/' * 30}{number:03}.md", f"# Chapter {number}\n\n" + f"The word needle, {number}.\n\n" * 12)
        for number in range(40)
    )
    rag.ingest(Document(content=text, source=name, tags=("long" * 20,)) for name, text in texts)
    parts = "".join(f"## Part {part} of {'it ' * 40}\n\nHay.\n\n" for part in range(60))
    manual = rag.ingest(Document(content=parts, source="manual.md")).document_id
    tools = box(rag, max_characters=4_000)

    def follow(name: str, arguments: dict[str, Any], item: str) -> list[Any]:
        seen, rounds = [], 0
        given: dict[str, Any] | None = arguments
        while given is not None:
            result = tools.execute(name, given)
            assert len(result.text) <= 4_000
            told = value(result)
            seen += told[item]
            more = told.get("continue_with")
            given = None if more is None else {**arguments, **more}
            rounds += 1
            assert rounds < 200
        assert rounds > 1
        return seen

    listed = follow("list_documents", {"limit": 200}, "documents")
    assert len({one["document_id"] for one in listed}) == len(listed) == 43
    matched = follow("grep", {"pattern": "needle", "limit": 100}, "documents")
    counts = [(one["document_id"], match["start_offset"]) for one in matched for match in one["matches"]]
    assert len(set(counts)) == len(counts)
    # Ten of each document at a time, and the rest where it says.
    first = next(one for one in matched if "more_matches" in one)
    rest = value(tools.execute("grep", {"pattern": "needle", **first["more_matches"]}))["documents"]
    assert rest[0]["matches"][0]["start_offset"] == first["more_matches"]["from_offset"]
    headings = follow("outline", {"document_id": manual}, "headings")
    assert [one["title"].split()[1] for one in headings] == [str(part) for part in range(60)]
    results = follow("search", {"query": "needle", "limit": 40, "mode": "lexical"}, "results")
    assert len({(one["document_id"], one["start_offset"]) for one in results}) == len(results) >= 40
    assert len(tools.execute("knowledge_search", {"query": "needle", "limit": 20}).text) <= 4_000


def test_what_somebody_may_not_read_exists_for_no_tool(read_only: RAGPipeline):
    secret = next(one for one in read_only.contents.list() if one.source == "board.md").document_id
    bob, ann = box(read_only.view(principal=BOB)), box(read_only.view(principal=ANN))
    searches = [
        ("knowledge_search", {"query": "the board's leave 99 days paper ZX-9", "limit": 20}),
        ("search", {"query": "the board's leave 99 days paper ZX-9", "limit": 50}),
        ("search", {"query": "board leave", "document_id": secret}),
        ("search", {"query": "board leave", "department": "board", "mode": "lexical"}),
        ("grep", {"pattern": "ZX-9"}),
        ("grep", {"pattern": "(?s).*", "regex": True, "limit": 100}),
        ("list_documents", {}),
        ("list_documents", {"name": "board"}),
        ("list_documents", {"department": "board"}),
        ("recall", {"query": "ZX-9"}),
    ]
    for name, arguments in searches:
        text = bob.execute(name, arguments).text
        assert "ZX-9" not in text and "board.md" not in text and "99" not in text, (name, text)
    assert any("ZX-9" in ann.execute(name, arguments).text for name, arguments in searches)
    # What is not theirs is told in the same words as what is not there.
    for name in ("read", "outline", "grep"):
        pattern = {"pattern": "leave"} if name == "grep" else {}
        there, nowhere = (error(bob.execute(name, {"document_id": one, **pattern})) for one in (secret, 99_999))
        assert there["kind"] == nowhere["kind"] == "not_found"
        assert there["message"].replace(str(secret), "99999") == nowhere["message"]
        assert not ann.execute(name, {"document_id": secret, **pattern}).is_error


def test_tools_look_where_a_search_of_the_view_looks(rag: RAGPipeline):
    rag.view(collections="other").ingest(Document(content="Elsewhere is LV-77 too.", source="other.md"))
    rag.tenants.create("acme")
    rag.view(tenant="acme").ingest(Document(content="At Acme, LV-77 is a lathe.", source="acme.md"))
    rag.sessions.create("desk")
    rag.view(session="desk").ingest(Document(content="My own LV-77 note.", source="mine.md"))
    everywhere = {
        one.document_id: one.source
        for name in ("default", "other")
        for one in rag.view(collections=name).documents.list()
    }
    everywhere |= {one.document_id: one.source for one in rag.view(session="desk").documents.list()}
    everywhere |= {one.document_id: one.source for one in rag.view(tenant="acme").documents.list()}
    for view, expected in (
        (rag, {"rules.md", "board.md"}),
        (rag.view(collections="other"), {"other.md"}),
        (rag.view(collections=["default", "other"]), {"rules.md", "board.md", "other.md"}),
        (rag.view(collections="*"), {"rules.md", "board.md", "other.md"}),
        (rag.view(session="desk"), {"mine.md"}),
        (rag.view(session="desk", collections="other"), {"mine.md", "other.md"}),
        (rag.view(tenant="acme"), {"acme.md"}),
        (rag.view(tenant="acme", collections="*"), {"acme.md"}),
    ):
        tools = box(view)
        listed = {one["source"] for one in value(tools.execute("list_documents"))["documents"]}
        found = {one["source"] for one in value(tools.execute("grep", {"pattern": "LV-77"}))["documents"]}
        readable = {
            source
            for number, source in everywhere.items()
            if not tools.execute("read", {"document_id": number}).is_error
        }
        assert listed == readable == expected
        assert found == expected - {"board.md"}
    rag.sessions.end("desk")
    assert error(box(rag.view(session="desk")).execute("grep", {"pattern": "note"}))["kind"] == "not_found"
    # A conversation without documents of its own, stored or about to begin, is none to look into; collections are.
    for _ in range(2):
        talk = box(rag.view(session="talk", collections="other"))
        for name, arguments in (("list_documents", {}), ("grep", {"pattern": "LV-77"}), ("search", {"query": "LV-77"})):
            assert "other.md" in talk.execute(name, arguments).text
        assert error(talk.execute("read", {"document_id": 1}))["kind"] == "not_found"
        rag.view(session="talk").remember("Hello.")


def test_a_view_of_the_past_is_read_as_it_was_and_not_written(rag: RAGPipeline):
    before = datetime.now(UTC)
    rag.ingest(Document(content="Annual leave is 31 days.", source="rules.md"))
    rag.documents.delete(["board.md"])
    now, past = (
        box(rag.view(session="c", collections="default")),
        box(rag.view(as_of=before, session="c", collections="default")),
    )
    rag.view(session="c").remember("Hello.")
    assert value(past.execute("read", {"document_id": 1}))["text"] == RULES
    assert value(now.execute("read", {"document_id": 1}))["text"] == "Annual leave is 31 days."
    assert {one["source"] for one in value(past.execute("list_documents"))["documents"]} == {"rules.md", "board.md"}
    assert {one["source"] for one in value(now.execute("list_documents"))["documents"]} == {"rules.md"}
    assert (
        value(past.execute("grep", {"pattern": "ZX-9"}))["documents"]
        and not value(now.execute("grep", {"pattern": "ZX-9"}))["documents"]
    )
    assert len(value(past.execute("outline", {"document_id": 1}))["headings"]) == 5
    assert error(past.execute("remember", {"text": "I was there."}))["kind"] == "invalid_arguments"
    assert "of the past" in error(past.execute("remember", {"text": "I was there."}))["message"]
    assert error(box(rag.view(as_of="2d")).execute("read", {"document_id": 1}))["kind"] == "not_found"


def test_what_has_expired_is_neither_listed_nor_read(rag: RAGPipeline):
    short = rag.ingest(Document(content="Lunch LV-77.", source="lunch.md", ttl=timedelta(microseconds=1))).document_id
    tools = box(rag)
    assert "lunch.md" not in tools.execute("list_documents").text + tools.execute("grep", {"pattern": "LV-77"}).text
    assert error(tools.execute("read", {"document_id": short}))["kind"] == "not_found"


def test_what_was_remembered_is_recalled(rag: RAGPipeline):
    kim = rag.view(session="chat", user="kim", collections="default")
    tools = Toolbox(kim)
    assert list(tools) == [one.name for one in TOOLS]
    told = value(tools.execute("remember", {"text": "My locker is 17. \0", "role": "user"}))
    assert (told["session"], told["position"]) == ("chat", 1)
    value(tools.execute("remember", {"text": "Noted: " + "locker " * 2_500, "role": "assistant"}))
    (turn, *_) = value(tools.execute("recall", {"query": "My locker is 17.", "limit": 1}))["turns"]
    assert (turn["session"], turn["role"]) == ("chat", "user") and "17" in turn["text"]
    # A long turn is read in pieces.
    arguments: dict[str, Any] | None = {"query": "Noted locker", "limit": 1}
    small, pieces = Toolbox(kim, max_characters=5_000), []
    while arguments is not None:
        told = value(small.execute("recall", {"query": "Noted: locker locker locker", **arguments}))
        pieces.append(told["turns"][0]["text"])
        more = told.get("continue_with")
        arguments = None if more is None else {**arguments, **more}
    assert "".join(pieces) == "Noted: " + "locker " * 2_500
    # Others' conversations do not exist.
    assert value(Toolbox(rag.view(user="eve")).execute("recall", {"query": "Which locker?"}))["turns"] == []
    # Where there is no conversation to write to, nothing is offered that would.
    assert "remember" not in Toolbox(rag) and "remember" not in Toolbox(kim.view(as_of="1d"))
    assert "Say which conversation" in error(box(rag).execute("remember", {"text": "x"}))["message"]


WRONG = [
    ("read", {"document_id": 1, "start_offset": 10_000}, "invalid_arguments", "has 180 characters"),
    ("read", {"document_id": 1, "start_offset": 5, "end_offset": 5}, "invalid_arguments", "greater than"),
    ("read", {"document_id": 2**53}, "not_found", "There is no document"),
    ("read", {"document_id": 2**64}, "invalid_arguments", "must lie between"),
    ("read", {"document_id": "rules.md"}, "invalid_arguments", "whole number"),
    ("grep", {"pattern": "(a"}, None, None),
    ("grep", {"pattern": "(a", "regex": True}, "invalid_arguments", "no regular expression"),
    ("grep", {"pattern": r"(\w+) \1", "regex": True}, "invalid_arguments", "back-references"),
    ("grep", {"pattern": "\0"}, "invalid_arguments", "NUL"),
    ("grep", {"pattern": "x", "from_document": 10**9, "from_offset": 10**9}, None, None),
    ("grep", {"pattern": "x", "document_id": 1, "from_offset": 2_000_000_000}, None, None),
    ("outline", {"document_id": 1, "after_offset": 2_000_000_000}, None, None),
    ("search", {"query": "\0\ud800"}, None, None),
    ("search", {"query": "leave", "department": "'; DROP TABLE documents; --"}, None, None),
    ("list_documents", {"name": "%_\\"}, None, None),
    ("list_documents", {"after": 2**53}, None, None),
    ("nothing", {}, "unknown_tool", "there are knowledge_search, search, grep"),
    (["search"], {}, "unknown_tool", "There is no tool"),
]


def test_what_is_wrong_is_told_so_that_it_can_be_put_right(read_only: RAGPipeline):
    tools = box(read_only)
    for name, arguments, kind, message in WRONG:
        result = tools.execute(name, arguments)
        if kind is None:
            value(result)
        else:
            told = error(result)
            assert told["kind"] == kind and message in told["message"], told
            assert result.error is None or isinstance(result.error, RecollectError)


def test_what_is_for_whoever_runs_the_store_is_not_told_to_a_model(read_only, monkeypatch, caplog):
    def fail(*_: Any, **__: Any) -> None:
        raise StoreUnavailableError("host=10.0.0.7 password=hunter2 went away")

    monkeypatch.setattr(View, "retrieve", fail)
    result = RAGTool(read_only).execute(query="leave")
    assert error(result)["kind"] == "unavailable" and "hunter2" not in result.text
    assert isinstance(result.error, StoreUnavailableError) and "hunter2" in caplog.text
    monkeypatch.setattr(View, "retrieve", lambda *_: 1 / 0)
    result = RAGTool(read_only).execute(query="leave")
    assert error(result)["kind"] == "failed" and isinstance(result.error, ZeroDivisionError)


def test_the_one_tool_answers_with_numbered_sources(read_only: RAGPipeline):
    tool = RAGTool(read_only)
    assert (tool.name, tool.parameters["required"]) == ("knowledge_search", ["query"])
    assert tool.definition("anthropic")["input_schema"] == tool.parameters
    told = value(tool.execute(query="How many days of annual leave are there?", limit=2))
    assert [one["source_number"] for one in told["sources"]] == [1, 2]
    assert any("Annual leave is 30 days" in one["text"] for one in told["sources"])
    assert error(tool.execute(question="leave"))["message"].startswith("knowledge_search has no argument 'question'")
    empty = value(tool.execute(query="leave", department="nowhere"))
    assert empty["sources"] == [] and "do not answer from memory" in empty["note"]
    with pytest.raises(UsageError, match="at least"):
        RAGTool(read_only, max_characters=100)
    with pytest.raises(UsageError, match="take view_of"):
        RAGTool(AsyncRAGPipeline(read_only))
    with pytest.raises(UsageError, match="one name"):
        Toolbox(read_only, [KNOWLEDGE_SEARCH, KNOWLEDGE_SEARCH])


def test_ten_megabytes_are_searched_within_bounds_and_completely(rag: RAGPipeline):
    number = rag.ingest(Document(content="A small text, to be long.", source="big.txt")).document_id
    filler = "ä line of words that say nothing\n" * 320_000
    content = filler + "the needle stands here\n" + "a" * 100_000
    replace_content(rag, number, content)
    assert len(content.encode()) > 10 << 20
    tools = box(rag)
    (found,) = value(tools.execute("grep", {"pattern": "needle"}))["documents"]
    assert found["matches"][0]["start_offset"] == content.index("needle")
    assert found["matches"][0]["line"] == "the needle stands here"
    part = value(tools.execute("read", {"document_id": number, "start_offset": len(filler) - 5}))
    assert part["text"].startswith("hing\nthe needle") and part["characters"] == len(content)
    assert len(tools.execute("grep", {"pattern": "(a+)+!", "regex": True}).text) < 20_000
    # Bounds of bytes and of time: every call goes on from where the last one was, and gets further.
    reply = rag.contents.grep("needle", max_bytes=1)
    assert (reply.stopped, reply.next_document, reply.documents_searched) == ("bytes", 2, 1)


def test_a_search_that_runs_out_of_time_goes_on_where_it_was(rag: RAGPipeline):
    content = "ä line of words that say nothing\n" * 12_000 + "the needle\n"
    number = rag.ingest(Document(content="A small text, to be long.", source="big.txt")).document_id
    replace_content(rag, number, content)
    begin, rounds, seen = (0, 0), 0, []
    while begin is not None:
        document, offset = begin
        reply = rag.contents.grep("needle|30 days", regex=True, seconds=0, from_document=document, from_offset=offset)
        seen += [one.start_offset for document in reply.documents for one in document.matches]
        following = None if reply.next_document is None else (reply.next_document, reply.next_offset)
        assert following is None or following > begin
        begin, rounds = following, rounds + 1
    assert rounds > 5 and seen == [RULES.index("30 days"), content.index("needle")]


def test_an_erasure_meanwhile_leaves_results_or_errors_and_nothing_else(rag: RAGPipeline):
    numbers = [rag.ingest(Document(content=f"Note {n} on LV-77.", source=f"n{n}.md")).document_id for n in range(4)]
    done = threading.Event()
    tools = box(rag)

    def look(seed: int) -> int:
        rounds = 0
        while not done.is_set() or not rounds:
            for name, arguments in (
                ("grep", {"pattern": "LV-77"}),
                ("read", {"document_id": numbers[(rounds + seed) % 4]}),
                ("outline", {"document_id": numbers[(rounds + seed) % 4]}),
                ("list_documents", {}),
                ("search", {"query": "note on LV-77"}),
            ):
                result = tools.execute(name, arguments)
                if result.is_error:
                    assert error(result)["kind"] == "not_found", result
            rounds += 1
        return rounds

    with ThreadPoolExecutor(2) as pool:
        looking = [pool.submit(look, seed) for seed in range(2)]
        try:
            for number in numbers:
                rag.documents.erase([number])
        finally:
            done.set()
        assert all(one.result() for one in looking)
    assert {one["source"] for one in value(tools.execute("grep", {"pattern": "LV-77"}))["documents"]} == {"rules.md"}


def test_withdrawing_a_grant_counts_for_the_next_call(rag: RAGPipeline):
    ann = box(rag.view(principal=ANN))
    assert value(ann.execute("grep", {"pattern": "ZX-9"}))["documents"]
    rag.grants.deny("role:clerk", documents="board.md")
    assert not value(ann.execute("grep", {"pattern": "ZX-9"}))["documents"]
    assert error(ann.execute("read", {"document_id": 2}))["kind"] == "not_found"


def test_the_group_of_a_view_refuses_what_the_tools_refuse(read_only: RAGPipeline):
    for wrong in (
        lambda: read_only.contents.grep(""),
        lambda: read_only.contents.grep("x", limit=0),
        lambda: read_only.contents.grep("x", seconds=-1),
        lambda: read_only.contents.grep("x", seconds=float("nan")),
        lambda: read_only.contents.read(1, start=-1),
        lambda: read_only.contents.read(1, length=0),
        lambda: read_only.contents.list(limit=0),
        lambda: read_only.contents.grep("\0"),
    ):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(NotFoundError):
        read_only.view(collections="nowhere").contents.list()


def test_a_conversation_that_begins_recalls_what_its_user_said_before(rag: RAGPipeline):
    rag.view(session="monday", user="kim").remember("My locker is 17.")
    rag.view(session="monday", user="eve").remember("My locker is 99.")
    fresh = rag.view(session="tuesday", collections="default")
    kims = value(box(fresh.view(user="kim")).execute("recall", {"query": "Which locker?"}))["turns"]
    assert [one["text"] for one in kims] == ["My locker is 17."]
    # Nobody in particular has said nothing yet, and is told nothing of others.
    assert value(box(fresh).execute("recall", {"query": "Which locker?"}))["turns"] == []


def test_a_document_is_added_and_written_over_only_where_that_is_meant(rag: RAGPipeline):
    tools = box(rag)
    added = value(
        tools.execute("add", {"text": "# Lockers\n\nIn the basement.", "source": "lockers.md", "tags": ["office"]})
    )
    assert (added["status"], added["version"], added["source"]) == ("added", 1, "lockers.md")
    assert value(tools.execute("outline", {"document_id": added["document_id"]}))["headings"][0]["title"] == "Lockers"
    same = {"text": "# Lockers\n\nIn the basement.", "source": "lockers.md", "tags": ["office"]}
    again = value(tools.execute("add", same))
    assert (again["document_id"], again["version"]) == (added["document_id"], 1)
    other = {"text": "# Lockers\n\nOn the roof.", "source": "lockers.md"}
    refused = error(tools.execute("add", other))
    assert refused["kind"] == "conflict" and f"document_id {added['document_id']}" in refused["message"]
    assert value(tools.execute("add", {**other, "replace": True}))["version"] == 2
    assert "roof" in value(tools.execute("read", {"document_id": added["document_id"]}))["text"]
    # Without a name the same text is one document.
    bare = [value(tools.execute("add", {"text": "The canteen opens at noon."})) for _ in range(2)]
    assert bare[0]["document_id"] == bare[1]["document_id"] and bare[1]["status"] == "unchanged"
    # A principal adds where they may, and a conversation without documents of its own to the collection.
    assert error(box(rag.view(principal=BOB)).execute("add", {"text": "Bob was here."}))["kind"] == "denied"
    talk = Toolbox(rag.view(session="talk", collections="default"))
    assert value(talk.execute("add", {"text": "The gym opens at six."}))["status"] == "added"
    assert (
        "add" in talk and "add" not in Toolbox(rag.view(collections="*")) and "add" not in Toolbox(rag.view(as_of="1d"))
    )


def test_an_answer_cites_places_that_can_be_read_and_nothing_says_so(read_only: RAGPipeline):
    answered = value(box(read_only).execute("ask", {"question": "How much may a hotel in Bremen cost?"}))
    (cited, *_) = answered["citations"]
    assert "130 euros" in answered["answer"] and answered["generated_by"] is None and not answered["refused"]
    assert answered["outcome"] == "answer" and "note" not in answered
    shown = [*answered["citations"], *answered["passages"]]
    assert [one["marker"] for one in shown] == list(range(1, len(shown) + 1))
    assert "130 euros" in answered["passages"][0]["text"]
    span = {key: cited[key] for key in ("document_id", "start_offset", "end_offset")}
    assert value(box(read_only).execute("read", span))["text"] == cited["quote"]
    refused = value(box(read_only).execute("ask", {"question": "Who was king of Spain in 1700?"}))
    assert refused["refused"] and refused["citations"] == [] and "do not answer from memory" in refused["note"]
    assert (refused["outcome"], refused["passages"]) == ("none", [])
    elsewhere = value(
        box(read_only).execute("ask", {"question": "How much may a hotel in Bremen cost?", "department": "it"})
    )
    assert (elsewhere["outcome"], elsewhere["passages"]) == ("none", [])


NOT_TOLD = "How much may a hotel in Bremen cost by ordinance RQ-404?"


def test_passages_can_be_read_and_a_model_is_told_to_judge_them(read_only: RAGPipeline):
    told = value(box(read_only).execute("ask", {"question": NOT_TOLD}))
    assert (told["outcome"], told["refused"], told["citations"]) == ("passages", True, [])
    assert "Judge these passages" in told["note"] and "claim no more than they say" in told["note"]
    assert [one["marker"] for one in told["passages"]] == list(range(1, len(told["passages"]) + 1))
    best = told["passages"][0]
    assert (best["source"], best["section"]) == ("rules.md", "Rules > Travel > Hotels") and "130 euros" in best["text"]
    for one in told["passages"]:
        places = [(one, one["text"]), *((part, None) for part in one["highlights"])]
        for place, text in places:
            span = {key: place[key] for key in ("start_offset", "end_offset")} | {"document_id": one["document_id"]}
            read = value(box(read_only).execute("read", span))["text"]
            assert read == text or (text is None and read in one["text"])
    assert value(box(read_only, max_characters=4_000).execute("ask", {"question": NOT_TOLD})) == told


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [
        ("How many days of leave has the board by RQ-404?", "passages"),
        ("How long is annual leave?", "answer"),
    ],
)
def test_passages_of_what_somebody_may_not_read_are_not_shown(read_only: RAGPipeline, asked: str, outcome: str):
    question = {"question": asked}
    seen = value(box(read_only.view(principal=ANN)).execute("ask", question))
    assert seen["outcome"] == outcome
    assert "99 days" in json.dumps(seen["passages"])
    hidden = json.dumps(value(box(read_only.view(principal=BOB)).execute("ask", question)))
    assert "passages" in hidden and "99" not in hidden and "board.md" not in hidden
