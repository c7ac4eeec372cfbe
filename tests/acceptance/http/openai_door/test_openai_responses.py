"""``/v1/responses``, as the ``openai`` package asks, unchanged."""

from __future__ import annotations

import asyncio
import typing

import openai
import pytest
from openai.types.responses import response_create_params as parameters

from recollect import Document
from recollect.errors import ProviderError
from recollect.server.openai.responses import ResponsesBody

ASKED = "How many days of annual leave does an employee have?"
RESULTS = ["file_search_call.results"]


def test_an_answer_cites_the_files_that_it_rests_on(client):
    reply = client.responses.create(model="default@extractive", input=ASKED, include=RESULTS, metadata={"a": "b"})
    searched, message = reply.output
    (part,) = message.content
    text, _, notes = reply.output_text.partition("\n\nSources:\n\n")
    assert notes == "- [1] leave.md"
    (cited,) = part.annotations
    assert (cited.type, cited.filename, text[cited.index :][:3]) == ("file_citation", "leave.md", "[1]")
    assert (searched.status, searched.queries) == ("completed", [ASKED])
    assert searched.results[0].file_id == cited.file_id
    assert "thirty days" in searched.results[0].text
    assert searched.results[0].attributes == {"topic": "leave"}
    assert (reply.status, reply.generated_by, reply.store, reply.metadata) == ("completed", None, False, {"a": "b"})
    assert reply.recollect["citations"][0]["source"] == "leave.md"
    plain = client.responses.create(
        model="default@extractive", input=ASKED, extra_body={"recollect": {"footnotes": False}}
    )
    assert plain.output_text == text
    assert plain.output[0].results is None


def test_it_streams_what_it_answers_whole(shelf, client):
    whole = client.responses.create(model="default", input=ASKED, include=RESULTS)
    with client.responses.stream(model="default", input=ASKED, include=RESULTS) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events if not event.type.endswith(".delta")] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.file_search_call.completed",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.annotation.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    said = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert said == final.output_text == whole.output_text
    assert (final.usage.input_tokens, final.usage.output_tokens, final.usage.total_tokens) == (100, 20, 120)
    assert final.generated_by == "scripted"
    for ours, theirs in zip(final.output, whole.output, strict=True):
        assert ours.model_dump(exclude={"id"}) == {**theirs.model_dump(exclude={"id"}), **_parsed(ours)}


def test_without_an_exact_answer_the_text_is_passages_that_cite_their_files(client):
    asked = {"model": "default@extractive", "input": "Who decides about annual leave?", "include": RESULTS}
    reply = client.responses.create(**asked)
    (part,) = reply.output[1].content
    shown = reply.recollect["passages"]
    assert (reply.status, part.type, reply.recollect["outcome"]) == ("completed", "output_text", "passages")
    assert [one.filename for one in part.annotations] == [one["source"] for one in shown] and shown
    files = {one.filename: one.file_id for one in reply.output[0].results}
    for cited, passage in zip(part.annotations, shown, strict=True):
        assert part.text[cited.index :].startswith(f"[{passage['marker']}] {passage['source']}\n\n> ")
        assert cited.file_id == files[cited.filename]
        assert passage["text"] in part.text.replace("**", "")
    with client.responses.stream(**asked) as stream:
        events = list(stream)
        final = stream.get_final_response()
    said = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert said == final.output_text == reply.output_text
    added = [event for event in events if event.type == "response.output_text.annotation.added"]
    assert len(added) == len(part.annotations)


def _parsed(item) -> dict:
    # What the SDK's helper adds to the parts of a message.
    return {"content": item.model_dump()["content"]} if item.type == "message" else {}


def test_a_conversation_is_what_was_said_before_and_is_remembered_where_that_is_asked(shelf, client):
    shelf.reply = lambda messages: (
        "How far ahead is leave asked for?" if "turns" in messages[-1].content else "Two weeks ahead [1]."
    )
    first = client.responses.create(model="default", input=ASKED)
    reply = client.responses.create(
        model="default",
        instructions="Answer as a pirate.",
        input=[{"role": "user", "content": ASKED}, *first.output, {"role": "user", "content": "How far ahead?"}],
    )
    assert reply.recollect["rewritten_question"] == "How far ahead is leave asked for?"
    assert not any("pirate" in message.content for call in shelf.model.calls for message in call)
    assert shelf.rag.memory.list() == []
    kept = client.responses.create(model="default", input=ASKED, conversation="talk")
    assert kept.conversation.id == "talk"
    follow_up = client.responses.create(model="default", input="How far ahead?", conversation={"id": "talk"})
    assert follow_up.recollect["rewritten_question"]
    assert len(shelf.rag.memory.turns("talk")) == 4
    shelf.rag.memory.delete("talk")


def test_a_tool_says_where_is_searched(shelf, client):
    shelf.rag.view(collections="other").ingest(
        [
            Document(content="The canteen opens at noon.", source="canteen.md", metadata={"floor": 1}),
            Document(content="The canteen opens at noon on workdays.", source="second.md", metadata={"floor": 2}),
        ]
    )
    store = client.vector_stores.retrieve("other")
    tool = {
        "type": "file_search",
        "vector_store_ids": [store.id],
        "max_num_results": 5,
        "filters": {"type": "and", "filters": [{"type": "gte", "key": "floor", "value": 2}]},
        "ranking_options": {"ranker": "auto", "score_threshold": 0.0},
    }
    asked = {"model": "default@extractive", "input": "When does the canteen open?", "include": RESULTS}
    reply = client.responses.create(**asked, tools=[tool])
    assert {one.filename for one in reply.output[0].results} == {"second.md"}
    assert reply.tools[0].vector_store_ids == [store.id]
    with pytest.raises(openai.NotFoundError):
        client.responses.create(**asked, tools=[{**tool, "vector_store_ids": ["vs_999999"]}])
    with pytest.raises(openai.BadRequestError):
        client.responses.create(**asked, tools=[{**tool, "filters": {"type": "like", "key": "a", "value": "b"}}])
    with pytest.raises(openai.BadRequestError):
        client.responses.create(**asked, tools=[{**tool, "max_num_results": 51}])
    shelf.rag.collections.delete("other")


def test_what_is_refused(client):
    for given, param in [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"include": ["message.output_text.logprobs"]}, "top_logprobs"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"input": []}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input.0.content"),
        ({"extra_body": {"no_such": 1}}, "no_such"),
    ]:
        with pytest.raises(openai.BadRequestError) as told:
            client.responses.create(**{"model": "default", "input": ASKED, **given})
        assert told.value.param == param


def test_the_vercel_ai_sdk_refers_to_answers_before(shelf, client):
    first = client.responses.create(model="default", input=ASKED)
    shelf.model.calls.clear()
    # What the package @ai-sdk/openai sends as the second question of a conversation, with its own defaults.
    sent = [
        {"role": "user", "content": [{"type": "input_text", "text": ASKED}]},
        *({"type": "item_reference", "id": item.id} for item in first.output),
        {"role": "user", "content": [{"type": "input_text", "text": "And when are salaries paid?"}]},
    ]
    assert client.responses.create(model="default", input=sent).recollect["question"] == "And when are salaries paid?"
    rewriting = shelf.model.calls[0][-1].content
    assert ASKED in rewriting and "And when are salaries paid?" in rewriting


def test_every_parameter_of_the_client_is_known():
    sent = set(typing.get_type_hints(parameters.ResponseCreateParamsStreaming))
    assert sent == set(ResponsesBody.model_fields) - {"recollect"}


def test_a_failure_within_a_stream_is_told_in_it(shelf, client, monkeypatch):
    monkeypatch.setattr(shelf.model, "_error", ProviderError("the key sk-secret is refused", provider="scripted"))
    shelf.reply = lambda _: "Thirty days of annual leave [1]. Leave is asked for two weeks ahead [1]."
    monkeypatch.setattr(shelf.model, "_error_after", 1_000)
    *_, error, last = client.responses.create(model="default", input=ASKED, stream=True)
    assert (error.type, error.code) == ("error", "model_failed")
    assert (last.type, last.response.status) == ("response.failed", "failed")
    assert "sk-secret" not in last.model_dump_json()


def test_asynchronous_streams_at_the_same_time(shelf):
    async def one(asking: openai.AsyncOpenAI) -> str:
        async with asking.responses.stream(model="default", input=ASKED) as stream:
            return (await stream.get_final_response()).output_text

    async def all_of_them() -> set[str]:
        async with shelf.asynchronous() as asking:
            return set(await asyncio.gather(*(one(asking) for _ in range(8))))

    (text,) = asyncio.run(all_of_them())
    assert text.startswith("Thirty days of annual leave [1].")
