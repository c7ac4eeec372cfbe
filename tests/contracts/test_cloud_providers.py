"""What Cohere, Bedrock, Google and Anthropic are sent, and what each one's own words of failure become."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from wire_formats import anthropic, bedrock, cohere, google
from wire_formats.eventstream import error as undeclared
from wire_formats.eventstream import event, exception
from wire_formats.server import KEY, REPLY, ModelServer

from recollect.errors import ConfigurationError, ProviderError
from recollect.llm.base import ChatMessage, ChatUsage
from recollect.providers import Connection, make_embedder
from recollect.providers.connection import Secret, close_client
from recollect.providers.registry import ModelRequest

SECRETS = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS_SESSION_TOKEN": "IQoJb3JpZ2luX2VjEXAMPLETOKEN",
}
CONVERSATION = [
    ChatMessage("system", "Be brief."),
    ChatMessage("system", "Cite."),
    ChatMessage("assistant", "the end of what was cut off"),
    ChatMessage("user", "First."),
    ChatMessage("user", "Second."),
    ChatMessage("assistant", " "),
    ChatMessage("assistant", "Answer."),
    ChatMessage("user", "Third."),
]
TURNS = [("user", "First.\n\nSecond."), ("assistant", "Answer."), ("user", "Third.")]


class Wide:
    """A wire format whose vectors have more dimensions than those of the others, and no unit length."""

    def __init__(self, wire, dimension):
        self._wire = wire
        self._dimension = dimension

    def __getattr__(self, name):
        return getattr(self._wire, name)

    def write(self, result):
        return self._wire.write(replace(result, vectors=[one * (self._dimension // 8) for one in result.vectors]))


class Scripted:
    """A wire format that sends the given parts in place of its own."""

    def __init__(self, wire, parts):
        self._wire = wire
        self._parts = parts

    def __getattr__(self, name):
        return getattr(self._wire, name)

    def write(self, result):
        return self._parts


class Failing:
    """A wire format whose errors have the given body and headers."""

    def __init__(self, wire, body, headers=None):
        self._wire = wire
        self._body = body
        self.headers = headers or {}

    def __getattr__(self, name):
        return getattr(self._wire, name)

    def error(self, status, message):
        return self._body if isinstance(self._body, bytes) else json.dumps(self._body).encode()


@pytest.fixture
def serve():
    servers, models = [], []

    def start(wire, *, fault="", key=KEY, **settings):
        server = ModelServer(wire, fault=fault)
        servers.append(server)
        connection = {"max_retries": 0, "timeout_seconds": 20.0, "api_key": key and Secret(key)}
        models.append(wire.make(server.base_url, **connection | settings))
        return server, models[-1]

    yield start
    for model in models:
        if hasattr(model, "close"):
            model.close()
    for server in servers:
        server.close()


@pytest.fixture
def aws(monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    return monkeypatch


def answer(model, messages=CONVERSATION, **options):
    async def collected():
        return [piece async for piece in model.stream(messages, **options)]

    return asyncio.run(collected())


def failure(model):
    with pytest.raises(ProviderError) as caught:
        answer(model)
    return caught.value


def of(server, name):
    return [request.headers.get(name) for request in server.requests]


class TestCohere:
    def test_documents_and_questions_are_told_apart_and_dimensions_asked_for(self, serve):
        server, model = serve(Wide(cohere.Embeddings(), 512), model="embed-v4.0", dimensions=512)
        vectors = model.embed_documents(["one", "two"])
        model.embed_query("which?")
        sent = [request.body for request in server.requests]
        assert [one["input_type"] for one in sent] == ["search_document", "search_query"]
        assert {(one["model"], one["output_dimension"], one["truncate"]) for one in sent} == {
            ("embed-v4.0", 512, "END")
        }
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
        assert model.model_name == "cohere/embed-v4.0:512"

    def test_what_is_longer_than_asked_for_is_cut_and_of_unit_length_again(self, serve):
        _, model = serve(Wide(cohere.Embeddings(), 1536), model="embed-v4.0", dimensions=256)
        vector = model.embed_query("which?")
        assert vector.shape == (256,)
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)

    def test_the_third_generation_is_asked_for_no_dimension(self, serve):
        server, model = serve(Wide(cohere.Embeddings(), 1024), model="embed-multilingual-v3.0", dimensions=None)
        assert model.embed_query("which?").shape == (1024,)
        assert "output_dimension" not in server.requests[0].body

    def test_96_texts_a_request(self, serve):
        server, model = serve(cohere.Embeddings())
        model.embed_documents([f"text {number}" for number in range(100)])
        assert sorted(len(request.body["texts"]) for request in server.requests) == [4, 96]

    def test_reranking_costs_what_its_searches_cost_and_no_tokens(self, serve):
        for price, cost in ((2.0, 0.006), (None, None)):
            records = []
            wire = Scripted(cohere.Reranking(), json.dumps({
                "id": "1", "results": [{"index": 0, "relevance_score": 0.5}], "meta": cohere.meta(search_units=3),
            }).encode())  # fmt: skip
            _, model = serve(wire, recorder=records.append, input_price=1.0, search_price=price)
            model.scores("How many days?", ["thirty"])
            assert [one.cost for one in records] == [cost if cost is None else pytest.approx(cost)]

    def test_an_error_says_what_cohere_said_and_not_its_headers(self, serve):
        wire = Failing(cohere.Embeddings(), {"message": "too many tokens"}, {"Set-Cookie": "session=1"})
        _, model = serve(wire, fault="422")
        with pytest.raises(ProviderError, match="too many tokens") as caught:
            model.embed_query("which?")
        assert "session" not in str(caught.value)

    def test_the_environment_neither_redirects_nor_lends_its_key(self, serve, monkeypatch):
        monkeypatch.setenv("CO_API_KEY", "key-of-the-environment")
        monkeypatch.setenv("CO_API_URL", "http://127.0.0.1:9")
        server, model = serve(cohere.Embeddings(), key=None)
        model.embed_query("which?")
        assert of(server, "Authorization") == ["Bearer none"]


class TestBedrockEmbeddings:
    def test_cohere_4_by_a_profile_is_the_model_itself(self, serve):
        wire = Wide(bedrock.Embeddings(), 1536)
        wire.texts = lambda path, body: body["texts"]
        server, model = serve(wire, model="us.cohere.embed-v4:0", dimensions=None)
        model.embed_documents(["one", "two"])
        model.embed_query("which?")
        sent = [request.body for request in server.requests]
        assert [one["input_type"] for one in sent] == ["search_document", "search_query"]
        assert {(one["output_dimension"], one["truncate"]) for one in sent} == {(1536, "RIGHT")}
        profile = "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/us.cohere.embed-v4:0"
        same = make_embedder("bedrock", profile, connection=Connection(api_key=Secret(KEY), region="eu-central-1"))
        assert model.model_name == same.model_name == "bedrock/cohere.embed-v4:0:1536"

    def test_cohere_3_gets_texts_that_it_takes(self, serve):
        wire = Wide(bedrock.Embeddings(), 1024)
        wire.texts = lambda path, body: body["texts"]
        server, model = serve(wire, model="cohere.embed-english-v3", dimensions=None)
        model.embed_documents(["long " * 1000, "short"])
        (request,) = server.requests
        assert [len(text) <= 2048 for text in request.body["texts"]] == [True, True]
        assert "output_dimension" not in request.body
        assert request.body["truncate"] == "END"

    @pytest.mark.parametrize(
        ("name", "dimension", "sent"),
        [
            ("amazon.titan-embed-text-v2:0", 256, {"inputText": "a", "dimensions": 256, "normalize": True}),
            ("amazon.titan-embed-text-v1", 1536, {"inputText": "a"}),
        ],
    )
    def test_titan(self, serve, name, dimension, sent):
        server, model = serve(Titan(dimension), model=name, dimensions=dimension)
        assert model.embed_query("a").shape == (dimension,)
        assert server.requests[0].body == sent

    def test_titan_embeds_one_text_a_request_and_no_more_at_once_than_allowed(self, serve):
        wire = Titan(1024)
        records = []
        server, model = serve(
            wire, model="amazon.titan-embed-text-v2:0", dimensions=None, parallel=3, recorder=records.append
        )
        texts = [f"text {number}" for number in range(12)]
        got = model.embed_documents(texts)
        assert sorted(request.body["inputText"] for request in server.requests) == sorted(texts)
        assert 1 < wire.most <= 3
        assert not any(record.tokens_estimated for record in records)
        for text, vector in zip(texts, got, strict=True):
            np.testing.assert_allclose(vector, model.embed_query(text), atol=1e-6)

    def test_the_tokens_that_a_header_tells_are_recorded(self, serve):
        records = []
        wire = bedrock.Embeddings()
        wire.headers = {"x-amzn-bedrock-input-token-count": "42"}
        _, model = serve(wire, recorder=records.append)
        model.embed_query("which?")
        assert (records[0].input_tokens, records[0].tokens_estimated) == (42, False)

    def test_a_model_that_embeds_otherwise_is_refused(self):
        connection = Connection(api_key=Secret(KEY), region="eu-central-1")
        with pytest.raises(ConfigurationError, match="Titan"):
            make_embedder("bedrock", "nova.embed", connection=connection, dimensions=8)


class Titan(bedrock.Embeddings):
    """Amazon's own wire format, which counts the requests that are under way together."""

    def __init__(self, dimension):
        self._dimension = dimension
        self._together = threading.Barrier(2)
        self._lock = threading.Lock()
        self._now = self.most = 0

    def texts(self, path, body):
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            self._together.wait(0.05)  # gives others the time to come
        except threading.BrokenBarrierError:
            self._together.reset()
        with self._lock:
            self._now -= 1
        return [body["inputText"]]

    def write(self, result):
        vector = result.vectors[0] * (self._dimension // 8)
        return json.dumps(
            {"embedding": vector, "embeddingsByType": {"float": vector}, "inputTextTokenCount": result.tokens}
        ).encode()


class TestBedrockCredentials:
    def test_requests_are_signed_and_nothing_secret_is_logged(self, serve, aws, caplog):
        caplog.set_level(logging.DEBUG)
        server, model = serve(bedrock.Chat(), key=None)
        assert "".join(piece for piece in answer(model) if isinstance(piece, str)) == REPLY
        (signature,) = of(server, "Authorization")
        assert signature.startswith("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/")
        assert of(server, "X-Amz-Security-Token") == [SECRETS["AWS_SESSION_TOKEN"]]
        for secret in (*SECRETS.values(), signature.rpartition("=")[2]):
            assert secret not in caplog.text

    def test_a_message_that_repeats_credentials_is_masked(self, serve, aws):
        said = (
            f"The canonical string should have been x-amz-security-token:{SECRETS['AWS_SESSION_TOKEN']} for "
            + (SECRETS["AWS_ACCESS_KEY_ID"])
        )
        wire = Failing(bedrock.Chat(), {"message": said}, {"x-amzn-ErrorType": "InvalidSignatureException"})
        _, model = serve(wire, fault="403", key=None)
        error = failure(model)
        assert error.kind == "authentication"
        assert "InvalidSignatureException: The canonical string" in str(error)
        for secret in SECRETS.values():
            assert secret not in str(error)

    def test_none(self, serve, aws):
        for name in SECRETS:
            aws.delenv(name)
        _, model = serve(bedrock.Chat(), key=None)
        error = failure(model)
        assert (error.kind, error.retryable) == ("authentication", False)
        assert "no usable AWS credentials" in str(error)

    def test_no_region(self, serve, aws):
        aws.delenv("AWS_DEFAULT_REGION", raising=False)
        aws.delenv("AWS_REGION", raising=False)
        _, model = serve(bedrock.Chat(), key=None, region=None)
        assert "set region, or AWS_REGION" in str(failure(model))


class TestBedrockFaults:
    @pytest.mark.parametrize(
        ("status", "name", "kind", "retryable", "words"),
        [
            (403, "AccessDeniedException", "authentication", False, "needs access to the model"),
            (403, "ExpiredTokenException", "authentication", False, "sign in again"),
            (404, "ResourceNotFoundException", "not_found", False, "may not offer the model"),
            (408, "ModelTimeoutException", "invalid_request", True, "ModelTimeoutException"),
            (424, "ModelErrorException", "server", True, "ModelErrorException"),
            (429, "ThrottlingException", "rate_limit", True, "ThrottlingException"),
            (429, "ModelNotReadyException", "rate_limit", True, "ModelNotReadyException"),
        ],
    )
    def test_a_status(self, serve, status, name, kind, retryable, words):
        headers = {"x-amzn-ErrorType": f"{name}:http://internal.amazon.com/coral/com.amazon.bedrock/"}
        _, model = serve(Failing(bedrock.Chat(), {"message": "said so"}, headers), fault=str(status))
        error = failure(model)
        assert (error.kind, error.retryable, error.status) == (kind, retryable, status)
        assert words in str(error)

    @pytest.mark.parametrize(
        ("part", "kind", "retryable"),
        [
            (exception("throttlingException", "slow down"), "rate_limit", True),
            (exception("validationException", "no"), "invalid_request", False),
            (exception("modelStreamErrorException", "broke"), "server", True),
            (exception("serviceUnavailableException", "later"), "server", True),
            (undeclared("InternalFailure", "broke"), "server", True),
            (event("messageStop", {"stopReason": "malformed_model_output"}), "server", True),
            (event("messageStop", {"stopReason": "content_filtered"}), "content_filter", False),
            (event("messageStop", {"stopReason": "a_new_one"}), "server", True),
            (event("messageStart", {"role": "assistant"})[:-1] + b"\x00", "malformed", True),
        ],
    )
    def test_in_the_stream(self, serve, part, kind, retryable):
        piece = event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "A piece"}})
        _, model = serve(Scripted(bedrock.Chat(), [piece, part]))
        error = failure(model)
        assert (error.kind, error.retryable, error.status) == (kind, retryable, None)

    def test_a_stream_that_nobody_reads_any_more_ends_its_thread(self, serve):
        piece = event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "A piece"}})
        # The server sends all but the last two parts, and then nothing: the thread waits for them.
        _, model = serve(Scripted(bedrock.Chat(), [piece, piece, piece]), fault="stall")

        async def first():
            stream = model.stream(CONVERSATION)
            await anext(stream)
            (thread,) = (one for one in threading.enumerate() if one.name == "recollect-stream")
            await stream.aclose()
            return thread

        thread = asyncio.run(first())
        thread.join(5)  # half as long as the server keeps silent
        assert not thread.is_alive(), "it waits for the server until its time is up"


class TestGoogle:
    def test_texts_say_what_they_are_for_and_each_is_a_content_of_its_own(self, serve):
        server, model = serve(Wide(google.Embeddings(), 768), model="gemini-embedding-2", dimensions=768)
        vectors = model.embed_documents(["one", "two"])
        model.embed_query("which?")
        sent = [one for request in server.requests for one in request.body["requests"]]
        texts = [part["text"] for one in sent for part in one["content"]["parts"]]
        prefixed = [google.DOCUMENT + "one", google.DOCUMENT + "two", google.QUERY + "which?"]
        assert texts == prefixed
        assert {one["outputDimensionality"] for one in sent} == {768}
        assert not any("taskType" in one for one in sent)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)

    def test_the_first_generation_is_told_what_a_text_is_for(self, serve):
        server, model = serve(Wide(google.Embeddings(), 3072), model="gemini-embedding-001", dimensions=None)
        model.embed_documents(["one"])
        model.embed_query("which?")
        sent = [one for request in server.requests for one in request.body["requests"]]
        assert [(one["content"]["parts"], one["taskType"]) for one in sent] == [
            ([{"text": "one"}], "RETRIEVAL_DOCUMENT"),
            ([{"text": "which?"}], "RETRIEVAL_QUERY"),
        ]

    def test_what_a_chat_is_sent(self, serve):
        server, model = serve(google.Chat(), temperature=0.5)
        assert answer(model, max_tokens=99)[-1] == ChatUsage(11, 7)
        body = server.requests[0].body
        assert body["systemInstruction"]["parts"] == [{"text": "Be brief.\n\nCite."}]
        sent = [(one["role"], one["parts"][0]["text"]) for one in body["contents"]]
        assert sent == [("model" if role == "assistant" else role, text) for role, text in TURNS]
        assert body["generationConfig"] == {"maxOutputTokens": 99, "temperature": 0.5}

    def test_a_wrong_key_is_called_one_though_its_status_is_400(self, serve):
        reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        wire = Failing(google.Chat(), google.error(400, "API key not valid.", details=[reason]))
        _, model = serve(wire, fault="400")
        assert failure(model).kind == "authentication"

    def test_the_pause_that_google_asks_for_is_known(self, serve):
        pause = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "13.5s"}
        wire = Failing(google.Chat(), google.error(429, "Quota.", details=[pause]), {"Retry-After": None})
        _, model = serve(wire, fault="429")
        assert failure(model).retry_after_seconds == 13.5

    @pytest.mark.parametrize(
        ("part", "kind", "retryable"),
        [
            *((google.reply([], finish=reason), "content_filter", False) for reason in ("RECITATION", "SPII")),
            (google.event({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}), "content_filter", False),
            (google.reply([], finish="OTHER"), "server", True),
            (google.reply([], finish="MALFORMED_RESPONSE"), "server", True),
            pytest.param(
                *(google.reply([], finish="A_NEW_ONE"), "server", True),
                marks=pytest.mark.filterwarnings("ignore:A_NEW_ONE is not a valid:UserWarning"),
            ),
            (google.event({"error": {"code": 429, "message": "m", "status": "X"}}), "rate_limit", True),
            (google.event({"error": {"code": 400, "message": "m", "status": "X"}}), "invalid_request", False),
            (b"data: {not json\r\n\r\n", "malformed", True),
        ],
    )
    def test_in_the_stream(self, serve, part, kind, retryable):
        _, model = serve(Scripted(google.Chat(), [google.reply([{"text": "A piece"}]), part]))
        error = failure(model)
        assert (error.kind, error.retryable, error.status) == (kind, retryable, None)

    def test_the_environment_neither_redirects_nor_lends_its_key(self, serve, monkeypatch):
        monkeypatch.setenv("GOOGLE_API_KEY", "key-of-the-environment")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "another")
        server, model = serve(google.Chat(), key=None)
        answer(model)
        assert of(server, "x-goog-api-key") == ["none"]
        assert "key=" not in server.requests[0].path


@pytest.mark.parametrize(
    ("name", "kind", "address"),
    [
        ("anthropic", "Chat", lambda backend: str(backend._client().base_url)),
        ("cohere", "Embeddings", lambda backend: backend._client._client_wrapper.get_base_url()),
        ("google", "Embeddings", lambda backend: backend._client._api_client._http_options.base_url),
    ],
)
def test_the_environment_redirects_no_key_that_belongs_to_the_provider(monkeypatch, name, kind, address):
    for variable in ("ANTHROPIC_BASE_URL", "CO_API_URL", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    module = import_module(f"recollect.providers.{name}")
    request = ModelRequest(model="m", connection=Connection(api_key=Secret(KEY)), dimensions=8)
    backend = getattr(module, kind)(request)
    own = getattr(module, f"{name.upper()}_BASE_URL")
    assert address(backend).rstrip("/") == own
    close_client(backend)


class TestAnthropic:
    def test_what_is_sent(self, serve, monkeypatch):
        for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
            monkeypatch.setenv(name, "key-of-the-environment")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        server, model = serve(anthropic.Chat(), temperature=0.0)
        assert answer(model, max_tokens=99)[-1] == ChatUsage(11, 7)
        (request,) = server.requests
        assert request.body["system"] == "Be brief.\n\nCite."
        assert [(one["role"], one["content"]) for one in request.body["messages"]] == TURNS
        assert (request.body["max_tokens"], request.body["temperature"]) == (99, 0.0)
        headers = {name.lower(): value for name, value in request.headers.items()}
        assert headers["authorization"] == f"Bearer {KEY}"
        assert "key-of-the-environment" not in str(headers)
        assert headers["anthropic-version"]

    def test_a_temperature_that_nobody_set_is_not_sent(self, serve):
        server, model = serve(anthropic.Chat())
        answer(model)
        assert "temperature" not in server.requests[0].body

    def test_overloaded(self, serve):
        _, model = serve(anthropic.Chat(), fault="529")
        error = failure(model)
        assert (error.kind, error.retryable, error.status) == ("server", True, 529)
        assert "overloaded_error" in str(error)

    @pytest.mark.parametrize(
        ("name", "kind", "retryable"),
        [
            ("overloaded_error", "server", True),
            ("rate_limit_error", "rate_limit", True),
            ("api_error", "server", True),
            ("timeout_error", "server", True),
            ("invalid_request_error", "invalid_request", False),
            ("authentication_error", "authentication", False),
            ("something_new", "server", True),
        ],
    )
    def test_in_the_stream(self, serve, name, kind, retryable):
        parts = [*anthropic.beginning(11), *anthropic.text_block(0, ["A piece"])]
        broken = anthropic.event("error", error={"type": name, "message": "said so"})
        _, model = serve(Scripted(anthropic.Chat(), [*parts, broken]))
        error = failure(model)
        assert (error.kind, error.retryable, error.status) == (kind, retryable, None)
        assert f"{name}: said so" in str(error)

    @pytest.mark.parametrize("reason", ["pause_turn", "a_new_one"])
    def test_an_end_that_is_none_is_no_whole_answer(self, serve, reason):
        parts = [*anthropic.beginning(11), *anthropic.text_block(0, ["A piece"]), *anthropic.ending(reason, 7)]
        _, model = serve(Scripted(anthropic.Chat(), parts))
        error = failure(model)
        assert (error.kind, error.retryable) == ("server", True)
        assert reason in str(error)

    @pytest.mark.parametrize(("reason", "cut"), [("stop_sequence", False), ("model_context_window_exceeded", True)])
    def test_ends(self, serve, caplog, reason, cut):
        parts = [*anthropic.beginning(11), *anthropic.text_block(0, ["A piece"]), *anthropic.ending(reason, 7)]
        _, model = serve(Scripted(anthropic.Chat(), parts))
        assert answer(model) == ["A piece", ChatUsage(11, 7)]
        assert ("cut off" in caplog.text) is cut


@pytest.mark.parametrize("wire", [anthropic.Chat(), bedrock.Chat(), google.Chat()], ids=lambda wire: wire.name)
def test_a_conversation_without_a_question_is_not_sent(serve, wire):
    server, model = serve(wire)
    with pytest.raises(ProviderError, match="holds no question") as caught:
        answer(model, [ChatMessage("system", "Be brief."), ChatMessage("user", " ")])
    assert not caught.value.retryable
    assert server.requests == []
