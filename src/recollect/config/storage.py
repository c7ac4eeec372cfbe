"""Where data lies, how documents are cut and ingested, what may be fetched, and how personal data is treated."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from recollect.config.sections import Folder, Lifetime, Section


def _default_data_dir() -> Path:
    # What root keeps below its home is out of reach for the account that its server runs under.
    if sys.platform == "linux" and os.geteuid() == 0:
        return Path("/var/lib/recollect")
    return platformdirs.user_data_path("recollect")


class StorageConfig(Section):
    """``[rag.storage]``: the embedded PostgreSQL by default, any other by DSN."""

    data_dir: Folder = Field(
        default_factory=_default_data_dir,
        description="Where the embedded server keeps its data.",
    )
    dsn: SecretStr | None = Field(None, description="libpq connection string of a PostgreSQL with pgvector.")
    application_dsn: SecretStr | None = Field(
        None, description="With dsn: the same for a role that owns nothing, which searches and writes are done as."
    )
    read_dsn: SecretStr | None = Field(
        None,
        description="With dsn: of a streaming replica of the same database, which searches and texts are read from "
        "while it has what they must see.",
    )
    max_connections: int = Field(
        10, ge=2, le=1000, description="Connections that one process opens at most, and as many to a replica."
    )
    index_threshold: int = Field(
        10_000, ge=1, description="Chunks from which on a collection's vectors get an approximate index."
    )


class ChunkingConfig(BaseModel):
    """``[rag.chunking]``: how documents are cut. A strategy's own parameters stand beside its name."""

    # Parameters differ by strategy; the strategy itself rejects the ones it does not know.
    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    strategy: str = Field("recursive", description="Name of the chunking strategy.")

    @property
    def parameters(self) -> dict[str, Any]:
        """The strategy's own parameters, as given."""
        return dict(self.model_extra or {})


class IngestConfig(Section):
    """``[rag.ingest]``: which files are read."""

    max_file_bytes: int = Field(50 * 1024 * 1024, ge=1, description="Larger files are skipped.")
    readers: int = Field(2, ge=1, le=64, description="Files that are parsed at the same time.")
    follow_links: bool = Field(
        False, description="Whether links below a folder are followed, wherever they lead; otherwise they are skipped."
    )
    parse_seconds: float = Field(
        50.0, gt=0, le=86_400, description="Seconds after which the parser of a file is ended and the file refused."
    )
    parse_memory_bytes: int = Field(
        384 * 1024 * 1024,
        ge=32 * 1024 * 1024,
        description="Bytes of memory that the parser of a file may take, and 8 more for each byte of the file.",
    )
    max_characters: int = Field(
        5_000_000,
        ge=1,
        description="Characters that a file may give when it is parsed; as many as it has bytes are always allowed.",
    )
    contextualise: str | None = Field(
        None,
        pattern=r"^[a-z]+/.+$",
        description="A language model, as provider/model, that writes a sentence for each chunk which situates it in "
        "its document: indexed with it, never shown. By default none does.",
    )
    keep_originals: Literal["never", "uploads", "always"] = Field(
        "uploads",
        description="Whether files are kept as they came: of uploads and web pages, or those of folders too.",
    )


class TemporalIndexingConfig(Section):
    """``[rag.temporal.indexing]``: what grows without end is kept in partitions by time."""

    time_partitions: Literal["hourly", "daily", "weekly", "monthly"] = Field(
        "monthly", description="How long a partition of the audit, and of the logs of requests and accesses, is."
    )
    partition_retention_days: int | None = Field(
        None, ge=1, description="Days after whose end a partition is dropped whole; by default none is."
    )
    request_retention_days: int | None = Field(90, ge=1, description="The same for the log of requests to providers.")
    access_retention_days: int | None = Field(
        365, ge=1, description="The same for the log of what the server showed to whom."
    )
    question_retention_days: int | None = Field(
        90, ge=1, description="Days after which questions are removed from that log; their hashes stay."
    )


class TemporalConfig(Section):
    """``[rag.temporal]``: how long documents are kept."""

    default_ttl: Lifetime = Field(
        None, description="How long documents are found that say nothing else: 30d, 12h, or seconds; never: for ever."
    )
    preserve_tags: tuple[str, ...] = Field(
        ("critical", "compliance", "legal"), description="Documents with one of these tags never expire."
    )
    auto_expire: bool = Field(True, description="Whether searches leave out what has expired; otherwise cleanup does.")
    cleanup_interval_hours: float = Field(
        24.0,
        ge=0,
        description="Hours between two clean-ups by whichever process is open for a minute or more; 0: none.",
    )
    scrub_after_erased: int = Field(
        0,
        ge=0,
        description="After how many erased documents and turns a clean-up takes them out of the files too; 0: never.",
    )
    indexing: TemporalIndexingConfig = TemporalIndexingConfig()


# What may be fetched from elsewhere, and as whom.


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


# Settings of what is done with personal data.


class PrivacyConfig(Section):
    """``[rag.privacy]``: what becomes of personal data in what is stored; a tenant may have a policy of its own."""

    pii: Literal["off", "tag", "redact", "refuse"] = Field(
        "off",
        description="What becomes of e-mail addresses, telephone, card, account and identity numbers and IP addresses: "
        "off looks for none; tag counts them by kind; redact takes them out before anything is stored; refuse stores "
        "nothing that has any. A tenant's own policy (recollect tenants set-pii) goes before.",
    )
    send_pictures: bool = Field(
        False,
        description="Whether pictures are sent to the model of rag.documents.describe_images also where personal data "
        "is redacted or refused: what they show cannot be looked at before.",
    )
    phone_regions: tuple[Annotated[str, Field(pattern=r"^[A-Z]{2}$")], ...] = Field(
        ("US", "GB", "DE", "FR", "IL", "IN", "CA", "BR"),
        description="Countries whose telephone numbers are known without their code (ISO 3166-1).",
    )
