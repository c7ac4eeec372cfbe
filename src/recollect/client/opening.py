"""How clients begin: where, with which key, and what differs in a view of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from recollect.client.attempts import Settings
from recollect.client.place import Place
from recollect.errors import UsageError
from recollect.model.time import read_time


class _Unchanged:
    """Stands for what a new view has from the one that it is made of."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Any = _Unchanged()


def headers_of(url: str, key: str | None, *, allow_insecure: bool) -> tuple[str, dict[str, str]]:
    """The address of a server, and what every request to it says.

    Raises:
        UsageError: The address or the key is none, or the key would go over plain HTTP to another machine.
    """
    key = checked_key(key)
    headers = {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "recollect"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    return checked_address(url, key=key, allow_insecure=allow_insecure), headers


def opened_settings(*, timeout_seconds: float, retries: int) -> Settings:
    """How requests are made.

    Raises:
        UsageError: A number is out of range.
    """
    return refined_settings(Settings(), timeout_seconds=timeout_seconds, retries=retries)


def refined_settings(settings: Settings, **given: Any) -> Settings:  # noqa: ANN401 - of each its own
    """Settings with what is given.

    Raises:
        UsageError: A number is out of range.
    """
    refined = replace(settings, **{name: value for name, value in given.items() if value is not UNCHANGED})
    if not 0 < refined.timeout_seconds <= 86_400:
        raise UsageError(f"timeout_seconds must be more than 0 and at most a day, not {refined.timeout_seconds!r}.")
    if not 0 <= refined.retries <= 100:
        raise UsageError(f"retries must be 0 to 100, not {refined.retries!r}.")
    return refined


def refined(at: Place, **given: Any) -> Place:  # noqa: ANN401 - of each its own
    """A place with what is given.

    Raises:
        UsageError: ``as_of`` is no time, or ``collections`` names none.
    """
    changes = {name: value for name, value in given.items() if value is not UNCHANGED}
    if changes.get("as_of") is not None:
        changes["as_of"] = read_time(changes["as_of"], name="as_of")
    if "collections" in changes:
        changes["collections"] = _names(changes["collections"])
    if changes.get("remotes") is not None:
        changes["remotes"] = tuple(changes["remotes"])
    return replace(at, **changes)


def _names(collections: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if collections is None:
        return None
    names = tuple(dict.fromkeys([collections] if isinstance(collections, str) else collections))
    if not names:
        raise UsageError('Name at least one collection, "*" for all, or None for the configured one.')
    return names


# Where a server is, and whether a key may be sent there.


def checked_address(url: str, *, key: str | None, allow_insecure: bool) -> str:
    """The address without what is not needed of it.

    Raises:
        UsageError: It is none, or a key would go there for everybody on the way to read.
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        raise UsageError(
            f"{_shown(url)!r} is no address of a server: give one such as https://knowledge.example.org."
        ) from exc
    if parts.scheme not in {"http", "https"} or not host:
        raise _no_address(url)
    if parts.username is not None or parts.password is not None:
        raise UsageError("The address of a server holds no credentials: give the key as key.")
    if parts.query or parts.fragment:
        raise UsageError(f"{_shown(url)!r}: the address of a server has neither ? nor #.")
    if key is not None and parts.scheme == "http" and not is_loopback(host) and not allow_insecure:
        raise UsageError(
            f"A key is not sent to {host!r} over plain HTTP, where everybody on the way can read it: use https, or say "
            "allow_insecure where the way is safe."
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def checked_key(key: str | None) -> str | None:
    """A key as a header takes it.

    Raises:
        UsageError: It is none that a header takes; the message repeats nothing of it.
    """
    if key is None:
        return None
    text = key.strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError("The key is none: it is one word, as recollect keys create prints it.")
    return text


def _no_address(url: str) -> UsageError:
    return UsageError(f"{_shown(url)!r} is no address of a server: give one such as https://knowledge.example.org.")


def _shown(url: str) -> str:
    # A password may stand before an @.
    return url.strip().rpartition("@")[2][:200]
