"""Files of test cases: YAML read strictly, with complaints that name the line, and written readably."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.cases import (
    SPELLINGS,
    Case,
    Defaults,
    Evidence,
    Persona,
    Strict,
    Suite,
    Thresholds,
    complaint,
)

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_R = TypeVar("_R", bound=Strict)

MAX_FILE_BYTES = 10 * 1024 * 1024


def load_suite(path: Path | str) -> Suite:
    """Read a file of test cases.

    Args:
        path: YAML in UTF-8. Unknown and repeated keys, anchors and aliases are refused.

    Raises:
        NotFoundError: The file does not exist.
        UsageError: It is not such a file; the message names the line, and the case where there is one.
    """
    return parse_suite(read_text(path, of="test cases"), name=str(path))


def read_text(path: Path | str, *, of: str) -> str:
    """The text of a file of test cases, or of something that goes with them.

    Args:
        path: UTF-8, up to `MAX_FILE_BYTES`.
        of: What the file holds, for the error.

    Raises:
        NotFoundError: The file does not exist.
        UsageError: It is too large, or not UTF-8.
    """
    file = Path(path)
    if not file.is_file():
        raise NotFoundError(f"{file}: there is no such file of {of}")
    if file.stat().st_size > MAX_FILE_BYTES:
        raise UsageError(f"{file} is larger than {MAX_FILE_BYTES:,} bytes: split it into several files")
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise UsageError(f"{file}: not UTF-8 ({exc.reason}); convert the file to UTF-8") from exc


def parse_suite(text: str, *, name: str = "test cases") -> Suite:
    """Test cases from YAML text; see `load_suite`.

    Args:
        text: The file's content.
        name: Stands before every complaint.
    """
    return parsed(text, Suite, name=name, wanted="cases")


def parsed(text: str, kind: type[_R], *, name: str, wanted: str) -> _R:
    """A file in YAML as a record.

    Args:
        text: The file's content.
        kind: Of record.
        name: Stands before every complaint.
        wanted: A key that it must have, for the complaints.

    Raises:
        UsageError: It is no such record; the message names the line of each problem.
    """
    content, node = _read_yaml(text, name=name, wanted=wanted)
    try:
        return kind.model_validate(content)
    except ValidationError as exc:
        problems = [_problem(error, node, content, name, kind) for error in exc.errors(include_url=False)]
        raise UsageError("\n".join(problems)) from exc


def _read_yaml(text: str, *, name: str, wanted: str) -> tuple[dict[str, object], yaml.Node]:
    """A mapping in YAML, without aliases and repeated keys, and where in the text everything stands."""
    try:
        node = _Loader(text).get_single_node()
        if node is None:
            raise UsageError(f"{name}: the file is empty. Put what it is for under '{wanted}:'.")
        content = _Loader("").construct_document(node)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise UsageError(f"{name}{line}: not valid YAML: {getattr(exc, 'problem', None) or exc}") from exc
    except (RecursionError, ValueError) as exc:
        raise UsageError(f"{name}: not valid YAML: {str(exc) or 'nested too deeply'}") from exc
    if not isinstance(content, dict):
        raise UsageError(f"{name}: expected a mapping with '{wanted}:', found {type(content).__name__}")
    return content, node


def dump_suite(
    cases: Iterable[Mapping[str, object]],
    *,
    comment: str = "",
    personas: Mapping[str, Mapping[str, object]] | None = None,
) -> str:
    """Test cases as YAML text that `load_suite` reads.

    Args:
        cases: Each with the keys of a case in a file.
        comment: Stands at the top, each line behind a ``#``.
        personas: Those that cases run as, by name.
    """
    head = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
    content: dict[str, object] = {"personas": {name: dict(one) for name, one in personas.items()}} if personas else {}
    content["cases"] = [dict(case) for case in cases]
    body = yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=110)
    return f"{head}\n{body}" if head else body


class _Loader(yaml.SafeLoader):
    """YAML without what test cases do not need and a hostile file could misuse: aliases and repeated keys."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401 - as inherited
        if self.check_event(yaml.AliasEvent):
            mark = self.get_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="aliases are not allowed", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be plain text", problem_mark=key.start_mark)
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key.value!r} is there twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _problem(error: ErrorDetails, node: yaml.Node, content: Mapping[str, Any], name: str, kind: type[BaseModel]) -> str:
    line, found = _found(node, error["loc"])
    # As the file spells it.
    place = [part for part in (*found, *error["loc"][len(found) :]) if part != "where"]
    message = complaint(error)
    if error["type"] == "extra_forbidden" and kind is Suite:
        message += f"; there are {', '.join(_known_keys(place[:-1]))}"
    case = _case_name(content, place)
    path = ".".join(str(part) for part in place[2:] if part != "as") if case else ".".join(str(part) for part in place)
    where = " ".join(part for part in (case, path) if part)
    return f"{name}:{line}: {where + ': ' if where else ''}{message}"


_PARTS: dict[object, type[BaseModel]] = {
    "defaults": Defaults,
    "thresholds": Thresholds,
    "must_have": Evidence,
    "must_not_have": Evidence,
    "cases": Case,
}


def _known_keys(place: Sequence[object]) -> list[str]:
    """The keys of the mapping at a place in the file."""
    if len(place) > 1 and place[0] == "personas":
        known: type[BaseModel] = Persona
    else:
        known = next((_PARTS[part] for part in reversed(place) if part in _PARTS), Suite)
    return [field.alias or name for name, field in known.model_fields.items()]


def _case_name(content: Mapping[str, Any], place: Sequence[object]) -> str:
    if len(place) < 2 or place[0] != "cases" or not isinstance(place[1], int):
        return ""
    case = content["cases"][place[1]]
    return f"case {case['name']!r}" if isinstance(case, dict) and "name" in case else f"case {place[1] + 1}"


def _found(node: yaml.Node, place: Sequence[object]) -> tuple[int, list[object]]:
    """The line of the innermost part of ``place`` in the file, and the parts up to it as the file spells them."""
    line, names = node.start_mark.line + 1, list[object]()
    for part in place:
        found: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if part in (key.value, SPELLINGS.get(key.value)):
                    found, line, name = value, key.start_mark.line + 1, key.value
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            found, name = node.value[part], part
            line = found.start_mark.line + 1
        if found is None:
            break
        node = found
        names.append(name)
    return line, names
