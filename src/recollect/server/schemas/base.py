"""What the bodies of requests have in common."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema

from recollect.errors import PermissionDeniedError, UsageError
from recollect.model import Principal
from recollect.operations.values import TIME_SCHEMA, Name, storable
from recollect.pipeline import View

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
