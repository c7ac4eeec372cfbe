"""What may be fetched from elsewhere, and as whom."""

from __future__ import annotations

from pydantic import Field, field_validator

from recollect.config.sections import Section


class SourcesConfig(Section):
    """``[rag.sources]``: what may be fetched from the web."""

    allow_private_addresses: bool = Field(
        False,
        description="Whether this machine and private networks may be contacted; metadata services never may.",
    )
    allowed_hosts: tuple[str, ...] = Field(
        (),
        description="Hosts (with those below them), host:port, addresses or networks; any: nothing else is contacted.",
    )
    denied_hosts: tuple[str, ...] = Field(
        (), description="Hosts (with those below them), addresses or networks that are never contacted."
    )
    max_bytes: int = Field(50 * 1024 * 1024, ge=1, description="Of a page, as it travels and unpacked.")
    timeout_seconds: float = Field(
        30.0, gt=0, le=3600, description="For a page, from its first look-up to its last byte, redirects included."
    )
    user_agent: str = Field("recollect", min_length=1, max_length=200, description="What sites are told who asks.")

    allow_local_repositories: bool = Field(
        False, description="Whether a Git repository of this machine may be read, by its path."
    )

    @field_validator("user_agent")
    @classmethod
    def _one_header(cls, value: str) -> str:
        if not value.isascii() or not value.isprintable() or not value.strip():
            raise ValueError("must be printable ASCII: it is sent as a header")
        return value
