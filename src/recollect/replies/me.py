"""Who asks a server, what they may, and what it is configured with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from recollect.model import Principal
from recollect.model.document_session import SessionConfig
from recollect.model.key import AccessScope, BrowserLogin
from recollect.model.search_options import FusionMethod, SearchMode
from recollect.replies._shape import Shape, Timestamp

if TYPE_CHECKING:
    from recollect.config import RAGConfig


class SessionSettingsJson(Shape):
    """How long the documents of a session stay, and how many there may be, where nothing is said."""

    ttl_seconds: float | None
    """Null: until it is ended."""
    max_documents: int
    when_full: Literal["error", "oldest"]
    auto_cleanup: bool


class ServerSettingsJson(Shape):
    """What a server does where a request says nothing."""

    collection: str
    """The one that is searched and written to."""
    language: str
    """ISO 639-1, of new collections."""
    mode: SearchMode
    fusion: FusionMethod
    top_k: int
    """Passages of a search."""
    passages: int
    """Passages that an answer may rest on."""
    chunking: dict[str, Any]
    """How new collections are cut: the strategy and its parameters."""
    writes_answers: bool
    """Whether a language model writes them; otherwise they are quotes."""
    adaptive_weights: bool
    """Whether feedback moves the weights of contexts."""
    session: SessionSettingsJson


class CredentialJson(Shape):
    """What somebody is known by."""

    kind: Literal["key", "jwt", "oidc", "local"]
    """An API key, a token of an issuer, a login with an issuer, or nothing, on this machine."""
    id: str
    """The key's public id, or the issuer's user."""
    expires_at: Timestamp | None


class CallerTenantJson(Shape):
    """Whose knowledge."""

    tenant_id: int
    name: str


class MeJson(Shape):
    """Who asks, and what they may."""

    tenant: CallerTenantJson
    principal: Principal | None
    """As whom; null: as the owner of the tenant's store."""
    scopes: list[AccessScope]
    """What the credential opens."""
    credential: CredentialJson
    login: BrowserLogin | None
    """The browser's login; null: the credential is presented itself."""
    settings: ServerSettingsJson


def server_settings_json(config: RAGConfig) -> ServerSettingsJson:
    """What a server with these settings does where a request says nothing."""
    lifetime = SessionConfig(ttl=config.session.ttl).lifetime
    return {
        "collection": config.collection,
        "language": config.language,
        "mode": config.retrieval.mode,
        "fusion": config.retrieval.fusion,
        "top_k": config.top_k,
        "passages": config.answer.passages,
        "chunking": {"strategy": config.chunking.strategy, **config.chunking.parameters},
        "writes_answers": config.answer.provider != "extractive",
        "adaptive_weights": config.memory.adaptive_weights,
        "session": {
            "ttl_seconds": None if lifetime is None else lifetime.total_seconds(),
            "max_documents": config.session.max_documents,
            "when_full": config.session.when_full,
            "auto_cleanup": config.session.auto_cleanup,
        },
    }
