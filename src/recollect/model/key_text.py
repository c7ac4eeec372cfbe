"""How a key is written: ``rk_<tenant>_<id>_<secret and checksum>``.

The tenant stands in it because the database shows a connection nothing before it knows whose it is. The prefix and the
lengths are what scanners for leaked secrets look for (`PATTERN`); the checksum tells a key that was cut off or mistyped
from one that was revoked, without asking the database, and keeps the scanners from false alarms.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
import zlib
from dataclasses import dataclass, field

from recollect.errors import AuthenticationError

PREFIX = "rk_"

#: What a browser's cookie begins with after a login; it is written like a key, and taken nowhere else.
LOGIN_PREFIX = "rl_"

#: What keys look like, for scanners.
PATTERN = r"rk_[1-9][0-9]{0,9}_[0-9A-Za-z]{14}_[0-9A-Za-z]{49}"

#: What keys and cookies look like: nothing of either is to stand in a log or an address.
SECRET_PATTERN = r"r[kl]_[1-9][0-9]{0,9}_[0-9A-Za-z]{14}_[0-9A-Za-z]{49}"

#: In the order of ASCII, so that ids sort as the times that they begin with.
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TIME_DIGITS, _RANDOM_DIGITS = 6, 8
# 62^43 is more than 2^256.
_SECRET_DIGITS = 43
_CHECKSUM_DIGITS = 6
_SECRET = re.compile(SECRET_PATTERN, re.ASCII)
_LARGEST_TENANT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class KeyText:
    """A key as it is presented.

    Attributes:
        tenant_id: Whose it says that it is.
        key_id: Its public part.
        text: All of it; ``repr`` does not show it.
    """

    tenant_id: int
    key_id: str
    text: str = field(repr=False)

    @property
    def hash(self) -> bytes:
        """What is kept of it: SHA-256 of the whole."""
        return hashlib.sha256(self.text.encode("ascii")).digest()


def draw_key(tenant_id: int, key_id: str | None = None) -> KeyText:
    """A new key.

    Args:
        tenant_id: Whose.
        key_id: Of a key that gets another secret; None: a new id.
    """
    return _new(PREFIX, tenant_id, key_id)


def draw_login(tenant_id: int) -> KeyText:
    """What a browser's cookie holds after a login to a tenant; its `key_id` is the login's public id."""
    return _new(LOGIN_PREFIX, tenant_id, None)


def read_key(text: str) -> KeyText:
    """A key that somebody presents; whether there is such a key is the store's to say.

    Raises:
        AuthenticationError: It is none, or was cut off or mistyped. The message repeats nothing of it.
    """
    if not text.startswith(PREFIX) or _SECRET.fullmatch(text) is None:
        raise AuthenticationError("That is no API key: one begins with rk_ and has 69 characters or a few more.")
    read = _read(text)
    if read is None:
        raise AuthenticationError("The API key was not copied whole, or was changed: its checksum does not fit.")
    return read


def read_login(text: str) -> KeyText:
    """What a browser's cookie says of its login; whether there is such a one is the store's to say.

    Raises:
        AuthenticationError: It is none. The message repeats nothing of it.
    """
    whole = text.startswith(LOGIN_PREFIX) and _SECRET.fullmatch(text) is not None
    read = _read(text) if whole else None
    if read is None:
        raise AuthenticationError("The browser's cookie is of no login: log in.")
    return read


def _new(prefix: str, tenant_id: int, key_id: str | None) -> KeyText:
    key_id = key_id or _written(int(time.time()), _TIME_DIGITS) + _drawn(_RANDOM_DIGITS)
    body = f"{prefix}{tenant_id}_{key_id}_{_drawn(_SECRET_DIGITS)}"
    return KeyText(tenant_id, key_id, body + _checksum(body))


def _read(text: str) -> KeyText | None:
    body, checksum = text[:-_CHECKSUM_DIGITS], text[-_CHECKSUM_DIGITS:]
    _, tenant, key_id, _ = text.split("_")
    fits = secrets.compare_digest(_checksum(body), checksum) and int(tenant) <= _LARGEST_TENANT
    return KeyText(int(tenant), key_id, text) if fits else None


def _checksum(body: str) -> str:
    return _written(zlib.crc32(body.encode("ascii")), _CHECKSUM_DIGITS)


def _drawn(count: int) -> str:
    return "".join(secrets.choice(_DIGITS) for _ in range(count))


def _written(number: int, count: int) -> str:
    digits = []
    for _ in range(count):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
