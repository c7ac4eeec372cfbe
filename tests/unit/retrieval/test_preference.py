"""Who asks moves the order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.model import Principal
from recollect.retrieval.ranking import Preferences, RolePreference, scaled

ANALYST = RolePreference(departments=("security", "it", "general"), factor=1.15)
PREFERENCES = Preferences(roles={"SecurityAnalyst": ANALYST}, privileged_roles=("Manager", "Auditor"))


@pytest.mark.parametrize(
    ("principal", "department", "factor"),
    [
        (Principal(department="hr"), "hr", 1.2),
        (Principal(department="hr"), "it", 0.9),
        (Principal(department="hr"), None, 1.0),
        (Principal(user_id="ann"), "hr", 1.0),
        (Principal(roles=("SecurityAnalyst",)), "it", 1.15),
        (Principal(roles=("SecurityAnalyst",)), "hr", 1.0),
        (Principal(roles=("SecurityAnalyst",), department="security"), "security", 1.2 * 1.15),
        (Principal(roles=("SecurityAnalyst",), department="security"), "general", 0.9 * 1.15),
        (Principal(roles=("SecurityAnalyst",), department="security"), "hr", 0.9),
        (Principal(roles=("Manager", "SecurityAnalyst"), department="hr"), "it", 1.0),
        (Principal(roles=("manager",), department="hr"), "it", 0.9),
    ],
)
def test_factors(principal: Principal, department: str | None, factor: float):
    assert PREFERENCES.factor(principal, department) == pytest.approx(factor)


def test_the_strongest_of_several_roles_counts():
    roles = {"a": RolePreference(departments=("it",), factor=2.0), "b": RolePreference(departments=("it",), factor=3.0)}
    assert Preferences(roles=roles).factor(Principal(roles=("a", "b")), "it") == 3.0


def test_whom_preferences_concern():
    assert PREFERENCES.concern(Principal(department="hr"))
    assert PREFERENCES.concern(Principal(roles=("SecurityAnalyst",)))
    assert not PREFERENCES.concern(Principal(user_id="ann", roles=("clerk",), groups=("g",)))
    assert not PREFERENCES.concern(Principal(roles=("Auditor",), department="hr"))


@given(st.floats(-10, 10).filter(lambda score: abs(score) > 1e-6), st.floats(1.01, 10))
def test_a_factor_above_one_is_always_better(score: float, factor: float):
    assert scaled(score, factor) > score > scaled(score, 1 / factor)
