"""Where settings come from: a TOML file, the environment, and what is said about a key or a value that is wrong."""

from __future__ import annotations

import json
import re
import tomllib
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError

from recollect.errors import ConfigurationError
from recollect.familiar_names import familiar

PREFIX = "RECOLLECT_"
# Behind the name of a secret's variable: of a file that holds it.
_FILE = "_FILE"
#: Names with the prefix that are not settings.
CONFIG_FILE_VARIABLE = "RECOLLECT_CONFIG"
# Kubernetes and container links set these where a service is called recollect; nobody wrote them.
_OF_A_SERVICE = re.compile(r"RECOLLECT_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)")

#: Where the server is that the command line asks, and what it is known by there. As a table, the first is a section.
SERVER_VARIABLE = "RECOLLECT_SERVER"
_OF_CLIENTS = frozenset({"RECOLLECT_API_KEY", "RECOLLECT_API_KEY_FILE"})

Place = tuple[str, ...]


@dataclass
class FromEnvironment:
    """The settings that the environment holds.

    Attributes:
        values: As a file's table would hold them.
        names: Which variable each of them stands in.
        problems: What is wrong, a line each; values are never shown, because they may be secret.
    """

    values: dict[str, Any] = field(default_factory=dict)
    names: dict[Place, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def read_environment(
    model: type[BaseModel], environment: Mapping[str, str], *, short_names: Mapping[str, Place]
) -> FromEnvironment:
    """Read every variable that is a setting of ``model``; an empty one counts as not set.

    ``RECOLLECT_<SECTION>__<KEY>`` is ``<key>`` in ``[rag.<section>]``, with another ``__`` for each table within. A
    table is a JSON object; a list is a JSON array, or its items with commas between; whatever a mapping is keyed by
    stands as it is, in upper and lower case. A secret may also stand in a file, which the variable with ``_FILE``
    behind its name names.

    Args:
        model: The tree of settings.
        environment: Names and values.
        short_names: Names of single settings; they win over the long ones.
    """
    found = FromEnvironment()
    own = {name: text for name, text in environment.items() if name.upper().startswith(PREFIX) and text}
    # Shorter ones first: a table as a whole, then what single names say of it.
    for name in sorted(own, key=lambda name: (name.count("__"), name)):
        upper = name.upper()
        if upper in short_names or upper == CONFIG_FILE_VARIABLE or _OF_A_SERVICE.fullmatch(upper):
            continue
        if upper in _OF_CLIENTS or (upper == SERVER_VARIABLE and not environment[name].lstrip().startswith("{")):
            continue
        segments = name[len(PREFIX) :].split("__")
        place = _place(model, segments)
        if place is None and _take_file(found, model, name, environment[name], short_names):
            continue
        if place is None:
            found.problems.append(_no_such_variable(model, name, segments, short_names))
        else:
            _take(found, place, name, environment[name], _annotation(model, place))
    for name, place in short_names.items():
        if text := environment.get(name):
            _take(found, place, name, text, _annotation(model, place))
    return found


def _take_file(
    found: FromEnvironment, model: type[BaseModel], name: str, path: str, short_names: Mapping[str, Place]
) -> bool:
    """Read a secret from the file that ``<its variable>_FILE`` names; False: that is no secret's variable.

    Containers and systemd hand secrets over as files, so that they stand in no list of processes.
    """
    own = name.upper().removesuffix(_FILE)
    if own == name.upper():
        return False
    place = short_names.get(own) or _place(model, name[len(PREFIX) : -len(_FILE)].split("__"))
    if place is None or SecretStr not in _kinds(_annotation(model, place)):
        return False
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        found.problems.append(_line(place, f"the file {path!r} cannot be read: {exc}", name))
        return True
    _take(found, place, name, text, SecretStr)
    return True


def _take(found: FromEnvironment, place: Place, name: str, text: str, annotation: Any) -> None:  # noqa: ANN401
    try:
        value = _value(text, annotation)
    except ValueError as exc:
        found.problems.append(_line(place, str(exc), name))
        return
    table = found.values
    for key in place[:-1]:
        table = table.setdefault(key, {})
    old = table.get(place[-1])
    table[place[-1]] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    found.names[place] = name


def _value(text: str, annotation: Any) -> Any:  # noqa: ANN401 - whatever a setting holds
    """A variable's text as the file would hold it; what is no JSON by its kind stays text."""
    if annotation is Any:
        return _json(text, otherwise=lambda: text)
    if _table(annotation) is not None:
        value = _json(text, otherwise=lambda: None)
        if not isinstance(value, dict):
            raise ValueError("a table is given as a JSON object, or by one variable for each key")
        return value
    kinds = _kinds(annotation)
    if any(get_origin(kind) in {list, tuple} for kind in kinds):
        if text.lstrip().startswith("["):
            items = _json(text, otherwise=lambda: None)
            if items is None:
                raise ValueError("a list is given as a JSON array, or as its items with commas between")
            return items
        return text if str in kinds else [item.strip() for item in text.split(",") if item.strip()]
    if {str, float} <= set(kinds):
        number = _json(text, otherwise=lambda: text)
        return number if isinstance(number, int | float) and not isinstance(number, bool) else text
    return text


def _json(text: str, *, otherwise: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever JSON holds
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise()


def _place(model: type[BaseModel], segments: list[str]) -> Place | None:
    """Where the setting of that name stands; None: there is no such setting."""
    head, rest = segments[0], segments[1:]
    known = model.model_fields.get(head.lower())
    if known is None:
        # A table that takes any key; those of Python are written in lower case.
        free = model.model_config.get("extra") == "allow" and head and not rest
        return (head.lower(),) if free else None
    if not rest:
        return (head.lower(),)
    table = _table(known.annotation)
    if isinstance(table, type):
        inner = _place(table, rest)
        return None if inner is None else (head.lower(), *inner)
    if table is None or not rest[0]:
        return None
    entry = _table(table.values)
    if len(rest) == 1 or not isinstance(entry, type):
        return (head.lower(), "__".join(rest))
    inner = _place(entry, rest[-1:])
    return None if inner is None else (head.lower(), "__".join(rest[:-1]), *inner)


def _annotation(model: type[BaseModel], place: Place) -> Any:  # noqa: ANN401 - a type, or a form of one
    annotation: Any = model
    for key in place:
        table = _table(annotation)
        if isinstance(table, type):
            known = table.model_fields.get(key)
            annotation = Any if known is None else known.annotation
        elif table is not None:
            annotation = table.values
    return annotation


@dataclass(frozen=True)
class _Mapping:
    """A table with keys that the caller chooses."""

    values: Any


def _table(annotation: Any) -> type[BaseModel] | _Mapping | None:  # noqa: ANN401 - a type, or a form of one
    for kind in _kinds(annotation):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
        if get_origin(kind) is dict:
            return _Mapping(get_args(kind)[1])
    return None


def _kinds(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a type, or a form of one
    """What a value may be: the members of a union, or the one type."""
    if get_origin(annotation) in {Union, types.UnionType}:
        return tuple(kind for member in get_args(annotation) for kind in _kinds(member))
    return (annotation,)


def places(model: type[BaseModel], above: Place = ()) -> Iterator[Place]:
    """Every table and every setting of a tree of settings; keys that the caller chooses are left out."""
    for key, known in model.model_fields.items():
        yield (*above, key)
        table = _table(known.annotation)
        if isinstance(table, type):
            yield from places(table, (*above, key))


def variable(place: Place) -> str:
    """The environment's name of a setting."""
    return PREFIX + "__".join(place).upper()


def nearest(model: type[BaseModel], wrong: Place) -> Place | None:
    """The setting that was probably meant: in the same table, of the same name elsewhere, or spelt alike."""
    known = list(places(model))
    siblings = {place[-1]: place for place in known if place[:-1] == wrong[:-1]}
    alike = {"_".join(place): place for place in known}
    whole = "_".join(wrong)
    for candidates, text, cutoff in ((alike, whole, 0.9), (siblings, wrong[-1], 0.7), (alike, whole, 0.8)):
        if close := get_close_matches(text.lower(), candidates, n=1, cutoff=cutoff):
            return candidates[close[0]]
    return next((place for place in known if place[-1] == wrong[-1].lower()), None)


def _familiar(model: type[BaseModel], wrong: Place, write: Callable[[Place], str]) -> str:
    """What a setting of that name is called here, where related systems have one; otherwise nothing."""
    row = familiar(*wrong)
    if row is None:
        return ""
    here = (*wrong[:-1], row.here[0]) if row.here else ()
    meant = here if here in places(model) else tuple(row.setting.split(".")) if row.setting else ()
    said = [f"Did you mean {write(meant)}?"] if meant else []
    return " ".join([*said, row.note] if row.note and (meant or not row.arguments) else said)


def _dotted(place: Place) -> str:
    return ".".join(("rag", *place))


def _no_such_variable(model: type[BaseModel], name: str, segments: list[str], short_names: Mapping[str, Place]) -> str:
    wrong = tuple(segment.lower() for segment in segments)
    line = _line(wrong, "there is no such setting", name)
    # A name is often the table's, with [rag] before it.
    below = wrong[1:] if wrong[0] == "rag" and len(wrong) > 1 else wrong
    if known := _familiar(model, below, variable):
        return f"{line}. {known}"
    if close := get_close_matches(name.upper(), [*short_names, CONFIG_FILE_VARIABLE], n=1, cutoff=0.85):
        return f"{line}. Did you mean {close[0]}?"
    meant = nearest(model, below)
    return line if meant is None else f"{line}. Did you mean {variable(meant)}?"


def read_file(path: Path, model: type[BaseModel]) -> dict[str, Any]:
    """The ``[rag]`` table of a TOML file.

    Raises:
        ConfigurationError: The file cannot be read, or holds another table.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as exc:
        raise ConfigurationError(f"There is no configuration file {str(path)!r}.") from exc
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise ConfigurationError(f"Cannot read the configuration file {str(path)!r}: {exc}") from exc
    strangers = sorted(set(content) - {"rag"})
    if strangers:
        lines = (f"{path}: unknown table {name!r}. {_table_meant(name, model)}" for name in strangers)
        raise ConfigurationError("\n".join(lines))
    table = content.get("rag", {})
    if not isinstance(table, dict):
        raise ConfigurationError(f"{path}: rag must be a table.")
    return table


def _table_meant(stranger: str, model: type[BaseModel]) -> str:
    if get_close_matches(stranger, ["rag"], cutoff=0.6):
        return "Did you mean [rag]?"
    meant = nearest(model, (stranger,))
    example = ".".join(meant) if meant else "retrieval"
    return f"Settings stand in [rag] and its sections, for instance [rag.{example}]."


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two layers of settings as one: tables are joined, and of everything else the layer above wins."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return result


def explained(
    exc: ValidationError, model: type[BaseModel], names: Mapping[Place, str], given: Mapping[str, Any]
) -> list[str]:
    """What is wrong with settings, a line each, without their values.

    Args:
        exc: What validation found.
        model: The tree of settings.
        names: The variables of the environment, by the setting.
        given: The layer above the environment: what it holds did not come from there.
    """
    return [
        _line(place, message, None if holds(given, place) else variable_of(place, names))
        for place, message in problems_of(exc, model)
    ]


def problems_of(exc: ValidationError, model: type[BaseModel]) -> Iterator[tuple[Place, str]]:
    """What validation found, and where, without the values."""
    for error in exc.errors(include_url=False, include_input=False, include_context=False):
        place = tuple(str(part) for part in error["loc"])
        message = error["msg"]
        if error["type"] == "extra_forbidden":
            meant = nearest(model, place)
            known = _familiar(model, place, _dotted) or (meant and f"Did you mean {_dotted(meant)}?")
            message = "there is no such setting" + (f". {known}" if known else "")
        yield place, message


def _line(place: Place, message: str, name: str | None) -> str:
    line = f"rag.{'.'.join(place)}: {message}"
    return line if name is None else f"{name} in the environment: {line}"


def variable_of(place: Place, names: Mapping[Place, str]) -> str | None:
    """The variable that a setting was read from, or the table that it stands in; None: neither."""
    return next((names[place[:length]] for length in range(len(place), 0, -1) if place[:length] in names), None)


def holds(given: Any, place: Place) -> bool:  # noqa: ANN401 - a table or a setting
    """Whether a layer of settings says something of one."""
    for key in place:
        if not isinstance(given, Mapping):
            return True
        if key not in given:
            return False
        given = given[key]
    return True
