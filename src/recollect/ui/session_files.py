"""The files of a conversation: documents of its own, which are found in it alone and go with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.errors import ConflictError, NotFoundError, UsageError

if TYPE_CHECKING:
    from recollect.model.document_record import DocumentRecord
    from recollect.model.job import Job
    from recollect.pipeline import View

_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFiles:
    """What a conversation holds.

    Attributes:
        exist: Whether it has a place for files.
        documents: Those that are stored.
        jobs: Those that are being read, or could not be.
    """

    exist: bool = False
    documents: Sequence[DocumentRecord] = ()
    jobs: Sequence[Job] = ()

    @property
    def pending(self) -> bool:
        """Whether one of them is still being read."""
        return any(not job.ended for job in self.jobs)


def have_files(view: View, session: str) -> bool:
    """Whether a conversation has a place for files that can be searched."""
    try:
        return not view.sessions.get(session).expired
    except (NotFoundError, UsageError):  # what is an id of a conversation may be none of these
        return False


def files_of(view: View, session: str, jobs: Sequence[int] = ()) -> SessionFiles:
    """The files of a conversation.

    Args:
        view: Of whoever looks.
        session: The conversation.
        jobs: Those that were asked for by the page; of them those are told that have not succeeded.
    """
    if not have_files(view, session):
        return SessionFiles()
    known = [job for number in jobs if (job := _job(view, number)) is not None and job.status != "succeeded"]
    documents = view.view(session=session, collections=None).documents.list(limit=_MOST_SHOWN)
    return SessionFiles(exist=True, documents=documents, jobs=known)


def place_for_files(view: View, session: str) -> View:
    """The view that writes into a conversation's own documents, whose place is made where it is missing.

    They stay as long as the conversation: it is deleted with them.
    """
    if not have_files(view, session):
        try:
            view.sessions.create(session, replace(view.sessions.default_config(), ttl=None))
        except ConflictError:
            # Somebody else has made it meanwhile, or its time is over and nobody has removed it yet.
            if not have_files(view, session):
                view.sessions.end(session)
                view.sessions.create(session, replace(view.sessions.default_config(), ttl=None))
    return view.view(session=session, collections=None)


def _job(view: View, number: int) -> Job | None:
    try:
        return view.jobs.get(number)
    except NotFoundError:
        return None
