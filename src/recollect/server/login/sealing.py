"""What is kept for a browser so that only the browser's own cookie opens it again."""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

# A key is derived from one secret for one text, so no two texts meet the same key.
_NONCE = bytes(12)


def seal(text: str, secret: str) -> bytes:
    """Encrypt a text with a secret of 256 random bits, of which nothing but a hash is kept."""
    return AESGCM(_key(secret)).encrypt(_NONCE, text.encode(), None)


def unseal(sealed: bytes, secret: str) -> str | None:
    """The text; None: it was sealed with another secret, or was changed."""
    try:
        return AESGCM(_key(secret)).decrypt(_NONCE, sealed, None).decode()
    except InvalidTag:
        return None


def _key(secret: str) -> bytes:
    return HKDF(SHA256(), length=32, salt=None, info=b"recollect login").derive(secret.encode())
