"""What public methods are given is checked by their annotations."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from recollect.errors import UsageError
from recollect.model.arguments import checked

ProgressCallback = Callable[[int], None]
OtherCallback = Callable[[str], None]


@checked
class Methods:
    def page(self, after: tuple[datetime, int] | None = None) -> object:
        return after

    def wait(self, on_progress: OtherCallback | None = None) -> object:
        return on_progress

    def spans(self, spans: tuple[int, ...] = ()) -> object:
        return spans


NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize("after", [None, (NOW, 5), [NOW, 5]])
def test_a_tuple_of_so_many_values_is_taken(after):
    assert Methods().page(after) == after


@pytest.mark.parametrize(
    ("after", "says"),
    [
        ((NOW,), "after must hold 2 values, not 1"),
        ((), "after must hold 2 values, not 0"),
        ([[[]]], "after must hold 2 values"),
        ((NOW, "5"), "after must be a whole number, not '5'"),
        (("2026-05-01", 5), "after must be a datetime"),
        ("ab", "after must be a tuple, not 'ab'"),
    ],
)
def test_another_tuple_is_refused(after, says):
    with pytest.raises(UsageError, match=says):
        Methods().page(after)


def test_whatever_is_called_back_is_a_function():
    Methods().wait(print)
    with pytest.raises(UsageError, match="on_progress must be a function, not False"):
        Methods().wait(False)


def test_a_tuple_of_any_number_of_values_is_one():
    assert Methods().spans((1, 2, 3)) == (1, 2, 3)
    with pytest.raises(UsageError, match="spans must be a whole number"):
        Methods().spans(("a",))
