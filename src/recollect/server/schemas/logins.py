"""Bodies and replies about logins of browsers."""

from __future__ import annotations

from recollect.replies._shape import Shape
from recollect.replies.logins import LoginJson


class LoginPageJson(Shape):
    """Logins, newest first."""

    logins: list[LoginJson]
    next_cursor: str | None
    """Where the next page begins; null: there is none."""
