"""Connectors by name, and the settings that each declares, as a form asks for them."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from pydantic import ValidationError
from pydantic_core import PydanticUndefined

from recollect.errors import ConfigurationError, UsageError
from recollect.plugins import Plugins
from recollect.sources.base import ConnectorClass, ConnectorSettings, is_secret_reference

#: ``lines``: several texts, one a line. ``secret``: the name of an environment variable, as ``env:NAME``.
SettingKind = Literal["text", "whole", "number", "switch", "lines", "secret", "choice"]

# What every source is asked for beside its connector's settings.
_ASKED_ELSEWHERE = frozenset({"location", "grants", "tags"})
_COMMON = frozenset(ConnectorSettings.model_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSetting:
    """One setting of a connector.

    Attributes:
        name: Of the setting.
        kind: What is asked for.
        required: Whether there is no default.
        default: What counts where nothing is said; None: nothing.
        choices: Of a ``choice``, what there is.
        about: What it is, where the connector says so.
        common: Whether every connector has it.
    """

    name: str
    kind: SettingKind
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    about: str = ""
    common: bool = False


def declared_settings(connector: str) -> tuple[DeclaredSetting, ...]:
    """The settings that the connector of a name declares; none where it declares none, or is not installed."""
    try:
        kind = connector_class(connector).Settings
    except (UsageError, ConfigurationError, ImportError, AttributeError):
        return ()
    hints = get_type_hints(kind, include_extras=True)
    found = tuple(
        DeclaredSetting(
            name=name,
            kind=_kind_of(hints[name]),
            required=field.is_required(),
            default=_default(field.get_default(call_default_factory=True)),
            choices=_choices(hints[name]),
            about=field.description or "",
            common=name in _COMMON,
        )
        for name, field in kind.model_fields.items()
        if name not in _ASKED_ELSEWHERE
    )
    return found if any(not one.common for one in found) else ()


def read_declared(declared: tuple[DeclaredSetting, ...], given: Mapping[str, str]) -> dict[str, Any]:
    """The settings that somebody has typed, each by its kind; what is empty is left to its default.

    Raises:
        UsageError: One is missing, or is none of its kind. The message does not repeat its value.
    """
    settings: dict[str, Any] = {}
    for one in declared:
        text = given.get(one.name, "").strip()
        if text:
            settings[one.name] = _value(one, text)
        elif one.required:
            raise UsageError(f"The setting {one.name} is missing.")
    return settings


def _value(one: DeclaredSetting, text: str) -> object:
    match one.kind:
        case "lines":
            return [line.strip() for line in text.splitlines() if line.strip()]
        case "switch":
            if text not in {"true", "false"}:
                raise UsageError(f"The setting {one.name} is true or false.")
            return text == "true"
        case "whole" | "number":
            try:
                return int(text) if one.kind == "whole" else float(text)
            except ValueError:
                raise UsageError(f"The setting {one.name} is a number.") from None
    return text


def settings_of_dataclass(kind: type) -> tuple[DeclaredSetting, ...]:
    """The fields of a dataclass as settings; each has a default."""
    hints = get_type_hints(kind)
    return tuple(
        DeclaredSetting(name=one.name, kind=_kind_of(hints[one.name]), default=one.default) for one in fields(kind)
    )


def _default(value: object) -> object:
    return None if value is PydanticUndefined else value


def _bare(hint: Any) -> Any:  # noqa: ANN401 - any annotation
    """A hint without the None that it allows beside one thing."""
    if get_origin(hint) in {Union, types.UnionType}:
        others = [one for one in get_args(hint) if one is not types.NoneType]
        return others[0] if len(others) == 1 else str
    return hint


def _kind_of(hint: Any) -> SettingKind:  # noqa: ANN401 - see above
    hint = _bare(hint)
    if is_secret_reference(hint):
        return "secret"
    while hasattr(hint, "__metadata__"):
        hint = _bare(get_args(hint)[0])
    if get_origin(hint) is Literal:
        return "choice"
    if get_origin(hint) in {tuple, list, set, frozenset} or hint in {tuple, list, set, frozenset}:
        return "lines"
    kinds: dict[Any, SettingKind] = {bool: "switch", int: "whole", float: "number"}
    return kinds.get(hint, "text")


def _choices(hint: Any) -> tuple[str, ...]:  # noqa: ANN401 - see above
    hint = _bare(hint)
    return tuple(str(one) for one in get_args(hint)) if get_origin(hint) is Literal else ()


# Which connectors there are, by name; each is imported when it is used.


#: Packages of others add connectors by entry points of its group: a name, and a class like those here.
CONNECTORS = Plugins(
    kind="connector",
    group="recollect.connectors",
    own={
        "git": "recollect.sources.git:GitConnector",
        "imap": "recollect.sources.imap:ImapConnector",
        "s3": "recollect.sources.s3:S3Connector",
    },
    methods=("Settings", "changes", "fetch", "grants", "close"),
)


def connector_names() -> list[str]:
    """The names of all connectors, those of other packages included."""
    return CONNECTORS.names()


def connector_class(name: str) -> ConnectorClass:
    """The connector of a name.

    Raises:
        UsageError: There is none.
    """
    return cast("ConnectorClass", CONNECTORS.find(name))


def connector_of(location: str) -> str | None:
    """The connector that a location asks for by its form; None: no connector's."""
    lowered = location.lower()
    if lowered.startswith("s3://"):
        return "s3"
    if lowered.startswith(("imaps://", "imap://")):
        return "imap"
    if lowered.startswith(("git://", "ssh://", "git+https://", "git+http://", "git@")) or lowered.endswith(".git"):
        return "git"
    return None


def read_settings(name: str, location: str, given: Mapping[str, Any]) -> ConnectorSettings:
    """The settings of a connector, checked.

    Raises:
        UsageError: One of them is unknown or not valid. The message does not repeat its value.
    """
    kind = connector_class(name).Settings
    try:
        return kind(location=location, **given)
    except ValidationError as exc:
        problems = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'settings'}: {one['msg'].removeprefix('Value error, ')}"
            for one in exc.errors(include_input=False, include_url=False)
        )
        known = ", ".join(field for field in kind.model_fields if field != "location")
        raise UsageError(f"The source's settings are not valid: {problems}. Known are {known}.") from exc
