"""A page that was fetched, as a document."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from recollect.documents._html import is_feed
from recollect.documents.formats import CODE, FEED, HTML, TEXT, Format, format_of_name, format_of_type
from recollect.documents.reader import read_bytes
from recollect.errors import FetchError, ParseError
from recollect.fetching.urls import last_name

if TYPE_CHECKING:
    from recollect.documents.workers import ParserWorkers
    from recollect.fetching.client import Fetched
    from recollect.model import Document

# What servers say that do not know: the name and the first bytes tell.
_GENERIC = frozenset(
    ("", "application/octet-stream", "binary/octet-stream", "application/binary", "application/download",
     "application/force-download", "application/x-download", "application/zip", "application/x-zip-compressed",
     "application/unknown", "unknown/unknown", "application/x-msdownload", "text/plain")
)  # fmt: skip
_FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})
_JSON = frozenset({"application/json", "text/json", "application/feed+json"})
_XML = frozenset({"application/xml", "text/xml"})
# Texts that are read as they stand, with the extension that says so.
_TEXTS = {
    "application/javascript": "js",
    "application/sql": "sql",
    "application/toml": "toml",
    "application/x-httpd-php": "php",
    "application/x-javascript": "js",
    "application/x-ndjson": "ndjson",
    "application/jsonl": "jsonl",
    "application/x-python": "py",
    "application/x-sh": "sh",
    "application/x-subrip": "srt",
    "application/x-tex": "tex",
    "application/x-yaml": "yaml",
    "application/yaml": "yaml",
    "text/css": "css",
    "text/javascript": "js",
    "text/vtt": "vtt",
    "text/yaml": "yaml",
}
# Never text, whatever is in them.
_NEVER = ("image/", "audio/", "video/", "font/", "model/", "multipart/")


@dataclass(frozen=True, slots=True)
class _Reading:
    """As what a page is read: by a name that says so, or by a type that says better."""

    name: str
    mime_type: str | None


def page_document(
    fetched: Fetched,
    *,
    uri: str,
    pictures: bool = True,
    workers: ParserWorkers | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Document:
    """What a page says, as a document.

    Args:
        fetched: The page.
        uri: The document's ``source``.
        pictures: Whether its pictures may be shown to the model that describes them.
        workers: Who parses; None: processes that are shared by all.
        cancelled: Asked now and then; once it says so, the page's parser is ended.

    Raises:
        FetchError: It holds no text that can be read. Another attempt would bring the same.
    """
    reading = _reading(fetched)
    body = in_unicode(fetched.body, charset_of(fetched.content_type))
    try:
        document = read_bytes(
            body,
            name=reading.name,
            mime_type=reading.mime_type,
            source=uri,
            main_content=True,
            pictures=pictures,
            workers=workers,
            cancelled=cancelled,
        )
    except ParseError as error:
        raise FetchError(uri, error.reason, status=fetched.status) from error
    # Who may read it here, and for how long, is not for its author to decide.
    host = fetched.url.host
    # A file name's dots would be taken for spaces.
    title = host if (document.title or "").lower().replace(" ", ".") == host else document.title
    return replace(
        document,
        title=title,
        permissions=None,
        ttl=None,
        department=None,
        file_hash=hashlib.sha256(fetched.body).digest(),
    )


def charset_of(content_type: str) -> str | None:
    """The encoding that a ``Content-Type`` names."""
    for part in content_type.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'").strip() or None
    return None


def in_unicode(body: bytes, charset: str | None) -> bytes:
    """``body`` in UTF-8, where the encoding that its server names is right.

    Servers are configured once for all pages: bytes that are UTF-8 are that, whatever was said, and what does not fit
    the encoding named is left to what the page itself says, or to its letters.
    """
    if charset is None or charset.lower().replace("_", "-") in {"utf-8", "utf8"} or body[:4].startswith(_MARKS):
        return body
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        return body
    try:
        return body.decode(charset).encode("utf-8")
    except (UnicodeError, LookupError, ValueError):
        return body


_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def _reading(fetched: Fetched) -> _Reading:
    kind = fetched.content_type.split(";")[0].strip().lower()
    name = _name(fetched)
    named = format_of_name(name)
    if kind == "text/plain" and named is HTML:
        return _Reading(name, TEXT.mime_type)
    if kind in _GENERIC:
        return _Reading(name, None)
    if kind in {HTML.mime_type, "application/xhtml+xml"}:
        return _Reading(name if named is HTML else _with_extension(name, "html"), HTML.mime_type)
    if kind in _FEEDS or ((kind in _XML or kind.endswith("+xml")) and is_feed(fetched.body)):
        return _Reading(name, FEED.mime_type)
    if kind in _JSON or kind.endswith("+json"):
        return _Reading(name, "application/json")
    if kind.startswith(_NEVER):
        raise _unreadable(fetched, kind)
    extension = "xml" if kind in _XML or kind.endswith("+xml") else _TEXTS.get(kind)
    if extension is not None:
        return _Reading(_with_extension(name, extension), None)
    return _told_by_name(fetched, kind, name, named)


def _told_by_name(fetched: Fetched, kind: str, name: str, named: Format | None) -> _Reading:
    """A document's own type, or one of which the name or the first bytes may know better."""
    if format_of_type(kind) is not None:
        return _Reading(name, kind)
    if kind.startswith("text/"):
        return _Reading(name if _is_text(named) else _with_extension(name, "txt"), None)
    if named is None and not fetched.body.startswith((b"%PDF-", b"PK\x03\x04", b"{\\rtf")):
        raise _unreadable(fetched, kind)
    return _Reading(name, None)


def _unreadable(fetched: Fetched, kind: str) -> FetchError:
    return FetchError(str(fetched.url), f"is {kind}, which holds no text that can be read", status=fetched.status)


def _is_text(named: Format | None) -> bool:
    return named is not None and (named is CODE or named.mime_type.startswith("text/"))


def _with_extension(name: str, extension: str) -> str:
    return name if PurePath(name.lower()).suffix == f".{extension}" else f"{name}.{extension}"


def _name(fetched: Fetched) -> str:
    return (fetched.file_name or last_name(fetched.url))[-200:]
