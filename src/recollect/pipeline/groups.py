"""What there is to do beside the work of every day: a view's groups of methods, each in a file of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.pipeline.audit import Audit
    from recollect.pipeline.collections import Collections
    from recollect.pipeline.contents import Contents
    from recollect.pipeline.documents import Documents
    from recollect.pipeline.facts import Facts
    from recollect.pipeline.feedback import Feedback
    from recollect.pipeline.files import Files
    from recollect.pipeline.grants import Grants
    from recollect.pipeline.jobs import Jobs
    from recollect.pipeline.keys import Keys
    from recollect.pipeline.logins import Logins
    from recollect.pipeline.maintenance import Maintenance
    from recollect.pipeline.memory import ConversationMemory
    from recollect.pipeline.sessions import Sessions
    from recollect.pipeline.sources import Sources
    from recollect.pipeline.spaces import Spaces
    from recollect.pipeline.standpoint import Standpoint
    from recollect.pipeline.tenants import Tenants


class Groups:
    """The groups of a view: each is made when it is asked for, and imports what it needs then."""

    def __init__(self, at: Standpoint) -> None:
        self._at = at

    @property
    def documents(self) -> Documents:
        """Documents, their versions, and what becomes of them."""
        from recollect.pipeline.documents import Documents

        return Documents(self._at)

    @property
    def contents(self) -> Contents:
        """What the documents say: listed, outlined, read in parts, and searched exactly."""
        from recollect.pipeline.contents import Contents

        return Contents(self._at)

    @property
    def files(self) -> Files:
        """Files that were sent to be kept, and what collections make of them."""
        from recollect.pipeline.files import Files

        return Files(self._at)

    @property
    def collections(self) -> Collections:
        """Collections: made, listed, shared, and written to and read from files."""
        from recollect.pipeline.collections import Collections

        return Collections(self._at)

    @property
    def sources(self) -> Sources:
        """Where documents come from, and how what changes there changes here."""
        from recollect.pipeline.sources import Sources

        return Sources(self._at)

    @property
    def spaces(self) -> Spaces:
        """The embedding model of the collection, changed while it is searched."""
        from recollect.pipeline.spaces import Spaces

        return Spaces(self._at)

    @property
    def sessions(self) -> Sessions:
        """Sessions with documents of their own."""
        from recollect.pipeline.sessions import Sessions

        return Sessions(self._at)

    @property
    def memory(self) -> ConversationMemory:
        """Conversations, and contexts made of them."""
        from recollect.pipeline.memory import ConversationMemory

        return ConversationMemory(self._at)

    @property
    def facts(self) -> Facts:
        """Facts drawn from conversations."""
        from recollect.pipeline.facts import Facts

        return Facts(self._at)

    @property
    def feedback(self) -> Feedback:
        """Whether what contexts showed has helped."""
        from recollect.pipeline.feedback import Feedback

        return Feedback(self._at)

    @property
    def grants(self) -> Grants:
        """Who may read what."""
        from recollect.pipeline.grants import Grants

        return Grants(self._at)

    @property
    def keys(self) -> Keys:
        """What programs present to a server."""
        from recollect.pipeline.keys import Keys

        return Keys(self._at)

    @property
    def logins(self) -> Logins:
        """Who is logged in to a server with a browser."""
        from recollect.pipeline.logins import Logins

        return Logins(self._at)

    @property
    def tenants(self) -> Tenants:
        """The tenants of the store."""
        from recollect.pipeline.tenants import Tenants

        return Tenants(self._at)

    @property
    def audit(self) -> Audit:
        """What was done, by whom and when."""
        from recollect.pipeline.audit import Audit

        return Audit(self._at)

    @property
    def jobs(self) -> Jobs:
        """Work in the background: looked at, waited for, stopped and tried again."""
        from recollect.pipeline.jobs import Jobs

        return Jobs(self._at)

    @property
    def maintenance(self) -> Maintenance:
        """The store as a whole: what it holds, whether it is sound, and what has passed its time."""
        from recollect.pipeline.maintenance import Maintenance

        return Maintenance(self._at)
