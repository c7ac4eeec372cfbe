"""Every setting with where it comes from, and everything that is wrong with them, at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, SecretStr, ValidationError

from recollect.config._reading import (
    FromEnvironment,
    Place,
    holds,
    merged,
    problems_of,
    read_environment,
    read_file,
    variable_of,
)
from recollect.config.tree import SHORT_NAMES, RAGConfig, default_file
from recollect.errors import ConfigurationError

SettingSource = Literal["default", "file", "environment", "option"]

#: What is shown in place of a secret.
HIDDEN = "(set, not shown)"

# A name and a password within an address.
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigProblem:
    """Something that is wrong.

    Attributes:
        where: The file, or the variable of the environment; None: an option.
        setting: For instance ``rag.retrieval.top_k``; None: the file as a whole.
        message: What is wrong, without the value, which may be a secret.
    """

    where: str | None
    setting: str | None
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.setting, self.message) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting as it counts.

    Attributes:
        name: For instance ``rag.retrieval.top_k``.
        value: As JSON has it; a secret is `HIDDEN`.
        source: Where it comes from.
        where: The file or the variable that it stands in; None: neither.
    """

    name: str
    value: Any
    source: SettingSource
    where: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What `inspect_settings` found.

    Attributes:
        file: The file that was read; None: there is none.
        problems: All of them; with one there are no settings.
        settings: Every one, in the order of the tree.
        config: The settings themselves; None: they are not valid.
    """

    file: Path | None
    problems: tuple[ConfigProblem, ...]
    settings: tuple[Setting, ...]
    config: RAGConfig | None


def inspect_settings(path: Path | None = None, **given: Any) -> Inspection:  # noqa: ANN401 - each has its own type
    """Read the settings as `RAGConfig.load` does, and tell of all of them.

    Args:
        path: As of `RAGConfig.load`.
        **given: Sections or settings that win over file and environment.
    """
    file = path or default_file()
    problems: list[ConfigProblem] = []
    table: dict[str, Any] = {}
    if file is not None:
        try:
            table = read_file(file, RAGConfig)
        except ConfigurationError as exc:
            problems.extend(ConfigProblem(where=None, setting=None, message=line) for line in str(exc).splitlines())
    environment = read_environment(RAGConfig, os.environ, short_names=SHORT_NAMES)
    problems.extend(ConfigProblem(where=None, setting=None, message=line) for line in environment.problems)
    layers = _Layers(file, table, environment, given)
    try:
        config = RAGConfig.model_construct()
        BaseModel.__init__(config, **merged(merged(table, environment.values), given))
    except ValidationError as exc:
        for place, message in problems_of(exc, RAGConfig):
            source, where = layers.source(place)
            where = "an option" if source == "option" else where
            problems.append(ConfigProblem(where=where, setting=_name(place), message=message))
    if problems:
        return Inspection(file=file, problems=tuple(problems), settings=(), config=None)
    return Inspection(file=file, problems=(), settings=tuple(_settings(config, layers)), config=config)


@dataclass(frozen=True, slots=True)
class _Layers:
    file: Path | None
    table: Mapping[str, Any]
    environment: FromEnvironment
    given: Mapping[str, Any]

    def source(self, place: Place) -> tuple[SettingSource, str | None]:
        """Where a setting comes from, the layer that wins first."""
        if holds(self.given, place):
            return "option", None
        if holds(self.environment.values, place):
            return "environment", variable_of(place, self.environment.names)
        if holds(self.table, place):
            return "file", str(self.file)
        return "default", None


def _settings(table: BaseModel, layers: _Layers, above: Place = ()) -> Iterator[Setting]:
    extra = table.model_extra or {}
    for key in (*type(table).model_fields, *extra):
        place, value = (*above, key), getattr(table, key)
        if isinstance(value, BaseModel):
            yield from _settings(value, layers, place)
        else:
            source, where = layers.source(place)
            yield Setting(name=_name(place), value=_shown(value), source=source, where=where)


def _shown(value: object) -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, SecretStr):
        return HIDDEN
    if isinstance(value, BaseModel):
        return {key: _shown(getattr(value, key)) for key in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(key): _shown(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_shown(one) for one in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _CREDENTIALS.sub("…", str(value))


def _name(place: Place) -> str:
    return ".".join(("rag", *place))
