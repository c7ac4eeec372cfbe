"""One version of a document as a visitor sees it: which it is, what there is beside it, and the view that reads it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError
from recollect.model.original import Original
from recollect.pipeline import View

if TYPE_CHECKING:
    from recollect.model.history import DocumentHistory, VersionRecord
    from recollect.ui.visit import Visit

PDF = "application/pdf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """A version of a document.

    Attributes:
        document_id: Of the document.
        view: Reads the text of this version, under the visitor's rights.
        session: The conversation that the document belongs to; None: a collection's.
        history: Every version that the visitor may read; None: a conversation's documents have none.
        version: The one that is shown; None: as of ``history``.
    """

    document_id: int
    view: View
    session: str | None = None
    history: DocumentHistory | None = None
    version: VersionRecord | None = None

    @property
    def newest(self) -> VersionRecord | None:
        """The newest version."""
        return None if self.history is None else self.history.versions[-1]

    @property
    def title(self) -> str:
        """What the version is called; a conversation's document is looked up for it."""
        return self.view.contents.outline(self.document_id).title if self.version is None else self.version.title

    @property
    def is_newest(self) -> bool:
        """Whether no version came behind this one."""
        return self.version is self.newest

    @property
    def is_gone(self) -> bool:
        """Whether searches of the present no longer find the document, in whatever version."""
        return self.newest is not None and not _is_current(self.newest)

    @property
    def number(self) -> int | None:
        """Of the version, where it is not the one that everybody finds; addresses leave it out otherwise."""
        return None if self.version is None or self.is_newest else self.version.version

    def original(self) -> Original | None:
        """The file that this version was read from; None: it was not kept."""
        try:
            return self.view.contents.original(self.document_id)
        except NotFoundError:
            return None


def edition_of(
    visit: Visit,
    document_id: int,
    *,
    version: int | None = None,
    session: str | None = None,
    known_at: datetime | None = None,
) -> Edition:
    """A version of a document.

    Args:
        visit: Whose view.
        document_id: Of the document.
        version: Its number; None: the newest, though the document may be deleted.
        session: The conversation that it belongs to; None: a collection's.
        known_at: Of the versions that there were at this moment, the newest; None: of all.

    Raises:
        NotFoundError: The visitor may not read it, or there is none.
    """
    if session is not None:
        return Edition(
            document_id=document_id, view=visit.view.view(collections=None, session=session), session=session
        )
    history = visit.view.documents.history(document_id)
    known = [one for one in history.versions if known_at is None or one.known_from <= known_at]
    chosen = next((one for one in reversed(known) if version in {None, one.version}), None)
    if chosen is None:
        wanted = f"version {version}" if version is not None else "version of that moment"
        raise NotFoundError(f"There is no {wanted} of the document {document_id}.")
    view = visit.view if _is_current(chosen) else visit.view.view(as_of=chosen.known_from)
    return Edition(document_id=document_id, view=view, history=history, version=chosen)


def _is_current(version: VersionRecord) -> bool:
    now = datetime.now(UTC)
    return version.known_to is None and (version.expires_at is None or version.expires_at > now)
