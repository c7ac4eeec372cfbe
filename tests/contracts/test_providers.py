"""One set of promises, kept by every provider through its real SDK against a server that speaks its wire format."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import re
import traceback

import numpy as np
import pytest
from wire_formats import WIRES
from wire_formats.server import DIMENSION, FOREIGN_KEYS, KEY, REPLY, ModelServer, score, vector

from recollect.errors import ConfigurationError, ProviderError, RecollectError
from recollect.llm.base import ChatMessage, ChatUsage
from recollect.providers import PROVIDERS
from recollect.providers.connection import Secret

TEXTS = ["How many days?", "", " \n", "ERR-4012", "يرجى مراجعة سياسة الخصوصية", "👩‍👩‍👧‍👦 \x00 \ud800", "a" * 300]
MESSAGES = [ChatMessage("system", "Be brief."), ChatMessage("user", "Wie viele Tage? ‏שלום \ud800")]
RETRIES = 1
# What only whoever knows our code or an SDK's can make something of.
INTERNALS = re.compile(
    r"\b(Attribute|Assertion|Decode|Index|Key|Parsing|Recursion|Runtime|Type|Unicode\w+|Validation|Value)Error\b|NoneType"
    r"|has no attribute|not (subscriptable|iterable)|object is|validation error|Traceback|<class|0x[0-9a-f]{6}"
)

# By fault: the kinds of error that it may be, and whether it is worth another attempt; None: either.
EVERYWHERE = {
    "400": ({"invalid_request"}, False),
    "401": ({"authentication"}, False),
    "403": ({"authentication"}, False),
    "404": ({"not_found"}, False),
    "422": ({"invalid_request"}, False),
    "429": ({"rate_limit"}, True),
    "500": ({"server"}, True),
    "503": ({"server"}, True),
    "cut-body": ({"unreachable", "malformed", "incomplete"}, True),
    "empty-body": ({"malformed", "incomplete"}, None),
    "half-json": ({"malformed", "incomplete"}, None),
    "html": ({"malformed"}, False),
    "html-error": ({"server"}, True),
    "json-list": ({"malformed", "incomplete", "empty"}, None),
    "json-null": ({"malformed", "incomplete", "empty"}, None),
    "json-text": ({"malformed", "incomplete", "empty"}, None),
    "other-json": ({"malformed", "incomplete", "empty"}, None),
    "reset": ({"unreachable"}, True),
    "silence": ({"timeout"}, True),
    "slow-headers": ({"timeout"}, True),
}
MALFORMED = ({"malformed"}, None)
IN_BATCHES = dict.fromkeys(
    ["half-a-batch", "one-too-many", "not-a-number", "infinite", "null", "texts-for-numbers"], MALFORMED
)
INDEXES = dict.fromkeys(["one-twice", "unknown-index"], MALFORMED)
OF_VECTORS = dict.fromkeys(["wrong-dimension", "ragged", "zero"], MALFORMED)
IN_STREAMS = {
    "cut-first": ({"unreachable", "incomplete", "malformed"}, True),
    "cut-stream": ({"unreachable", "incomplete", "malformed"}, True),
    "empty-answer": ({"empty", "incomplete"}, True),
    "error-in-the-stream": ({"server"}, True),
    "filtered": ({"content_filter"}, False),
    "nothing-but-length": ({"empty"}, False),
    "numbers-for-pieces": MALFORMED,
    "objects-for-pieces": MALFORMED,
    "quiet-end": ({"incomplete"}, True),
    "stall": ({"timeout"}, True),
}
FAULTS = {
    "embed": EVERYWHERE | IN_BATCHES | INDEXES | OF_VECTORS,
    "rerank": EVERYWHERE | IN_BATCHES | INDEXES,
    "answer": EVERYWHERE | IN_STREAMS,
}
NAMED = {wire.name: wire for wire in WIRES}
USAGES = [(w.name, fault) for w in WIRES for fault in ("impossible-usage", "usage-in-words") if fault not in w.cannot]
CASES = [(wire.name, fault) for wire in WIRES for fault in FAULTS[wire.kind] if fault not in wire.cannot]


class Asked:
    """One of our models, what it is asked, and what has been recorded of that."""

    def __init__(self, wire):
        self.wire = wire
        self.server = ModelServer(wire)
        self.records = []
        self.models = []

    def make(self, **connection):
        settings = {"max_retries": 0, "backoff_seconds": 0.0001, "timeout_seconds": 20.0}
        model = self.wire.make(
            self.server.base_url, recorder=self.records.append, **{"api_key": Secret(KEY)} | settings | connection
        )
        self.models.append(model)
        return model

    def close(self):
        for model in self.models:
            if self.wire.kind != "answer":
                model.close()
        self.server.close()

    def ask(self, model, texts=TEXTS[:5]):
        if self.wire.kind == "embed":
            return model.embed_documents(texts)
        if self.wire.kind == "rerank":
            return model.scores("How many days?", texts)
        return asyncio.run(self.collected(model))

    async def collected(self, model, **options):
        return [piece async for piece in model.stream(MESSAGES, **options)]

    def right(self, texts=TEXTS[:5]):
        seen = [text if text.strip() else "." for text in texts]
        if self.wire.kind == "embed":
            rows = np.array([vector(text) for text in seen])
            return rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return [score(text) for text in seen] if self.wire.kind == "rerank" else REPLY

    def require_right(self, got, texts=TEXTS[:5]):
        if self.wire.kind == "answer":
            assert "".join(piece for piece in got if isinstance(piece, str)) == REPLY
        else:
            np.testing.assert_allclose(got, self.right(texts), atol=1e-6)


@pytest.fixture
def asked(request):
    asked = Asked(NAMED[request.param])
    yield asked
    asked.close()


every_wire = pytest.mark.parametrize("asked", sorted(NAMED), indirect=True)


def of_kind(kind):
    names = sorted(name for name, wire in NAMED.items() if wire.kind == kind)
    return pytest.mark.parametrize("asked", names, indirect=True)


def require_no_key(asked, error, log):
    """Nothing that anybody may print, log or keep holds the key."""
    chain = [error]
    while (led := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(led)
    assert all(isinstance(one, RecollectError) for one in chain), "an SDK's exception can hold its request"
    shown = ["".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())]
    shown += [str(error), repr(error), repr(vars(error)), log, repr(asked.records), repr(pickle.dumps(asked.records))]
    shown += [repr(model) for model in asked.models]
    for text in shown:
        assert KEY not in text
        assert not [one for one in FOREIGN_KEYS if one in text]


class TestProviders:
    """What every provider does."""

    @every_wire
    def test_an_answer(self, asked):
        asked.require_right(asked.ask(asked.make()))
        (record,) = asked.records
        assert (record.kind, record.success, record.attempts, record.error) == (asked.wire.kind, True, 1, None)
        assert record.input_tokens > 0
        assert record.milliseconds > 0
        assert any(KEY in value for value in asked.server.requests[0].headers.values()), "the key was not sent"

    @pytest.mark.parametrize(("asked", "fault"), CASES, indirect=["asked"], ids=lambda value: str(value))
    def test_a_fault(self, asked, fault, caplog):
        kinds, retryable = FAULTS[asked.wire.kind][fault]
        late = fault in {"silence", "slow-headers", "stall"}
        # Of a fault that costs its time-out one attempt is enough.
        model = asked.make(max_retries=0 if late else RETRIES, timeout_seconds=0.06 if late else 20.0)
        asked.server.fault = fault
        caplog.set_level(logging.DEBUG)
        with pytest.raises(ProviderError) as caught:
            asked.ask(model)
        error = caught.value
        assert error.kind in kinds, str(error)
        assert retryable in {None, error.retryable}
        assert error.status == (int(fault) if fault.isdigit() else 502 if fault == "html-error" else None)
        assert error.provider == asked.wire.name.split()[0]
        assert error.model
        assert not INTERNALS.search(str(error))
        assert str(error).startswith(f"{error.provider} ({error.model}): ")
        (record,) = asked.records
        assert (record.success, record.error, record.status) == (False, error.kind, error.status)
        after_pieces = {"cut-stream", "quiet-end", "stall", "error-in-the-stream", "filtered", "cut-body", "half-json"}
        if not (asked.wire.kind == "answer" and fault in after_pieces):
            assert record.attempts == (1 + RETRIES if error.retryable and not late else 1)
            assert late or len(asked.server.requests) == record.attempts
        require_no_key(asked, error, caplog.text)

    @pytest.mark.parametrize(("asked", "fault"), USAGES, indirect=["asked"], ids=lambda value: str(value))
    def test_counts_that_are_none_are_estimated_or_refused(self, asked, fault):
        asked.server.fault = fault
        try:
            asked.require_right(asked.ask(asked.make(input_price=1.0, output_price=1.0, search_price=1.0)))
        except ProviderError as error:  # of an SDK that checks types
            assert error.kind == "malformed"
            assert not INTERNALS.search(str(error))
            return
        (record,) = asked.records
        assert record.tokens_estimated
        assert record.input_tokens > 0
        assert 0 <= record.output_tokens < 1_000

    @every_wire
    @pytest.mark.parametrize("fault", ["429", "503", "reset"])
    def test_what_passes_is_asked_for_again(self, asked, fault):
        asked.server.faults = [fault, fault]
        asked.require_right(asked.ask(asked.make(max_retries=2)))
        assert len(asked.server.requests) == 3
        assert [(record.success, record.attempts) for record in asked.records] == [(True, 3)]

    @every_wire
    def test_a_server_that_is_not_there(self, asked, caplog):
        caplog.set_level(logging.DEBUG)
        model = asked.make()
        asked.server.http.server_close()
        with pytest.raises(ProviderError) as caught:
            asked.ask(model)
        assert (caught.value.kind, caught.value.retryable) == ("unreachable", True)
        require_no_key(asked, caught.value, caplog.text)

    @every_wire
    def test_a_model_is_not_written_out_with_its_key(self, asked):
        with pytest.raises((RecollectError, TypeError, AttributeError)):
            pickle.dumps(asked.make())

    @every_wire
    def test_a_key_goes_to_no_other_server(self, asked):
        other = ModelServer(asked.wire)
        asked.server.elsewhere, asked.server.fault = other.base_url, "redirect"
        with contextlib.suppress(ProviderError):
            asked.ask(asked.make())
        other.close()
        assert not [value for request in other.requests for value in request.headers.values() if KEY in value]

    @every_wire
    def test_a_key_of_the_environment_goes_to_the_providers_own_address_alone(self, asked, monkeypatch):
        for variable in {name for row in PROVIDERS.values() for name in row.key_variables} - {
            "AWS_BEARER_TOKEN_BEDROCK"
        }:
            monkeypatch.setenv(variable, KEY)
        monkeypatch.setenv("OLLAMA_API_KEY", KEY)
        with contextlib.suppress(ProviderError, ConfigurationError):
            asked.ask(asked.make(api_key=None))
        assert not [value for request in asked.server.requests for value in request.headers.values() if KEY in value]

    @every_wire
    def test_one_that_keeps_failing_is_left_alone(self, asked):
        model = asked.make(breaker_failures=2, breaker_seconds=600)
        asked.server.fault = "500"
        kinds = []
        for _ in range(4):
            with pytest.raises(ProviderError) as caught:
                asked.ask(model)
            kinds.append(caught.value.kind)
        assert kinds == ["server", "server", "refused", "refused"]
        assert len(asked.server.requests) == 2
        assert [record.attempts for record in asked.records] == [1, 1, 0, 0]


class TestEmbeddings:
    """What every provider of embeddings does beside that."""

    @of_kind("embed")
    def test_vectors_are_float32_of_unit_length_in_order(self, asked):
        model = asked.make(batch_size=2, parallel=3)
        vectors = model.embed_documents(TEXTS)
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(TEXTS), model.dimension) == (len(TEXTS), DIMENSION)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
        asked.require_right(vectors[:5])
        assert len(asked.server.requests) == 4
        assert sorted(record.inputs for record in asked.records) == [1, 2, 2, 2]

    @of_kind("embed")
    def test_no_texts_ask_nothing(self, asked):
        assert asked.make().embed_documents([]).shape == (0, DIMENSION)
        assert asked.server.requests == []

    @of_kind("embed")
    def test_a_question_has_one_vector(self, asked):
        vector_of = asked.make().embed_query("How many days?")
        assert (vector_of.shape, vector_of.dtype) == ((DIMENSION,), np.float32)

    @of_kind("embed")
    def test_vectors_find_their_texts(self, asked):
        if "permuted" in asked.wire.cannot:
            pytest.skip("replies are in the texts' order")
        asked.server.fault = "permuted"
        asked.require_right(asked.ask(asked.make()))


class TestReranking:
    """What every reranker does beside that."""

    @of_kind("rerank")
    def test_scores_are_in_the_passages_order(self, asked):
        model = asked.make(batch_size=2, parallel=3)
        assert model.scores("How many days?", TEXTS[:5]) == asked.right()
        assert len(asked.server.requests) == 3
        assert model.scores("How many days?", []) == []


class TestChat:
    """What every chat model does beside that."""

    @of_kind("answer")
    def test_pieces_come_one_by_one_and_last_what_they_took(self, asked):
        pieces = asked.ask(asked.make())
        assert len(pieces) > 2
        assert all(pieces)
        assert pieces[-1] == ChatUsage(11, 7)
        assert (asked.records[0].input_tokens, asked.records[0].output_tokens) == (11, 7)

    @of_kind("answer")
    def test_an_answer_cut_at_its_token_limit_is_kept_and_logged(self, asked, caplog):
        asked.server.fault = "length"
        asked.require_right(asked.ask(asked.make()))
        assert "cut off" in caplog.text

    @of_kind("answer")
    def test_it_can_be_abandoned_half_way(self, asked):
        async def first():
            stream = asked.make().stream(MESSAGES)
            piece = await anext(stream)
            await stream.aclose()
            return piece

        assert REPLY.startswith(asyncio.run(first()))
        (record,) = asked.records
        assert record.tokens_estimated

    @of_kind("answer")
    def test_concurrent_streams_do_not_mix(self, asked):
        async def both():
            model = asked.make()
            return await asyncio.gather(asked.collected(model), asked.collected(model))

        for got in asyncio.run(both()):
            asked.require_right(got)
