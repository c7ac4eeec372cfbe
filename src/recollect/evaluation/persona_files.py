"""Files of personas: who test cases are run as, and what a folder of test documents is granted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from recollect.evaluation.case_files import parsed, read_text
from recollect.evaluation.cases import Line, Lines, Strict, refusing
from recollect.model.principal import Permissions, Principal, read_permissions


@refusing
def _granted(given: tuple[str, ...]) -> tuple[str, ...]:
    read_permissions(given, name="grants")
    return given


class Asker(Strict):
    """A persona: somebody who asks.

    Attributes:
        user_id: ``user`` in the file; None: nobody in particular.
        roles: One, or a list.
        department: Where they belong.
        groups: One, or a list.
    """

    user_id: Line | None = Field(None, alias="user")
    roles: Lines = ()
    department: Line | None = None
    groups: Lines = ()

    @model_validator(mode="after")
    def _is_somebody(self) -> Asker:
        refusing(Asker.principal)(self)
        return self

    def principal(self) -> Principal:
        """The persona as searches know them."""
        return Principal(user_id=self.user_id, roles=self.roles, department=self.department, groups=self.groups)


class PersonaFile(Strict):
    """A file of personas.

    Attributes:
        personas: By name.
        grants: Permissions by source, or by a pattern of sources with ``*`` and ``?``, for documents that are ingested
            for the test; of several that fit, the last one counts.
    """

    personas: Mapping[Line, Asker] = Field(..., min_length=1)
    grants: Mapping[Line, Annotated[Lines, AfterValidator(_granted)]] = Field(default_factory=dict)

    def principals(self) -> dict[str, Principal]:
        """Return the principals by name."""
        return {name: asker.principal() for name, asker in self.personas.items()}

    def permissions(self) -> dict[str, Permissions]:
        """Return the permissions of documents, by source or pattern."""
        return {source: read_permissions(given) for source, given in self.grants.items()}


def load_personas(path: Path | str) -> PersonaFile:
    """Read a file of personas.

    Args:
        path: YAML in UTF-8. Unknown and repeated keys, anchors and aliases are refused.

    Raises:
        NotFoundError: The file does not exist.
        UsageError: It is not such a file; the message names the line.
    """
    return parsed(read_text(path, of="personas"), PersonaFile, name=str(path), wanted="personas")
