"""Test cases of searches and answers, as people write them in YAML: read strictly, and written readably."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from recollect.errors import NotFoundError, UsageError
from recollect.model import RetrievalOptions
from recollect.model.filter import parse_filter
from recollect.model.time import read_time

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


# The records of evaluation files: strict about what they hold, and plain about what is wrong.


_V = TypeVar("_V")


_R = TypeVar("_R")


#: A text that is not empty.
Line = Annotated[str, Field(min_length=1, strict=True)]


#: An id: text, or a whole number written as one.
Id = Annotated[str, Field(min_length=1), BeforeValidator(lambda value: str(value) if type(value) is int else value)]


def _listed(value: object) -> object:
    return value if isinstance(value, list | tuple | Mapping) else (value,)


#: Several texts, or one in place of a list.
Lines = Annotated[tuple[Line, ...], BeforeValidator(_listed)]


_MESSAGES = {
    "extra_forbidden": "there is no such key",
    "missing": "is missing",
    "tuple_type": "must be a list",
    "model_type": "must be a mapping",
    "mapping_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "string_too_short": "is empty",
    "too_short": "there must be one at least",
}


def refusing(read: Callable[[_V], _R]) -> Callable[[_V], _R]:
    """Make a validator of a function: its `UsageError` becomes an error of the value."""

    def checked(value: _V) -> _R:
        try:
            return read(value)
        except UsageError as exc:
            raise ValueError(str(exc)) from exc

    return checked


class Strict(BaseModel):
    """A record of a file that people write: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Lenient(BaseModel):
    """A record of a published data set, which may hold more than is read."""

    model_config = ConfigDict(frozen=True)


def complaint(error: ErrorDetails) -> str:
    """Describe an error of a value."""
    if error["type"] == "string_type":
        return f"must be text: put {str(error['input'])!r} in quotes"
    return _MESSAGES.get(error["type"], error["msg"].removeprefix("Value error, "))


def complaints(errors: list[ErrorDetails]) -> str:
    """Describe the errors of a record, each with its place."""
    return "; ".join(": ".join(filter(None, (".".join(map(str, one["loc"])), complaint(one)))) for one in errors)


def existing_file(*alternatives: Path) -> Path:
    """Return the first of some files that exists.

    Raises:
        NotFoundError: None exists.
    """
    for path in alternatives:
        if path.is_file():
            return path
    raise NotFoundError(f"{' or '.join(map(str, alternatives))} is missing")


Share = Annotated[float, Field(ge=0, le=1)]


_OneOrMore = BeforeValidator(lambda value: value if isinstance(value, list | tuple) else (value,))


def plain(text: str) -> str:
    """A text as it is compared: compatible characters and case unified, runs of blanks as one."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


class Evidence(Strict):
    """A source, words, or both, that a passage must have. In a file, a plain string is a ``source``.

    Attributes:
        source: The document's source, or several, of which any will do.
        text: Words that the passage holds, or several, of which any will do; case, line breaks and runs of blanks make
            no difference.
    """

    source: Lines = ()
    text: Lines = ()

    @model_validator(mode="before")
    @classmethod
    def _from_plain(cls, value: object) -> object:
        return {"source": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _says_something(self) -> Evidence:
        if not self.source and not self.text:
            raise ValueError("give a source, a text or both")
        return self

    def __str__(self) -> str:
        """For people: ``“30 days” in hr/leave.pdf``."""
        text = " or ".join(f"“{text}”" for text in self.text)
        return " in ".join(part for part in (text, " or ".join(self.source)) if part)

    def words_in(self, text: str) -> bool:
        """Whether a text holds the words, where there are any."""
        return not self.text or any(plain(words) in plain(text) for words in self.text)


@refusing
def _is_a_filter(value: Mapping[str, Any]) -> Mapping[str, Any]:
    parse_filter(value)
    return value


class Filters(Strict):
    """Which documents are searched: four short forms, and beside them the whole language of `recollect.model.filter`.

    Attributes:
        department: Only documents of one of these departments.
        source: Only documents whose source is one of these.
        tags: Only documents that carry all of these tags.
        metadata: Only documents whose metadata has these values.
        where: Every other entry of a file's ``filters``, as a filter in the full language; None: there is none.
    """

    department: Lines = ()
    source: Lines = ()
    tags: Lines = ()
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    where: Annotated[Mapping[str, Any], AfterValidator(_is_a_filter)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_and_full(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if not isinstance(value, Mapping):
            return value
        short: dict[str, Any] = {}
        full: dict[str, Any] = {}
        for key, item in _without_dates(value).items():
            if key in _SHORT_FILTERS and not isinstance(item, Mapping):
                short[key] = item
            elif key == "metadata" and isinstance(item, Mapping):
                compared = {name: wanted for name, wanted in item.items() if isinstance(wanted, Mapping)}
                short[key] = {name: wanted for name, wanted in item.items() if name not in compared}
                full |= {f"metadata.{name}": wanted for name, wanted in compared.items()}
            else:
                full[str(key)] = item
        return {**short, "where": full or None}


_SHORT_FILTERS = ("department", "source", "tags")


def _without_dates(value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
    """YAML's dates as the texts that metadata, being JSON, hold in their place."""
    if isinstance(value, Mapping):
        return {key: _without_dates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_dates(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


class Persona(Strict):
    """A caller that cases can be run as: whose knowledge is searched, as of when, and which part of it.

    Attributes:
        department: Documents of one of these; none given: of every department.
        tags: Documents with all of these.
        tenant_id: Whose knowledge it is; None: the default tenant's.
        as_of: What was known at this time; None: now. In any form that ``--as-of`` takes.
    """

    department: Lines = ()
    tags: Lines = ()
    tenant_id: Annotated[int, Field(ge=1, strict=True)] | None = None
    as_of: Annotated[datetime, BeforeValidator(refusing(partial(read_time, name="It")))] | None = None


class Thresholds(Strict):
    """The least values that a case must reach; None: not checked.

    The first four are for searches, the others for answers.

    Attributes:
        precision: Share of the passages found that are relevant, 0 to 1.
        recall: Share of the must-haves found, 0 to 1.
        mrr: 1 divided by the rank of the first relevant passage, 0 to 1.
        latency_ms: Median milliseconds a search may take.
        fact_recall: Share of the expected facts that the answer holds, 0 to 1.
        faithfulness: Share of its sentences that its sources support, 0 to 1.
        citation_precision: Share of its citations that support what cites them, 0 to 1.
        citation_recall: Share of its sentences that cite what supports them, 0 to 1.
        answer_relevancy: How near its own questions are to the one asked, 0 to 1; measured with a judge alone.
    """

    precision: Share | None = None
    recall: Share | None = None
    mrr: Share | None = None
    latency_ms: Annotated[float, Field(gt=0)] | None = None
    fact_recall: Share | None = 1.0
    faithfulness: Share | None = None
    citation_precision: Share | None = None
    citation_recall: Share | None = None
    answer_relevancy: Share | None = None


_OF_SEARCHES = frozenset({"precision", "recall", "mrr", "latency_ms"})


#: Other spellings of a case's keys. ``expected_refusal: true`` is ``answerable: false``.
SPELLINGS = {"question": "query", "expected_refusal": "answerable"}


class Case(Strict):
    """One question and what a good engine does with it.

    Attributes:
        name: Unique within the file; left out: the query.
        query: In plain words; ``question`` is another spelling.
        must_have: Each must be met by a passage found.
        must_not_have: None may be met by a passage found.
        expected_facts: Each must stand in the answer, in one of its forms; in a file a form, or a list of them.
        answerable: True: ``ask`` must answer. False: it must not; passages will do, and so will nothing. None: only the
            search is looked at. A case with expected facts, or that expects nothing else, is answerable.
            ``expected_refusal`` says the opposite.
        filters: Which documents are searched.
        persona: Who asks, by the name of one of the file's personas (``as`` in the file).
        top_k: Passages looked at; None: the file's, or else the configured number.
        thresholds: Those given win over the file's.
    """

    name: Line
    query: Line
    must_have: Annotated[tuple[Evidence, ...], _OneOrMore] = ()
    must_not_have: Annotated[tuple[Evidence, ...], _OneOrMore] = ()
    expected_facts: Annotated[tuple[Annotated[Lines, Field(min_length=1)], ...], _OneOrMore] = ()
    answerable: bool | None = None
    filters: Filters = Filters()
    persona: Line | None = Field(None, alias="as")
    top_k: Annotated[int, Field(ge=1, le=1000)] | None = None
    thresholds: Thresholds = Thresholds()

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if not isinstance(value, Mapping):
            return value
        if twice := [f"{other} or {name}" for other, name in SPELLINGS.items() if other in value and name in value]:
            raise ValueError(f"give {twice[0]}, not both")
        case = {SPELLINGS.get(key, key): item for key, item in value.items()}
        if isinstance(refusal := value.get("expected_refusal"), bool):
            case["answerable"] = not refusal
        if isinstance(case.get("query"), str):
            case.setdefault("name", case["query"])
        if case.get("expected_facts") or not (case.get("must_have") or case.get("must_not_have")):
            case.setdefault("answerable", True)
        return case

    @model_validator(mode="after")
    def _is_consistent(self) -> Case:
        if not self.query.strip():
            raise ValueError("the query is blank")
        if self.answerable is False and (self.must_have or self.expected_facts):
            raise ValueError("a case that is not answerable has no must_have and no expected_facts")
        return self

    @property
    def of_answer(self) -> bool:
        """Whether it says something of the answer, not only of what a search must not find."""
        return bool(self.answerable is not None or self.must_have)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSearch:
    """The search of a case.

    Attributes:
        query: In plain words.
        filters: Which documents are searched, the persona's part of them included.
        top_k: Passages looked at; None: the configured number.
        tenant_id: Whose knowledge; None: the default tenant's.
        as_of: As of when (time-zone aware); None: now.
    """

    query: str
    filters: Filters
    top_k: int | None = None
    tenant_id: int | None = None
    as_of: datetime | None = None

    def options(self, given: RetrievalOptions) -> RetrievalOptions:
        """The options of its search: those given, with its number of passages and narrowed by its filters.

        Its departments and sources stand in place of those given, where it names any; everything else must hold as
        well.
        """
        filters = self.filters
        wholes = [whole for whole in (given.filters, filters.where) if whole]
        return replace(
            given,
            top_k=self.top_k or given.top_k,
            department=filters.department or given.department,
            source=filters.source or given.source,
            tags=(*given.tags, *filters.tags),
            metadata_filters={**given.metadata_filters, **filters.metadata},
            filters={"and": wholes} if len(wholes) > 1 else next(iter(wholes), None),
        )


class Defaults(Strict):
    """Defaults of all cases in a file."""

    top_k: Annotated[int, Field(ge=1, le=1000)] | None = None
    thresholds: Thresholds = Thresholds(recall=1.0)


class Suite(Strict):
    """A file of test cases.

    Attributes:
        defaults: Of all cases. Where the file gives no thresholds of searches, recall must be 1.
        own_thresholds: ``thresholds`` in the file: another place for those of ``defaults``.
        personas: By name.
        cases: In the file's order.
    """

    defaults: Defaults = Defaults()
    own_thresholds: Thresholds = Field(Thresholds(), alias="thresholds")
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
        given = self.defaults.thresholds.model_dump(exclude_unset=True)
        given |= self.own_thresholds.model_dump(exclude_unset=True)
        if not given.keys() & _OF_SEARCHES:
            given["recall"] = 1.0
        return Thresholds(**given | case.thresholds.model_dump(exclude_unset=True))

    def search(self, case: Case) -> CaseSearch:
        """Return the search of a case: its filters narrowed to its persona's, and the file's number of passages.

        Raises:
            UsageError: The case asks for departments that the persona does not see.
        """
        persona = Persona() if case.persona is None else self.personas[case.persona]
        asked = case.filters.department
        departments = asked or persona.department
        if asked and persona.department:
            departments = tuple(name for name in asked if name in persona.department)
            if not departments:
                raise UsageError(f"case {case.name!r}: {case.persona!r} sees none of the departments {list(asked)}")
        tags = tuple(dict.fromkeys((*case.filters.tags, *persona.tags)))
        return CaseSearch(
            query=case.query,
            filters=case.filters.model_copy(update={"department": departments, "tags": tags}),
            top_k=case.top_k or self.defaults.top_k,
            tenant_id=persona.tenant_id,
            as_of=persona.as_of,
        )


# Files: YAML read strictly, with complaints that name the line, and written readably.


_S = TypeVar("_S", bound=Strict)

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


def parsed(text: str, kind: type[_S], *, name: str, wanted: str) -> _S:
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
