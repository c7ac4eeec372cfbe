"""What a command searches: a collection, all of them, or the documents of a session, alone or with collections."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli._command_context import CommandContext, argument_text
from recollect.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import RetrievalOptions
    from recollect.model.collection import Collection
    from recollect.pipeline import View

#: Stands for every collection.
EVERYWHERE = "*"

_PANEL = "Sessions"
# Collections that a message names.
_NAMED = 5


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """Whether a command searches the documents of a session, and what with them."""

    in_session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="SESSION",
            help="Search the documents of this session in place of a collection.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    with_: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="COLLECTION",
            help="With --session: search this collection too, * for all; repeat for more.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def where(self, ctx: CommandContext) -> dict[str, Any]:
        """What is searched, as `CommandContext.view` takes it.

        Raises:
            UsageError: Collections are named in a way that does not go with the session, or without one.
        """
        if self.in_session is None:
            if self.with_:
                raise UsageError("--with says what is searched together with a session: name that with --session.")
            return {}
        if ctx.names_collection:
            raise UsageError("With --session, name the collections that are searched too by --with.")
        return {"session": self.in_session, "collections": [argument_text(name) for name in self.with_ or ()] or None}


def language_of(view: View) -> str:
    """ISO 639-1, of most of what is found."""
    if view.standpoint.session is not None:
        return view.view(as_of=None).sessions.get(view.standpoint.session).language
    return next((place.language for place in _collections(view) if place.name in view.standpoint.names), "en")


def vain(view: View, options: RetrievalOptions) -> list[str]:
    """Why a search can have found nothing: the collection is empty, or filters name what no document has."""
    at = view.standpoint
    if at.session is not None:
        if at.collections or view.view(as_of=None).sessions.get(at.session).document_count:
            return []
        return [f"The session is empty. Fill it: recollect ingest FOLDER --session {at.session}"]
    empty = empty_collection(view) if at.is_owner else None
    return [empty] if empty else view.documents.filter_hints(options)


def told_besides(told: Sequence[str], why: Sequence[str]) -> tuple[str, ...]:
    """What a reply tells, without what `vain` says as well: a server tells why it found nothing, in fewer words."""
    return tuple(one for one in told if not any(more.startswith(one) for more in why))


def empty_collection(view: View) -> str | None:
    """What is said where what the view is of is empty, and which collections are not; None where it is not."""
    there = {place.name: place.document_count for place in _collections(view)}
    if EVERYWHERE in view.standpoint.names:
        return None if any(there.values()) else "Every collection is empty. Fill one: recollect ingest FOLDER"
    name = view.standpoint.collection
    if there.get(name):
        return None
    fill = "" if name == "default" else f" --collection {shlex.quote(name)}"
    told = f"The collection {name!r} is empty. Fill it: recollect ingest FOLDER{fill}"
    filled = [f"{name!r} ({count:,} document{'' if count == 1 else 's'})" for name, count in there.items() if count]
    more = f" and {len(filled) - _NAMED:,} more" if len(filled) > _NAMED else ""
    return told if not filled else f"{told}\nNot empty: {', '.join(filled[:_NAMED])}{more}. Name one with --collection."


def _collections(view: View) -> list[Collection]:
    return view.view(as_of=None, principal=None).collections.list()
