"""The door of a tenant: which policy for personal data is in force, and what it does with jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from recollect.errors import FetchError, PersonalDataError

if TYPE_CHECKING:
    from recollect.config.privacy import PrivacyConfig
    from recollect.ingest.door import Door
    from recollect.model import Scope
    from recollect.model.job import NewJob
    from recollect.model.tenant import PersonalDataPolicy
    from recollect.pipeline.assembly import Assembly
    from recollect.privacy.detector import Detector


def make_door(assembly: Assembly, scope: Scope) -> Door | None:
    """What is applied to everything that the scope's tenant stores; None: nothing is.

    Raises:
        UsageError: The policy asks for it, and the extra ``pii`` is not installed.
    """
    stored, salt = assembly.store.tenants.privacy(scope)
    settings = assembly.config.privacy
    policy = stored or settings.pii
    if policy == "off":
        return None
    from recollect.ingest.door import Door

    detector = _detector(settings.phone_regions)
    return Door(policy, detector, salt=salt, shows_pictures=_shows_pictures(policy, settings))


def shows_pictures(assembly: Assembly, scope: Scope) -> bool:
    """Whether pictures of what the scope's tenant stores may be shown to a model that describes them.

    What they show can be looked at by nobody else before; so by default not where text would not be sent as it is.
    """
    stored, _ = assembly.store.tenants.privacy(scope)
    return _shows_pictures(stored or assembly.config.privacy.pii, assembly.config.privacy)


def _shows_pictures(policy: PersonalDataPolicy, settings: PrivacyConfig) -> bool:
    return policy in {"off", "tag"} or settings.send_pictures


# Where files stand on this machine: their documents' own names pass the door when they are read.
_OF_THE_MACHINE = frozenset({"paths", "folders"})
# Sources that their owner has named are found by that name, which stands with them.
_OF_SOURCES = frozenset({"refresh_source", "watch"})


def admit_job(door: Door | None, job: NewJob) -> NewJob:
    """A job as it may be seen: what it needs of personal data is withheld, which goes when the job has succeeded.

    Headers and bodies of requests are withheld in any case.

    Raises:
        PersonalDataError: Its arguments hold personal data, and the policy is to refuse that.
    """
    if door is None or door.policy == "tag" or job.kind in _OF_SOURCES:
        return job
    held = {name: value for name, value in job.arguments.items() if door.holds(value)}
    if door.policy == "refuse":
        if held.keys() - _OF_THE_MACHINE:
            raise PersonalDataError(
                f"What the job is to do holds personal data ({', '.join(sorted(held))}), which this tenant's policy "
                "refuses. Leave it out, or have the owner of the store choose another policy (recollect tenants "
                "set-pii).",
                kinds=(),
            )
        return job
    return replace(
        job,
        arguments={**job.arguments, **{name: door.renamed(value) for name, value in held.items()}},
        withheld={**held, **job.withheld},
        source=None if job.source is None else door.name(job.source),
        document=None if job.document is None else door.name(job.document),
    )


def shown_error(door: Door | None, error: FetchError) -> FetchError:
    """Why a page cannot be fetched, as it may be kept: its address may hold personal data."""
    if door is None or not door.holds([error.url, error.reason]):
        return error
    return type(error)(
        door.shown(error.url),
        door.shown(error.reason),
        status=error.status,
        retryable=error.retryable,
        retry_after_seconds=error.retry_after_seconds,
    )


@contextmanager
def errors_shown(door: Door | None) -> Iterator[None]:
    """What cannot be fetched is told as `shown_error` has it."""
    try:
        yield
    except FetchError as error:
        raise shown_error(door, error) from None


@cache
def _detector(phone_regions: tuple[str, ...]) -> Detector:
    from recollect.privacy.detector import Detector

    return Detector(phone_regions=phone_regions)
