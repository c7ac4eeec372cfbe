"""Where a server is, and whether a key may be sent there."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from recollect.errors import UsageError


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
