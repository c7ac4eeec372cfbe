"""Who may ask for the pages of the administration, and what all of them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import Query
from starlette.responses import Response

from recollect.ui.languages import _
from recollect.ui.visit import ADMINISTRATION, Administering, Visit, page_router

T = TypeVar("T")


PAGE_SIZE = 50


_HIGHEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the administration: its name, its path, what it is for, and the scope that it needs."""

    name: str
    path: str
    about: str
    icon: str
    scope: str = "admin"


KEYS = Section(_("Keys"), "/administration/keys", _("What programs and browsers present to say who they are."), "key")


PEOPLE = Section(_("People and roles"), "/administration/people", _("Who is known, and what their roles open."), "user")


LOGINS = Section(_("Logins"), "/administration/logins", _("Browsers that are logged in."), "open")


GRANTS = Section(_("Grants"), "/administration/grants", _("Who may read, write and own what, and why."), "lock")


POLICIES = Section(_("Policies"), "/administration/policies", _("Personal data, retention, quotas and limits."), "info")


AUDIT = Section(
    _("Audit"), "/administration/audit", _("What was done and by whom, in a chain that is checked."), "check"
)


MODELS = Section(
    _("Models"),
    "/administration/models",
    _("Another embedding model for a collection, compared first; chunks situated in their documents."),
    "machine",
)


TENANTS = Section(
    _("Tenants"), "/administration/tenants", _("Whose knowledge the store holds."), "library", scope="operator"
)


SECTIONS = (KEYS, PEOPLE, LOGINS, GRANTS, POLICIES, AUDIT, MODELS, TENANTS)


#: What pages tell after a change, by the word in their address.
TOLD = {
    "revoked": _("The key is revoked."),
    "ended": _("The browser is logged out."),
    "changed": _("It is changed."),
    "made": _("It is made."),
    "erased": _("The tenant is erased."),
    "dropped": _("What was kept beside the model is removed."),
    "cleaned": _("What was over is closed."),
    "cancelled": _("The job is asked to stop."),
}


#: Where a page of a list begins.
Cursor = Annotated[str | None, Query(max_length=2_000)]


def shown(
    visit: Visit,
    section: Section | None,
    template: str,
    *,
    status: int = 200,
    next_cursor: str | None = None,
    **context: Any,  # noqa: ANN401 - what the template shows
) -> Response:
    """A page of the administration.

    Args:
        visit: Who asks.
        section: Where it is; None: the overview.
        template: Below ``templates/administration``.
        status: Of the reply.
        next_cursor: Where the next page of its list begins; None: there is none.
        context: What the template shows.
    """
    query = dict(visit.request.query_params)
    said = TOLD.get(query.pop("told", ""))
    following = f"{visit.base}{visit.request.url.path}?{urlencode(query | {'cursor': next_cursor})}"
    return visit.page(
        f"administration/{template}",
        ADMINISTRATION,
        status=status,
        section=section,
        sections=[one for one in SECTIONS if visit.may(one.scope)],
        told=said,
        following=following if next_cursor else None,
        **context,
    )


# Where the administration begins: its parts put together, and the page that says what each is for.


router = page_router()


@router.get(ADMINISTRATION.path)
async def overview(visit: Administering) -> Response:
    """The parts."""
    return shown(visit, None, "overview.html")
