"""The sessions of a view: each has documents of its own, which nobody else sees and which vanish with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.model.arguments import checked
from recollect.model.document_session import DocumentSession, SessionConfig
from recollect.pipeline.documents import Documents
from recollect.pipeline.preparing import collection_settings
from recollect.pipeline.standpoint import Group, checked_id, living

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model.document_record import DocumentRecord
    from recollect.store.document_sessions import DocumentSessionRepository


@checked
class Sessions(Group):
    """Sessions with documents of their own; see `recollect.View`.

    What is put into a session is found in that session alone (``view(session=...)``), and is gone with it: its text,
    its vectors, its words. A session's time runs from its creation; an expired one can be neither searched nor written,
    and is removed by whoever comes across it or by the clean-up. Of a principal there are those that it has begun;
    without one, everybody's: a server that asks so keeps the ids of its users' sessions apart itself.
    """

    def create(self, session_id: str, config: SessionConfig | None = None) -> DocumentSession:
        """Begin a session.

        Args:
            session_id: Your id of it, unique among the principal's: up to 200 characters of any kind but NUL, without
                white space around them.
            config: How long it lives and what it holds; None: as configured (``[rag.session]``).

        Raises:
            ConflictError: There is one of that id, which may have expired without being removed.
            UsageError: The id or the configuration is not valid.
        """
        name, scope = checked_id(session_id), self._at.present()
        self._repository.end_in_passing(scope)
        self._repository.end_in_passing(scope, name)
        settings = collection_settings(self._at.assembly)
        return self._repository.create(scope, name, config or self.default_config(), **settings).session

    def default_config(self) -> SessionConfig:
        """The configured life of a session (``[rag.session]``)."""
        given = self._at.config.session
        return SessionConfig(
            ttl=given.ttl,
            max_documents=given.max_documents,
            auto_cleanup=given.auto_cleanup,
            when_full=given.when_full,
        )

    def get(self, session_id: str) -> DocumentSession:
        """A session, expired or not.

        Raises:
            NotFoundError: There is none of that id.
        """
        return self._repository.get(self._at.present(), checked_id(session_id)).session

    def documents(self, session_id: str) -> list[DocumentRecord]:
        """The first hundred documents of a session; ``view(session=...).documents.list`` lists all of them.

        Raises:
            NotFoundError: There is none of that id.
            SessionExpiredError: Its time is over.
        """
        return [*Documents(replace(self._at, session=session_id, collections=None)).list()]

    def renew(self, session_id: str) -> DocumentSession:
        """Begin the time of a session anew.

        Raises:
            NotFoundError: There is none of that id.
            SessionExpiredError: Its time is over.
        """
        scope = self._at.present()
        return self._repository.renew(scope, living(self._at, scope, session_id).session.session_id)

    def end(self, session_id: str) -> int:
        """Remove a session with all its documents, physically.

        Returns:
            How many documents it held.

        Raises:
            NotFoundError: There is none of that id.
        """
        return self._repository.end(self._at.present(), checked_id(session_id))

    def end_expired(self) -> int:
        """Remove every session whose time is over, with its documents; returns how many."""
        return self._repository.end_expired(self._at.present())

    # Last: its name is a type's in what stands before it.
    def list(
        self, *, limit: int = 100, offset: int = 0, after: tuple[datetime | None, str, str | None] | None = None
    ) -> list[DocumentSession]:
        """Sessions, those first that expire first; what has expired and asks for it is removed before.

        Args:
            limit: How many at most.
            offset: How many to pass over.
            after: When the last one of the page before expires, its id and its owner.
        """
        scope = self._at.present()
        self._repository.end_in_passing(scope)
        return self._repository.list_all(scope, limit=limit, offset=offset, after=after)

    @property
    def _repository(self) -> DocumentSessionRepository:
        return self._at.store.document_sessions
