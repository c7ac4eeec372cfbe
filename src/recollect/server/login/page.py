"""The pages of a login: plain, without script, and everything that they show escaped."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from urllib.parse import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginPage:
    """What a page of the login says.

    Attributes:
        login_path: Where the form is sent to, and where the page is.
        issuer_path: Where a login with the issuer begins; None: there is no issuer.
        logout_path: Where a logout is sent to.
        return_to: The path to go to afterwards.
        issuer_name: What the issuer is called.
        takes_keys: Whether there is a form for a key.
        user: Who is logged in; None: nobody.
        message: What has happened; None: nothing.
        is_error: Whether that is something that went wrong.
        further: Where to go on from here, with what the link says.
    """

    login_path: str
    issuer_path: str | None
    logout_path: str
    return_to: str
    issuer_name: str
    takes_keys: bool
    user: str | None = None
    message: str | None = None
    is_error: bool = False
    further: tuple[str, str] | None = None

    @property
    def html(self) -> str:
        """The page."""
        parts = [self._message(), self._further()]
        if self.user is not None:
            parts.append(_form(self.logout_path, "", f"<p>Logged in as <b>{escape(self.user)}</b>.</p>", "Log out"))
        else:
            parts += [self._issuer(), self._keys()]
        title = "Log in" if self.user is None else "Logged in"
        return _template().substitute(title=title, style=_style(), body="\n".join(part for part in parts if part))

    def _message(self) -> str:
        if self.message is None:
            return ""
        return f'<p role="{"alert" if self.is_error else "status"}">{escape(self.message)}</p>'

    def _further(self) -> str:
        if self.further is None:
            return ""
        url, words = self.further
        return f'<p><a href="{escape(url)}">{escape(words)}</a></p>'

    def _issuer(self) -> str:
        if self.issuer_path is None:
            return ""
        url = f"{self.issuer_path}?return_to={quote(self.return_to, safe='/')}"
        return f'<p><a class="button" href="{escape(url)}">Log in with {escape(self.issuer_name)}</a></p>'

    def _keys(self) -> str:
        if not self.takes_keys:
            return ""
        field = (
            '<label for="key">API key</label>'
            '<input id="key" name="key" type="password" required autocomplete="current-password" spellcheck="false"'
            ' autocapitalize="none">'
        )
        return _form(self.login_path, self.return_to, field, "Log in")


def security_headers() -> dict[str, str]:
    """What the pages are allowed: their one style sheet and a form for this server.

    With `no-referrer` browsers would send forms with ``Origin: null``, which tells nothing of where they come from.
    """
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    return {"Content-Security-Policy": policy, "Referrer-Policy": "same-origin"}


def _form(path: str, return_to: str, inner: str, button: str) -> str:
    hidden = f'<input type="hidden" name="return_to" value="{escape(return_to)}">' if return_to else ""
    return f'<form method="post" action="{escape(path)}">{hidden}{inner}<button>{button}</button></form>'


@cache
def _template() -> Template:
    return Template((files(__package__) / "login.html").read_text(encoding="utf-8"))


@cache
def _style() -> str:
    return (files(__package__) / "login.css").read_text(encoding="utf-8")
