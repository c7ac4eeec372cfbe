from __future__ import annotations

import asyncio
import threading

import pytest

from answer.samples import LEAVE, WordEmbedder, passage
from recollect.answer import (
    AnswerOptions,
    ExtractionOptions,
    RefusalRule,
    answer,
    stream_answer,
    stream_answer_sync,
    verify,
)
from recollect.answer.absence import OFFERS, is_refusal
from recollect.answer.writing import Decided, Draft
from recollect.errors import ProviderError, UsageError
from recollect.llm import ScriptedChatModel
from recollect.llm.base import ChatUsage, iterate
from recollect.model import Answer, Citation, TokenUsage, UnsupportedSentence
from recollect.model.answer import REFUSAL

EMBEDDER = WordEmbedder()
QUESTION = "How many days of paid annual leave do employees receive?"
WRITTEN = "You receive 28 days of paid annual leave [Source 1]."


def ask(model=None, passages=None, **options):
    return answer(
        QUESTION, [passage(LEAVE)] if passages is None else passages, embedder=EMBEDDER, chat_model=model, **options
    )


#: What is shown of the same passages where the rules alone find no answer.
NOT_ANSWERED = ask(options=AnswerOptions(extraction=ExtractionOptions(rule=RefusalRule(threshold=1))))


def test_with_a_model_its_markers_become_citations():
    model = ScriptedChatModel(WRITTEN)
    reply = ask(model)
    assert reply.text == "You receive 28 days of paid annual leave [1]."
    assert not reply.refused
    assert verify(reply.text, reply.citations, {1: LEAVE}) == ()
    assert "28 days" in reply.citations[0].quote
    (messages,) = model.calls
    assert "[Source 1: hr/leave_policy.pdf]" in messages[1].content


@pytest.mark.parametrize(
    "written",
    [
        REFUSAL,
        "I don’t have information about that\nin the approved knowledge base",
        f'**"{REFUSAL}"** [1]',
        "  ",
    ],
)
def test_a_models_refusal_shows_the_passages_that_came_nearest(written):
    reply = ask(ScriptedChatModel(written, model_name="tester"))
    assert (reply.outcome, reply.text, reply.citations) == ("passages", OFFERS["en"], ())
    assert (reply.model, reply.passages) == ("tester", NOT_ANSWERED.passages)


def test_a_partial_answer_is_no_refusal():
    reply = ask(ScriptedChatModel(f"28 days of annual leave [1]. As to bonuses: {REFUSAL}"))
    assert not reply.refused
    assert len(reply.citations) == 1
    assert not is_refusal("You have 28 days.")


def test_without_passages_the_model_is_not_asked():
    model = ScriptedChatModel("I know it anyway.")
    assert ask(model, []).outcome == ask(model, [passage(" \n ")]).outcome == "none"
    assert model.calls == []


def test_a_models_error_reaches_the_caller():
    error = ProviderError("quota used up", provider="scripted", status=429, retryable=True)
    with pytest.raises(ProviderError, match="quota used up") as caught:
        ask(ScriptedChatModel(WRITTEN, error=error, error_after=1))
    assert caught.value is error


@pytest.mark.parametrize("model", [None, ScriptedChatModel(WRITTEN)])
def test_an_empty_question_is_an_error(model):
    with pytest.raises(UsageError, match="question is empty"):
        answer("  ", [passage(LEAVE)], embedder=EMBEDDER, chat_model=model)


@pytest.mark.parametrize("model", [None, ScriptedChatModel(WRITTEN)])
def test_a_stream_ends_with_the_answer(model):
    async def collect():
        return [p async for p in stream_answer(QUESTION, [passage(LEAVE)], embedder=EMBEDDER, chat_model=model)]

    *events, last = asyncio.run(collect())
    assert isinstance(last, Answer)
    assert "".join(event for event in events if isinstance(event, str)) == last.text
    assert [event for event in events if isinstance(event, Citation)] == (list(last.citations) if model else [])


@pytest.mark.parametrize("model", [None, ScriptedChatModel(WRITTEN)])
def test_works_inside_a_running_event_loop(model):
    always = AnswerOptions(extraction=ExtractionOptions(rule=RefusalRule(threshold=0)))

    async def notebook_cell():
        return ask(model, options=always)

    assert "28 days" in asyncio.run(notebook_cell()).text


def test_token_limit_reaches_the_model():
    reply = ask(ScriptedChatModel("abcdefgh" * 4), options=AnswerOptions(max_tokens=2))
    assert reply.text == "abcdefgh" * 2


class TestIterate:
    def test_an_abandoned_stream_is_cancelled_and_its_thread_ends(self):
        closed = threading.Event()

        async def endless():
            try:
                while True:
                    yield 1
                    await asyncio.sleep(0.001)
            finally:
                closed.set()

        items = iterate(endless())
        assert next(items) == 1
        items.close()
        assert closed.wait(5)
        assert all(thread.name != "recollect-stream" for thread in threading.enumerate())

    def test_a_stream_waits_for_whoever_takes_its_items(self):
        made, idle = 0, threading.Event()

        async def fast():
            nonlocal made
            while True:
                made += 1
                if made > 1_000:
                    idle.set()
                yield made

        items = iterate(fast())
        for _ in range(3):
            next(items)
        # It would have made a thousand long before this is over.
        assert not idle.wait(0.3)
        ahead = made
        assert [next(items) for _ in range(100)] == list(range(4, 104))
        assert made <= ahead + 100
        items.close()

    def test_pieces_arrive_before_the_stream_ends(self):
        release = threading.Event()

        async def two():
            yield "first"
            await asyncio.to_thread(release.wait, 10)
            yield "second"

        items = iterate(two())
        assert next(items) == "first"
        release.set()
        assert list(items) == ["second"]

    def test_a_stream_that_never_waits_needs_no_thread(self):
        async def plain():
            yield threading.current_thread()

        assert list(iterate(plain(), in_thread=False)) == [threading.current_thread()]

    def test_a_stream_that_waits_is_refused_without_a_thread(self):
        async def waits():
            await asyncio.sleep(0)
            yield 1

        with pytest.raises(RuntimeError, match="in_thread=True"):
            list(iterate(waits(), in_thread=False))


BAD = "You receive 28 days of paid annual leave [1]. Managers receive a yacht [12]."


def drafts(treatment, written=BAD, **options):
    stream = stream_answer_sync(
        QUESTION,
        [passage(LEAVE)],
        embedder=EMBEDDER,
        chat_model=ScriptedChatModel(written),
        options=AnswerOptions(unsupported=treatment, **options),
    )
    return [piece.text for piece in stream if isinstance(piece, Draft)]


def test_drafts_are_what_is_not_checked_yet_and_come_where_all_of_it_will_be_shown():
    found = drafts("mark", drafts=True)
    assert found[0] == BAD[:8] and not any("[1]" in text for text in found)
    assert any(text.strip().startswith("Managers") for text in found), "a checked sentence is no draft any more"
    assert drafts("mark") == drafts("remove", drafts=True) == drafts("refuse", drafts=True) == []


def test_model_usage_and_unsupported_are_told():
    reply = ask(ScriptedChatModel(BAD, model_name="tester"))
    assert reply.model == "tester"
    assert reply.usage.requests == 1
    assert reply.usage.output_tokens > 0
    (flagged,) = reply.unsupported
    assert reply.text[flagged.start_offset : flagged.end_offset] == "Managers receive a yacht."
    assert ask().model is None


def test_what_the_provider_counts_is_taken():
    class Counting(ScriptedChatModel):
        async def stream(self, messages, *, max_tokens=None):
            async for piece in super().stream(messages, max_tokens=max_tokens):
                yield piece
            yield ChatUsage(321, 12)

    assert ask(Counting(WRITTEN)).usage == TokenUsage(input_tokens=321, output_tokens=12)


def treated(treatment, reply):
    model = ScriptedChatModel(reply)
    return model, ask(model, options=AnswerOptions(unsupported=treatment))


def test_one_unsupported_sentence_refuses():
    _, reply = treated("refuse", BAD)
    assert (reply.outcome, reply.text, reply.citations) == ("passages", OFFERS["en"], ())
    assert reply.passages == NOT_ANSWERED.passages
    assert [(one.text, one.start_offset) for one in reply.unsupported] == [("Managers receive a yacht.", None)]
    assert treated("refuse", WRITTEN)[1].outcome == "answer"


def test_the_model_is_asked_once_more_and_told_what_has_no_support():
    model, reply = treated("retry", lambda messages: BAD if len(messages) == 2 else WRITTEN)
    assert reply.text == "You receive 28 days of paid annual leave [1]."
    assert reply.unsupported == ()
    assert reply.usage.requests == 2
    again = model.calls[1]
    assert (again[-2].role, again[-2].content) == ("assistant", BAD)
    assert "Managers receive a yacht" in again[-1].content


def test_what_a_second_answer_lacks_is_marked():
    model, reply = treated("retry", BAD)
    assert len(model.calls) == 2
    assert [one.reason for one in reply.unsupported] == ["no_source"]


def test_a_good_answer_is_asked_for_once():
    model, _ = treated("retry", WRITTEN)
    assert len(model.calls) == 1


def test_an_unknown_treatment_is_refused():
    with pytest.raises(UsageError, match="'mark', 'remove', 'retry', 'refuse'"):
        AnswerOptions(unsupported="ignore")


def test_a_sentence_comes_checked_before_the_next_one_is_written():
    release = threading.Event()

    class Slow(ScriptedChatModel):
        async def stream(self, messages, *, max_tokens=None):
            yield "You receive 28 days of paid annual leave [1]. Managers receive a yacht "
            await asyncio.to_thread(release.wait, 10)
            yield "[12]."

    events = stream_answer_sync(QUESTION, [passage(LEAVE)], embedder=EMBEDDER, chat_model=Slow(""))
    assert next(events) == Decided("answer")
    assert next(events) == "You receive 28 days of paid annual leave [1]."
    citation = next(events)
    assert isinstance(citation, Citation)
    assert "28 days" in citation.quote
    release.set()
    *rest, reply = events
    assert rest[0] == " Managers receive a yacht."
    assert isinstance(rest[1], UnsupportedSentence)
    assert reply.unsupported == (rest[1],)


def test_a_model_that_breaks_leaves_only_checked_pieces():
    error = ProviderError("gone", provider="scripted", retryable=True)
    model = ScriptedChatModel(BAD, error=error, error_after=9)
    seen = []

    def read():
        seen.extend(stream_answer_sync(QUESTION, [passage(LEAVE)], embedder=EMBEDDER, chat_model=model))

    with pytest.raises(ProviderError, match="gone"):
        read()
    assert [event for event in seen if isinstance(event, str)] in (
        [],
        ["You receive 28 days of paid annual leave [1]."],
    )
