"""What tools reply with, as their callers may rely on it: the source of the schemas that they declare."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, NotRequired, cast

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from recollect.model import Outcome

ErrorKind = Literal[
    "invalid_arguments", "not_found", "denied", "conflict", "unavailable", "failed", "unknown_tool", "busy"
]


DocumentId = Annotated[int, Field(description="What the other tools take as document_id.")]


GivenId = Annotated[str, Field(description="The id that the document was given, where its source is shared.")]


Start = Annotated[int, Field(description="The first character, from 0, in the document's text.")]


End = Annotated[int, Field(description="Just behind the last character.")]


Section = Annotated[str | None, Field(description="The headings that it stands under, outermost first.")]


Page = Annotated[int | None, Field(description="That it begins on, from 1, where the format has pages.")]


Note = Annotated[str, Field(description="What to do next, where there is something to say.")]


Warnings = Annotated[list[str], Field(description="Why it is not the last word: it is superseded, for instance.")]


_GO_ON = "Arguments to add to the same call for what comes next; absent: there is no more."


class ToolError(TypedDict):
    """What went wrong, in words that a model can act on."""

    kind: ErrorKind
    message: str
    retry_after_seconds: NotRequired[
        Annotated[int, Field(description="When the same call may be made again, where that is known.")]
    ]


class Span(TypedDict):
    """A place in a document."""

    document_id: DocumentId
    source: Annotated[str, Field(description="Where the document came from: a path, a URL, or a name.")]
    id: NotRequired[GivenId]
    title: NotRequired[str]
    collection: NotRequired[str]
    server: NotRequired[
        Annotated[str, Field(description="Another server that has the document: the other tools cannot read it.")]
    ]
    section: NotRequired[Section]
    page: NotRequired[Page]
    start_offset: Start
    end_offset: End
    date: NotRequired[Annotated[str, Field(description="Of what it tells, or when it was written.")]]
    relevance: NotRequired[Annotated[float, Field(description="How well it fits, 0 to 1.")]]
    warnings: NotRequired[Warnings]


class Source(Span):
    """A whole passage."""

    source_number: Annotated[int, Field(description="To cite it by.")]
    text: str


class KnowledgeSearchResult(TypedDict):
    """What `knowledge_search` replies."""

    sources: list[Source]
    note: NotRequired[Note]


class Found(Span):
    """A passage by its beginning."""

    excerpt: str


class Skipped(TypedDict):
    """Where a search goes on."""

    skip: int


class SearchResult(TypedDict):
    """What `search` replies."""

    results: list[Found]
    continue_with: NotRequired[Annotated[Skipped, Field(description=_GO_ON)]]
    note: NotRequired[Note]


class Match(TypedDict):
    """Where a pattern matches."""

    start_offset: Start
    end_offset: End
    line: Annotated[str, Field(description="That it begins on, cut to what stands near it.")]
    section: NotRequired[Section]
    page: NotRequired[Page]


class MoreMatches(TypedDict):
    """Arguments for the rest of a document's matches."""

    document_id: DocumentId
    from_offset: int


class MatchedIn(TypedDict):
    """A document with matches."""

    document_id: DocumentId
    source: str
    title: str | None
    matches: list[Match]
    more_matches: NotRequired[
        Annotated[MoreMatches, Field(description="Arguments to add for the rest of this document's matches.")]
    ]


class FromPlace(TypedDict):
    """Where an exact search goes on."""

    from_document: int
    from_offset: int | None


class GrepResult(TypedDict):
    """What `grep` replies."""

    documents: list[MatchedIn]
    documents_searched: int
    continue_with: NotRequired[Annotated[FromPlace, Field(description=_GO_ON)]]
    note: NotRequired[Note]


class Listed(TypedDict):
    """A document in a listing."""

    document_id: DocumentId
    source: str
    id: NotRequired[GivenId]
    title: NotRequired[str]
    collection: str
    department: NotRequired[str]
    tags: NotRequired[list[str]]
    bytes: Annotated[int, Field(description="Of its text.")]
    date: NotRequired[str]


class AfterDocument(TypedDict):
    """Where a listing goes on."""

    after: int


class ListResult(TypedDict):
    """What `list_documents` replies."""

    documents: list[Listed]
    continue_with: NotRequired[Annotated[AfterDocument, Field(description=_GO_ON)]]
    note: NotRequired[Note]


class Heading(TypedDict):
    """A heading with the range of its section."""

    level: int
    title: str | None
    start_offset: Start
    end_offset: End


class AfterOffset(TypedDict):
    """Where an outline goes on."""

    after_offset: int


class OutlineResult(TypedDict):
    """What `outline` replies."""

    document_id: DocumentId
    source: str
    title: str | None
    characters: Annotated[int, Field(description="How long the document's text is.")]
    pages: Annotated[int | None, Field(description="How many, where the format has pages.")]
    headings: list[Heading]
    continue_with: NotRequired[Annotated[AfterOffset, Field(description=_GO_ON)]]
    note: NotRequired[Note]


class FromOffset(TypedDict):
    """Where reading goes on."""

    start_offset: int
    end_offset: NotRequired[int]


class ReadResult(TypedDict):
    """What `read` replies."""

    document_id: DocumentId
    source: str
    title: str | None
    section: Section
    page: Page
    start_offset: Start
    end_offset: End
    characters: Annotated[int, Field(description="How long the whole text is.")]
    text: str
    continue_with: NotRequired[Annotated[FromOffset, Field(description=_GO_ON)]]
    note: NotRequired[Note]


class Cited(Span):
    """What a part of an answer rests on."""

    marker: Annotated[int, Field(description="The number in brackets in the answer.")]
    quote: Annotated[str, Field(description="The document's own words; its beginning, where it is long.")]
    support: NotRequired[Annotated[float, Field(description="How well the quote supports what cites it, 0 to 1.")]]


class HighlightedPart(TypedDict):
    """A part of a passage that is closest to the question."""

    start_offset: Start
    end_offset: End


class HelpfulPassage(Span):
    """A passage that may help where no exact answer was found."""

    marker: Annotated[int, Field(description="Its number, to refer to it by.")]
    text: Annotated[str, Field(description="The document's own words.")]
    highlights: list[HighlightedPart]


class Unsupported(TypedDict):
    """A sentence that a language model wrote and the sources do not support."""

    text: str
    reason: str
    detail: str


class AskResult(TypedDict):
    """What `ask` replies."""

    answer: Annotated[str, Field(description="With markers such as [1]; or a sentence that says that there is none.")]
    outcome: Annotated[
        Outcome,
        Field(
            description="answer: the documents answer the question; passages: no exact answer was found, and the "
            "passages may help; none: nothing relevant was found."
        ),
    ]
    refused: Annotated[bool, Field(description="Whether the outcome is another one than answer.")]
    citations: list[Cited]
    passages: Annotated[
        list[HelpfulPassage],
        Field(
            description="Of the outcome passages: judge them, and claim no more than they say. Beside a quoted answer: "
            "what stands around the quotes, and what else may help."
        ),
    ]
    unsupported: Annotated[list[Unsupported], Field(description="What of the answer must not be relied on.")]
    generated_by: Annotated[
        str | None, Field(description="The language model that wrote it; null: none, it quotes the documents.")
    ]
    note: NotRequired[Note]


class Turn(TypedDict):
    """Something that was said."""

    session: str
    position: int
    role: str
    at: NotRequired[str]
    before: Annotated[list[str], Field(description="How the turns before it begin.")]
    after: Annotated[list[str], Field(description="How the turns behind it begin.")]
    text: str


class FromTurn(TypedDict):
    """Where a long turn goes on."""

    limit: int
    start_offset: int


class RecallResult(TypedDict):
    """What `recall` replies."""

    turns: list[Turn]
    continue_with: NotRequired[Annotated[FromTurn, Field(description=_GO_ON)]]
    note: NotRequired[Note]


class RememberResult(TypedDict):
    """What `remember` replies."""

    remembered: bool
    session: str
    position: int


class AddResult(TypedDict):
    """What `add` replies."""

    document_id: DocumentId
    source: Annotated[str, Field(description="That it is called by from now on.")]
    status: Literal["added", "updated", "unchanged"]
    version: Annotated[int, Field(description="Of the document, from 1.")]


def schema_of(result: type) -> dict[str, Any]:
    """The JSON schema of what a tool replies with: a result, or ``{"error": …}`` in its place.

    Args:
        result: The typed dictionary of its results.
    """
    own = TypeAdapter(result).json_schema()
    schema = {
        "type": "object",
        "properties": {**own["properties"], "error": TypeAdapter(ToolError).json_schema()},
        "oneOf": [{"required": own["required"]}, {"required": ["error"]}],
    }
    return cast("dict[str, Any]", _without_titles(schema | {key: own[key] for key in ("$defs",) if key in own}))


def _without_titles(schema: object) -> object:
    """A schema without what repeats the names of its properties and types."""
    if isinstance(schema, list):
        return [_without_titles(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    # A property that is called so has a schema.
    return {key: _without_titles(one) for key, one in schema.items() if key != "title" or isinstance(one, dict)}


# How much a result may hold, in characters of the JSON that a model reads.


# For what stands around the items: their names, where to go on.
_FRAME = 500


class Room:
    """The characters that a result may still take.

    Args:
        characters: Of the whole result.
    """

    def __init__(self, characters: int) -> None:
        self._left = characters - _FRAME

    def take(self, item: object) -> bool:
        """Whether an item fits; then its characters are taken."""
        size = len(_json(item)) + 2
        if size > self._left:
            return False
        self._left -= size
        return True

    def cut(self, text: str, item: dict[str, Any]) -> str:
        """As much of a text as fits beside the rest of its item; what it takes, `take` of the item will tell.

        Args:
            text: From its beginning.
            item: All that stands beside it.
        """
        room = self._left - len(_json(item)) - 20
        # A character takes one in JSON at least, and six at most.
        low, high = 0, max(0, min(len(text), room))
        while low < high:
            middle = (low + high + 1) // 2
            if len(_json(text[:middle])) <= room:
                low = middle
            else:
                high = middle - 1
        return text[:low]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
