"""Who asks: credentials to callers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import AuthenticationError
from recollect.server.caller import Caller, Credential
from recollect.server.origin import is_loopback

if TYPE_CHECKING:
    from recollect.pipeline import RAGPipeline


class Authenticator:
    """Tells who asks by the credential of a request.

    Args:
        rag: The open store, with its settings.
    """

    def __init__(self, rag: RAGPipeline) -> None:
        self._rag = rag
        settings = rag.config.server
        self._open = settings.authentication == "auto" and is_loopback(settings.host)

    def authenticate(self, authorization: str | None, *, api_key: str | None) -> Caller:
        """The caller that a credential names.

        Args:
            authorization: The header of that name.
            api_key: A key of its own header.

        Raises:
            AuthenticationError: There is none and one is needed, or it is not valid.
        """
        key = api_key
        if authorization is not None:
            scheme, _, key = authorization.partition(" ")
            if scheme.lower() != "bearer":
                raise AuthenticationError("Send the credential as Authorization: Bearer …, or a key as X-API-Key.")
        if key is None:
            if self._open:
                return Caller.local(self._rag.scope.tenant_id)
            raise AuthenticationError("This server needs a credential: send an API key as Authorization: Bearer ….")
        found = self._rag.keys.authenticate(key.strip())
        return Caller(
            tenant=found.tenant_id,
            principal=found.principal,
            scopes=frozenset(found.scopes),
            credential=Credential(kind="key", id=found.key_id, expires_at=found.expires_at),
        )
