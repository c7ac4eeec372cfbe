"""Clients of a server: the methods of a view over HTTP.

`Client` waits for replies, `AsyncClient` awaits them; what they ask stands once, in ``calls``.
"""

from typing import TYPE_CHECKING

from recollect._names import imported_on_use as _imported_on_use

if TYPE_CHECKING:
    from recollect.client.asynchronous import AsyncClient
    from recollect.client.client import Client

__all__ = ["AsyncClient", "Client"]

__getattr__, __dir__ = _imported_on_use(
    __name__,
    {"recollect.client.asynchronous": ("AsyncClient",), "recollect.client.client": ("Client",)},
)
