"""Bodies of searches, questions and contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AliasChoices, Field, create_model
from pydantic.fields import FieldInfo

from recollect.errors import UsageError
from recollect.model import RetrievalOptions
from recollect.model.bounds import MAX_QUERY_CHARACTERS
from recollect.model.search_options import SearchOption, options_named, search_options
from recollect.model.time import Duration, MomentRange
from recollect.model.time_limits import time_limits
from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.server.schemas.base import Body, Moment, Viewpoint

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


class SearchOptions(_Declared):
    """How passages are searched; what is left out is as configured."""

    def options(self) -> RetrievalOptions:
        """As the library takes them.

        Raises:
            UsageError: A time is none, or a range ends before it begins.
        """
        given = options_named({name: getattr(self, name) for name in _fields()})
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
