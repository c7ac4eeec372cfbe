"""Records are shown as they say, wherever they stand, and read back as they were."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Annotated, Any

import pytest

import recollect.model
from recollect.errors import UsageError
from recollect.model.job import Job, JobStage
from recollect.model.page import Page, cursor_at, every, number_at, position_of
from recollect.model.record import Public, PublicIfKnown, Record, adapter_of, described, json_of, public, public_as


@dataclass(frozen=True, slots=True)
class Key(Record):
    """A key.

    Attributes:
        name: What it is for; None: nothing.
        uses: How often ``it``
            was used.
        secret: Of nobody's concern.
    """

    name: Public[str | None]
    uses: PublicIfKnown[int | None] = None
    secret: str = "s3cret"


@dataclass(frozen=True, slots=True)
class Ring(Record):
    """Keys, where pydantic is told nothing of them.

    Attributes:
        keys: By place.
    """

    keys: Public[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Lock(Record):
    """A lock.

    Attributes:
        lock_id: Its number.
        keys: How many open it.
    """

    lock_id: Annotated[int, public_as("lock")]
    keys: int = 0

    @property
    @public
    def opens(self) -> str | None:
        """What it opens; None: nothing."""
        return f"door {self.lock_id}" if self.lock_id else None


JOB = Job(
    job_id=1,
    kind="fetch",
    status="failed",
    stages=(JobStage(name="fetch", done=1),),
    created_at=datetime(2026, 11, 28, tzinfo=UTC),
)


@pytest.mark.parametrize("shown", [Key("a"), Page((Key("a"),)), Page((Page((Key("a"),)),)), Ring({"a": [Key("a")]})])
def test_what_is_not_public_is_shown_nowhere(shown: Record):
    assert "s3cret" not in f"{json_of(shown)}{adapter_of(type(shown)).dump_json(shown)!r}"
    assert "secret" not in str(adapter_of(type(shown)).json_schema(mode="serialization"))


def test_a_key_that_says_nothing_is_absent_only_where_that_was_said():
    assert json_of(Key(None)) == {"name": None}
    assert json_of(Key(None, uses=3)) == {"name": None, "uses": 3}


def test_a_docstring_describes_the_fields_of_the_schema():
    schema = adapter_of(Key).json_schema(mode="serialization")
    assert schema["description"] == "A key."
    assert schema["properties"]["name"]["description"] == "What it is for; null: nothing."
    assert schema["properties"]["uses"]["description"] == "How often `it` was used."


def test_a_record_is_read_back_as_it_was():
    page = Page((JOB,), cursor_at(1))
    assert adapter_of(Page[Job]).validate_python(json_of(page)) == page
    assert adapter_of(Page[Job]).validate_json(adapter_of(Page[Job]).dump_json(page)) == page
    assert adapter_of(Key).validate_python({"name": "a"}) == Key("a")


def test_a_key_may_have_another_name_and_a_property_be_shown():
    assert json_of(Lock(3, keys=2)) == {"lock": 3, "opens": "door 3"}
    assert json_of([Lock(0)]) == [{"lock": 0, "opens": None}]
    assert adapter_of(Lock).validate_python(json_of(Lock(3))) == Lock(3)
    schema = adapter_of(Lock).json_schema(mode="serialization")
    assert schema["required"] == ["lock", "opens"]
    assert schema["properties"]["lock"]["description"] == "Its number."
    assert schema["properties"]["opens"]["description"] == "What it opens; null: nothing."


def records() -> Iterator[type[Record]]:
    for module in pkgutil.iter_modules(recollect.model.__path__, "recollect.model."):
        found = vars(importlib.import_module(module.name)).values()
        yield from {one for one in found if isinstance(one, type) and issubclass(one, Record) and one is not Record}


@pytest.mark.parametrize("kind", sorted(set(records()), key=lambda kind: kind.__name__))
def test_every_record_describes_its_own_fields_and_can_be_read_back(kind: type[Record]):
    adapter = adapter_of(kind)
    shown = adapter.json_schema(mode="serialization")["properties"].keys()
    assert shown and described(kind).keys() <= {one.name for one in fields(kind)}  # type: ignore[arg-type]
    assert shown >= set(adapter.json_schema(mode="validation").get("required", ())), "what is not shown needs a default"


def test_a_page_is_gone_through_and_leads_to_the_next():
    numbers = list(range(10))

    def listed(*, cursor: str | None = None, limit: int = 3) -> Page[int]:
        begin = number_at(cursor) or 0
        return Page.of(numbers[begin : begin + limit + 1], limit, lambda number: number + 1)

    assert list(every(listed)) == numbers
    assert (len(listed()), listed()[0], list(listed())[-1], listed(limit=10).next_cursor) == (3, 0, 2, None)


@pytest.mark.parametrize("position", [7, "a", ["2026-01-01", 7]])
def test_a_cursor_says_where_its_page_begins(position: object):
    assert position_of(cursor_at(position)) == position


@pytest.mark.parametrize("cursor", ["no cursor", "", "é", cursor_at("a"), cursor_at(-1), cursor_at(2**63)])
def test_a_cursor_of_no_such_list_is_refused(cursor: str):
    with pytest.raises(UsageError, match="leave it out"):
        number_at(cursor)
