"""Who may do what: rights, sessions with documents, and tenants."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from recollect.config.sections import Lifetime, Section


class RolePreferenceConfig(Section):
    """What a role prefers: scores of ``departments`` are multiplied by ``factor``."""

    departments: tuple[str, ...] = Field(..., description="Whose documents the role prefers.")
    factor: float = Field(1.15, gt=0, le=100, description="What their scores are multiplied by.")


_GRANT = r"!?(\*|(user|role|department|group):.*\S.*)"


class AccessConfig(Section):
    """``[rag.access]``: what it means that somebody asks, rather than the owner of the store."""

    mode: Literal["off", "preference", "enforce"] = Field(
        "enforce",
        description="enforce: nobody finds what they may not read; preference: who asks moves the order; off: neither.",
    )
    default_permissions: (
        Literal["everyone", "department"]
        | Annotated[tuple[Annotated[str, Field(pattern=f"^{_GRANT}$")], ...], Field(min_length=1)]
    ) = Field(
        "everyone",
        description="Who may read documents that nobody has given permissions: everyone: whoever the collection's own "
        "default names, at first everybody; department: the document's department; or grants such as role:staff.",
    )
    role_departments: dict[str, tuple[Annotated[str, Field(pattern=r"\S")], ...]] = Field(
        default_factory=dict,
        description='By role, the departments whose documents it reads as if it belonged there; "*": every one.',
    )
    department_boost: float = Field(
        1.2, gt=0, le=100, description="In preference mode, for documents of the asker's department."
    )
    other_departments: float = Field(
        0.9, gt=0, le=100, description="In preference mode, for those of other departments."
    )
    role_preferences: dict[str, RolePreferenceConfig] = Field(
        default_factory=lambda: {
            "SecurityAnalyst": RolePreferenceConfig(departments=("security", "it", "general"), factor=1.15)
        },
        description="In preference mode, by role.",
    )
    privileged_roles: tuple[str, ...] = Field(
        ("Manager", "Executive", "Admin", "SysAdmin", "Auditor"),
        description="In preference mode, roles for which nothing is moved.",
    )


class SessionDefaults(Section):
    """``[rag.session]``: how long the documents of a session stay, and how many there may be."""

    ttl: Lifetime = Field(
        3_600.0, description="How long a session lives: seconds, or 12h, 2d; never: until it is ended."
    )
    max_documents: int = Field(100, ge=1, le=1_000_000, description="Documents of a session at most.")
    auto_cleanup: bool = Field(True, description="Whether whoever comes across an expired session removes it.")
    when_full: Literal["error", "oldest"] = Field(
        "error", description="What one document too many does: it is refused, or the oldest one goes."
    )


class MultiTenantConfig(Section):
    """``[rag.multi_tenant]``: what `MultiTenantRAG` keeps apart, and how."""

    isolation_level: Literal["strict", "shared"] = Field(
        "strict",
        description="strict: the database must keep tenants apart, and nothing is shared; shared: a tenant also reads "
        "the collections that others share with it.",
    )
    per_tenant_collections: bool = Field(
        True, description="Whether a tenant's collection is named after it; otherwise all have the configured name."
    )
    collection_prefix: str = Field(
        "tenant_", max_length=50, description="What the name of a tenant's collection begins with."
    )
