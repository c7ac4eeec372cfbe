"""Arguments of a tool, as a model wrote them: read, and refused in words that it can act on."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.tools.base import Parameter, Tool

# NUL and lone surrogates, which nothing stored can hold.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

# JSON of arguments: so much, or five times the longest text that the tool takes.
_MAX_JSON_CHARACTERS = 100_000


def read_arguments(tool: Tool, given: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """The arguments of a tool, complete: what was not given, or null, is the default.

    Args:
        tool: Whose.
        given: As an object, or as JSON, which is how OpenAI's models give them; None, or nothing: no arguments.

    Raises:
        UsageError: Names the argument that is wrong, and says what is allowed.
    """
    values = _object(tool, given)
    known = {one.name: one for one in tool.parameters}
    unknown = [name for name in values if name not in known]
    if unknown:
        raise UsageError(f"{tool.name} has no argument {_shown(unknown[0])}. It takes {_listed(known)}.")
    complete: dict[str, Any] = {}
    for name, parameter in known.items():
        value = values.get(name)
        if value is None:
            if parameter.required:
                raise UsageError(f"{name} is missing: {parameter.description}")
            complete[name] = parameter.default
        else:
            complete[name] = _checked(parameter, value)
    return complete


def _object(tool: Tool, given: Mapping[str, Any] | str | None) -> Mapping[str, Any]:
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}
    if isinstance(given, str):
        most = max(_MAX_JSON_CHARACTERS, *(5 * one.max_length for one in tool.parameters))
        if len(given) > most:
            raise UsageError(f"The arguments are {len(given):,} characters long: {most:,} at most.")
        try:
            given = json.loads(given, parse_constant=_no_number)
        except (ValueError, RecursionError) as exc:
            reason = "nested too deep" if isinstance(exc, RecursionError) else str(exc)
            raise UsageError(f"The arguments of {tool.name} are no JSON object: {reason}.") from exc
    if not isinstance(given, Mapping):
        raise UsageError(f"The arguments of {tool.name} must be a JSON object, not {_shown(given)}.")
    return given


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _checked(parameter: Parameter, value: object) -> object:
    match parameter.type:
        case "string":
            return _text(parameter, parameter.name, value)
        case "integer":
            return _number(parameter, value)
        case "boolean":
            if not isinstance(value, bool):
                raise UsageError(f"{parameter.name} must be true or false, not {_shown(value)}.")
            return value
        case "array":
            if not isinstance(value, list | tuple):
                raise UsageError(f"{parameter.name} must be a list of texts, not {_shown(value)}.")
            if len(value) > parameter.max_items:
                raise UsageError(f"{parameter.name} has {len(value)} items: {parameter.max_items} at most.")
            return tuple(_text(parameter, f"{parameter.name}[{place}]", one) for place, one in enumerate(value))


def _text(parameter: Parameter, name: str, value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} must be a text, not {_shown(value)}.")
    if parameter.choices and value not in parameter.choices:
        raise UsageError(f"{name} must be one of {_listed(parameter.choices)}, not {_shown(value)}.")
    if not value.strip():
        raise UsageError(f"{name} is empty: {parameter.description}")
    if len(value) > parameter.max_length:
        raise UsageError(f"{name} is {len(value):,} characters long: {parameter.max_length:,} at most.")
    if parameter.free:
        return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    if _UNSTORABLE.search(value):
        raise UsageError(f"{name} holds a character that no document holds (NUL, half a surrogate pair): leave it out.")
    return value


def _number(parameter: Parameter, value: object) -> int:
    # In JSON 5.0 is a whole number.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{parameter.name} must be a whole number, not {_shown(value)}.")
    least, most = parameter.minimum, parameter.maximum
    if (least is not None and value < least) or (most is not None and value > most):
        raise UsageError(f"{parameter.name} must lie between {least} and {most}, not {_shown(value)}.")
    return value


def _shown(value: object) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # Python writes no number of thousands of digits
        return "a number of thousands of digits"


def _listed(names: Mapping[str, object] | tuple[str, ...]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
