"""Chats with files of their own, with a server that dies, by others, and without the page's script."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import contextmanager
from datetime import UTC, datetime

import httpx2
import pytest

from browser import picture, require_usable_by_all, visitor
from chat_server import ChatServer
from program import Recollect
from recollect import Principal
from recollect.errors import NotFoundError
from recollect.model.memory import Episode
from recollect.pipeline.chat import Conversation
from recollect.ui.conversation import Talk, shown_answer
from served import fill, serving

LEAVE = "How many days of annual leave?"


def ask(page, question: str) -> None:
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")


def answers(page):
    return page.locator(".exchange:not([data-pending]) .answer")


def test_files_belong_to_their_conversation_alone(browser, dsn, tmp_path):
    with serving(dsn, tmp_path, pages=True) as one, visitor(browser, one.url) as kim:
        kim.context.set_default_timeout(60_000)
        page = kim.open("/chat")
        dropped = page.evaluate_handle(
            """() => { const dropped = new DataTransfer();
            dropped.items.add(new File(["The offer ends on Friday."], "offer <b>.md", {type: "text/markdown"}));
            return dropped; }"""
        )
        page.dispatch_event("#thread", "drop", {"dataTransfer": dropped})
        page.locator(".files .good", has_text="offer <b>").wait_for()
        ask(page, "The offer ends on which day, Friday?")
        answers(page).wait_for()
        assert "Friday" in answers(page).inner_text()
        page.reload()
        page.locator(".files .good", has_text="offer <b>").wait_for()
        page.locator(".footnote").click()
        assert "Friday" in page.locator("#source mark").inner_text()
        picture(page, "chat-files")
        require_usable_by_all(page)
        session = page.url.rpartition("/")[2]
        page.goto(f"{one.url}/chat")
        ask(page, "The offer ends on which day, Friday?")
        answers(page).wait_for()
        assert "Friday" not in answers(page).inner_text()
        page.goto(f"{one.url}/chat/{session}")
        page.locator("#menu summary").click()
        page.get_by_role("button", name="Delete…").click()
        with page.expect_navigation():
            page.get_by_role("button", name="Delete for good").click()
        with pytest.raises(NotFoundError):
            one.rag.sessions.get(session)


@contextmanager
def program_serving(recollect, port: int):
    process = recollect.start("serve", "--port", str(port), "--json")
    try:
        assert process.stdout.readline(), process.stderr.read()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_a_server_that_was_killed_and_is_there_again_is_asked_again(browser, recollect, dsn, tmp_path):
    held = threading.Event()
    model = ChatServer(lambda _: held.wait(120) and "Every employee has 30 days of annual leave [1].")
    program = Recollect(recollect.folder, {**recollect.environment, **model.environment})
    recollect.folder.joinpath("leave.md").write_text("Every employee has 30 days of annual leave.")
    recollect("ingest", "leave.md")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    try:
        with visitor(browser, f"http://127.0.0.1:{port}") as kim:
            # What the server kept of the answer is gone with it.
            kim.expected.add(404)
            kim.context.set_default_timeout(60_000)
            with program_serving(program, port):
                page = kim.open("/chat")
                ask(page, LEAVE)
                page.get_by_text(re.compile("Reading . passage")).wait_for()
            page.get_by_text("The connection to the server was lost.").wait_for()
            held.set()
            with serving(dsn, tmp_path, worker=False, pages=True, port=port, answer=model.settings):
                page.get_by_text("The answer broke off").wait_for()
                assert page.get_by_label("Your question").input_value() == LEAVE
                page.get_by_label("Your question").press("Enter")
                answers(page).wait_for()
                assert "30 days" in answers(page).inner_text() and answers(page).count() == 1
            # The browser tells of connections that were refused, which they were.
            kim.complaints[:] = [one for one in kim.complaints if "net::ERR" not in one]
    finally:
        held.set()
        model.close()


def test_conversations_are_their_owners_alone(dsn, tmp_path):
    with serving(dsn, tmp_path, worker=False, pages=True) as one:
        fill(one.rag)
        keys = {
            name: one.rag.keys.create(name, scopes=["read", "write"], principal=Principal(user_id=name)).secret
            for name in ("ada", "eve")
        }
        only_reads = one.rag.keys.create("reader", scopes=["read"], principal=Principal(user_id="ada")).secret

        def get(path, key, **options):
            headers = {"Authorization": f"Bearer {key}"}
            return httpx2.request(options.pop("method", "GET"), one.url + path, headers=headers, **options)

        assert "My sister lives in Lisbon." in get("/chat/talk", keys["ada"]).text
        assert "Lisbon" not in get("/chat", keys["eve"]).text
        for path in ("/chat/talk", "/chat/talk?user=ada", "/conversations/talk/export"):
            assert get(path, keys["eve"]).status_code == 404, path
        for action in ("rename", "delete", "feedback", "ask"):
            form = {"title": "Mine", "position": "2", "helpful": "true", "question": LEAVE, "instead_of": "1"}
            found = get(f"/conversations/talk/{action}?user=ada", keys["eve"], method="POST", data=form)
            assert found.status_code == 404, action
        assert one.rag.memory.get("talk").turn_count == 2
        # A login that only reads may ask, and is not shown what it may not do; nothing of it is kept.
        page = get("/chat/talk", only_reads).text
        assert "This login can only read" in page and "Delete" not in page and "Add files" not in page
        asked = {"question": LEAVE}
        for session in ("talk", "another"):
            shown = get(f"/conversations/{session}/ask", only_reads, method="POST", data=asked)
            assert shown.status_code == 200 and "30 days of annual leave" in shown.text
        refused = get("/conversations/talk/ask", only_reads, method="POST", data={**asked, "instead_of": "1"})
        assert refused.status_code == 403
        assert [(kept.name, kept.turn_count) for kept in one.rag.memory.list()] == [("talk", 2)]


def test_who_only_reads_talks_and_nothing_is_kept(browser, dsn, tmp_path):
    def written(messages):
        if "turns" in messages[-1]["content"]:
            return "How many days of annual leave do trainees have?"
        return "Every employee has 30 days of annual leave [1]."

    server = ChatServer(written)
    model = {"provider": "openai", "model": "m", "api_key": "x", "base_url": server.base_url, "api": "chat"}
    try:
        with serving(dsn, tmp_path, worker=False, pages=True, answer=model) as one:
            fill(one.rag)
            before = [(kept.name, kept.turn_count) for kept in one.rag.memory.list()]
            key = one.rag.keys.create("reader", scopes=["read"], principal=Principal(user_id="ada")).secret
            with visitor(browser, one.url, extra_http_headers={"Authorization": f"Bearer {key}"}) as ada:
                page = ada.open("/chat")
                ask(page, LEAVE)
                answers(page).wait_for()
                ask(page, "And trainees?")
                page.get_by_text("How many days of annual leave do trainees have?").wait_for()
                answers(page).nth(1).wait_for()
                assert page.get_by_role("button", name="Ask again").count() == 0
                require_usable_by_all(page)
                page.reload()
                assert answers(page).count() == 0
            assert [(kept.name, kept.turn_count) for kept in one.rag.memory.list()] == before
    finally:
        server.close()


def test_what_conversations_and_forms_hold_is_shown_as_text(served):
    hostile = "\"><script>alert(1)</script>'{{ 7*7 }}\u202e"
    served.rag.view(session="a/../b?c#d", user=hostile).remember([hostile, f"**{hostile}** [x](javascript:alert(1))"])
    served.rag.view(user=hostile).memory.rename("a/../b?c#d", hostile)
    listed = httpx2.get(f"{served.url}/chat").text
    (link,) = re.findall(r'href="(/chat/a%2F[^"]+)"', listed)
    page = httpx2.get(served.url + link.replace("&amp;", "&")).text
    for html in (listed, page):
        assert (
            "<script>alert" not in html
            and "{{ 7*7 }}" in html
            and "javascript:alert" not in re.sub(">[^<]*<", "", html)
        )
    exported = httpx2.get(f"{served.url}/conversations/a%2F..%2Fb%3Fc%23d/export", params={"user": hostile})
    assert exported.status_code == 200 and "\r" not in exported.headers["content-disposition"]
    for path, status in (
        ("/chat/nothing", 404),
        ("/chat?as_of=never&collection=none&model=none", 200),
        ("/chat?cursor=none", 400),
        ("/chat/talk?before=0", 422),
        (f"/conversations?search={'x' * 300}", 422),
        ("/conversations?search=%00", 422),
        ("/conversations/talk/export?format=exe", 422),
    ):
        assert httpx2.get(served.url + path).status_code == status, path
    for form, status in (
        ({"question": ""}, 422),
        ({"question": "x", "model": "openai/gpt"}, 400),
        ({"question": "x", "as_of": "never"}, 400),
        ({"question": "x", "collection": "none"}, 404),
        ({"question": "x", "instead_of": "0"}, 422),
    ):
        found = httpx2.post(f"{served.url}/conversations/new/ask", data=form)
        assert found.status_code == status, (form, found.text[-300:])


def test_it_works_without_the_pages_script(served):
    asked = httpx2.post(f"{served.url}/conversations/plain/ask", data={"question": LEAVE, "instead_of": ""})
    assert asked.status_code == 303 and asked.headers["location"] == "/chat/plain"
    page = httpx2.get(f"{served.url}/chat/plain").text
    assert "30 days of annual leave" in page and 'class="footnote"' in page
    judged = httpx2.post(f"{served.url}/conversations/plain/feedback", data={"position": "2", "helpful": "false"})
    assert judged.status_code == 303
    again = httpx2.post(f"{served.url}/conversations/plain/feedback", data={"position": "2", "helpful": "true"})
    assert again.status_code == 303
    assert served.rag.memory.get("plain").helpful == {2: False}
    assert served.rag.store.feedback.counts(served.rag.scope, "plain")[1].total == 1
    sent = httpx2.post(
        f"{served.url}/conversations/plain/files", files={"file": ("a.md", b"The offer ends on Friday.")}
    )
    assert sent.status_code == 303


@pytest.mark.parametrize(
    "metadata",
    [
        {"rag_sources": "x", "rag_answer": [1]},
        {"rag_sources": [1, {"marker": "a"}], "rag_answer": {"asked": 3}},
        {"rag_answer": {"passages": [{"a": 1}], "unsupported": [[1]]}},
        {"rag_answer": {"passages": [{"document_id": 1, "highlights": [3]}]}},
        {"rag_answer": {"passages": 5}},
        {"rag_answer": {"asked": {"as_of": "never"}}, "rag_sources": [{}]},
        {"rag_answer": {"notes": {"1": "x"}}, "rag_sources": [{"marker": 1, "document_id": "javascript:x"}]},
        {"rag_answer": {"unsupported": [["a", "b", []]], "characters": 5, "model": [1]}},
        {"rag_sources": [{"marker": 1, "document_id": 1, "page": "x", "section": {}}]},
    ],
)
def test_an_answer_whose_metadata_somebody_else_has_made_is_its_text(metadata):
    turn = Episode(
        episode_id=1,
        session="s",
        position=2,
        role="assistant",
        content="a [1]",
        at=None,
        turn_id=None,
        known_from=datetime.now(UTC),
        metadata=metadata,
    )
    answer = shown_answer(Talk("s"), turn)
    assert (answer.text, answer.known, list(answer.cited)) == ("a [1]", False, [])


def test_a_long_conversation_is_read_page_by_page(served):
    view = served.rag.view(session="long")
    view.remember([f"Question {n}" if n % 2 else f"Answer {n}" for n in range(1, 3)])
    for n in range(40):
        view.remember(f"What is number {n}?")
        view.remember(f"It is number {n}.", role="assistant")
    last = httpx2.get(f"{served.url}/chat/long").text
    assert "What is number 39?" in last and "Question 1" not in last.partition('id="turns"')[2]
    (earlier,) = re.findall(r'href="(/chat/long\?before=\d+)"', last)
    first = httpx2.get(served.url + earlier).text
    assert "Question 1" in first and "What is number 39?" not in first.partition('id="turns"')[2]


def test_a_question_replaces_what_was_said_from_its_place_on(served):
    view = served.rag.view()
    for question in ("How many days of annual leave?", "When are salaries paid?", "What does ERR-4012 mean?"):
        list(Conversation(view, session="chat").ask(question))
    instead = Conversation(view, session="chat", instead_of=3)
    list(instead.ask("When are salaries paid, please?"))
    assert instead.kept is not None and min(instead.kept.positions) == 7
    said = [turn.content for turn in view.memory.turns("chat") if turn.role == "user"]
    assert said == ["How many days of annual leave?", "When are salaries paid, please?"]
