"""``/v1/chat/completions`` and ``/v1/models``, as the ``openai`` package asks them, unchanged."""

from __future__ import annotations

import asyncio
import threading
import typing

import openai
import pytest
from openai.types.chat import completion_create_params as parameters

from recollect import Principal
from recollect.errors import ProviderError
from recollect.model.answer import REFUSAL
from recollect.server.openai.chat_completions import ChatCompletionBody

ASKED = "How many days of annual leave does an employee have?"
UNDECIDED = "Who decides about annual leave?"


def said(text: str, *before: tuple[str, str]) -> list[dict[str, str]]:
    return [*({"role": role, "content": words} for role, words in before), {"role": "user", "content": text}]


def test_an_answer_is_cited_in_annotations_and_in_footnotes(client):
    reply = client.chat.completions.create(model="default@extractive", messages=said(ASKED))
    message = reply.choices[0].message
    text, _, notes = message.content.partition("\n\nSources:\n\n")
    assert "thirty days" in text
    assert notes == "- [1] leave.md"
    (noted,) = message.annotations
    cited = noted.url_citation
    assert text[cited.start_index : cited.end_index] == "[1]"
    assert cited.title == "leave.md"
    assert cited.url.endswith(f"/v1/documents/{reply.recollect['citations'][0]['document_id']}")
    assert reply.choices[0].finish_reason == "stop"
    assert (reply.model, reply.generated_by) == ("default@extractive", None)
    assert reply.usage.total_tokens == 0
    without = client.chat.completions.create(
        model="default@extractive", messages=said(ASKED), extra_body={"recollect": {"footnotes": False}}
    )
    assert without.choices[0].message.content == text
    assert without.choices[0].message.annotations


def test_it_streams_what_it_answers_whole(client):
    whole = client.chat.completions.create(model="default@extractive", messages=said(ASKED))
    chunks = list(
        client.chat.completions.create(
            model="default@extractive", messages=said(ASKED), stream=True, stream_options={"include_usage": True}
        )
    )
    deltas = [chunk.choices[0].delta for chunk in chunks[:-1]]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == whole.choices[0].message.content
    (annotations,) = (delta.annotations for delta in deltas if getattr(delta, "annotations", None))
    assert annotations[0]["url_citation"]["title"] == "leave.md"
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(deltas) - 1) + ["stop"]
    assert chunks[-2].recollect["citations"] == whole.recollect["citations"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == 0
    assert {chunk.usage for chunk in chunks[:-1]} == {None}
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1


@pytest.mark.parametrize("model", ["default@extractive", "default"])
def test_without_an_exact_answer_the_content_is_passages_with_annotations(shelf, client, model):
    shelf.reply = lambda _: REFUSAL
    asked = {"model": model, "messages": said(UNDECIDED), "extra_body": {"recollect": {"footnotes": False}}}
    reply = client.chat.completions.create(**asked)
    choice, told = reply.choices[0], reply.recollect
    sentence, *passages = choice.message.content.split("\n\n[")
    assert (told["outcome"], told["answer"]) == ("passages", sentence)
    assert (choice.message.refusal, choice.finish_reason) == (None, "stop")
    assert len(passages) == len(told["passages"]) == len(choice.message.annotations)
    for passage, shown, noted in zip(passages, told["passages"], choice.message.annotations, strict=True):
        head, _, quote = passage.partition("\n\n")
        assert head == f"{shown['marker']}] {shown['source']}"
        assert quote.removeprefix("> ").replace("**", "") == shown["text"] and "**" in quote
        cited = noted.url_citation
        assert choice.message.content[cited.start_index : cited.end_index] == f"[{shown['marker']}]"
        assert cited.title == shown["source"]
        assert cited.url == shown["source"] or cited.url.endswith(f"/v1/documents/{shown['document_id']}")
    chunks = list(client.chat.completions.create(**asked, stream=True))
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert "".join(delta.content or "" for delta in deltas) == choice.message.content
    (annotations,) = (delta.annotations for delta in deltas if getattr(delta, "annotations", None))
    assert annotations == [one.model_dump() for one in choice.message.annotations]
    assert chunks[-1].choices[0].finish_reason == "stop" and chunks[-1].recollect["passages"] == told["passages"]


@pytest.mark.parametrize("given", [{"stop": "Salaries"}, {"max_tokens": 45}, {"stop": "answer"}, {"max_tokens": 3}])
def test_only_whole_passages_are_sent_where_an_answer_is_to_end(client, given):
    asked = {"model": "default@extractive", "messages": said(UNDECIDED)}
    whole = client.chat.completions.create(**asked).choices[0].message
    reply = client.chat.completions.create(**asked, **given)
    (choice,) = reply.choices
    assert whole.content.startswith(choice.message.content) and len(choice.message.content) < len(whole.content)
    shown = whole.content.count("\n\n[") - (1 if given in ({"stop": "Salaries"}, {"max_tokens": 45}) else 2)
    assert len(choice.message.annotations) == choice.message.content.count("\n\n[") == shown
    assert choice.finish_reason == ("length" if "max_tokens" in given else "stop")
    chunks = [chunk.choices[0] for chunk in client.chat.completions.create(**asked, **given, stream=True)]
    assert "".join(chunk.delta.content or "" for chunk in chunks) == choice.message.content


def test_passages_of_an_earlier_reply_are_not_read_again(shelf, client):
    shelf.reply = lambda messages: "Who decides about leave?" if "turns" in messages[-1].content else REFUSAL
    earlier = client.chat.completions.create(model="default", messages=said(UNDECIDED)).choices[0].message.content
    assert "thirty days" in earlier
    shelf.model.calls.clear()
    talk = said("Who else?", ("user", UNDECIDED), ("assistant", earlier))
    client.chat.completions.create(model="default", messages=talk)
    rewriting = shelf.model.calls[0][-1].content
    assert earlier.partition("\n\n")[0] in rewriting and "thirty days" not in rewriting


def test_a_language_model_writes_and_is_named(client):
    reply = client.chat.completions.create(model="default", messages=said(ASKED))
    assert reply.generated_by == "scripted"
    assert reply.choices[0].message.content.startswith("Thirty days of annual leave [1].\n\nSources:")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (100, 20)
    with client.chat.completions.stream(model="default", messages=said(ASKED)) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    assert final.choices[0].message.content == reply.choices[0].message.content


def test_a_follow_up_question_is_understood_with_what_was_said(shelf, client):
    def answer(messages):
        if "turns" in messages[-1].content:
            return "How far ahead is annual leave asked for?"
        return "Leave is asked for two weeks ahead [1]."

    shelf.reply = answer
    earlier = client.chat.completions.create(model="default", messages=said(ASKED)).choices[0].message.content
    assert "Sources:" in earlier
    reply = client.chat.completions.create(
        model="default",
        messages=said("How far ahead?", ("system", "Answer as a pirate."), ("user", ASKED), ("assistant", earlier)),
    )
    assert reply.recollect["rewritten_question"] == "How far ahead is annual leave asked for?"
    rewriting = shelf.model.calls[1][-1].content
    assert "Leave is asked for two weeks ahead [1]." in rewriting
    assert "Sources:" not in rewriting
    assert not any("pirate" in message.content for call in shelf.model.calls for message in call)


def test_messages_may_end_with_what_a_tool_said(client):
    call = {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
    tool = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "It is noon."},
    ]
    reply = client.chat.completions.create(model="default@extractive", messages=[*said(ASKED), *tool])
    assert "thirty days" in reply.choices[0].message.content
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="default", messages=tool)


def test_nothing_is_remembered_unless_asked(shelf, client):
    client.chat.completions.create(model="default@extractive", messages=said(ASKED), store=True)
    assert shelf.rag.memory.list() == []
    remembered = {"recollect": {"conversation": "chat-1"}}
    client.chat.completions.create(model="default@extractive", messages=said(ASKED), extra_body=remembered)
    assert [turn.role for turn in shelf.rag.memory.turns("chat-1")] == ["user", "assistant"]
    with shelf.client(shelf.rag.keys.create("reader", scopes=["read"]).secret) as reader:
        reader.chat.completions.create(model="default@extractive", messages=said(ASKED))
        with pytest.raises(openai.PermissionDeniedError):
            reader.chat.completions.create(model="default@extractive", messages=said(ASKED), extra_body=remembered)
    shelf.rag.memory.delete("chat-1")


def test_models_are_what_may_be_read(shelf, client):
    shelf.rag.collections.create("team@home")
    listed = [model.id for model in client.models.list()]
    places = ["recollect", "recollect/default", "recollect/team@home"]
    assert listed == [name for place in places for name in (place, f"{place}@extractive")]
    for name in [*listed, "*", "*@extractive", "default", "default@extractive", "team@home", "team@home@extractive"]:
        assert client.models.retrieve(name).id == name
    assert client.chat.completions.create(model="*@extractive", messages=said(ASKED)).recollect["citations"]
    refused = client.chat.completions.create(model="team@home@extractive", messages=said(ASKED))
    assert refused.recollect["refused"]
    shelf.rag.collections.delete("team@home")


def test_models_that_there_are_not(client):
    for name in ["none", "default@", "default@openai/gpt-5", "default@nobody/x", "@extractive", "**"]:
        with pytest.raises(openai.NotFoundError) as told:
            client.chat.completions.create(model=name, messages=said(ASKED))
        assert (told.value.code, told.value.type, told.value.param) == (
            "model_not_found",
            "invalid_request_error",
            "model",
        )
        with pytest.raises(openai.NotFoundError):
            list(client.chat.completions.create(model=name, messages=said(ASKED), stream=True))


def test_what_a_key_may_not_read_does_not_exist_for_it(shelf, client):
    shelf.rag.tenants.create("other")
    other = shelf.rag.view(tenant="other")
    other.collections.create("secret")
    ada = shelf.rag.keys.create("ada", scopes=["read"], principal=Principal(user_id="ada", roles=("staff",))).secret
    asked = said("When are salaries paid?")
    owner = client.chat.completions.create(model="default@extractive", messages=asked)
    assert owner.choices[0].message.annotations[0].url_citation.url == "https://intra.example/pay"
    with shelf.client(ada) as theirs:
        assert theirs.chat.completions.create(model="*@extractive", messages=asked).recollect["citations"] == []
        with pytest.raises(openai.NotFoundError):
            theirs.chat.completions.create(model="secret", messages=asked)
    with shelf.client(other.keys.create("theirs", scopes=["read"]).secret) as theirs:
        assert "recollect/secret" in [model.id for model in theirs.models.list()]
        assert theirs.chat.completions.create(model="default", messages=asked).recollect["citations"] == []
    with shelf.client(ada[:-1] + ("B" if ada.endswith("A") else "A")) as forged:
        with pytest.raises(openai.AuthenticationError) as told:
            forged.models.list()
        assert told.value.code == "invalid_api_key"
    shelf.rag.tenants.erase("other")


def test_what_is_refused(client):
    for given, param, code in [
        ({"n": 2}, "n", "unsupported_value"),
        ({"logprobs": True}, "logprobs", "unsupported_value"),
        ({"modalities": ["text", "audio"]}, "modalities", "unsupported_value"),
        ({"response_format": {"type": "json_object"}}, "response_format", "unsupported_value"),
        ({"tool_choice": "required"}, "tool_choice", "unsupported_value"),
        ({"web_search_options": {}}, "web_search_options", "unsupported_value"),
        ({"extra_body": {"no_such": 1}}, "no_such", "unknown_parameter"),
        ({"extra_body": {"recollect": {"collection": "x"}}}, "recollect", "invalid_value"),
        ({"extra_body": {"recollect": {"topk": 3}}}, "recollect.topk", "unknown_parameter"),
        ({"extra_body": {"recollect": {"as_of": "someday"}}}, None, "bad_request"),
        ({"messages": []}, "messages", "invalid_value"),
        ({"messages": [{"role": "assistant", "content": "Hello"}]}, "messages", "invalid_value"),
        ({"messages": [{"role": "nobody", "content": "Hello"}]}, "messages.0.role", "invalid_value"),
        ({"messages": [{"role": "user", "content": "a\0b"}]}, "messages", "invalid_value"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages.0.content",
            "unsupported_content",
        ),
    ]:
        asked = {"model": "default", "messages": said(ASKED), **given}
        with pytest.raises(openai.BadRequestError) as told:
            client.chat.completions.create(**asked)
        assert (told.value.param, told.value.code, told.value.type) == (param, code, "invalid_request_error")


def test_every_parameter_of_the_client_is_known():
    sent = set(typing.get_type_hints(parameters.CompletionCreateParamsStreaming))
    assert sent == set(ChatCompletionBody.model_fields) - {"recollect"}


def test_what_says_nothing_here_is_not_looked_at(client):
    reply = client.chat.completions.create(
        model="default",
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": ASKED}], "name": "ada"},
        ],
        seed=7,
        tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}],
        response_format={"type": "text"},
    )
    assert "thirty days" in reply.choices[0].message.content


@pytest.mark.parametrize("model", ["default", "default@extractive"])
@pytest.mark.parametrize("given", [{"stop": "thirty"}, {"stop": ["no such", "annual"]}, {"max_tokens": 3}])
def test_an_answer_ends_where_it_is_to_end(shelf, client, model, given):
    shelf.reply = lambda _: "Employees have thirty days of annual leave [1]. Leave is asked for two weeks ahead [1]."
    asked = {"model": model, "messages": said(ASKED), "extra_body": {"recollect": {"footnotes": False}}}
    whole = client.chat.completions.create(**asked).choices[0].message.content
    choice = client.chat.completions.create(**asked, **given).choices[0]
    short = choice.message.content
    assert whole.startswith(short) and 0 < len(short) < len(whole)
    assert "thirty" not in short or given["stop"] != "thirty"
    assert choice.finish_reason == ("length" if "max_tokens" in given else "stop")
    assert choice.message.annotations == []
    chunks = [chunk.choices[0] for chunk in client.chat.completions.create(**asked, **given, stream=True)]
    assert "".join(chunk.delta.content or "" for chunk in chunks) == short
    assert chunks[-1].finish_reason == choice.finish_reason


def test_a_temperature_is_honoured_or_refused(client):
    quoted = client.chat.completions.create(model="default@extractive", messages=said(ASKED), temperature=0.3)
    assert "thirty days" in quoted.choices[0].message.content
    with pytest.raises(openai.BadRequestError, match="takes no temperature"):
        client.chat.completions.create(model="default", messages=said(ASKED), temperature=0.3)
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="default@extractive", messages=said(ASKED), temperature=3)


TOLD = f"USER: {ASKED}\nASSISTANT: Thirty days."
OPEN_WEBUI = (
    "### Task:\n{order}\n### Output:\nJSON format: {form}\n### Chat History:\n<chat_history>\n"
    + TOLD
    + "\n</chat_history>"
)
HELPERS = [
    (
        OPEN_WEBUI.format(
            order="Generate a concise, 3-5 word title with an emoji summarizing the chat history.",
            form='{ "title": "your concise title here" }',
        ),
        '{"title": "How many days of annual leave"}',
    ),
    (
        OPEN_WEBUI.format(
            order="Generate 1-3 broad tags categorizing the main themes of the chat history.",
            form='{ "tags": ["tag1", "tag2", "tag3"] }',
        ),
        '{"tags": []}',
    ),
    (
        OPEN_WEBUI.format(
            order="Suggest 3-5 relevant follow-up questions or prompts that the user might naturally ask next.",
            form='{ "follow_ups": ["Question 1?", "Question 2?"] }',
        ),
        '{"follow_ups": []}',
    ),
    (
        "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the "
        f"title itself.\n\nConversation:\nUser: {ASKED}\nAI: Thirty days.",
        "How many days of annual leave",
    ),
]


@pytest.mark.parametrize(("prompt", "without_model"), HELPERS)
def test_what_chat_programs_ask_by_themselves_is_not_searched_for(shelf, client, prompt, without_model):
    quoted = client.chat.completions.create(model="recollect@extractive", messages=said(prompt)).choices[0].message
    assert (quoted.content, quoted.annotations) == (without_model, [])
    shelf.reply = lambda _: "A Title"
    written = client.chat.completions.create(model="recollect", messages=said(prompt))
    assert (written.choices[0].message.content, written.generated_by) == ("A Title", "scripted")
    ((asked,),) = shelf.model.calls
    assert (asked.role, asked.content) == ("user", prompt)
    chunks = client.chat.completions.create(model="recollect", messages=said(prompt), stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "A Title"
    assert client.responses.create(model="recollect@extractive", input=prompt).output_text == without_model


@pytest.mark.parametrize(
    "question", ["Generate a summary of the leave policy.", "What is the title of the conversation guide?", TOLD, ASKED]
)
def test_questions_about_documents_are_searched_for(client, question):
    found = client.responses.create(
        model="default@extractive", input=question, include=["file_search_call.results"]
    ).output[0]
    assert found.results


def test_many_streams_at_the_same_time(shelf):
    shelf.reply = lambda _: "Thirty days of annual leave [1]. Leave is asked for two weeks ahead [1]."

    async def one(asking: openai.AsyncOpenAI) -> str:
        stream = await asking.chat.completions.create(model="default", messages=said(ASKED), stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def all_of_them() -> set[str]:
        async with shelf.asynchronous() as asking:
            return set(await asyncio.gather(*(one(asking) for _ in range(12))))

    (text,) = asyncio.run(all_of_them())
    assert text.startswith("Thirty days of annual leave [1]. Leave is asked for two weeks ahead [1].\n\nSources:")


def test_a_failure_within_a_stream_is_told_in_it(shelf, client, monkeypatch):
    monkeypatch.setattr(shelf.model, "_error", ProviderError("the key sk-secret is refused", provider="scripted"))
    shelf.reply = lambda _: "Thirty days of annual leave [1]. Leave is asked for two weeks ahead [1]."
    monkeypatch.setattr(shelf.model, "_error_after", 1_000)
    stream = client.chat.completions.create(model="default", messages=said(ASKED), stream=True)
    with pytest.raises(openai.APIError) as told:
        list(stream)
    assert told.value.code == "model_failed"
    assert "sk-secret" not in str(told.value)
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="default", messages=said(ASKED))


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_stops_the_model(shelf, stream):
    stopped = threading.Event()
    begun = threading.Event()

    class Endless:
        model_name = "endless"

        async def stream(self, messages, *, max_tokens=None):
            try:
                while True:
                    begun.set()
                    yield "Thirty days of annual leave [1]. "
                    await asyncio.sleep(0.001)
            finally:
                stopped.set()

    async def leave() -> None:
        async with shelf.asynchronous() as asking:
            asked = asking.chat.completions.create(model="default", messages=said(ASKED), stream=stream)
            if stream:
                answer = await asked
                async for chunk in answer:
                    if chunk.choices[0].delta.content:
                        break
                await answer.close()
            else:
                waiting = asyncio.ensure_future(asked)
                await asyncio.to_thread(begun.wait)
                waiting.cancel()
                await asyncio.wait([waiting])

    assembly = shelf.rag.standpoint.assembly
    before, assembly.chat_model = assembly.chat_model, Endless()
    try:
        asyncio.run(leave())
        assert stopped.wait(30)
    finally:
        assembly.chat_model = before


def test_a_question_that_is_too_long_is_refused_before_anything_reads_it(shelf):
    read = []
    shelf.reply = lambda messages: read.append(messages) or "Leave is thirty days [1]."
    said = [{"role": "user", "content": "How long is leave?"}, {"role": "assistant", "content": "Thirty days."}]
    long = [{"role": "user", "content": "And how is it asked for? " * 500}] * 4
    with pytest.raises(openai.BadRequestError, match="at most 20,000"):
        shelf.client().chat.completions.create(model="default", messages=[*said, *long])
    assert read == []
