"""What sections of the settings have in common, and the types of settings that several of them have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as exc:  # nobody has that name
        raise ValueError(str(exc)) from exc


def _unless_never(given: object) -> object:
    return None if isinstance(given, str) and given.strip().lower() == "never" else given


#: A path; ``~`` is the home of whoever runs the program.
Folder = Annotated[Path, AfterValidator(_expanded)]
#: A time to live; None and "never" mean without end. TOML has no word for None.
Lifetime = Annotated[str | float | None, BeforeValidator(_unless_never)]


class Section(BaseModel):
    """A table of settings: unknown keys are errors, and nothing changes once it is read."""

    # An error must not show a value, which may be a password.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class ProviderSection(Section):
    """How a provider of models is reached."""

    api_key: SecretStr | None = Field(
        None, description="The provider's key; by default that of its own variable in the environment."
    )
    base_url: str | None = Field(None, description="Another address than the provider's own.")
    region: str | None = Field(None, description="Of a cloud that has several.")
    timeout_seconds: float = Field(60.0, gt=0, description="The longest wait for one answer of the provider.")
    max_retries: int = Field(3, ge=0, le=20, description="How often a request that may succeed later is repeated.")
    input_price: float | None = Field(
        None, ge=0, description="Of a million tokens that are sent, for the log of requests; by default unknown."
    )
