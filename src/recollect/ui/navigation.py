"""The areas of the interface, as the bar at its top names them."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.model.key import AccessScope


@dataclass(frozen=True, slots=True)
class Area:
    """A part of the interface.

    Attributes:
        name: Its text's key, translated where it is shown.
        path: Its first page.
        icon: Its picture's name in ``templates/icons.svg``.
        scope: What a credential must open to see it.
    """

    name: str
    path: str
    icon: str
    scope: AccessScope


def _(text: str) -> str:
    """Marks a text for the catalogues."""
    return text


CHAT = Area(_("Chat"), "/chat", "chat", "read")
LIBRARY = Area(_("Library"), "/library", "library", "read")
BENCH = Area(_("Search bench"), "/bench", "bench", "read")
DASHBOARD = Area(_("Dashboard"), "/dashboard", "chart", "read")
ADMINISTRATION = Area(_("Administration"), "/administration", "administration", "admin")

AREAS = (CHAT, LIBRARY, BENCH, DASHBOARD, ADMINISTRATION)
