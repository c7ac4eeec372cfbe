"""What a view's tenant did and holds, over time: as a dashboard shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model.activity import ActivityRow
    from recollect.pipeline.view import View

#: Documents that expire within so many days are told.
EXPIRING_DAYS = 30
_MOST_EXPIRING = 1_000
_MOST_QUESTIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A time that is looked at, in whiles.

    Attributes:
        since: When it begins.
        until: When it ends.
        seconds: How long each while is.
    """

    since: datetime
    until: datetime
    seconds: int

    @property
    def moments(self) -> list[datetime]:
        """When each while begins."""
        count = max(1, round((self.until - self.since).total_seconds() / self.seconds))
        return [self.since + timedelta(seconds=self.seconds * place) for place in range(count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What happened within a window. Times of whiles are when each begins.

    Attributes:
        window: That it is of.
        activity: What was counted of searches, answers, feedback and limits.
        requests: To providers of models, by while: how many, failures, milliseconds at 50, 95 and 99 percent, tokens in
            and out, cost.
        jobs: That ended, by while and status; of a principal, its own.
        recall: By day, how many searches were repeated and the sums of their recalls, of both retrievers.
        feedback: How many passages helped and how many did not, ever.
        expiring: Documents that the principal may read and that expire soon: id, title, URI, when.
        database_bytes: Of the whole store; None: that is for its owner.
        sizes: Its largest tables, with their bytes and those of their indexes; empty: that is for its owner.
    """

    window: Window
    activity: Sequence[ActivityRow]
    requests: Sequence[tuple[Any, ...]]
    jobs: Sequence[tuple[Any, ...]]
    recall: Sequence[tuple[Any, ...]]
    feedback: tuple[int, int]
    expiring: Sequence[tuple[Any, ...]]
    database_bytes: int | None
    sizes: Sequence[tuple[str, int, int]]


def read_figures(view: View, window: Window, *, kind: str | None = None) -> Figures:
    """What a view's tenant did and holds; what belongs to documents and jobs as far as its principal sees them.

    Args:
        view: Of the present.
        window: The time that is looked at.
        kind: Of requests to providers, ``embed``, ``rerank`` or ``answer``; None: all.
    """
    at = view.standpoint
    scope, tenants, store = at.present(), replace(at.everything), at.store
    at.assembly.activity.flush()
    at.assembly.request_log.flush()
    whiles: dict[str, Any] = {"since": window.since, "until": window.until, "seconds": window.seconds}
    owner = scope.principal is None
    return Figures(
        window=window,
        activity=store.activity.series(tenants, **whiles),
        requests=store.activity.requests(tenants, kind=kind, **whiles),
        jobs=store.activity.jobs(scope, **whiles),
        recall=store.activity.recall(tenants),
        feedback=store.activity.feedback(tenants),
        expiring=store.activity.expiring(scope, days=EXPIRING_DAYS, limit=_MOST_EXPIRING),
        database_bytes=store.activity.database_bytes(scope) if owner else None,
        sizes=store.activity.sizes(scope) if owner else (),
    )


def unanswered_questions(view: View, window: Window) -> Sequence[tuple[Any, ...]]:
    """What is asked and nothing answers, the most frequent first.

    Of each: its words and the beginning of its hash, as far as they are kept; ``refused``, ``passages``, ``nothing`` or
    ``low``; why there was no answer (`recollect.model.activity.RefusalReason`); how often, and when last.

    Raises:
        PermissionDeniedError: The view has a principal: questions are shown to who administers the tenant.
    """
    at = view.standpoint
    scope = at.owner()
    at.assembly.access_log.flush()
    return at.store.activity.unanswered(scope, since=window.since, until=window.until, limit=_MOST_QUESTIONS)
