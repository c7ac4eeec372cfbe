"""Who asks moves the order: documents of his own department first, those of others behind. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.model.principal import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class RolePreference:
    """What a role prefers.

    Attributes:
        departments: Documents of these departments.
        factor: Multiplies their scores.
    """

    departments: tuple[str, ...]
    factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """How much the order of results depends on who asks; see `recollect.config.AccessConfig`.

    Attributes:
        department_boost: Multiplies the scores of the asker's own department.
        other_departments: Multiplies those of other departments.
        roles: By role; of several that prefer a department, the strongest counts.
        privileged_roles: Whoever has one of these sees results in the order of their relevance alone.
    """

    department_boost: float = 1.2
    other_departments: float = 0.9
    roles: Mapping[str, RolePreference] = field(default_factory=dict)
    privileged_roles: tuple[str, ...] = ()

    def factor(self, principal: Principal, department: str | None) -> float:
        """What a score is multiplied by; 1 for a document of no department, and for somebody who belongs to none."""
        if department is None or not self.concern(principal):
            return 1.0
        own = 1.0
        if principal.department is not None:
            own = self.department_boost if department == principal.department else self.other_departments
        preferred = [
            preference.factor
            for role, preference in self.roles.items()
            if role in principal.roles and department in preference.departments
        ]
        return own * max(preferred, default=1.0)

    def concern(self, principal: Principal) -> bool:
        """Whether somebody has preferences at all."""
        if not set(self.privileged_roles).isdisjoint(principal.roles):
            return False
        return principal.department is not None or not set(self.roles).isdisjoint(principal.roles)


def scaled(score: float, factor: float) -> float:
    """A score times a factor, so that more than 1 is always better: scores below 0 are divided."""
    return score * factor if score >= 0 else score / factor
