"""How people log in with a browser, and how long that lasts."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from recollect.config.sections import Section


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
