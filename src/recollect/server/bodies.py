"""Bodies of requests: what they have in common, and those of searches, which other doors take too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    create_model,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

from recollect.errors import PermissionDeniedError, UsageError
from recollect.model import Principal, RetrievalOptions
from recollect.model.search_options import (
    MAX_QUERY_CHARACTERS,
    SearchOption,
    options_named,
    search_options,
    time_limits,
)
from recollect.model.time import Duration, MomentRange
from recollect.operations.values import TIME_SCHEMA, Cursor, Limit, Name, Number, Text, storable
from recollect.pipeline import View
from recollect.pipeline.contents import MAX_MATCHES

#: A time: ISO 8601 (without a zone: UTC), now, or how long ago, as 7d.
Moment = Annotated[str, Field(max_length=100), AfterValidator(storable), TIME_SCHEMA]


# More fields than any body has. Each unknown one would be an error of its own.
_MOST_FIELDS = 1_000


def _stop_at_first_error(schema: object) -> None:
    """Have lists stop at their first invalid item: a hundred thousand errors would stop the server for a second."""
    if isinstance(schema, dict):
        if schema.get("type") in ("list", "tuple", "set", "frozenset"):
            schema["fail_fast"] = True
        for part in schema.values():
            _stop_at_first_error(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            _stop_at_first_error(part)


class Body(BaseModel):
    """A request's body: what it does not know it refuses, so that a misspelt option does not pass for none."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[BaseModel], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Keep the errors of an invalid body few."""
        schema = handler(source)
        _stop_at_first_error(schema)
        return schema

    @model_validator(mode="before")
    @classmethod
    def _require_few_fields(cls, given: Any) -> Any:  # noqa: ANN401 - whatever JSON gives
        if isinstance(given, dict) and len(given) > _MOST_FIELDS:
            raise ValueError(f"it has more than {_MOST_FIELDS:,} fields")
        return given


class Asker(Body):
    """Somebody for whom the owner of a store asks: a program that has its own users asks for one of them."""

    user: Name
    roles: tuple[Name, ...] = ()
    department: Name | None = None
    groups: tuple[Name, ...] = ()


class Viewpoint(Body):
    """Where is looked, as of when, and for whom."""

    collection: Name | None = Field(None, description="The collection; left out: the configured one.")
    everywhere: bool = Field(False, description="Every collection that may be read, together.")
    session: Name | None = Field(None, description="The documents of this session, in place of a collection.")
    with_: tuple[Name, ...] = Field((), alias="with", description="With a session: these collections too; * is all.")
    as_of: Moment | None = Field(
        None, description="What was known at this time: ISO 8601 (without a zone: UTC), or 7d."
    )
    as_: Asker | None = Field(None, alias="as", description="For whom the owner of the store asks.")
    remotes: tuple[Name, ...] | None = Field(
        None, description="Servers that are searched at the same time, by name; left out: those that are configured."
    )

    def of(self, view: View) -> View:
        """The view that the request is about.

        Raises:
            UsageError: The places do not go together, or ``as_of`` is no time.
            PermissionDeniedError: Somebody in particular would ask as somebody else.
        """
        places = [name for name in ("collection", "everywhere", "session") if getattr(self, name)]
        if len(places) > 1:
            raise UsageError(f"{' and '.join(places)} are several answers to where: give one, and with beside session.")
        if self.with_ and self.session is None:
            raise UsageError("with says what is searched together with a session: name that as session.")
        seen = acting_as(view, self.as_)
        if self.as_of is not None:
            seen = seen.view(as_of=self.as_of)
        if self.remotes is not None:
            seen = seen.view(remotes=self.remotes)
        if self.session is not None:
            return seen.view(session=self.session, collections=self.with_ or None)
        return seen.view(collections="*" if self.everywhere else self.collection)


def acting_as(view: View, asker: Asker | None) -> View:
    """The view of somebody for whom the owner of the store asks.

    Raises:
        PermissionDeniedError: The credential is somebody's in particular already.
    """
    if asker is None:
        return view
    if view.standpoint.principal is not None:
        raise PermissionDeniedError("This credential is somebody's: only one of the store's owner asks for others.")
    return view.view(
        principal=Principal(user_id=asker.user, roles=asker.roles, department=asker.department, groups=asker.groups)
    )


# Bodies of searches, questions and contexts.


# How a body writes values that JSON has no type for, or that are bounded here.
_TYPES: dict[Any, Any] = {
    str | None: Name | None,
    tuple[str, ...]: tuple[Name, ...],
    Mapping[str, Any]: dict[str, Any],
    Mapping[str, Any] | None: dict[str, Any] | None,
    Duration | None: Annotated[Text, Field(max_length=100)] | None,
    MomentRange | None: Moment | None,
}


def _fields() -> dict[str, Any]:
    """A field for each name of each option that a server takes, by name."""
    return {
        name: (_TYPES.get(option.type, option.type), _field(option, text))
        for option in search_options()
        if option.remote
        for name, text in option.described
    }


def _field(option: SearchOption, description: str) -> FieldInfo:
    default: dict[str, Any] = {"default_factory": dict} if option.default == {} else {"default": option.default}
    made: FieldInfo = Field(**default, ge=option.least, le=option.most, description=description)
    return made


if TYPE_CHECKING:

    class _Declared(Viewpoint):
        explain: bool = False

else:
    _Declared = create_model("_Declared", __base__=Viewpoint, **_fields())

_OPTIONS = frozenset(_fields())


class SearchOptions(_Declared):
    """How passages are searched; what is left out is as configured."""

    def options(self) -> RetrievalOptions:
        """As the library takes them.

        Raises:
            UsageError: A time is none, or a range ends before it begins.
        """
        given = options_named({name: getattr(self, name) for name in self.model_fields_set & _OPTIONS})
        time_limits(given, None)
        return given


class SearchBody(SearchOptions):
    """A search."""

    query: Text = Field(
        validation_alias=AliasChoices("query", "question"),
        max_length=MAX_QUERY_CHARACTERS,
        description="In plain words.",
    )

    def searched(self, view: View) -> tuple[View, RetrievalOptions]:
        """The view that is searched, and how."""
        return self.of(view), replace(self.options(), outline=True)


class AskBody(SearchOptions):
    """A question."""

    question: Text = Field(
        validation_alias=AliasChoices("question", "query"),
        max_length=MAX_QUERY_CHARACTERS,
        description="In plain words.",
    )

    def searched(self, view: View) -> tuple[View, RetrievalOptions]:
        """The view that is asked, and how passages are searched for it."""
        return self.of(view), self.options()


class ChatBody(SearchOptions):
    """A question in a conversation."""

    session: Name = Field(description="The conversation's id, yours to choose: it begins with its first question.")
    user: Name | None = Field(None, description="Whose conversation, where several users have one of that id.")
    question: Text = Field(
        validation_alias=AliasChoices("question", "query"),
        max_length=MAX_QUERY_CHARACTERS,
        description="In plain words.",
    )

    def searched(self, view: View) -> tuple[View, RetrievalOptions]:
        """The view that is asked, and how passages are searched for it."""
        seen = self.model_copy(update={"session": None}).of(view)
        return (
            seen if self.user is None else seen.view(user=self.user),
            self.options(),
        )


class WeightsBody(Body):
    """What documents and conversations weigh; both add up to 1."""

    rag: float = Field(ge=0, le=1, description="Of documents.")
    memory: float = Field(ge=0, le=1, description="Of conversations and facts.")


class ContextBody(SearchBody):
    """What a language model should read to answer a query."""

    token_budget: int | None = Field(None, ge=1, le=10_000_000)
    max_context_length: int | None = Field(None, ge=1, le=100_000_000)


class AssemblyBody(Body):
    """What a language model should read of documents, conversations and facts."""

    query: Text = Field(
        validation_alias=AliasChoices("query", "question"),
        max_length=MAX_QUERY_CHARACTERS,
        description="In plain words.",
    )
    strategy: Literal["hybrid", "semantic", "episodic", "rag", "documents", "bm25"] = Field(
        "hybrid",
        description="Everything; by meaning, facts first; conversations alone; documents and memory, documents first, "
        "or memory where there are none; documents alone; by words.",
    )
    weights: WeightsBody | None = Field(None, description="Left out: as the strategy has it.")
    token_budget: int = Field(2_000, ge=1, le=10_000_000)
    min_relevance: float | None = Field(None, ge=0, le=1, description="Of documents' passages.")
    session: Name | None = Field(None, description="The conversation at hand; it may not have begun yet.")
    user: Name | None = Field(None, description="All of this user's conversations, beside the one named.")
    collection: Name | None = Field(None, description="The collection; left out: the configured one.")
    everywhere: bool = Field(False, description="Every collection that may be read, together.")
    as_of: Moment | None = Field(None, description="What was known at this time (without a zone: UTC), or 7d ago.")
    explain: bool = Field(False, description="Say what each side weighs, and why.")

    def of(self, view: View) -> View:
        """The view that is asked.

        Raises:
            UsageError: Two places are named, or ``as_of`` is no time.
        """
        if self.everywhere and self.collection is not None:
            raise UsageError("collection and everywhere are several answers to where: give one.")
        seen = view.view(collections="*" if self.everywhere else self.collection, user=self.user)
        return seen if self.as_of is None else seen.view(as_of=self.as_of)


class DiffBody(SearchOptions):
    """A question at two moments."""

    question: Text = Field(
        validation_alias=AliasChoices("question", "query"),
        max_length=MAX_QUERY_CHARACTERS,
        description="In plain words.",
    )
    from_: Moment = Field(alias="from", description="The earlier moment.")
    to: Moment | None = Field(None, description="The later one; left out: now.")

    def searched(self, view: View) -> tuple[View, RetrievalOptions]:
        """The view that is searched, and how."""
        return self.of(view), self.options()


class WhyNotBody(SearchBody):
    """A search that missed a document."""

    document: int | Name = Field(description="Its id, source, title, or the end of its path.")


# Bodies of requests for what documents say.


_MOST = 2**31 - 1
_MOST_BYTES = 64 << 20


class EntriesBody(Viewpoint):
    """Which documents are listed."""

    name: Name | None = Field(None, description="Only those whose source or title holds this; left out: all.")
    department: Name | None = Field(None, description="Only of this one.")
    cursor: Cursor | None = Field(None, description="`next_cursor` of the page before; left out: the first page.")
    limit: Limit = Field(100, description="Documents at most.")


class GrepBody(Viewpoint):
    """What is looked for, exactly."""

    pattern: str = Field(max_length=10_000, description="Exact text; its white space stands for any white space.")
    regex: bool = Field(False, description="Whether it is a regular expression in RE2's syntax.")
    case_sensitive: bool = Field(False, description="Whether a is another letter than A.")
    whole_words: bool = Field(False, description="Only with no letter, digit or underscore on either side.")
    document_id: Number | None = Field(None, description="Only in this document.")
    department: Name | None = Field(None, description="Only in documents of this one.")
    limit: int = Field(50, ge=1, le=MAX_MATCHES, description="Matches at most.")
    limit_per_document: int = Field(10, ge=1, le=MAX_MATCHES, description="Matches of one document at most.")
    from_document: int = Field(0, ge=0, le=2**63 - 1, description="Where to go on: next_document of the reply before.")
    from_offset: int = Field(0, ge=0, le=_MOST, description="Where to go on: next_offset of the reply before.")
    seconds: float = Field(5.0, ge=0, le=30, description="How long to look.")
    max_bytes: int = Field(_MOST_BYTES, ge=1, le=_MOST_BYTES, description="Bytes of text to look at.")
