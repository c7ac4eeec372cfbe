"""How the server is reached, whom it lets in, and how work in the background is run."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from recollect.config.sections import Folder, Section

# How people log in with a browser, and how long that lasts.


def _variable(name: str) -> str:
    if not name.startswith("env:") or not name.removeprefix("env:").isidentifier():
        raise ValueError("must be env:NAME: the name of a variable that holds it")
    return name


#: A secret, named by the variable of the environment that holds it, so that it stands in no file of settings.
SecretVariable = Annotated[str, AfterValidator(_variable)]


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class OidcConfig(Section):
    """``[rag.server.login.oidc]``: an issuer that people log in with (OpenID Connect).

    Its tokens are read by ``[rag.server.jwt]``'s ``claims``, ``scopes``, ``max_scopes``, ``role_scopes``,
    ``require_tenant`` and ``leeway_seconds``.
    """

    issuer: str | None = Field(
        None, description="The issuer's URL, as its tokens name it; its configuration is found below that."
    )
    client_id: str | None = Field(None, min_length=1, description="As the server is registered there.")
    client_secret: SecretVariable | None = Field(
        None, description="env:NAME of the variable with the client's secret; none where the issuer gives none."
    )
    name: str = Field("single sign-on", min_length=1, max_length=60, description="What the login page calls it.")
    scopes: tuple[str, ...] = Field(
        ("openid", "profile", "email"), description="What the issuer is asked for; openid among them."
    )
    allowed_hosts: tuple[str, ...] = Field(
        (), description="The issuer's hosts where they are in a private network: names, host:port or addresses."
    )

    @property
    def configured(self) -> bool:
        """Whether people log in there."""
        return self.issuer is not None

    @property
    def on_loopback(self) -> bool:
        """Whether the issuer is on this machine, where a connection needs no encryption."""
        return self.issuer is not None and urlsplit(self.issuer).hostname in _LOOPBACK

    @model_validator(mode="after")
    def _usable(self) -> OidcConfig:
        if self.issuer is None:
            return self
        try:
            parts = urlsplit(self.issuer)
            plain = bool(parts.hostname) and not (parts.query or parts.fragment or parts.username)
        except ValueError:
            plain = False
        if not plain or not (self.issuer.startswith("https://") or (parts.scheme == "http" and self.on_loopback)):
            raise ValueError("issuer must be an https:// URL without ? and #; http:// on this machine alone")
        if self.client_id is None:
            raise ValueError("needs a client_id: as the server is registered with the issuer")
        if "openid" not in self.scopes or not all(one.isprintable() and " " not in one for one in self.scopes):
            raise ValueError("scopes must be names, openid among them")
        return self


class LoginConfig(Section):
    """``[rag.server.login]``: how people log in with a browser, and how long that lasts."""

    keys: bool = Field(True, description="Whether the login page takes API keys.")
    idle_seconds: float = Field(
        7_200.0, ge=300, le=2_592_000, description="After how long a login ends that is not used."
    )
    lifetime_seconds: float = Field(
        43_200.0, ge=300, le=7_776_000, description="After how long a login ends, however much it is used."
    )
    oidc: OidcConfig = Field(default_factory=OidcConfig)


_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#*@]+")


_AccessScope = Literal["read", "write", "admin", "operator"]


class JwtClaimsConfig(Section):
    """``[rag.server.jwt.claims]``: where a token says whose and who. A name within another is written with a dot."""

    tenant: str = Field("tenant", min_length=1, description="The tenant, by name or number.")
    user: str = Field("sub", min_length=1, description="The user; every token must name one.")
    roles: str = Field("roles", min_length=1, description="The roles: a list, or words with blanks between.")
    department: str = Field("department", min_length=1, description="The department.")
    groups: str = Field("groups", min_length=1, description="The groups: a list, or words with blanks between.")
    scopes: str = Field(
        "scope", min_length=1, description="What the token opens: a list, or words with blanks between."
    )


class JwtConfig(Section):
    """``[rag.server.jwt]``: bearer tokens (JWT) of an issuer that is trusted, verified with one of three keys."""

    secret: SecretVariable | None = Field(
        None, description="env:NAME of the variable with the secret of their signatures (HS256); 32 bytes or more."
    )
    public_key: Folder | None = Field(
        None, description="A PEM file with the public key of their signatures (RS256 or ES256, by its kind)."
    )
    jwks_url: str | None = Field(None, description="Where the issuer publishes its public keys (RS256, ES256).")
    jwks_allowed_hosts: tuple[str, ...] = Field(
        (), description="The issuer's host where it is in a private network: a name, host:port or address."
    )
    jwks_cache_seconds: float = Field(
        300.0, ge=10, le=86_400, description="How long published keys are used before they are fetched anew."
    )
    issuer: str | None = Field(None, min_length=1, description="What a token's iss must be.")
    audience: str | None = Field(
        None, min_length=1, description="What a token's aud must name; needed beside public keys."
    )
    leeway_seconds: float = Field(30.0, ge=0, le=300, description="How far clocks may differ.")
    claims: JwtClaimsConfig = JwtClaimsConfig()
    require_tenant: bool | None = Field(
        None,
        description="Whether a token must name its tenant, or is of the configured one otherwise; by default it must "
        "where the store has several.",
    )
    scopes: tuple[_AccessScope, ...] = Field(("read",), description="What a token opens that names no scope.")
    max_scopes: tuple[_AccessScope, ...] = Field(
        ("read", "write", "admin"), description="What a token can open at most, whatever it says."
    )
    role_scopes: dict[str, tuple[_AccessScope, ...]] = Field(
        default_factory=dict, description="By role, what it opens beside what the token says."
    )

    @property
    def configured(self) -> bool:
        """Whether tokens are taken at all."""
        return not (self.secret is None and self.public_key is None and self.jwks_url is None)

    @model_validator(mode="after")
    def _one_key(self) -> JwtConfig:
        url = self.jwks_url
        if url is not None and not url.startswith(("https://", "http://") if self.jwks_allowed_hosts else "https://"):
            raise ValueError("jwks_url must begin with https://, or name its host as one of jwks_allowed_hosts")
        keys = [name for name in ("secret", "public_key", "jwks_url") if getattr(self, name) is not None]
        if len(keys) > 1:
            raise ValueError(f"names {' and '.join(keys)}: a token must be verified in one way only")
        if keys and keys != ["secret"] and self.audience is None:
            raise ValueError("needs an audience: with public keys alone, tokens for other services would be taken too")
        return self


class LimitsConfig(Section):
    """``[rag.server.limits]``: how much a caller may ask for; the one user of this machine is not limited.

    Requests a minute are refilled as the minute passes. None: any number.
    """

    search: int | None = Field(12_000, ge=1, description="Searches and other reads of a credential.")
    answer: int | None = Field(120, ge=1, description="Answers of a language model to a credential.")
    ingest: int | None = Field(600, ge=1, description="Writes of a credential.")
    tenant_search: int | None = Field(None, ge=1, description="Searches and other reads of all of a tenant's callers.")
    tenant_answer: int | None = Field(None, ge=1, description="Answers to all of a tenant's callers.")
    tenant_ingest: int | None = Field(None, ge=1, description="Writes of all of a tenant's callers.")
    concurrent_answers: int = Field(256, ge=1, description="Answers that a process writes at the same time.")
    concurrent_answers_per_credential: int = Field(200, ge=1, description="Of these, for one credential.")
    failed_credentials: int | None = Field(
        60, ge=1, description="Credentials of an address, and secrets of a key, that are not taken."
    )
    upload_bytes_per_day: int | None = Field(
        None, ge=1, description="What all of a tenant's callers may send to be stored in a day (UTC); by default any."
    )


class AuditConfig(Section):
    """``[rag.server.audit]``: what is kept of requests. ``[rag.temporal.indexing]`` says for how long."""

    questions: Literal["keep", "hash", "off"] = Field(
        "keep",
        description="Of questions: keep: their words; hash: a keyed hash, which tells which are the same; off: none.",
    )
    before_reply: bool = Field(
        False,
        description="Whether what a reply shows is stored before it is sent; by default within two seconds.",
    )


class ServerConfig(Section):
    """``[rag.server]``: how ``recollect serve`` is reached, and whom it lets in."""

    host: str = Field("127.0.0.1", min_length=1, description="The address to listen on.")
    port: int = Field(8321, ge=0, le=65_535, description="The port to listen on; 0: any that is free.")
    authentication: Literal["auto", "required"] = Field(
        "auto",
        description="required: everybody needs a credential; auto: likewise, but on a server of this machine alone "
        "that takes no tokens.",
    )
    jwt: JwtConfig = Field(default_factory=JwtConfig)
    login: LoginConfig = Field(default_factory=LoginConfig)
    limits: LimitsConfig = LimitsConfig()
    audit: AuditConfig = AuditConfig()
    allowed_hosts: tuple[str, ...] = Field(
        (),
        description="Names that requests come under, beside this machine's own; none: any, as each needs a credential.",
    )
    allow_origins: tuple[str, ...] = Field(
        (),
        description="Sites and webviews whose pages may use the API with a key (CORS), for instance "
        "https://app.example.com or tauri://localhost; a browser's login does not count for them. By default none.",
    )
    public_url: str | None = Field(
        None,
        pattern=r"^https?://[^\s/?#]+(/[^\s?#]*)?$",
        description="How clients reach the server, where a proxy stands before it, for instance "
        "https://knowledge.example.com; by default as each request came.",
    )
    trusted_proxies: tuple[str, ...] = Field(
        (),
        description="Addresses or networks of proxies that say truly where a request came from (X-Forwarded-For and "
        "X-Forwarded-Proto); of all others that is not believed.",
    )
    max_body_bytes: int = Field(8 << 20, ge=1_024, description="The longest body of a request that uploads no file.")
    max_upload_bytes: int = Field(2 << 30, ge=1_024, description="The longest upload.")
    max_streams: int = Field(256, ge=1, le=10_000, description="Answers that are streamed at the same time.")
    concurrent_searches: int | None = Field(
        None,
        ge=1,
        le=1_000,
        description="Searches that a process computes at the same time. Tenants and credentials share them equally; as "
        "many more run for callers who would wait for those of others. By "
        "default two for each processor, at least four; 40 where a provider's model embeds, reranks or rewords, which "
        "a search only waits for.",
    )
    search_seconds: float = Field(
        60.0,
        ge=1,
        le=3_600,
        description="How long a request waits for its search at most, its turn included; then it is stopped (503).",
    )
    keep_alive_seconds: int = Field(30, ge=1, le=3_600, description="How long an idle connection is kept.")
    answer_models: tuple[str, ...] = Field(
        (),
        description="Language models that requests may name beside the configured one, as provider/model; * stands for "
        "any characters.",
    )
    footnotes: bool = Field(
        True, description="Whether answers to OpenAI's clients list what they cite in their text, beside annotations."
    )
    worker_concurrency: int = Field(1, ge=1, le=64, description="Jobs that run beside requests at the same time.")
    log_format: Literal["text", "json"] = Field(
        "text", description="How `recollect serve` writes its log: lines for people, or a JSON object a line."
    )
    traces: bool = Field(
        False,
        description="Whether requests, searches and calls of models are traced, by OpenTelemetry (the extra otel).",
    )

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for one in given:
            try:
                ip_network(one)
            except ValueError as exc:
                raise ValueError(f"{one!r} is neither an address nor a network ({exc})") from exc
        return given

    @field_validator("allow_origins")
    @classmethod
    def _origins(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for one in given:
            if not _ORIGIN.fullmatch(one):
                raise ValueError(
                    f"{one!r} is no origin: give the scheme and the host, with the port if it has one, as in "
                    "https://app.example.com. Any site at all cannot be allowed"
                )
        return tuple(one.lower() for one in given)

    @model_validator(mode="after")
    def _address_for_issuers(self) -> ServerConfig:
        if self.login.oidc.configured and self.public_url is None and not _is_loopback(self.host):
            raise ValueError("login.oidc needs public_url: where the issuer sends people back to")
        return self


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


# How work in the background is run.


class JobsConfig(Section):
    """``[rag.jobs]``: what is done in the background, and tried again where it fails."""

    max_attempts: int = Field(3, ge=1, le=100, description="How often a job is tried that may succeed later.")
    backoff_seconds: float = Field(
        10.0, ge=0, le=3600, description="The wait before a second attempt; before each further one four times as long."
    )
    heartbeat_seconds: float = Field(2.0, gt=0, le=60, description="From one sign of life of a worker to the next.")
    stalled_seconds: float = Field(
        30.0, gt=0, le=3600, description="Without one for so long, a worker's jobs are given to others."
    )
    poll_seconds: float = Field(
        2.0, gt=0, le=60, description="How often a worker looks for jobs where the database does not tell it of them."
    )
    stop_seconds: float = Field(
        20.0, ge=0, le=3600, description="How long a worker that is asked to end waits for the jobs that it runs."
    )
    keep_days: float | None = Field(30.0, gt=0, description="Days after which a job that has ended is forgotten.")
