"""Documents of a session: how long they stay, how many, and what is known of a session."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal, get_args

from recollect.errors import UsageError
from recollect.familiar_names import suggesting
from recollect.model.record import Public, Record, public_as
from recollect.model.time import Duration, read_lifetime

#: What happens to a document for which there is no room: it is refused, or the oldest one goes.
WhenFull = Literal["error", "oldest"]

#: Documents of a session where nothing else is said.
MAX_DOCUMENTS = 100

#: Seconds of a session's life where nothing else is said.
TTL_SECONDS = 3_600.0

#: More is no session, but a collection.
MOST_DOCUMENTS = 1_000_000


@suggesting
@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """How long a session lives, and what it holds.

    Attributes:
        ttl: How long after its creation it can be searched and written: seconds, ``"2h"``, a ``timedelta``; None: until
            it is ended.
        max_documents: Documents at most, 1 to 1,000,000.
        auto_cleanup: Whether it is removed by whoever comes across it once it has expired; otherwise `end_session` and
            the clean-up remove it. It can be neither searched nor written in either case.
        when_full: What a document does for which there is no room: ``error`` refuses it, ``oldest`` removes the one
            whose text is in the session the longest.

    Raises:
        UsageError: A value is not one of these.
    """

    ttl: Duration | None = TTL_SECONDS
    max_documents: int = MAX_DOCUMENTS
    auto_cleanup: bool = True
    when_full: WhenFull = "error"

    def __post_init__(self) -> None:
        read_lifetime(self.ttl)
        number: object = self.max_documents
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MOST_DOCUMENTS:
            raise UsageError(f"max_documents must be a whole number from 1 to {MOST_DOCUMENTS:,}, not {number!r}.")
        if self.when_full not in get_args(WhenFull):
            raise UsageError(f"when_full must be 'error' or 'oldest', not {self.when_full!r}.")

    @property
    def lifetime(self) -> timedelta | None:
        """``ttl`` as a length of time; None: without end."""
        return read_lifetime(self.ttl)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSession(Record):
    """A session and what it holds at the moment.

    Attributes:
        session_id: The caller's id of it.
        owner: The user who created it; None: nobody in particular.
        ttl: How long it lives from its creation, or from when it was renewed; None: until it is ended.
        created_at: When it began.
        expires_at: When it can no longer be searched and written; None: never.
        expired: Whether that moment has passed.
        max_documents: Documents at most.
        when_full: What a document does for which there is no room.
        auto_cleanup: Whether it is removed by itself once it has expired.
        document_count: Documents that it holds.
        chunk_count: Chunks of these.
        language: ISO 639-1.
        embedding_model: What its documents are embedded with.
    """

    session_id: Annotated[str, public_as("session")]
    owner: Public[str | None]
    ttl: Annotated[timedelta | None, public_as("ttl_seconds")]
    created_at: Public[datetime]
    expires_at: Public[datetime | None]
    expired: Public[bool]
    max_documents: Public[int]
    when_full: Public[WhenFull]
    auto_cleanup: Public[bool]
    document_count: Annotated[int, public_as("documents")]
    chunk_count: Annotated[int, public_as("chunks")]
    language: Public[str]
    embedding_model: Public[str]
