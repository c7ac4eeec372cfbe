"""What is known of the values that operations take: their bounds are the same at every door."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue, PlainValidator, WithJsonSchema

from recollect.model.arguments import UNSTORABLE
from recollect.model.page import MOST_OF_A_PAGE
from recollect.model.time import Moment


def storable(text: str) -> str:
    """A text as it can be stored and searched.

    Raises:
        ValueError: It cannot be.
    """
    # Found without a step of the interpreter for each character: the lengths of texts are compared afterwards.
    if UNSTORABLE.search(text):
        raise ValueError("it holds a character that no text has (NUL or a lone surrogate)")
    return text


# Said of texts in the OpenAPI document, where a program reads it that makes requests from it. A class of characters
# that is repeated would say the same, and programs that join it with the length compile a hundred thousand repetitions.
_WITHOUT_NUL: dict[str, JsonValue] = {"pattern": r"^(?![\s\S]*\u0000)"}

#: Text as it can be stored and searched.
Text = Annotated[str, Field(json_schema_extra=_WITHOUT_NUL), AfterValidator(storable)]
#: A name, for instance of a collection.
Name = Annotated[str, Field(min_length=1, max_length=500, json_schema_extra=_WITHOUT_NUL), AfterValidator(storable)]
#: The name of a source, which may be a path or an address.
SourceName = Annotated[Text, Field(min_length=1, max_length=10_000)]
#: The number of a document, of a job and so on.
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
#: Entries of a page.
Limit = Annotated[int, Field(ge=1, le=MOST_OF_A_PAGE)]
#: Where a page begins.
Cursor = Annotated[Text, Field(max_length=2_000)]


_LONGEST_TIME = 100


def _writable(moment: object) -> object:
    """A time, if it is text as it can be read; `read_time` says what is wrong with anything else."""
    if isinstance(moment, str) and len(storable(moment)) > _LONGEST_TIME:
        raise ValueError(f"it must have at most {_LONGEST_TIME} characters")
    return moment


#: What texts of times are: ISO 8601 (without a zone: UTC), now, or how long ago, as 7d.
TIME_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "string", "format": "date-time"},
            {"type": "string", "format": "date"},
            {"type": "string", "pattern": "^[1-9][0-9]{0,3}[smhdw]$"},
            {"const": "now"},
        ]
    }
)

#: A time, as `recollect.model.time.read_time` reads it.
Time = Annotated[Moment, PlainValidator(_writable), TIME_SCHEMA]
