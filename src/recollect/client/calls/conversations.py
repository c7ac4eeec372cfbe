"""Conversations, sessions with documents, facts and feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from recollect.client.calls.base import Call, Calls, Pages, Steps, listed, reading, segment
from recollect.client.calls.documents import session_content, session_documents
from recollect.client.place import EVERYWHERE, given
from recollect.client.wire import Json, duration_text, passage_of, recall_body
from recollect.errors import NotFoundError, UsageError
from recollect.model.document_record import DocumentRecord
from recollect.model.document_session import DocumentSession, SessionConfig
from recollect.model.facts import RecalledFact
from recollect.model.memory import Episode, RecallOptions, Recollection, Remembered, SessionRecord, Turn
from recollect.model.page import cursor_at
from recollect.model.search_options import refined

if TYPE_CHECKING:
    from typing import Unpack

    from recollect.context import HybridContext, HybridPassage, RetrievalWeights
    from recollect.context.hybrid import ContextStrategy, WeightAdaptation
    from recollect.model.search_options import RecallKeywords

T = TypeVar("T")


class MemoryCalls(Calls):
    """Conversations; see `recollect.View.memory`."""

    def get(self, session: str) -> Steps[SessionRecord]:
        """A conversation."""
        told = yield _content(session, self._query())
        if "session" not in told:
            raise NotFoundError(f"There is no conversation {session!r}.")
        return reading(SessionRecord)(told["session"])

    def turns(self, session: str, *, after: int = 0, limit: int = 1_000) -> Steps[list[Episode]]:
        """What was said, in its order, behind the turn at ``after``."""
        pages = self.each_turn(session)
        cursor = cursor_at(after) if after else None
        return (yield from Pages(call=pages.call, items=pages.items, cursor=cursor).first(limit))

    def each_turn(self, session: str) -> Pages[Episode]:
        """All of it, page by page as it is read."""
        call: Call[Json] = Call(method="GET", path=_path(session, "/turns"), query=self._query(), read=dict)
        return Pages(call=call, items=listed("turns", reading(Episode)))

    def rename(self, session: str, title: str | None) -> Call[SessionRecord]:
        """Call a conversation something; None: it is called by its first words again."""
        return Call(
            method="PATCH",
            path=_path(session),
            body={"title": title, **self._query()},
            read=reading(SessionRecord),
        )

    def delete(self, session: str) -> Call[int]:
        """Remove a conversation for good, with the session with documents of that id; returns how many turns it had."""
        return Call(method="DELETE", path=_path(session), query=self._query(), read=lambda told: int(told["turns"]))

    def forget(self, session: str, positions: Sequence[int]) -> Call[int]:
        """Remove turns for good; returns how many there were."""
        body = {"turns": list(positions), **self._query()}
        return Call(method="POST", path=_path(session, "/forget"), body=body, read=lambda told: int(told["removed"]))

    def assemble(
        self,
        query: str,
        strategy: ContextStrategy = "hybrid",
        token_budget: int = 2_000,
        *,
        weights: RetrievalWeights | None = None,
        min_relevance: float | None = None,
    ) -> Call[HybridContext]:
        """What a language model should read of documents, conversations and facts; see `recollect.View.memory`.

        What is asked is of the view: its collection, its moment, its user's conversations and its session's.

        Args:
            query: In plain words.
            strategy: What it is made of; those of `recollect.context`.
            token_budget: Tokens at most, headers included.
            weights: What documents and memory weigh; None: as the strategy has it.
            min_relevance: Of documents' passages; None: as the server is configured.
        """
        place = {"everywhere": True} if self._at.collections == (EVERYWHERE,) else given(collection=self._at.named)
        body = {
            **self._at.conversation(),
            **place,
            **given(min_relevance=min_relevance),
            **({} if weights is None else {"weights": {"rag": weights.rag, "memory": weights.memory}}),
            "query": query,
            "strategy": strategy,
            "token_budget": token_budget,
            "explain": True,
        }
        return Call(method="POST", path="/v1/context/assembly", body=body, read=_assembly, searches=True)

    def list(self, *, text: str | None = None, limit: int = 100, offset: int = 0) -> Steps[list[SessionRecord]]:
        """Conversations, the one with the latest turn first; with ``text`` those whose title or turns hold it."""
        pages = _sessions({**self._query(), **given(text=text)}, "sessions", SessionRecord, offset)
        return (yield from pages.first(limit))

    def _query(self) -> Mapping[str, Any]:
        self._at.require_present()
        return given(user=self._at.user)


class SessionCalls(Calls):
    """Sessions with documents of their own; see `recollect.View.sessions`."""

    def create(self, session_id: str, config: SessionConfig | None = None) -> Call[DocumentSession]:
        """Begin one; without ``config`` as the server is configured."""
        self._at.require_present()
        body: dict[str, Any] = {"session": session_id}
        if config is not None:
            body |= {
                "ttl": "never" if config.ttl is None else duration_text(config.ttl),
                "max_documents": config.max_documents,
                "when_full": config.when_full,
                "auto_cleanup": config.auto_cleanup,
            }
        return Call(method="POST", path="/v1/sessions", body=body, read=reading(DocumentSession))

    def get(self, session_id: str) -> Steps[DocumentSession]:
        """A session, expired or not."""
        told = yield from session_content(self._at, session_id)
        return reading(DocumentSession)(told["document_session"])

    def documents(self, session_id: str) -> Steps[list[DocumentRecord]]:
        """What it holds: the first hundred."""
        return (yield from session_documents(self._at, session_id))

    def renew(self, session_id: str) -> Call[DocumentSession]:
        """Begin its time anew, before it is over."""
        self._at.require_present()
        return Call(method="POST", path=_path(session_id, "/renew"), read=reading(DocumentSession))

    def end(self, session_id: str) -> Call[int]:
        """Remove its documents for good; returns how many there were. A conversation of that id stays."""
        self._at.require_present()
        return Call(method="POST", path=_path(session_id, "/end"), read=lambda told: int(told["documents"]))

    def list(self, *, limit: int = 100, offset: int = 0) -> Steps[list[DocumentSession]]:
        """The sessions."""
        self._at.require_present()
        return (
            yield from _sessions(given(user=self._at.user), "document_sessions", DocumentSession, offset).first(limit)
        )


class RecallCalls(Calls):
    """What was said, remembered and found again."""

    def remember(
        self,
        turns: Turn | str | Sequence[Turn | str],
        *,
        role: str = "user",
        at: datetime | None = None,
    ) -> Call[Remembered]:
        """Append turns to the view's conversation; see `recollect.View.remember`."""
        self._at.require_present()
        if self._at.session is None:
            raise UsageError("Say which conversation this is of: view(session=...).")
        several = [turns] if isinstance(turns, Turn | str) else turns
        said = [Turn(content=one, role=role, at=at) if isinstance(one, str) else one for one in several]
        body = given(turns=[_said(one) for one in said], user=self._at.user)
        return Call(
            method="POST",
            path=_path(self._at.session, "/turns"),
            body=body,
            read=reading(Remembered),
        )

    def recall(
        self, query: str, options: RecallOptions | None = None, **keywords: Unpack[RecallKeywords]
    ) -> Call[list[Recollection]]:
        """The turns that answer a query, best first; see `recollect.View.recall`."""
        body = (
            self._at.conversation()
            | recall_body(refined(RecallOptions, options, keywords), turns=True)
            | {"query": query}
        )
        return Call(
            method="POST",
            path="/v1/recall",
            body=body,
            read=lambda told: reading(list[Recollection])(told["results"]),
            searches=True,
        )


class FactCalls(Calls):
    """Facts drawn from conversations; see `recollect.View.facts`."""

    def search(
        self, query: str, options: RecallOptions | None = None, **keywords: Unpack[RecallKeywords]
    ) -> Call[list[RecalledFact]]:
        """Those that answer a question, best first."""
        body = (
            self._at.conversation()
            | recall_body(refined(RecallOptions, options, keywords), turns=False)
            | {"query": query}
        )
        return Call(
            method="POST",
            path="/v1/facts/search",
            body=body,
            read=lambda told: reading(list[RecalledFact])(told["results"]),
            searches=True,
        )


class FeedbackCalls(Calls):
    """Whether what contexts showed has helped; see `recollect.View.feedback`."""

    def give(
        self, passages: HybridPassage | str | Sequence[HybridPassage | str], *, helpful: bool
    ) -> Call[WeightAdaptation]:
        """Say whether passages of a context helped, by what the context named them."""
        several = [passages] if isinstance(passages, str) or not isinstance(passages, Sequence) else list(passages)
        sources = [one if isinstance(one, str) else one.source for one in several]
        body = {"sources": sources, "helpful": helpful, **self._whose()}
        return Call(method="POST", path="/v1/feedback", body=body, read=_adaptation)

    def weights(self) -> Call[WeightAdaptation]:
        """What feedback makes of the configured weights."""
        return Call(method="GET", path="/v1/feedback", query=self._whose(), read=_adaptation)

    def _whose(self) -> Mapping[str, Any]:
        self._at.require_present()
        return given(session=self._at.session, user=self._at.user)


def _path(session: str, more: str = "") -> str:
    return f"/v1/sessions/{segment(session)}{more}"


def _content(session: str, query: Mapping[str, Any]) -> Call[Json]:
    return Call(method="GET", path=_path(session), query=query, read=dict)


def _sessions(query: Mapping[str, Any], key: str, kind: type[T], offset: int) -> Pages[T]:
    call: Call[Json] = Call(method="GET", path="/v1/sessions", query=query, read=dict)
    return Pages(call=call, items=listed(key, reading(kind)), cursor=cursor_at(offset) if offset else None)


def _said(turn: Turn) -> Mapping[str, Any]:
    return given(
        content=turn.content,
        role=turn.role,
        at=None if turn.at is None else turn.at.isoformat(),
        id=turn.turn_id,
        metadata=dict(turn.metadata),
    )


def _adaptation(told: Json) -> WeightAdaptation:
    from recollect.context.hybrid import WeightAdaptation

    adaptation: WeightAdaptation = reading(WeightAdaptation)(told)
    return adaptation


def _assembly(told: Json) -> HybridContext:
    from recollect.context import AssembledContext, HybridContext, RetrievalWeights

    explain = told["explain"]
    return HybridContext(
        query=told["query"],
        passages=tuple(_hybrid_passage(one) for one in told["passages"]),
        context=AssembledContext(
            text=told["text"],
            token_count=told["token_count"],
            warnings=tuple(told.get("warnings", ())),
            cached=told.get("cached", False),
        ),
        weights=reading(RetrievalWeights)(explain["weights"]),
        adaptation=None if explain["base"] is None else _adaptation(explain),
        strategy=told["strategy"],
        used=told["used"],
    )


def _hybrid_passage(told: Json) -> HybridPassage:
    from recollect.context import HybridPassage

    return HybridPassage(kind=told["kind"], passage=passage_of(told), score=told["score"])


class ConfiguredSessionCalls(SessionCalls):
    """Sessions with documents, as the server is configured to make them."""

    def default_config(self) -> Steps[SessionConfig]:
        """The life of a session that the server is configured with."""
        told = (yield from self._settings())["session"]
        known = {one.name: told[one.name] for one in fields(SessionConfig) if one.name in told}  # type: ignore[literal-required]
        seconds = told["ttl_seconds"]
        return SessionConfig(ttl=None if seconds is None else timedelta(seconds=seconds), **known)
