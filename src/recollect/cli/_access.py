"""The options of a command that concern who asks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.errors import UsageError
from recollect.model import Principal

if TYPE_CHECKING:
    from recollect.cli._searching import SearchOptions

_PANEL = "Who asks"


@dataclass(frozen=True, kw_only=True)
class AccessOptions:
    """Whose eyes a command searches with; without any, those of the store's owner, who sees everything."""

    as_: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="USER",
            help="Do it as this user, with their permissions; --department is their department then.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    roles: Annotated[
        str | None, typer.Option(metavar="A,B", help="Their roles, with commas between.", rich_help_panel=_PANEL)
    ] = None
    groups: Annotated[
        str | None, typer.Option(metavar="A,B", help="Their groups, with commas between.", rich_help_panel=_PANEL)
    ] = None

    def principal(self, department: str | None) -> Principal | None:
        """Who asks; None: the owner of the store.

        Raises:
            UsageError: Roles or groups without anybody who has them, or a name that is none.
        """
        if self.as_ is None:
            if self.roles is not None or self.groups is not None:
                raise UsageError("--roles and --groups belong to somebody: say to whom with --as USER.")
            return None
        return Principal(
            user_id=self.as_,
            roles=_names(self.roles),
            department=department,
            groups=_names(self.groups),
        )

    def asker(self, search: SearchOptions) -> tuple[Principal | None, SearchOptions]:
        """Who asks, and the options of their search: with ``--as``, ``--department`` filters nothing.

        Raises:
            UsageError: Roles or groups without anybody who has them, several departments, or a name that is none.
        """
        departments = search.department or []
        if self.as_ is not None and len(departments) > 1:
            raise UsageError(
                "With --as, --department is the department of the one who asks, and they have one. To filter by "
                'departments, give --filter \'{"department": {"in": ["hr", "it"]}}\'.'
            )
        principal = self.principal(departments[0] if departments else None)
        return principal, search if principal is None else replace(search, department=None)


@dataclass(frozen=True, kw_only=True)
class ActorOptions(AccessOptions):
    """As whom a command reads and writes that has no other use for a department."""

    department: Annotated[str | None, typer.Option(help="With --as: their department.", rich_help_panel=_PANEL)] = None

    def actor(self) -> Principal | None:
        """As whom; None: as the owner of the store.

        Raises:
            UsageError: Roles, groups or a department without anybody who has them, or a name that is none.
        """
        if self.as_ is None and self.department is not None:
            raise UsageError("--department belongs to somebody: say to whom with --as USER.")
        return self.principal(self.department)


def _names(given: str | None) -> tuple[str, ...]:
    return tuple(name for name in (given or "").split(",") if name.strip())
