"""The area Chat, as a person uses it: in a real browser, with a model that writes what it is told when it is told."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from urllib.parse import urlencode

import pytest

from browser import picture, require_usable_by_all, visitor
from recollect import Document
from served import fill, serving

LEAVE = "How many days of annual leave?"
WRITTEN = "Every employee has 30 days of annual leave [1]. The moon is made of green cheese."


class ToldModel:
    """Writes what it is told, piece by piece; whoever stops it is noticed."""

    model_name = "told"

    def __init__(self) -> None:
        self.pieces: queue.Queue[str | None] = queue.Queue()
        self.stopped = threading.Event()

    def say(self, *pieces: str, end: bool = True) -> None:
        for piece in (*pieces, None) if end else pieces:
            self.pieces.put(piece)

    async def stream(self, messages, *, max_tokens=None):
        if "follow-up" in messages[0].content.lower():
            return
        try:
            while (piece := await asyncio.to_thread(self._next)) is not None:
                if piece:
                    yield piece
        except (asyncio.CancelledError, GeneratorExit):
            self.stopped.set()
            raise

    def _next(self) -> str | None:
        try:
            return self.pieces.get(timeout=0.05)
        except queue.Empty:
            return ""


@pytest.fixture
def model():
    return ToldModel()


@pytest.fixture
def talking(dsn, tmp_path, model):
    """A server whose answers a model writes."""
    with serving(dsn, tmp_path, worker=False, pages=True, chat_model=model) as one:
        fill(one.rag)
        yield one


@pytest.fixture
def reader(browser, talking):
    with visitor(browser, talking.url) as one:
        yield one


def ask(page, question: str) -> None:
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")


def answers(page):
    return page.locator(".exchange:not([data-pending]):not([hidden]) .answer")


def test_an_answer_comes_as_it_is_written_with_its_sources_and_stays(reader, model):
    page = reader.open("/chat")
    ask(page, LEAVE)
    model.say("Every emp", end=False)
    page.locator("[data-draft]", has_text="Every emp").wait_for()
    model.say("loyee has 30 days of annual leave [1].", " The moon is made of green cheese.")
    answers(page).wait_for()
    assert page.locator(".said").inner_text() == LEAVE
    assert page.locator("mark.unsupported").inner_text().startswith("The moon")
    assert "1 sentence is not supported" in page.locator(".answer .note.warn").inner_text()
    assert page.get_by_text("Answers are written by a machine").is_visible()
    assert page.locator("#conversations a[aria-current]").inner_text().startswith(LEAVE)
    before = page.locator(".exchange").inner_html()
    page.reload()
    assert page.locator(".exchange").inner_html() == before
    footnote = page.get_by_label("Source 1: hr/leave.md")
    footnote.focus()
    page.keyboard.press("Enter")
    assert "30 days of annual leave" in page.locator("#source mark").inner_text()
    picture(page, "chat-source")
    require_usable_by_all(page)
    page.keyboard.press("Escape")
    assert page.locator("#source").is_hidden() and footnote.evaluate("one => one === document.activeElement")
    reader.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the answer").click()
    page.get_by_text("The answer is copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").startswith("Every employee has 30 days of annual leave [1].")
    page.locator(".feedback").get_by_title("Helpful", exact=True).click()
    page.get_by_text("Thank you.").wait_for()
    page.reload()
    assert page.locator(".feedback [aria-pressed=true]").get_attribute("title") == "Helpful"


def test_an_answer_is_stopped_asked_again_and_its_question_edited(reader, talking, model):
    page = reader.open("/chat")
    ask(page, LEAVE)
    model.say("Every", end=False)
    page.locator("[data-draft]", has_text="Every").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped.").wait_for()
    assert model.stopped.wait(60)
    assert page.get_by_label("Your question").input_value() == LEAVE
    assert [one.record.name for one in talking.rag.memory.overview()] == ["talk"]
    page.keyboard.press("Enter")
    model.say("Every employee has 30 days of annual leave [1].")
    answers(page).wait_for()
    page.get_by_role("button", name="Ask again").click()
    page.locator(".exchange[data-pending]").wait_for()
    model.say("30 days of annual leave [1].")
    page.locator(".prose", has_text="30 days of annual leave").first.wait_for()
    page.locator(".exchange[data-pending]").wait_for(state="detached")
    assert answers(page).count() == 1 and answers(page).locator(".prose").inner_text().startswith("30 days")
    page.get_by_role("button", name="Edit and ask anew").click()
    ask(page, "When are salaries paid?")
    page.locator(".exchange[data-pending]").wait_for()
    model.say("Salaries are paid on the 25th of each month [1].")
    page.locator(".prose", has_text="25th").wait_for()
    page.locator(".exchange[data-pending]").wait_for(state="detached")
    session = page.url.rpartition("/")[2]
    said = [turn.content for turn in talking.rag.memory.turns(session)]
    assert said == ["When are salaries paid?", "Salaries are paid on the 25th of each month [1]."]


def test_without_a_model_answers_are_quotes_and_passages_are_shown_where_there_is_none(ada, served):
    page = ada.open("/chat")
    assert page.get_by_text("No language model writes here").is_visible()
    ask(page, LEAVE)
    answers(page).wait_for()
    assert "Quoted from the documents" in answers(page).inner_text()
    more = page.get_by_label("More from the documents").locator("li")
    assert more.first.is_hidden()
    page.get_by_text("More from the documents").click()
    assert more.first.locator("mark").inner_text() in answers(page).locator("> .prose").inner_text()
    picture(page, "chat-more")
    ask(page, "What does ERR-9999 mean?")
    passages = page.get_by_label("Passages that may help").locator("li")
    passages.first.wait_for()
    answer = answers(page).last
    assert answer.locator("> .prose").inner_text() == "No exact answer found. These passages may help:"
    assert "Quoted from the documents" not in answer.inner_text()
    assert 1 <= passages.count() <= 3 and passages.locator("mark").count() >= passages.count()
    marked = passages.locator("mark").first.inner_text()
    assert marked in passages.first.locator(".prose").inner_text()
    picture(page, "chat-passages")
    link = passages.first.get_by_role("link")
    link.click()
    page.locator("#source mark").wait_for()
    assert marked in page.locator("#source mark").inner_text()
    picture(page, "chat-passages-source")
    page.keyboard.press("Escape")
    assert link.evaluate("one => one === document.activeElement")
    ada.context.grant_permissions(["clipboard-read", "clipboard-write"])
    answer.get_by_role("button", name="Copy the answer").click()
    page.get_by_text("The answer is copied.").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("No exact answer found.") and marked in copied and "[1] " in copied
    page.emulate_media(color_scheme="dark")
    require_usable_by_all(page)
    picture(page, "chat-dark")
    page.set_viewport_size({"width": 360, "height": 740})
    picture(page, "chat-small")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_role("button", name="Conversations").click()
    page.get_by_label("Search conversations").wait_for()
    picture(page, "chat-small-side")


def test_a_model_that_knows_no_answer_is_followed_by_passages(reader, model):
    page = reader.open("/chat")
    ask(page, LEAVE)
    model.say("I don't have information about that in the approved knowledge base.")
    marked = page.get_by_label("Passages that may help").locator("mark")
    assert "30 days of annual leave" in marked.first.inner_text()
    assert "I don't have information" not in answers(page).inner_text()
    ask(page, "How many days?")
    model.say("How many days of annual leave are there?")
    model.say("Every employee has 30 days of annual leave [1].")
    page.locator(".answer .footnote").wait_for()


def test_a_conversation_that_is_read_again_has_links_to_the_passages(ada, served):
    page = ada.open("/chat")
    ask(page, "What does ERR-9999 mean?")
    marked = page.locator(".passages mark").first.inner_text()
    # Of the passages nothing but their places is kept.
    session = page.url.rpartition("/")[2]
    told = page.get_by_label("Passages that may help").get_by_role("link").all_inner_texts()
    kept = served.rag.memory.turns(session)[-1]
    assert marked not in json.dumps([kept.content, dict(kept.metadata)])
    page.reload()
    again = page.get_by_label("Passages that may help")
    assert again.get_by_role("link").all_inner_texts() == told and again.locator("mark").count() == 0
    again.get_by_role("link").first.click()
    assert marked in page.locator("#source mark").inner_text()
    require_usable_by_all(page)
    page.keyboard.press("Escape")
    answers(page).last.locator(".feedback").get_by_title("Not helpful").click()
    page.get_by_text("Thank you.").wait_for()
    ask(page, LEAVE)
    page.locator(".answer > .prose", has_text="30 days").wait_for()
    exported = page.request.get(f"{served.url}/conversations/{session}/export").text()
    assert "These passages may help:\n\n[1] " in exported and marked not in exported


def test_conversations_are_found_named_exported_and_deleted(ada, served, tmp_path):
    page = ada.open("/chat/talk?user=ada")
    assert page.locator(".said").first.inner_text() == "My sister lives in Lisbon."
    page.locator("#menu summary").click()
    page.get_by_label("Title").fill("Lisbon <b>")
    page.get_by_role("button", name="Rename").click()
    page.locator("#chat-title", has_text="Lisbon <b>").wait_for()
    page.get_by_label("Search conversations").fill("no such words")
    page.get_by_text("No conversation holds that.").wait_for()
    page.get_by_label("Search conversations").fill("SISTER")
    page.locator("#conversations a", has_text="Lisbon <b>").wait_for()
    page.locator("#menu summary").click()
    with page.expect_download() as told:
        page.get_by_role("link", name="JSON").click()
    exported = json.loads(told.value.path().read_text())
    assert [turn["content"] for turn in exported["conversation"]] == ["My sister lives in Lisbon.", "Noted."]
    with page.expect_download() as told:
        page.get_by_role("link", name="Markdown").click()
    assert told.value.suggested_filename == "Lisbon-b.md"
    assert "# Lisbon <b>" in told.value.path().read_text()
    page.get_by_role("button", name="Delete…").click()
    with page.expect_navigation():
        page.get_by_role("button", name="Delete for good").click()
    assert page.get_by_text("Conversations will stand here.").is_visible()
    assert served.rag.memory.overview() == []


def test_where_and_when_is_asked_is_chosen_and_stands_in_the_address(ada, served):
    before = served.rag.documents.get("hr/pay.txt").known_from
    served.rag.ingest(Document(content="Salaries are paid on the 15th of each month.", source="hr/pay.txt"))
    page = ada.open("/chat?" + urlencode({"collection": "default", "as_of": before.isoformat()}))
    ask(page, "When are salaries paid?")
    answers(page).wait_for()
    assert "25th" in answers(page).inner_text() and "15th" not in answers(page).inner_text()
    assert answers(page).get_by_text("As of").is_visible()
    assert "Superseded" in answers(page).locator(".sources").inner_text()
    assert "collection=default" in page.url
    page.locator("#settings > summary").click()
    page.get_by_label("As of").fill("")
    page.keyboard.press("Escape")
    ask(page, "When are salaries paid?")
    answers(page).nth(1).wait_for()
    assert "15th" in answers(page).nth(1).inner_text()
    assert "as_of" not in page.url
