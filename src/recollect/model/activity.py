"""What happens over time, as it is counted, and what was shown to whom."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from recollect.model.record import Public, Record

if TYPE_CHECKING:
    from recollect.model.answer import Outcome
    from recollect.model.passage import RetrievedContext, SearchReply


#: What is counted, and its labels. ``search``: times of its stages, ``total`` among them; ``cache``: ``hit``, ``miss``;
#: ``found``: ``nothing``, ``low``, ``some``; ``answer``: of `ANSWER_LABELS`; ``feedback``: ``helpful``, ``not``;
#: ``limit``: requests that were refused because there were too many, by kind; ``size``: bytes of the ``database``.
ActivityName = Literal["search", "cache", "found", "answer", "feedback", "limit", "size"]

#: How answers are counted, by their outcome.
ANSWER_LABELS: Mapping[Outcome, str] = {"answer": "answered", "passages": "passages", "none": "refused"}

#: Results whose best relevance is below this answer little of a question.
LOW_RELEVANCE = 0.25

# Each step of the scale of times is so much longer than the one before: a percentile is off by a tenth at most.
_FIRST_MS = 0.05
_FACTOR = 1.2
_STEPS = 100


@dataclass(slots=True)
class Tally:
    """How often something happened, and how long it took.

    Attributes:
        count: How often.
        total: Milliseconds together, or whatever is measured.
        histogram: How many lay within each step of time.
    """

    count: int = 0
    total: float = 0.0
    histogram: dict[int, int] = field(default_factory=dict)

    def add(self, milliseconds: float | None = None) -> None:
        """Count one more."""
        self.count += 1
        if milliseconds is not None:
            self.total += milliseconds
            step = step_of(milliseconds)
            self.histogram[step] = self.histogram.get(step, 0) + 1

    def merge(self, other: Tally) -> None:
        """Count what another has counted."""
        self.count += other.count
        self.total += other.total
        for step, count in other.histogram.items():
            self.histogram[step] = self.histogram.get(step, 0) + count

    def percentile(self, share: float) -> float | None:
        """The milliseconds that this share of them took at most, about; None where none was timed."""
        return percentile(self.histogram, share)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityRow:
    """What happened within a while.

    Attributes:
        at: When it begins.
        name: What.
        label: Of which kind.
        tally: How often, and how long it took.
    """

    at: datetime
    name: str
    label: str
    tally: Tally


def step_of(milliseconds: float) -> int:
    """The step of the scale that a time lies within."""
    if milliseconds <= _FIRST_MS:
        return 0
    return min(_STEPS - 1, math.ceil(math.log(milliseconds / _FIRST_MS, _FACTOR)))


def percentile(histogram: Mapping[int, int], share: float) -> float | None:
    """The milliseconds that this share of what was counted took at most, about; None where nothing was."""
    wanted, passed = share * sum(histogram.values()), 0
    for step in sorted(histogram):
        passed += histogram[step]
        if passed >= wanted:
            return _FIRST_MS * _FACTOR ** (step - 0.5) if step else _FIRST_MS
    return None


def outcome_of(reply: SearchReply) -> str | None:
    """What a search leaves unanswered: ``nothing`` was found, or the best has ``low`` relevance; None: neither."""
    if not reply.results:
        return "nothing"
    relevances = [one.relevance for one in reply.results if one.relevance is not None]
    return "low" if relevances and max(relevances) < LOW_RELEVANCE else None


# What is shown to whoever asks: told, where it happens, to whoever records it; elsewhere nobody is told.


#: Why an answer was refused: ``nothing`` was found, the evidence does not hold an ``identifier`` of the question, or it
#: is below the ``threshold``; of what a model wrote all was ``unsupported``, or the ``model`` itself knew no answer.
RefusalReason = Literal["nothing", "identifier", "threshold", "unsupported", "model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Something that was asked, and what was shown for it.

    Attributes:
        action: ``search``, ``ask``, ``context``, ``read``, …, or a request that changed something. That a question got
            no answer is told beside its ``ask``: ``refuse/`` with a `RefusalReason`.
        question: As it was asked; None: nothing was.
        documents: The ids of those shown, and of their versions; 0: of the present one, or of all.
        outcome: What leaves the question unanswered: ``nothing`` found, ``low`` relevance, ``passages`` in place of an
            answer, ``refused`` an answer; None: none of these.
    """

    action: str
    question: str | None = None
    documents: tuple[tuple[int, int], ...] = ()
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class ShownDocument(Record):
    """A document that was shown.

    Attributes:
        version_id: Of its version; None: the present one, or all.
    """

    document_id: Public[int]
    version_id: Public[int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access(Record):
    """Something that was asked, and what was shown for it, or a request that changed something.

    Attributes:
        access_id: Grows with time.
        at: When it was shown.
        actor: To whom: the user, and the key.
        action: ``search``, ``ask``, ``context``, ``read``, …; or the method and the route of what changed something.
            Beside an ``ask`` that got no answer, why: ``refuse/nothing`` (was found), ``refuse/identifier`` (none
            of the evidence holds it), ``refuse/threshold`` (not reached), ``refuse/unsupported`` (all of it),
            ``refuse/model`` (knew none).
        request_id: Of the request, as its reply and the log of requests name it.
        question: As it was asked; None: it was not kept, or is past its retention.
        question_hash: Of the question, keyed with the tenant's salt, in hexadecimal digits: two of the same question
            are the same; None: there is none.
        documents: Those that were shown.
        outcome: As of `Shown`.
    """

    access_id: Public[int]
    at: Public[datetime]
    actor: Public[str]
    action: Public[str]
    request_id: Public[str | None]
    question: Public[str | None]
    question_hash: Public[str | None]
    documents: Public[tuple[ShownDocument, ...]]
    outcome: str | None = None


_RECORDER: ContextVar[Callable[[Shown], None] | None] = ContextVar("recollect_shown", default=None)


@contextmanager
def showing_to(recorder: Callable[[Shown], None]) -> Iterator[None]:
    """Have a recorder told of what is shown in this task, and in threads that are started from it."""
    token = _RECORDER.set(recorder)
    try:
        yield
    finally:
        _RECORDER.reset(token)


def show(
    action: str,
    *,
    question: str | None = None,
    passages: Iterable[RetrievedContext] = (),
    documents: Iterable[tuple[int, int]] = (),
    outcome: str | None = None,
) -> None:
    """Tell what is about to be shown; without a recorder it costs a look at a context variable.

    Args:
        action: What is done.
        question: As it was asked.
        passages: Whose documents are shown.
        documents: Further ones, with their versions.
        outcome: As of `Shown`.
    """
    recorder = _RECORDER.get()
    if recorder is None:
        return
    # What another server shows is in that one's log.
    shown = dict.fromkeys((one.document_id, one.version_id or 0) for one in passages if one.server is None)
    shown |= dict.fromkeys(documents)
    recorder(Shown(action=action, question=question, documents=tuple(shown), outcome=outcome))


def shown(reply: SearchReply) -> SearchReply:
    """A search's reply, told as `show` does."""
    show("search", question=reply.query, passages=reply.results, outcome=outcome_of(reply))
    return reply
