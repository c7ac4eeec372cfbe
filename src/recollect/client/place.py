"""Where a client stands: what each request says of who asks, when and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect.errors import UsageError
from recollect.model.time import read_time

if TYPE_CHECKING:
    from recollect.model import Principal
    from recollect.replies.me import MeJson


#: Stands for every collection that may be read.
EVERYWHERE = "*"


@dataclass(slots=True)
class Known:
    """What is known of a server, once it was asked; the views of a client share it.

    Attributes:
        me: The latest reply of `recollect.Client.me`; None: it was not asked.
    """

    me: MeJson | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Who asks, when and where, beside what the credential says; as `recollect.View.view` takes it.

    Attributes:
        principal: For whom the owner of the store asks; None: as whom the credential is.
        collections: By name; ``("*",)``: all; None: the one that the server is configured with.
        as_of: The moment; None: the present.
        session: The id of a session with documents, of a conversation, or of both.
        user: Whose conversations.
        remotes: What the server searches at the same time, by name; None: what it is configured with.
        known: What is known of the server.
    """

    principal: Principal | None = None
    collections: tuple[str, ...] | None = None
    as_of: datetime | None = None
    session: str | None = None
    user: str | None = None
    remotes: tuple[str, ...] | None = None
    known: Known = field(default_factory=Known, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The collections by name; ``*`` stands for all."""
        me = self.known.me
        return self.collections or ("default" if me is None else me["settings"]["collection"],)

    @property
    def is_owner(self) -> bool:
        """Whether the owner of the store asks, as far as it is known: nobody in particular."""
        return self.principal is None and (self.known.me is None or self.known.me["principal"] is None)

    @property
    def searched_name(self) -> str:
        """What is searched, as replies call it."""
        return ", ".join(self.names if self.session is None else [f"session:{self.session}", *(self.collections or ())])

    @property
    def collection(self) -> str:
        """The one collection.

        Raises:
            UsageError: There are several, or all.
        """
        if len(self.names) > 1 or EVERYWHERE in self.names:
            raise UsageError(f"This is of one collection: name one, not {', '.join(self.names)}.")
        return self.names[0]

    @property
    def written(self) -> str | None:
        """The one collection as requests name it, ``*`` for all; None: the configured one.

        Raises:
            UsageError: There are several.
        """
        return EVERYWHERE if self.collections == (EVERYWHERE,) else self.named

    @property
    def within(self) -> dict[str, Any]:
        """The collections of documents as the query of a request names them."""
        return {} if self.collections is None else {"collection": list(self.collections)}

    @property
    def named(self) -> str | None:
        """The one collection that was named; None: none, or all.

        Raises:
            UsageError: There are several.
        """
        return None if self.collections in {None, (EVERYWHERE,)} else self.collection

    def viewpoint(self) -> dict[str, Any]:
        """What a search says of all this.

        Raises:
            UsageError: Several collections are named without a session, which a server does not search together.
        """
        said: dict[str, Any] = {}
        if self.session is not None:
            said["session"] = self.session
            if self.collections:
                said["with"] = list(self.collections)
        elif EVERYWHERE in self.names:
            said["everywhere"] = True
        elif self.collections is not None:
            said["collection"] = self.collection
        if self.as_of is not None:
            said["as_of"] = self.as_of.isoformat()
        if self.remotes is not None:
            said["remotes"] = list(self.remotes)
        return said | self.asker()

    def asker(self) -> dict[str, Any]:
        """For whom the owner of the store asks."""
        who = self.principal
        if who is None:
            return {}
        if who.user_id is None:
            raise UsageError("A server is asked for a user: give the principal a user_id.")
        said = {"user": who.user_id, "roles": list(who.roles), "department": who.department, "groups": list(who.groups)}
        return {"as": {name: value for name, value in said.items() if value}}

    def conversation(self) -> dict[str, Any]:
        """What a search of what was said says of all this."""
        self.require_itself()
        said = {"session": self.session, "user": self.user, "as_of": self.moment()}
        return {name: value for name, value in said.items() if value is not None}

    def moment(self) -> str | None:
        """The moment, as a query or a body has it."""
        return None if self.as_of is None else self.as_of.isoformat()

    def of_view(self, names: Sequence[str]) -> Mapping[str, Any]:
        """What a request says of all this, as far as it is said, of what it asks for.

        Args:
            names: Of what: ``collection``, ``session``, ``user``, ``as_of``; of the present where the last is left out.

        Raises:
            UsageError: Somebody is named, or a moment that it is not about.
        """
        if "as_of" in names:
            self.require_itself()
        else:
            self.require_present()
        said = {"session": self.session, "user": self.user, "as_of": self.moment()}
        if "collection" in names:
            said["collection"] = self.written
        return given(**{name: said[name] for name in names})

    def require_itself(self) -> None:
        """Refuses to ask for somebody else what a server does as whom the credential is.

        Raises:
            UsageError: Somebody is named.
        """
        if self.principal is not None:
            raise UsageError(
                "A server does this as whom the key is, and not as somebody else: leave the user out, or use a key of "
                "theirs (recollect keys create NAME --as USER)."
            )

    def require_present(self) -> None:
        """Refuses what is of the present alone.

        Raises:
            UsageError: A moment, or somebody else, is named.
        """
        self.require_itself()
        if self.as_of is not None:
            raise UsageError(
                f"This is of the past ({self.as_of.isoformat()}), which is searched, recalled and asked for facts, and "
                "neither changed nor administered: take view(as_of=None)."
            )


def given(**values: Any) -> Mapping[str, Any]:  # noqa: ANN401 - what JSON holds
    """Those that say something: None is left to the server."""
    return {name: value for name, value in values.items() if value is not None}


class _Unchanged:
    """Stands for what a new view has from the one that it is made of."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Any = _Unchanged()


def refined(at: Place, **given: Any) -> Place:  # noqa: ANN401 - of each its own
    """A place with what is given.

    Raises:
        UsageError: ``as_of`` is no time, or ``collections`` names none.
    """
    changes = {name: value for name, value in given.items() if value is not UNCHANGED}
    if changes.get("as_of") is not None:
        changes["as_of"] = read_time(changes["as_of"], name="as_of")
    if "collections" in changes:
        changes["collections"] = _names(changes["collections"])
    if changes.get("remotes") is not None:
        changes["remotes"] = tuple(changes["remotes"])
    return replace(at, **changes)


def _names(collections: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if collections is None:
        return None
    names = tuple(dict.fromkeys([collections] if isinstance(collections, str) else collections))
    if not names:
        raise UsageError('Name at least one collection, "*" for all, or None for the configured one.')
    return names
