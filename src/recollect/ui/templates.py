"""Templates, where everything shown is escaped and a missing name is an error, and the static files that they load."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import BytecodeCache, Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from recollect.ui.languages import Language, languages


class _Compiled(BytecodeCache):
    """What templates were compiled to, which is the same in every language."""

    def __init__(self) -> None:
        self._codes: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._codes:
            bucket.bytecode_from_string(self._codes[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key] = bucket.bytecode_to_string()


_COMPILED = _Compiled()


@cache
def _environment(code: str, base: str) -> Environment:
    language = Language.named(code)
    environment = Environment(
        loader=PackageLoader("recollect.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n", "jinja2.ext.loopcontrols"],
        auto_reload=False,
        cache_size=-1,
        bytecode_cache=_COMPILED,
    )
    environment.install_gettext_callables(language.gettext, language.ngettext, newstyle=True)  # type: ignore[attr-defined]
    environment.globals |= {"asset": asset, "imports": imports, "language": language, "base": base}
    environment.filters |= {
        "number": language.number,
        "short_number": language.short_number,
        "percent": language.percent,
        "money": language.money,
        "bytes": language.bytes,
        "moment": language.moment,
        "day": language.day,
        "ago": language.ago,
    }
    return environment


def rendered(template: str, language: Language, context: Mapping[str, Any], *, base: str = "") -> str:
    """A template with what it shows.

    Args:
        template: Its path below ``templates``.
        language: The texts' language.
        context: What it shows.
        base: What paths of this server begin with: nothing, or what a proxy puts before them.
    """
    return _environment(language.code, base).get_template(template).render(context)


def compile_all() -> None:
    """Compile every template, so that nobody who visits waits for that."""
    for code in languages():
        environment = _environment(code, "")
        for name in environment.list_templates():
            environment.get_template(name)


# Style sheets, scripts and vendored files: served under a name of their content, so that browsers keep them.


STATIC = Path(__file__).parent / "static"


_FOREVER = "public, max-age=31536000, immutable"


_DIGEST_CHARACTERS = 12


#: What a file is sent as, with its headers.
_Held = tuple[bytes, dict[str, str]]


# Shorter files gain nothing.
_COMPRESSED_BYTES = 500


# ``import … from "./x.js"`` and ``import "./x.js"``; what is imported by a call comes when it is called for.
_IMPORT = re.compile(r"""^\s*(?:import|export)\b[^;"'()]*["'](\.[^"']+)["']""", re.MULTILINE)


@cache
def _names() -> frozenset[str]:
    return frozenset(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file())


@cache
def version() -> str:
    """What the files are, in a few characters: another file has another name, and none is asked for twice."""
    digest = hashlib.sha256()
    for name in sorted(_names()):
        digest.update(name.encode() + b"\0")
        digest.update(hashlib.sha256((STATIC / name).read_bytes()).digest())
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


def asset(path: str) -> str:
    """The URL of a static file.

    All of them stand below one version, so that modules import one another by relative names.

    Raises:
        LookupError: There is none of that name.
    """
    if path not in _names():
        raise LookupError(f"There is no static file {path!r}.")
    return f"/static/{version()}/{path}"


@cache
def imports(script: str) -> tuple[str, ...]:
    """The modules that a script imports, and that these import, by their paths."""
    found: dict[str, None] = {}
    waiting = [script]
    while waiting:
        path = STATIC / waiting.pop(0)
        for name in _IMPORT.findall(path.read_text(encoding="utf-8")):
            other = (path.parent / name).resolve().relative_to(STATIC.resolve()).as_posix()
            if other != script and other not in found:
                found[other] = None
                waiting.append(other)
    return tuple(found)


class Assets(StaticFiles):
    """The static files below ``/static/VERSION``, read and compressed once; those of another version are not there."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)
        self._held: dict[str, tuple[_Held, _Held]] = {}

    def get_path(self, scope: Scope) -> str:
        """The file that a request is for, without the version before it."""
        asked, _, path = super().get_path(scope).replace("\\", "/").partition("/")
        if asked != version() or path not in _names():
            raise HTTPException(404, "There is no such file.")
        return path

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, to be kept."""
        request = Request(scope)
        if request.method not in {"GET", "HEAD"}:
            raise HTTPException(405)
        if path not in self._held:
            self._held[path] = await run_in_threadpool(_held, path)
        plain, packed = self._held[path]
        data, headers = packed if "gzip" in request.headers.get("accept-encoding", "") else plain
        response = Response(data, headers=headers)
        changed = not self.is_not_modified(response.headers, request.headers)
        return response if changed else NotModifiedResponse(response.headers)


def _held(path: str) -> tuple[_Held, _Held]:
    """A file as it is, and for those who take it compressed."""
    data = (STATIC / path).read_bytes()
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    tag = hashlib.sha256(data).hexdigest()[:_DIGEST_CHARACTERS]
    headers = {
        "Content-Type": f"{kind}; charset=utf-8" if kind.startswith("text/") else kind,
        "Cache-Control": _FOREVER,
    }
    plain = (data, headers | {"ETag": f'"{tag}"'})
    packed = gzip.compress(data, mtime=0) if len(data) >= _COMPRESSED_BYTES else data
    if len(packed) >= len(data):
        return plain, plain
    # What compresses all other replies says of the plain one that there are two.
    coded = {"ETag": f'"{tag}-gzip"', "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return plain, (packed, headers | coded)
