"""Searches, contexts and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from recollect.client.calls.base import Call, Calls, EventStream, reading
from recollect.client.place import given
from recollect.client.wire import Json, passage_of, search_body
from recollect.errors import UsageError
from recollect.model import (
    Answer,
    Citation,
    Decided,
    RetrievalOptions,
    SearchReply,
    ShownPassage,
    UnsupportedSentence,
)
from recollect.model.search_options import refined
from recollect.model.why_not import WhyNot

if TYPE_CHECKING:
    from typing import Unpack

    from recollect.client.calls.base import Event
    from recollect.context import AssembledContext
    from recollect.model.search_options import SearchKeywords

#: What a question yields, as `recollect.View.ask_events` does.
AskEvent: TypeAlias = "Decided | SearchReply | str | Citation | UnsupportedSentence | ShownPassage | Answer"

_OF_A_STAGE = ("stage", "passed", "detail")


class RetrievalCalls(Calls):
    """Searches, contexts and answers; see `recollect.View`."""

    def search(
        self, query: str, options: RetrievalOptions | None = None, **keywords: Unpack[SearchKeywords]
    ) -> Call[SearchReply]:
        """Find the passages that answer a query; see `recollect.View.search`."""
        return self._asked(
            "/v1/search", {"query": query}, refined(RetrievalOptions, options, keywords), reading(SearchReply)
        )

    def context(
        self,
        query: str,
        options: RetrievalOptions | None = None,
        *,
        token_budget: int | None = None,
        max_context_length: int | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> Call[AssembledContext]:
        """What a language model should read to answer a query; see `recollect.View.context`.

        The text is whole; passages have their places, and not their text once more.
        """
        said = given(query=query, token_budget=token_budget, max_context_length=max_context_length)
        return self._asked("/v1/context", said, refined(RetrievalOptions, options, keywords), _context)

    def why_not(
        self,
        query: str,
        document: int | str,
        options: RetrievalOptions | None = None,
        **keywords: Unpack[SearchKeywords],
    ) -> Call[WhyNot]:
        """Where a document stands at every stage of a search; see `recollect.View.why_not`."""
        asked = {"query": query, "document": document}
        return self._asked("/v1/why-not", asked, refined(RetrievalOptions, options, keywords), _why_not)

    def ask_events(
        self, question: str, options: RetrievalOptions | None = None, **keywords: Unpack[SearchKeywords]
    ) -> EventStream[AskEvent]:
        """As it comes: `Decided`, the `SearchReply`, each sentence with what belongs to it, and the `Answer`.

        See `recollect.View.ask_events`. A connection that breaks is made anew, and nothing is lost or comes twice.
        """
        given = refined(RetrievalOptions, options, keywords)
        return _answered(self._asked("/v1/ask", {"question": question}, given, reading(Answer)))

    def chat_events(
        self,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        session: str,
        **keywords: Unpack[SearchKeywords],
    ) -> EventStream[AskEvent]:
        """A question of a conversation, which is remembered with its answer; otherwise as `ask_events`."""
        given = refined(RetrievalOptions, options, keywords)
        body = self._at.viewpoint() | search_body(given) | {"question": question, "session": session}
        if self._at.session is not None or body.pop("with", None):
            raise UsageError("A conversation is about collections: chat with a view that has no session of its own.")
        if self._at.user is not None:
            body["user"] = self._at.user
        # Kept idempotent by the stream itself: it is begun once, and gone on with.
        return _answered(Call(method="POST", path="/v1/chat", body=body, read=reading(Answer)))

    def _asked(self, path: str, said: Any, options: RetrievalOptions, read_reply: Any) -> Call[Any]:  # noqa: ANN401 - of each its own
        body = self._at.viewpoint() | search_body(options) | dict(said)
        return Call(method="POST", path=path, body=body, read=read_reply, searches=True)


def _answered(call: Call[Answer]) -> EventStream[AskEvent]:
    return EventStream(call=call, read=_ask_event, ends=frozenset({"done"}), resumes="kept")


def _ask_event(event: Event) -> Sequence[AskEvent]:
    match event.name:
        case "outcome":
            return [reading(Decided)(event.json())]
        case "sources":
            return [reading(SearchReply)(event.json())]
        case "token":
            return [str(event.json()["text"])]
        case "citation":
            return [reading(Citation)(event.json())]
        case "unsupported":
            return [reading(UnsupportedSentence)(event.json())]
        case "passage":
            return [reading(ShownPassage)(event.json())]
        case "done":
            return [reading(Answer)(event.json())]
        case _:  # of a later version
            return []


def _context(told: Json) -> AssembledContext:
    from recollect.context import AssembledContext, ContextBlock

    blocks = tuple(
        # Its text stands in the whole one, and not once more.
        ContextBlock(number=one["number"], passage=passage_of(one), text=None, shortened=one["shortened"])  # type: ignore[arg-type]
        for one in told["passages"]
    )
    return AssembledContext(
        text=told["context"],
        blocks=blocks,
        token_count=told["token_count"],
        omitted=told["omitted"],
        warnings=tuple(told.get("warnings", ())),
        cached=told.get("cached", False),
    )


def _why_not(told: Json) -> WhyNot:
    def numbers(stage: Json) -> Json:
        return {name: value for name, value in stage.items() if name not in _OF_A_STAGE}

    stages = [{**one, "numbers": numbers(one)} for one in told["stages"]]
    return reading(WhyNot)({**told, "stages": stages})
