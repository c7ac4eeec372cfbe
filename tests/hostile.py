"""Arguments as nobody should give them, for every parameter of the public surface by its annotation."""

from __future__ import annotations

import ast
import inspect
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from recollect import Document, Principal, RecallOptions, RecollectError, RetrievalOptions, Turn
from recollect.context import RetrievalWeights
from recollect.model import Scope
from recollect.model.document_session import SessionConfig
from recollect.model.key import KeyMaker
from recollect.model.tenant import TenantIdentity, TenantQuota

#: How many times as many examples as usual: ``FUZZ_EFFORT=100 pytest tests/property``.
EFFORT = int(os.environ.get("FUZZ_EFFORT", "1"))

# What tests store is named so, so that some calls succeed and others get past the first check.
KNOWN = [
    *("default", "leave.md", "ada", "chat", "desk", "acme", "hr", "user:ada", "role:hr", "*", "en"),
    *("How long is leave?", "1", "2", "7d", "2024-01-01", '{"department": "hr"}', "a=1", "hybrid"),
]  # fmt: skip
BROKEN_TEXTS = [
    *("", " ", "\0", "\ud800", "a\udcffb", "\udfff\ud800", "a" * 3_000, "\u202e\x1b[2J", "💥" * 600),
    *("'; DROP TABLE x; --", "%s {0} {}", "1e400", "-1", "../etc", "NaN", "\N{COMBINING ACUTE ACCENT}" * 50),
    *("2024-99-99", "99999999999999y", "[" * 5_000, '{"not":' * 5_000, "[bold]", "\\", "\n", "a,b", "=", "a=[["),
    *("!", ":", "1" * 5_000),
]  # fmt: skip

texts = st.one_of(st.sampled_from(KNOWN), st.sampled_from(BROKEN_TEXTS), st.text(st.characters(), max_size=20))
whole_numbers = st.one_of(
    st.sampled_from([0, 1, 2, 10, -1, 1_000, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30]), st.integers(-5, 5)
)
numbers = st.one_of(whole_numbers, st.floats())
times = st.sampled_from([
    *(datetime.min, datetime.max, datetime(2024, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC), date.max),
    *("now", "7d", "2024-01-31", "soon", "9999-12-31T23:59:59-23:59", "\ud800", timedelta.max, math.nan),
])  # fmt: skip


class _DeepObject(dict[Any, Any]):
    """An object that can be shown."""

    def __repr__(self) -> str:
        return "an object too deep to be shown"


class _DeepList(list[Any]):
    """A list that can be shown."""

    def __repr__(self) -> str:
        return "a list too deep to be shown"


def nested(depth: int, make: Callable[[Any], Any]) -> Any:
    """Something within something, so many times."""
    found: Any = "core"
    for _ in range(depth):
        found = make(found)
    return _DeepObject(found) if isinstance(found, dict) else _DeepList(found)


deep = st.sampled_from([
    nested(50_000, lambda inner: [inner]),
    nested(50_000, lambda inner: {"not": inner}),
    nested(5_000, lambda inner: {"and": [inner]}),
    nested(5_000, lambda inner: {"metadata.a": {"eq": inner}}),
    nested(1, lambda inner: {"metadata.a": {"eq": nested(5_000, lambda inner: {"a": inner})}}),
    nested(1, lambda inner: {"metadata.a": {"eq": nested(900, lambda inner: [inner])}}),
    {"metadata." + "a." * 5_000 + "a": 1},
    *({"metadata.a": 10**400}, {"metadata.a": {"gt": math.inf}}, {"tags": {"contains": "\ud800"}}),
    *({"metadata.\ud800": 1}, {"metadata.\0": {"exists": True}}, {"\ud800": 1}, {1: 2}, {None: None}),
    *({"or": [{"department": "hr"}] * 2_000}, {"in": []}, {"department": {"in": ["hr"] * 40_000}}),
])  # fmt: skip

junk = st.one_of(
    st.none(), st.booleans(), whole_numbers, st.floats(), texts, st.binary(max_size=5), times, deep,
    st.sampled_from([object(), [], (), {}, set(), Ellipsis, {"a": object()}, ["\ud800"], [None], [[]]]),
)  # fmt: skip


def _fields_of(kind: type, within: tuple[str, ...]) -> st.SearchStrategy[Any]:
    """Instances of a dataclass, each field as its annotation says or not at all, some of them refused when made."""
    inside = (*within, kind.__name__)
    given = {field.name: of_annotation(str(field.type), inside) for field in fields(kind)}
    required = {
        name: inner
        for name, inner in given.items()
        if inspect.signature(kind).parameters[name].default is inspect.Parameter.empty
    }
    optional = {name: inner for name, inner in given.items() if name not in required}

    def make(values: dict[str, Any]) -> object:
        try:
            return kind(**values)
        except RecollectError as error:
            return Refused(error)

    return st.fixed_dictionaries(required, optional=optional).map(make)


class Refused:
    """Stands for what a constructor refused to make."""

    def __init__(self, error: RecollectError) -> None:
        self.error = error


CLASSES = (
    Document, KeyMaker, Principal, RecallOptions, RetrievalOptions, RetrievalWeights, Scope, SessionConfig,
    TenantIdentity, TenantQuota, Turn,
)  # fmt: skip
_SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "str": texts,
    "int": whole_numbers,
    "float": numbers,
    "bool": st.booleans(),
    "None": st.none(),
    "datetime": times,
    "Moment": times,
    "Duration": st.one_of(times, numbers, texts),
    "MomentRange": st.tuples(times, times),
    "Mapping": st.one_of(deep, st.dictionaries(texts, junk, max_size=3)),
    "Path": st.sampled_from(["/nonexistent", "/dev/null/x", "a\0b", "\ud800", "", "."]).flatmap(
        lambda path: st.sampled_from([path, Path(path)])
    ),
}


def of_annotation(annotation: str, within: tuple[str, ...] = ()) -> st.SearchStrategy[Any]:
    """Values for a parameter: mostly of the kind that its annotation names, sometimes of any.

    ``within``: the classes whose field it is, outermost first; what holds its own kind does so once.
    """
    # A union of strategies picks evenly: the right kind is named often enough to get past the first check.
    right = _of(ast.parse(annotation, mode="eval").body, within)
    return st.one_of(right, right, right, junk)


def _of(node: ast.expr, within: tuple[str, ...]) -> st.SearchStrategy[Any]:
    match node:
        case ast.BinOp(left=left, right=right):
            return st.one_of(_of(left, within), _of(right, within))
        case ast.Constant(value=None):
            return st.none()
        case ast.Subscript(value=ast.Name(id="Literal"), slice=inner):
            return st.sampled_from(
                ast.literal_eval(inner) if isinstance(inner, ast.Tuple) else [ast.literal_eval(inner)]
            )
        case ast.Subscript(value=ast.Name(id="tuple" | "Sequence" | "Iterable"), slice=inner):
            element = inner.elts[0] if isinstance(inner, ast.Tuple) else inner
            return st.lists(_of(element, within), max_size=3).map(tuple)
        case ast.Subscript(value=ast.Name(id=name)) | ast.Name(id=name):
            return _named(name, within)
        case _:
            return junk


def _named(name: str, within: tuple[str, ...]) -> st.SearchStrategy[Any]:
    for kind in CLASSES:
        if kind.__name__ == name and within.count(name) < 2:
            return _fields_of(kind, within)
    return _SIMPLE.get(name, junk)


# What a call needs to come to its subject, by the names of parameters.
_PLAUSIBLE: dict[str, Any] = {
    **dict.fromkeys(("query", "question", "topic"), "How long is annual leave?"),
    **dict.fromkeys(("documents", "paths", "collections"), ("leave.md",)),
    **dict.fromkeys(("tenant", "reader", "name"), "acme"),
    **dict.fromkeys(("fact_id", "version", "limit", "tenant_id"), 1),
    "document": "leave.md",
    "document_id": 1,
    "pattern": "leave",
    "session": "chat",
    "session_id": "desk",
    "turns": "Yes.",
    "positions": (1,),
    "grants": "role:hr",
    "denials": "user:eve",
    "passages": "leave.md",
    "what": "Yes.",
    "helpful": True,
    "path": "leave.md",
    "collection": "default",
    "folder": "out",
    "from_time": "7d",
    "quota": TenantQuota(),
    "ttl": "1d",
    "user": "ada",
    "scope": Scope(),
    "episode_ids": (1,),
    "rag": 0.5,
    "memory": 0.5,
    "content": "Yes.",
    "url": "http://127.0.0.1/",
    "key": "rk_1_00000000000000_" + "0" * 49,
    "key_id": "00000000000000",
}


def _parameters(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """Those of a function, the options that it takes as keywords among them."""
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.VAR_KEYWORD:
            options = RecallOptions if "Recall" in str(one.annotation) else RetrievalOptions
            yield from inspect.signature(options).parameters.values()
        elif one.name != "self":
            yield one


@st.composite
def calls(draw: st.DrawFn, function: Callable[..., Any]) -> dict[str, Any]:
    """Arguments by name: one that is wrong among plausible ones, or all by their annotations."""
    parameters = [*_parameters(function)]
    wrong = draw(st.sampled_from([*(one.name for one in parameters), "all"]))
    chosen = {}
    for parameter in parameters:
        required = parameter.default is inspect.Parameter.empty
        if parameter.name == wrong or (wrong == "all" and (required or draw(st.booleans()))):
            chosen[parameter.name] = draw(of_annotation(str(parameter.annotation)))
        elif required:
            chosen[parameter.name] = _PLAUSIBLE.get(parameter.name)
    return chosen
