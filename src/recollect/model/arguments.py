"""What comes in through public methods is checked in one place, by their annotations.

A method's own checks are about its subject: that a number lies in a range, that a name exists. Here a number is found
to be a number and a text one that can be stored, so that a mistake is a `UsageError` that names the argument, and never
an error of whatever would have met the value first.
"""

from __future__ import annotations

import ast
import inspect
import operator
import os
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from functools import cache, lru_cache, wraps
from numbers import Real
from pathlib import PurePath
from typing import Any, TypeVar

from recollect.errors import OutOfBoundsError, UsageError
from recollect.familiar_names import unexpected_argument

_T = TypeVar("_T")

# NUL and lone surrogates, which PostgreSQL's text cannot hold.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_DEEPEST = 200
_LONGEST_PATH = 1_000

# What nothing is looked up by: texts that are searched for or stored, with what cannot be stored replaced.
_FREE_TEXTS = {"query", "question", "topic"}
_FREE_CLASSES = {"Document", "Turn"}

# Classes whose instances are given, whose fields are checked in turn. What else an annotation names is not looked at:
# protocols, which any object may have, and times, which have readers of their own (`recollect.model.time`).
_CLASSES = {
    "CrawlPlan": "recollect.CrawlPlan",
    "Document": "recollect.Document",
    "FileUse": "use of a file",
    "HybridPassage": "passage of a context",
    "KeyMaker": "maker of a key",
    "Original": "recollect.model.original.Original",
    "Principal": "recollect.Principal",
    "RecallOptions": "recollect.RecallOptions",
    "RetrievalOptions": "recollect.RetrievalOptions",
    "RetrievalWeights": "recollect.RetrievalWeights",
    "Scope": "recollect.Scope",
    "SessionConfig": "recollect.SessionConfig",
    "TenantIdentity": "tenant's identity",
    "TenantQuota": "recollect.TenantQuota",
    "Turn": "recollect.Turn",
}
_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "Path": "a path",
    "Callable": "a function",
    "Mapping": "an object of names and values",
    "several": "a list",
    "tuple": "a tuple",
    "datetime": "a datetime",
    **{name: f"a {shown}" for name, shown in _CLASSES.items()},
}


def checked(kind: type[_T]) -> type[_T]:
    """Let every public method of a class, and its constructor, check its arguments first.

    Raises:
        OutOfBoundsError: When called: a ``limit`` is smaller than 1.
        UsageError: When called: an argument is not what the annotation says, holds NUL or half a surrogate pair where
            it names something, or is nested too deep.
    """
    for name, function in list(vars(kind).items()):  # what it inherits is checked where it is defined
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, _checking(function))
    return kind


def whole_number(text: str) -> int | None:
    """The number that a text is, where it has at most 64 bits; otherwise None."""
    # Python refuses to read thousands of digits.
    number = int(text) if text.isdecimal() and len(text) < 20 else None
    return number if number is not None and number < 2**63 else None


def _checking(function: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(function).parameters.values()
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
    expected = {one.name: _expected(str(one.annotation), one.name in _FREE_TEXTS) for one in parameters}
    order = list(expected.items())
    limited = "limit" in expected

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the method takes and gives
        for (name, one), value in zip(order, args, strict=False):
            if one.names and type(value) not in one.settled:
                one.require(name, value)
        for name, value in kwargs.items():
            wanted = expected.get(name)
            if wanted is None:
                if not takes_any:
                    raise unexpected_argument(function.__qualname__, name, [one for one in expected if one != "self"])
            elif type(value) not in wanted.settled:
                wanted.require(name, value)
        if limited and kwargs.get("limit", 1) < 1:
            raise OutOfBoundsError(f"limit must be at least 1, not {kwargs['limit']}.")
        return function(*args, **kwargs)

    return call


@dataclass(frozen=True, slots=True)
class _Expected:
    """What an annotation allows.

    Attributes:
        names: Of the types; ``several`` is any iterable, ``tuple`` one of as many values as ``parts``.
        element: What each of several is.
        parts: What each value of a tuple is.
        anything: Whether it also names what is not looked at.
        free: Whether a text may hold what cannot be stored.
        settled: Types whose every value is one of these: most arguments of a search need no other look.
    """

    names: tuple[str, ...] = ()
    element: _Expected | None = None
    anything: bool = False
    free: bool = False
    parts: tuple[_Expected, ...] = ()
    settled: frozenset[type] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        settled = {kind for name, kind in _SETTLED.items() if name in self.names}
        object.__setattr__(
            self, "settled", frozenset({*settled, str} if self.free and "str" in self.names else settled)
        )

    def require(self, place: str, value: Any) -> None:  # noqa: ANN401 - that is the question
        """Raise a `UsageError` that begins with ``place`` where a value is not one of these."""
        kind = self._fitting(value)
        if kind is None:
            if self.anything:
                return
            words = " or ".join(_WORDS[name] for name in self.names if name != "None")
            raise UsageError(f"{place} must be {words}, not {reprlib.repr(value)}.")
        if kind == "str" and not self.free and UNSTORABLE.search(str(value)):
            raise UsageError(f"{place} holds a character that nothing stored can hold (NUL or half a surrogate pair).")
        if kind == "several":
            self._require_each(place, value)
        elif kind == "tuple":
            self._require_parts(place, value)
        elif kind == "Mapping":
            _require_depth(place, value)
        elif kind in _CLASSES and is_dataclass(value):
            free = kind in _FREE_CLASSES
            for name, default, expected in _fields_of(value.__class__, free):
                given = getattr(value, name)
                if given is not default and type(given) not in expected.settled:
                    expected.require(f"{place}.{name}", given)

    def _fitting(self, value: object) -> str | None:
        for name in self.names:
            if _FITS[name](value):
                return name
        return None

    def _require_each(self, place: str, value: object) -> None:
        # An iterator can be read once, by whoever wants what it gives.
        if self.element is not None and isinstance(value, list | tuple | set | frozenset):
            for one in value:
                self.element.require(place, one)

    def _require_parts(self, place: str, value: tuple[object, ...] | list[object]) -> None:
        if len(value) != len(self.parts):
            raise UsageError(f"{place} must hold {len(self.parts)} values, not {len(value)}.")
        for one, part in zip(value, self.parts, strict=True):
            part.require(place, one)


def require_fields(value: Any, names: Iterable[str]) -> None:  # noqa: ANN401 - an instance of any dataclass
    """Check attributes of a value by their annotations.

    Raises:
        UsageError: An attribute is not of its type.
    """
    for name, _, expected in _fields_of(value.__class__, False):
        if name in names:
            expected.require(name, getattr(value, name))


def require_no_path(text: str) -> None:
    """Refuse a text that is the name of a file or folder: its words would be stored, and what is in it would not.

    Raises:
        UsageError: A file or folder of that name is there.
    """
    # Single words are texts, whatever lies in the working directory.
    if not 2 <= len(text) <= _LONGEST_PATH or "\n" in text or not (os.sep in text or PurePath(text).suffix):
        return
    try:
        is_there = os.path.lexists(text)
    except ValueError:  # NUL
        return
    if is_there:
        raise UsageError(
            f"{text!r} is a text, and also the name of a file or folder. Say ingest_files({text!r}) to read that, or "
            "Document(content=…) to store these words."
        )


def _is_whole(value: object) -> bool:
    try:
        return not isinstance(value, bool) and -(2**63) <= operator.index(value) < 2**63  # type: ignore[arg-type]
    except TypeError:
        return False


def _is_path(value: object) -> bool:
    try:
        return isinstance(value, str | os.PathLike) and b"\0" not in os.fsencode(value)
    except (UnicodeEncodeError, TypeError):
        return False


def _is_class(name: str) -> Callable[[Any], bool]:
    return lambda value: name in _names_of(value.__class__)


@lru_cache(maxsize=256)
def _names_of(kind: type[Any]) -> frozenset[str]:
    return frozenset(base.__name__ for base in kind.__mro__)


_FITS: dict[str, Callable[[object], bool]] = {
    "None": lambda value: value is None,
    "str": lambda value: isinstance(value, str),
    "int": _is_whole,
    "float": lambda value: isinstance(value, Real) and not isinstance(value, bool),
    "bool": lambda value: type(value).__name__ in {"bool", "bool_"} or (isinstance(value, int) and value in {0, 1}),
    "Path": _is_path,
    "Callable": callable,
    "tuple": lambda value: isinstance(value, tuple | list),
    "datetime": lambda value: isinstance(value, datetime),
    "Mapping": lambda value: isinstance(value, dict | Mapping),
    "several": lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping),
    **{name: _is_class(name) for name in _CLASSES},
}


_SETTLED: dict[str, type] = {"None": type(None), "bool": bool, "float": float}


@cache
def _expected(annotation: str, free: bool) -> _Expected:
    try:
        return _read(ast.parse(annotation, mode="eval").body, free)
    except SyntaxError:
        return _Expected(anything=True)


def _read(node: ast.expr, free: bool) -> _Expected:
    match node:
        case ast.BinOp(left=left, right=right):
            one, other = _read(left, free), _read(right, free)
            # Where a document or a turn may be given, a text is its content.
            free = free or not _FREE_CLASSES.isdisjoint((*one.names, *other.names))
            return _Expected(
                (*one.names, *other.names),
                one.element or other.element,
                one.anything or other.anything,
                free,
                one.parts or other.parts,
            )
        case ast.Constant(value=None):
            return _Expected(("None",))
        # A field of a record that JSON shows (`recollect.model.record`).
        case ast.Subscript(value=ast.Name(id="Public" | "PublicIfKnown"), slice=inner):
            return _read(inner, free)
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=elements)) if not _goes_on(elements):
            return _Expected(("tuple",), parts=tuple(_part(one, free) for one in elements))
        case ast.Subscript(value=ast.Name(id="Sequence" | "Iterable" | "tuple"), slice=inner):
            element = inner.elts[0] if isinstance(inner, ast.Tuple) else inner
            return _Expected(("several",), _read(element, free))
        case ast.Name(id="datetime"):
            return _Expected(anything=True)
        case ast.Name(id=name) if name.endswith("Callback") or name == "DownloadProgress":
            return _Expected(("Callable",))
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)) if name in _FITS:
            return _Expected((name,), free=free)
        case _:
            return _Expected(anything=True)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'hr'?`` where a known name is much like another one, otherwise nothing."""
    import difflib

    names = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.7)
    return f" Did you mean {names[near[0]]!r}?" if near else ""


def _part(node: ast.expr, free: bool) -> _Expected:
    """What a value of a tuple is. A moment there is one that the library gave, which no reader looks at again."""
    return _Expected(("datetime",)) if isinstance(node, ast.Name) and node.id == "datetime" else _read(node, free)


def _goes_on(elements: list[ast.expr]) -> bool:
    """Whether a tuple may have any number of values."""
    return isinstance(elements[-1], ast.Constant) and elements[-1].value is ...


@cache
def _fields_of(kind: type[Any], free: bool) -> list[tuple[str, object, _Expected]]:
    return [(field.name, field.default, _expected(str(field.type), free)) for field in fields(kind)]


def _require_depth(place: str, value: object) -> None:
    level, depth = [value] if value else [], 0
    while level:
        if depth > _DEEPEST:
            raise UsageError(f"{place} is nested more than {_DEEPEST} levels deep.")
        inner = [one for outer in level for one in (outer.values() if isinstance(outer, Mapping) else outer)]  # type: ignore[attr-defined]
        level = [one for one in inner if isinstance(one, Mapping | list | tuple)]
        depth += 1
