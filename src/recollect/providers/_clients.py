"""Closing what a provider's file has opened."""

from __future__ import annotations

import contextlib


def close_client(backend: object) -> None:
    """Close the SDK's client that a backend keeps as ``_client``, if there is one; the next request makes another."""
    client = vars(backend).pop("_client", None)
    close = getattr(client, "close", None)
    if close is not None:
        with contextlib.suppress(Exception):
            close()
