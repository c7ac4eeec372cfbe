"""Bodies and pages of conversations and their facts, and of sessions with documents."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from recollect.model.bounds import MAX_QUERY_CHARACTERS, MAX_TOP_K
from recollect.model.document_session import DocumentSession
from recollect.model.memory import Episode, RecallOptions, SessionRecord, Turn
from recollect.model.time import read_time
from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.server.schemas.base import Body, Moment

_MAX_CHARACTERS = 100_000
_MAX_TURNS = 1_000


class SessionBody(Body):
    """A new session with documents of its own; what is left out is as configured."""

    session: Name = Field(description="Your id of it.")
    ttl: Annotated[Text, Field(max_length=100)] | None = Field(
        None, description="How long it lives: 30m, 2h, 1d; never: until it is ended."
    )
    max_documents: int | None = Field(None, ge=1, le=1_000_000)
    when_full: Literal["error", "oldest"] | None = Field(
        None, description="One document too many is refused, or the oldest one goes."
    )
    auto_cleanup: bool | None = Field(None, description="Remove it once it has expired and is come across.")

    def options(self) -> dict[str, Any]:
        """What is given, as the library takes it."""
        return self.model_dump(exclude={"session"}, exclude_none=True)


class TurnBody(Body):
    """Something that was said."""

    content: Text = Field(min_length=1, max_length=_MAX_CHARACTERS)
    role: Name = Field("user", description="Who said it: user, assistant, or a name.")
    at: Moment | None = Field(None, description="When: ISO 8601 (without a zone: UTC); left out: not known.")
    id: Name | None = Field(None, description="Your id of the turn: the same one is stored once.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Given back as it is.")

    def turn(self) -> Turn:
        """As the library takes it.

        Raises:
            UsageError: ``at`` is no time.
        """
        moment = None if self.at is None else read_time(self.at, name="at")
        return Turn(content=self.content, role=self.role, at=moment, turn_id=self.id, metadata=self.metadata)


class RememberBody(Body):
    """What was said, in its order."""

    turns: tuple[TurnBody, ...] = Field(min_length=1, max_length=_MAX_TURNS)
    user: Name | None = Field(None, description="Whose conversation, where it begins or several users have one.")


class ForgetBody(Body):
    """Turns that are removed for good."""

    turns: tuple[Annotated[int, Field(ge=1, le=2**31 - 1)], ...] = Field(
        min_length=1, max_length=_MAX_TURNS, description="Their positions."
    )
    user: Name | None = Field(None, description="Whose conversation, where several users have one of that id.")


class RenameBody(Body):
    """What a conversation is called."""

    title: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        description="null: by its first words again."
    )
    user: Name | None = Field(None, description="Whose conversation, where several users have one of that id.")


class MemorySearch(Body):
    """Where in memory is looked, and how."""

    query: Text = Field(
        validation_alias=AliasChoices("query", "question"),
        max_length=MAX_QUERY_CHARACTERS,
        description="In plain words.",
    )
    session: Name | None = Field(None, description="Only this conversation.")
    user: Name | None = Field(None, description="All of this user's conversations, beside the one named.")
    top_k: int = Field(10, ge=1, le=MAX_TOP_K)
    mode: Literal["hybrid", "dense", "lexical"] = Field("hybrid", description="Words and meaning, or one of them.")
    as_of: Moment | None = Field(None, description="What was known at this time (without a zone: UTC).")

    def of(self, view: View) -> View:
        """The view that is searched.

        Raises:
            UsageError: ``as_of`` is no time.
        """
        return view.view(session=self.session, user=self.user, as_of=self.as_of)

    def options(self) -> RecallOptions:
        """How it is searched, as the library takes it."""
        return RecallOptions(top_k=self.top_k, mode=self.mode)


class RecallBody(MemorySearch):
    """A search of what was said."""

    neighbours: int = Field(1, ge=0, le=50, description="Turns to show before and after each.")
    since: Moment | None = Field(None, description="Only what was said then or later.")
    until: Moment | None = Field(None, description="Only what was said before this time.")

    def options(self) -> RecallOptions:
        """How it is searched, as the library takes it.

        Raises:
            UsageError: A time is none.
        """
        return RecallOptions(
            top_k=self.top_k,
            mode=self.mode,
            before=self.neighbours,
            after=self.neighbours,
            since=None if self.since is None else read_time(self.since, name="since"),
            until=None if self.until is None else read_time(self.until, name="until"),
        )


class FactSearchBody(MemorySearch):
    """A search of facts."""


class SessionPage(TypedDict):
    """Conversations, the one with the latest turn first, and the sessions that have documents."""

    sessions: list[SessionRecord]
    document_sessions: list[DocumentSession]
    next_cursor: str | None


class TurnPage(TypedDict):
    """Turns of a conversation, in their order."""

    session: str
    turns: list[Episode]
    next_cursor: str | None
