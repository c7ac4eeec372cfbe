"""Names in paths that hold a slash: ``/v1/collections/hr%2Fleave`` is the collection ``hr/leave``.

A server hands on a path that is decoded, in which the slash of a name is one between parts. So the slashes of names
travel as a character that no name has until a route has been found; routes whose parameters are names that people
choose (``{name:named}``) give them back.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

# A noncharacter (Unicode 23.7): for use within a program, in no text that is exchanged.
_SLASH = "\ufdd0"
_ENCODED = re.compile(rb"%2[fF]")


class NamedPaths:
    """Keeps the slashes of names apart from those between the parts of a path, below ``/v1/``.

    Args:
        app: What answers.
        refuse: What answers where a path holds the character that stands for them.
    """

    def __init__(self, app: ASGIApp, *, refuse: ASGIApp) -> None:
        self._app, self._refuse = app, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        app = self._app
        if scope["type"] == "http" and scope["path"].removeprefix(scope.get("root_path", "")).startswith("/v1/"):
            if _SLASH in scope["path"]:
                app = self._refuse
            elif len(parts := _ENCODED.split(scope.get("raw_path") or b"")) > 1:
                path = _SLASH.join(unquote(part.decode("latin-1")) for part in parts)
                if path.replace(_SLASH, "/") == scope["path"]:
                    scope = {**scope, "path": path}
        await app(scope, receive, send)


def as_sent(path: str) -> str:
    """A path whose names have their slashes, as people read it."""
    return path.replace(_SLASH, "/")


class _Name(Convertor[str]):
    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return as_sent(value)

    def to_string(self, value: str) -> str:
        return value.replace("/", _SLASH)


class _NamePath(_Name):
    regex = ".*"

    def to_string(self, value: str) -> str:
        return value


def register() -> None:
    """Let paths of routes name ``{name:named}`` and ``{path:named_path}``: before the first of them is declared."""
    register_url_convertor("named", _Name())
    register_url_convertor("named_path", _NamePath())
