"""Files of personas: who test cases are run as, and what a folder of test documents is granted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from recollect.errors import UsageError
from recollect.evaluation.case_files import line_of, read_text, read_yaml
from recollect.evaluation.cases import Line
from recollect.model.principal import Permissions, Principal, read_permissions

_MESSAGES = {
    "extra_forbidden": "there is no such key",
    "missing": "is missing",
    "string_type": "must be text",
    "string_too_short": "is empty",
    "tuple_type": "must be a list",
    "model_type": "must be a mapping",
    "mapping_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "too_short": "there must be one at least",
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Asker(_Strict):
    """A persona: somebody who asks.

    Attributes:
        user_id: ``user`` in the file; None: nobody in particular.
        roles: One, or a list.
        department: Where they belong.
        groups: One, or a list.
    """

    user_id: Line | None = Field(None, alias="user")
    roles: tuple[Line, ...] = ()
    department: Line | None = None
    groups: tuple[Line, ...] = ()

    @field_validator("roles", "groups", mode="before")
    @classmethod
    def _one_as_a_list(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _is_somebody(self) -> Asker:
        try:
            self.principal()
        except UsageError as exc:
            raise ValueError(str(exc)) from exc
        return self

    def principal(self) -> Principal:
        """The persona as searches know them."""
        return Principal(user_id=self.user_id, roles=self.roles, department=self.department, groups=self.groups)


class PersonaFile(_Strict):
    """A file of personas.

    Attributes:
        personas: By name.
        grants: Permissions by source, or by a pattern of sources with ``*`` and ``?``, for documents that are ingested
            for the test; of several that fit, the last one counts.
    """

    personas: Mapping[Line, Asker] = Field(..., min_length=1)
    grants: Mapping[Line, tuple[Line, ...]] = Field(default_factory=dict)

    @field_validator("grants", mode="before")
    @classmethod
    def _one_as_a_list(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        return {source: (given,) if isinstance(given, str) else given for source, given in value.items()}

    @field_validator("grants")
    @classmethod
    def _are_permissions(cls, value: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        for given in value.values():
            try:
                read_permissions(given, name="grants")
            except UsageError as exc:
                raise ValueError(str(exc)) from exc
        return value

    def principals(self) -> dict[str, Principal]:
        """Everybody, by the persona's name."""
        return {name: asker.principal() for name, asker in self.personas.items()}

    def permissions(self) -> dict[str, Permissions]:
        """What documents are granted, by source or pattern."""
        return {source: read_permissions(given) for source, given in self.grants.items()}


def load_personas(path: Path | str) -> PersonaFile:
    """Read a file of personas.

    Args:
        path: YAML in UTF-8. Unknown and repeated keys, anchors and aliases are refused.

    Raises:
        NotFoundError: The file does not exist.
        UsageError: It is not such a file; the message names the line.
    """
    content, node = read_yaml(read_text(path, of="personas"), name=str(path), wanted="personas")
    try:
        return PersonaFile.model_validate(content)
    except ValidationError as exc:
        problems = []
        for error in exc.errors(include_url=False):
            place = ".".join(str(part) for part in error["loc"])
            message = _MESSAGES.get(error["type"], str(error["msg"]).removeprefix("Value error, "))
            problems.append(f"{path}:{line_of(node, error['loc'])}: {place}: {message}")
        raise UsageError("\n".join(problems)) from exc
