"""Test cases of retrieval, as people write them in YAML: read strictly, written readably."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from recollect.errors import NotFoundError, UsageError

MAX_FILE_BYTES = 10 * 1024 * 1024

Share = Annotated[float, Field(ge=0, le=1)]
Line = Annotated[str, Field(min_length=1, strict=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def _lists(value: Any, names: Iterable[str]) -> Any:  # noqa: ANN401 - whatever the file holds
    """A mapping in which one thing stands for a list of it."""
    if not isinstance(value, Mapping):
        return value
    return {
        key: (item,) if key in names and not isinstance(item, list | tuple) else item for key, item in value.items()
    }


class Evidence(_Strict):
    """What a passage must have to count: all that is given. In a file, a plain string is a ``source``.

    Attributes:
        source: The document's source, or several, of which any will do.
        text: Words that the passage holds, or several, of which any will do; case, line breaks and runs of blanks make
            no difference.
    """

    source: tuple[Line, ...] = ()
    text: tuple[Line, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _from_plain(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if isinstance(value, str):
            return {"source": (value,)}
        return _lists(value, ("source", "text"))

    @model_validator(mode="after")
    def _says_something(self) -> Evidence:
        if not self.source and not self.text:
            raise ValueError("give a source, a text or both")
        return self

    def __str__(self) -> str:
        """For people: ``“30 days” in hr/leave.pdf``."""
        text = " or ".join(f"“{text}”" for text in self.text)
        return " in ".join(part for part in (text, " or ".join(self.source)) if part)


class Filters(_Strict):
    """Which documents are searched.

    Attributes:
        department: Only documents of one of these departments.
        source: Only documents whose source is one of these.
        tags: Only documents that carry all of these tags.
        metadata: Only documents whose metadata has these values.
    """

    department: tuple[Line, ...] = ()
    source: tuple[Line, ...] = ()
    tags: tuple[Line, ...] = ()
    metadata: Mapping[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _one_as_a_list(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        return _lists(value, ("department", "source", "tags"))


class Persona(_Strict):
    """A caller that cases can be run as: sees documents of these departments, with these tags.

    Attributes:
        department: One of these; none given: every department.
        tags: All of these.
    """

    department: tuple[Line, ...] = ()
    tags: tuple[Line, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _one_as_a_list(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        return _lists(value, ("department", "tags"))


class Thresholds(_Strict):
    """What a case must reach; None: not looked at.

    Attributes:
        precision: Share of the passages found that are relevant, 0 to 1.
        recall: Share of the must-haves found, 0 to 1.
        mrr: 1 divided by the rank of the first relevant passage, 0 to 1.
        latency_ms: Median milliseconds a search may take.
    """

    precision: Share | None = None
    recall: Share | None = None
    mrr: Share | None = None
    latency_ms: Annotated[float, Field(gt=0)] | None = None


class Case(_Strict):
    """One question and what a good engine does with it.

    Attributes:
        name: Unique within the file.
        query: In plain words.
        must_have: Each must be met by a passage found.
        must_not_have: None may be met by a passage found.
        answerable: False: ``ask`` must refuse. True: ``ask`` must not. None: only the search is looked at.
        filters: Which documents are searched.
        persona: Who asks, by the name of one of the file's personas (``as`` in the file).
        top_k: Passages looked at; None: the file's, or else the configured number.
        thresholds: Those given win over the file's.
    """

    name: Line
    query: Line
    must_have: tuple[Evidence, ...] = ()
    must_not_have: tuple[Evidence, ...] = ()
    answerable: bool | None = None
    filters: Filters = Filters()
    persona: Line | None = Field(None, alias="as")
    top_k: Annotated[int, Field(ge=1, le=1000)] | None = None
    thresholds: Thresholds = Thresholds()

    @model_validator(mode="before")
    @classmethod
    def _one_as_a_list(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        return _lists(value, ("must_have", "must_not_have"))

    @model_validator(mode="after")
    def _expects_something(self) -> Case:
        if not self.query.strip():
            raise ValueError("the query is blank")
        if self.answerable is False and self.must_have:
            raise ValueError("a case that is not answerable has no must_have")
        if not self.must_have and not self.must_not_have and self.answerable is None:
            raise ValueError("nothing is expected: give must_have, must_not_have or answerable")
        return self


class Defaults(_Strict):
    """What holds for every case that does not say otherwise."""

    top_k: Annotated[int, Field(ge=1, le=1000)] | None = None
    thresholds: Thresholds = Thresholds(recall=1.0)


class Suite(_Strict):
    """A file of test cases.

    Attributes:
        defaults: Of all cases. Where the file gives no thresholds, recall must be 1.
        personas: By name.
        cases: In the file's order.
    """

    defaults: Defaults = Defaults()
    personas: Mapping[str, Persona] = Field(default_factory=dict)
    cases: tuple[Case, ...]

    @model_validator(mode="after")
    def _is_consistent(self) -> Suite:
        if not self.cases:
            raise ValueError("there are no cases")
        names: set[str] = set()
        for case in self.cases:
            if case.name in names:
                raise ValueError(f"there are two cases named {case.name!r}")
            names.add(case.name)
            if case.persona is not None and case.persona not in self.personas:
                known = ", ".join(self.personas) or "none; define it under 'personas'"
                raise ValueError(f"case {case.name!r} runs as {case.persona!r}, which is no persona (known: {known})")
        return self

    def thresholds(self, case: Case) -> Thresholds:
        """A case's own thresholds over the file's."""
        own = case.thresholds.model_dump(exclude_unset=True)
        return self.defaults.thresholds.model_copy(update=own)

    def filters(self, case: Case) -> Filters:
        """A case's filters, narrowed to what its persona sees.

        Raises:
            UsageError: The case asks for departments that the persona does not see.
        """
        if case.persona is None:
            return case.filters
        persona, asked = self.personas[case.persona], case.filters.department
        departments = asked or persona.department
        if asked and persona.department:
            departments = tuple(name for name in asked if name in persona.department)
            if not departments:
                raise UsageError(f"case {case.name!r}: {case.persona!r} sees none of the departments {list(asked)}")
        tags = tuple(dict.fromkeys((*case.filters.tags, *persona.tags)))
        return case.filters.model_copy(update={"department": departments, "tags": tags})


def load_suite(path: Path | str) -> Suite:
    """Read a file of test cases.

    Args:
        path: YAML in UTF-8. Unknown and repeated keys, anchors and aliases are refused.

    Raises:
        NotFoundError: The file does not exist.
        UsageError: It is not such a file; the message names the line, and the case where there is one.
    """
    file = Path(path)
    if not file.is_file():
        raise NotFoundError(f"{file}: there is no such file of test cases")
    if file.stat().st_size > MAX_FILE_BYTES:
        raise UsageError(f"{file} is larger than {MAX_FILE_BYTES:,} bytes: split it into several files")
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise UsageError(f"{file}: not UTF-8 ({exc.reason}); convert the file to UTF-8") from exc
    return parse_suite(text, name=str(file))


def parse_suite(text: str, *, name: str = "test cases") -> Suite:
    """Test cases from YAML text; see `load_suite`.

    Args:
        text: The file's content.
        name: Stands before every complaint.
    """
    try:
        node = _Loader(text).get_single_node()
        if node is None:
            raise UsageError(f"{name}: the file is empty. Put test cases under 'cases:'.")
        content = _Loader("").construct_document(node)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise UsageError(f"{name}{line}: not valid YAML: {getattr(exc, 'problem', None) or exc}") from exc
    except (RecursionError, ValueError) as exc:
        raise UsageError(f"{name}: not valid YAML: {str(exc) or 'nested too deeply'}") from exc
    if not isinstance(content, dict):
        raise UsageError(f"{name}: expected a mapping with 'cases:', found {type(content).__name__}")
    try:
        return Suite.model_validate(content)
    except ValidationError as exc:
        problems = [_problem(error, node, content, name) for error in exc.errors(include_url=False)]
        raise UsageError("\n".join(problems)) from exc


def dump_suite(cases: Iterable[Mapping[str, object]], *, comment: str = "") -> str:
    """Test cases as YAML text that `load_suite` reads.

    Args:
        cases: Each with the keys of a case in a file.
        comment: Stands at the top, each line behind a ``#``.
    """
    head = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
    body = yaml.safe_dump({"cases": [dict(case) for case in cases]}, allow_unicode=True, sort_keys=False, width=110)
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


_MESSAGES = {
    "extra_forbidden": "there is no such key",
    "missing": "is missing",
    "tuple_type": "must be a list",
    "model_type": "must be a mapping",
    "mapping_type": "must be a mapping",
    "dict_type": "must be a mapping",
}


def _problem(error: Any, node: yaml.Node, content: Mapping[str, Any], name: str) -> str:  # noqa: ANN401 - pydantic's
    place = list(error["loc"])
    line = _line(node, place)
    message = _MESSAGES.get(error["type"], str(error["msg"]).removeprefix("Value error, "))
    if error["type"] == "string_type":
        message = f"must be text: put {str(error['input'])!r} in quotes"
    case = _case_name(content, place)
    path = ".".join(str(part) for part in place[2:] if part != "as") if case else ".".join(str(part) for part in place)
    where = " ".join(part for part in (case, path) if part)
    return f"{name}:{line}: {where + ': ' if where else ''}{message}"


def _case_name(content: Mapping[str, Any], place: Sequence[object]) -> str:
    if len(place) < 2 or place[0] != "cases" or not isinstance(place[1], int):
        return ""
    case = content["cases"][place[1]]
    return f"case {case['name']!r}" if isinstance(case, dict) and "name" in case else f"case {place[1] + 1}"


def _line(node: yaml.Node, place: Sequence[object]) -> int:
    """The line of the innermost part of ``place`` that is in the file, from 1."""
    line = node.start_mark.line + 1
    for part in place:
        found: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == str(part):
                    found, line = value, key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            found = node.value[part]
            line = found.start_mark.line + 1
        if found is None:
            break
        node = found
    return line
