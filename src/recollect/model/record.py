"""Records: dataclasses that every surface shows as the same JSON, each of which says itself which fields are public."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from operator import not_
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, get_type_hints

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter
    from pydantic_core import CoreSchema

T = TypeVar("T")

# An entry of a docstring's section, with the lines that go on below it.
_ENTRY = re.compile(r"^    (\w+): (.+(?:\n {8,}.+)*)$", re.MULTILINE)
_NONE = re.compile(r"\bNone\b(?=:)")
_SECTION = re.compile(r"(Args|Attributes|Example|Raises|Returns|Yields):\n")


@dataclass(frozen=True, slots=True)
class _Shown:
    """Marks a field that JSON shows.

    Attributes:
        unless: Whether a value is left out; None: none is.
        key: What JSON calls it; None: as Python does.
    """

    unless: Callable[[object], bool] | None = None
    key: str | None = None


def _is_none(value: object) -> bool:
    return value is None


#: A field that JSON shows.
Public: TypeAlias = Annotated[T, _Shown()]
#: A field that JSON shows where it is not None; otherwise its key is absent.
PublicIfKnown: TypeAlias = Annotated[T, _Shown(_is_none)]
#: A field that JSON shows where it is not empty; otherwise its key is absent.
PublicIfAny: TypeAlias = Annotated[T, _Shown(not_)]


def public_as(key: str) -> object:
    """Marks a field that JSON shows under another name: it stands in the field's ``Annotated`` type."""
    return _Shown(key=key)


@dataclass(frozen=True, slots=True)
class ReadFrom:
    """Marks a field that JSON does not show, and that is read back from what it tells in another form.

    Attributes:
        key: Under which that stands.
        make: Makes the field's value of what was read there, as which type its annotation says.
    """

    key: str
    make: Callable[[Any], object]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401 - a type
        from pydantic_core import core_schema

        told = handler.generate_schema(get_type_hints(self.make)[next(iter(inspect.signature(self.make).parameters))])
        return core_schema.no_info_after_validator_function(self.make, told)


def public(getter: Callable[[Any], T]) -> Callable[[Any], T]:
    """Marks the function of a property that JSON shows beside the fields: ``@property`` stands above it."""
    vars(getter)["__shown__"] = _Shown()
    return getter


def public_if_known(getter: Callable[[Any], T]) -> Callable[[Any], T]:
    """As `public`, of a property whose key is absent where it is None."""
    vars(getter)["__shown__"] = _Shown(_is_none)
    return getter


class _Serializer:
    """What pydantic asks a record for wherever it finds one: without it, it would show every field of a dataclass."""

    def __get__(self, record: Record | None, kind: type[Record]) -> object:
        return adapter_of(kind).serializer


class Record:
    """A dataclass whose public fields are its JSON, and whose docstring describes them there.

    A field is shown only where its annotation says so (`Public`, `PublicIfKnown`, `public_as`). Any other needs a
    default, which it has where the record is read back from JSON. Properties are shown that say so (`public`).
    """

    __slots__ = ()
    __pydantic_serializer__ = _Serializer()
    # What has a default is in every reply all the same; lengths of time are told in seconds.
    __pydantic_config__ = {"json_schema_serialization_defaults_required": True, "ser_json_timedelta": "float"}  # noqa: RUF012 - pydantic's

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401 - the class, or one of its parametrised forms
        """What pydantic makes of the dataclass, without the fields that are not public."""
        schema = handler(source)
        found: Any = handler.resolve_ref_schema(schema)
        shown, told = _marks(cls, _Shown), described(cls)
        told_under = {name: mark.key for name, mark in _marks(cls, ReadFrom).items()}
        found.setdefault("metadata", {})["pydantic_js_updates"] = {"description": summary_of(cls)}
        for field in found["schema"]["fields"]:
            name = field["name"]
            if name not in shown:
                field["serialization_exclude"] = True
                if name in told_under:
                    field["validation_alias"] = told_under[name]
                continue
            if shown[name].unless is not None:
                field["serialization_exclude_if"] = shown[name].unless
            if shown[name].key is not None:
                field["serialization_alias"] = field["validation_alias"] = shown[name].key
            if name in told:
                field.setdefault("metadata", {})["pydantic_js_updates"] = {"description": told[name]}
        for name, getter in _properties(cls).items():
            returns = handler.generate_schema(get_type_hints(getter)["return"])
            told_of_it = {"pydantic_js_updates": {"description": _NONE.sub("null", summary_of(getter))}}
            computed = {"type": "computed-field", "property_name": name, "return_schema": returns}
            unless = vars(getter)["__shown__"].unless
            if unless is not None:
                computed["serialization_exclude_if"] = unless
            found["schema"].setdefault("computed_fields", []).append({**computed, "metadata": told_of_it})
        return schema


def _marks(kind: Any, mark: type[T]) -> Mapping[str, T]:  # noqa: ANN401 - a dataclass
    hints = get_type_hints(kind, include_extras=True)
    told = {one.name: getattr(hints[one.name], "__metadata__", ()) for one in fields(kind)}
    return {name: one for name, found in told.items() for one in found if isinstance(one, mark)}


def _properties(kind: type) -> Mapping[str, Callable[[Any], Any]]:
    found = {name: one.fget for base in reversed(kind.__mro__) for name, one in vars(base).items() if _is_public(one)}
    return {name: getter for name, getter in found.items() if getter is not None}


def _is_public(one: object) -> bool:
    return isinstance(one, property) and hasattr(one.fget, "__shown__")


def entries(of: object, section: str) -> Mapping[str, str]:
    """The entries of a section of a docstring, ``Args`` for instance, in Markdown and as JSON has them."""
    text = inspect.getdoc(of) or ""
    begin = text.find(f"{section}:\n")
    part = "" if begin < 0 else text[begin + len(section) + 2 :].split("\n\n")[0]
    told = {name: " ".join(said.split()).replace("``", "`") for name, said in _ENTRY.findall(part)}
    return {name: _NONE.sub("null", said) for name, said in told.items()}


def described(kind: type) -> Mapping[str, str]:
    """What is said of each field of a record, where it is inherited too."""
    return {name: text for base in reversed(kind.__mro__) for name, text in entries(base, "Attributes").items()}


def summary_of(of: object) -> str:
    """What a docstring says before its sections, in Markdown."""
    said = (part for part in (inspect.getdoc(of) or "").split("\n\n") if not _SECTION.match(part))
    return "\n\n".join(said).replace("``", "`")


def _adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - any type, parametrised ones too

    from pydantic import TypeAdapter

    return TypeAdapter(kind)


#: What turns values of a type into JSON and back. To make one takes up to 35 ms: it is made when it is needed.
adapter_of: Callable[[Any], TypeAdapter[Any]] = cache(_adapter)


def fields_of(record: Any) -> dict[str, Any]:  # noqa: ANN401 - a dataclass
    """The fields of a record by name, of which one that has more is made."""
    return {one.name: getattr(record, one.name) for one in fields(record)}


def json_of(value: object) -> Any:  # noqa: ANN401 - whatever JSON holds
    """A record, or several, as JSON has it."""
    return adapter_of(type(value)).dump_python(value, mode="json", by_alias=True)
