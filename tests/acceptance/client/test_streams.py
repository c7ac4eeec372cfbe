"""Answers whose connection breaks are gone on with: no token is lost, none comes twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence

import httpx2
import pytest

from recollect import Answer, AsyncClient, Client, Document, Principal, SearchReply, ShownPassage
from recollect.errors import NotFoundError, ProviderError, StreamBrokenError
from recollect.model import Decided
from recollect.model.answer import REFUSAL
from recollect.server.app import create_app
from served import Served, listening, serving
from wires import ASKED, Cutter, answering

SENTENCES = [f"Every employee has thirty days of annual leave, sentence {number} [1]. " for number in range(60)]


class Writer:
    """Writes sentences; after the first it waits until it is told to go on, where that is wanted."""

    model_name = "writer"

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self, *, waits: bool = False, fails: bool = False, writes: Sequence[str] = SENTENCES) -> None:
        self.writes = writes
        self.begun, self.ended, self.go_on = threading.Event(), threading.Event(), threading.Event()
        self.fails = fails
        self.asked = 0
        if not waits:
            self.go_on.set()

    async def stream(self, messages: object, **_: object) -> AsyncIterator[str]:
        self.asked += 1
        try:
            for sentence in self.writes:
                yield sentence
                self.begun.set()
                while not self.go_on.is_set():  # noqa: ASYNC110 - set by another thread
                    await asyncio.sleep(0.01)
                if self.fails:
                    raise ProviderError("It fell silent.", provider="writer")
        finally:
            self.ended.set()


@pytest.fixture(scope="module")
def model() -> Writer:
    return Writer()


@pytest.fixture(scope="module")
def written(clone, tmp_path_factory, model) -> Iterator[Served]:
    with clone() as dsn, serving(dsn, tmp_path_factory.mktemp("written"), worker=False, chat_model=model) as one:
        one.rag.ingest(Document(content="Every employee has thirty days of annual leave.", source="leave.md"))
        yield one


@pytest.fixture
def whole(written: Served, model: Writer) -> list[object]:
    """The answer as it comes over a connection that holds."""
    model.begin_anew()
    with written.client() as client:
        found = list(client.ask_events(ASKED))
    model.begin_anew()
    return found


def told(events: list[object]) -> list[str]:
    """What came, without the time that it took."""
    return [one.text if isinstance(one, Answer) else one if isinstance(one, str) else repr(type(one)) for one in events]


def test_with_a_language_model_the_outcome_comes_before_the_first_sentence(written, model, whole):
    found, decided, first, *_ = whole
    assert isinstance(found, SearchReply) and decided == Decided("answer") and isinstance(first, str)
    model.begin_anew(writes=[REFUSAL])
    with written.client() as client:
        found, decided, sentence, *passages, answer = client.ask_events(ASKED)
    assert isinstance(found, SearchReply) and decided == Decided("passages")
    assert answer.outcome == "passages" and sentence == answer.text
    assert tuple(passages) == answer.passages and all(isinstance(one, ShownPassage) for one in passages)


@pytest.mark.parametrize(
    ("question", "outcome"),
    [
        ("How many days of annual leave are there?", "answer"),
        ("Who signs the certificate?", "passages"),
        ("Which parking lot is reserved for visitors from Portugal on Sundays?", "none"),
    ],
)
def test_without_one_the_outcome_comes_first_and_nothing_is_lost_where_the_connection_breaks(served, question, outcome):
    with served.client() as client:
        whole = list(client.ask_events(question))
    decided, found, sentence, *rest, answer = whole
    assert decided == Decided(outcome) and isinstance(found, SearchReply)
    assert (answer.outcome, answer.text, answer.refused) == (outcome, sentence, outcome != "answer")
    assert tuple(rest) == answer.citations + answer.passages
    cut = Cutter(served.url, [400, 500, 1000])
    with answering(cut) as url, Client(url) as client:
        assert told(list(client.ask_events(question))) == told(whole)
        in_talk = list(client.chat_events(question, session=f"talk about {outcome}"))
    assert told(in_talk) == told(whole)


@pytest.mark.parametrize("cuts", [[900], [1500, 2000, 900], [3000, 0, 0, 5000], [7000, 7001]], ids=str)
def test_an_answer_is_gone_on_with_where_its_connection_broke(written, model, whole, cuts):
    cut = Cutter(written.url, list(cuts))
    with answering(cut) as url, Client(url) as client:
        assert told(list(client.ask_events(ASKED))) == told(whole)
    assert model.asked == 1
    assert len(cut.heads) == len(cuts) + 1
    assert all(head.startswith("GET /v1/streams/") for head in cut.heads[1:])


def test_a_model_that_is_still_writing_writes_on(written, model, whole):
    model.begin_anew(waits=True)
    cut = Cutter(written.url, [4000])
    with answering(cut) as url, Client(url) as client:
        events = client.ask_events(ASKED)
        first = next(events)
        assert model.begun.wait(60)
        model.go_on.set()
        assert told([first, *events]) == told(whole)
    assert model.asked == 1


def test_it_is_so_for_those_who_await_too(written, model, whole):
    cut = Cutter(written.url, [2500, 2500])

    async def main(url: str) -> list[object]:
        async with AsyncClient(url) as client:
            return [event async for event in client.ask_events(ASKED)]

    with answering(cut) as url:
        assert told(asyncio.run(main(url))) == told(whole)
    assert model.asked == 1


def test_a_conversation_is_remembered_once(written, model):
    model.begin_anew()
    cut = Cutter(written.url, [2000, 1000])
    with answering(cut) as url, Client(url) as client:
        answer = client.chat(ASKED, session="cut-talk")
    said = written.rag.memory.turns("cut-talk")
    assert [one.content for one in said] == [ASKED, answer.text]
    assert model.asked == 1


def test_who_does_not_want_the_rest_ends_the_model(written, model):
    model.begin_anew(waits=True)
    with written.client() as client:
        events = client.ask_events(ASKED)
        next(events)
        assert model.begun.wait(60)
        events.close()
        assert model.ended.wait(60)


def test_nobody_who_comes_back_ends_the_model(written, model):
    model.begin_anew(waits=True)
    headers = {"Accept": "text/event-stream", "Recollect-Keep-Stream": "1"}
    with httpx2.stream("POST", f"{written.url}/v1/ask", json={"question": ASKED}, headers=headers) as response:
        # Kept: an iterator that is let go of closes the response.
        pieces = response.iter_bytes()
        next(pieces)
        name = response.headers["recollect-stream"]
        assert model.begun.wait(60)
    assert model.ended.wait(60)
    gone = httpx2.get(f"{written.url}/v1/streams/{name}", headers={"Last-Event-ID": "1"})
    assert gone.status_code == 404


def test_without_the_header_who_goes_away_ends_the_model_at_once(written, model):
    model.begin_anew(waits=True)
    headers = {"Accept": "text/event-stream"}
    with httpx2.stream("POST", f"{written.url}/v1/ask", json={"question": ASKED}, headers=headers) as response:
        assert "recollect-stream" not in response.headers
        pieces = response.iter_bytes()
        next(pieces)
        assert model.begun.wait(60)
    assert model.ended.wait(60)


def test_a_server_that_began_anew_has_nothing_of_it(written, model):
    model.begin_anew()
    with listening(create_app(written.rag)) as other:
        cut = Cutter(written.url, [6000], then=other)
        with answering(cut) as url, Client(url) as client:
            events, came = client.ask_events(ASKED), []
            with pytest.raises(StreamBrokenError, match="does not keep it") as told_of:
                came.extend(events)
                came.append(None)
            # All that was given is in the error, though nothing was returned.
            assert told_of.value.received
            assert isinstance(told_of.value.__cause__, NotFoundError)


def test_a_stream_is_its_callers_alone(written, model):
    model.begin_anew(waits=True)
    one, other = (written.rag.keys.create(name, scopes=["read"]).secret for name in ("one", "other"))
    ada = written.rag.keys.create("ada's", scopes=["read"], principal=Principal(user_id="ada")).secret
    headers = {"Accept": "text/event-stream", "Recollect-Keep-Stream": "30", "Authorization": f"Bearer {one}"}
    with httpx2.stream("POST", f"{written.url}/v1/ask", json={"question": ASKED}, headers=headers) as response:
        path = f"{written.url}/v1/streams/{response.headers['recollect-stream']}"
        assert model.begun.wait(60)
        for key in (other, ada):
            for method in ("GET", "DELETE"):
                refused = httpx2.request(method, path, headers={"Authorization": f"Bearer {key}"})
                assert (refused.status_code, refused.json()["type"]) == (404, "urn:recollect:problem:not-found")
        ahead = httpx2.get(path, headers={"Authorization": f"Bearer {one}", "Last-Event-ID": "9999"})
        assert ahead.status_code == 400
        assert httpx2.delete(path, headers={"Authorization": f"Bearer {one}"}).status_code == 204
        assert model.ended.wait(60)
    assert httpx2.delete(path, headers={"Authorization": f"Bearer {one}"}).status_code == 404


@pytest.mark.parametrize("asked", ["0", "301", "-1", "x", "1.5"])
def test_a_time_that_is_none_is_refused(written, asked):
    headers = {"Accept": "text/event-stream", "Recollect-Keep-Stream": asked}
    assert httpx2.post(f"{written.url}/v1/ask", json={"question": ASKED}, headers=headers).status_code == 422


def test_an_error_in_the_middle_is_raised(written, model):
    model.begin_anew(fails=True)
    with written.client() as client, pytest.raises(ProviderError):
        list(client.ask_events(ASKED))
