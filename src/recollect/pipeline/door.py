"""The door of a tenant: which policy for personal data is in force, and what applies it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.ingest.door import Door
    from recollect.model import Scope
    from recollect.pipeline.assembly import Assembly
    from recollect.privacy.detector import Detector


def make_door(assembly: Assembly, scope: Scope) -> Door | None:
    """What is applied to everything that the scope's tenant stores; None: nothing is.

    Raises:
        UsageError: The policy asks for it, and ``recollect[pii]`` is not installed.
    """
    stored, salt = assembly.store.tenants.privacy(scope)
    settings = assembly.config.privacy
    policy = stored or settings.pii
    if policy == "off":
        return None
    from recollect.ingest.door import Door

    return Door(policy, _detector(settings.phone_regions), salt=salt)


@cache
def _detector(phone_regions: tuple[str, ...]) -> Detector:
    from recollect.privacy.detector import Detector

    return Detector(phone_regions=phone_regions)
