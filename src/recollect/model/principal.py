"""Who asks: a person with roles, a department and groups, and what such a person may be granted."""

from __future__ import annotations

import reprlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from recollect.errors import UsageError
from recollect.familiar_names import suggesting
from recollect.forking import computes_properties
from recollect.model.record import Public, Record

#: What a grant to everybody of the tenant is written as.
EVERYONE = "*"

#: What a grant may name, before its colon.
KINDS = ("user", "role", "department", "group")

#: What a role that reads every department reads as; no grant is written like this.
ALL_DEPARTMENTS = "departments"

#: A denial among permissions begins with this.
DENIAL = "!"

# Tokens stand in arrays that every search compares; a name that long is a mistake.
_MAX_NAME_CHARACTERS = 500


@suggesting
@computes_properties
@dataclass(frozen=True, kw_only=True)
class Principal(Record):
    """Somebody who asks, as far as permissions are concerned.

    Names are compared letter by letter, in Unicode's composed form: ``Manager`` is not ``manager``.

    Attributes:
        user_id: Of the person; None: nobody in particular, who has what their roles, department and groups have.
        roles: For instance ``("Manager",)``.
        department: Where they belong.
        groups: Teams, projects, mailing lists.

    Raises:
        UsageError: A name is empty, too long, no text, or holds control characters.
    """

    user_id: Public[str | None] = None
    roles: Public[tuple[str, ...]] = ()
    department: Public[str | None] = None
    groups: Public[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name, given in (("roles", self.roles), ("groups", self.groups)):
            several: object = given
            if isinstance(several, str) or not isinstance(several, Sequence):
                raise UsageError(f'{name} must be a tuple of strings, for instance {name}=("one",), not {given!r}.')
            object.__setattr__(self, name, tuple(sorted({_name(name, one) for one in given})))
        for name, one in (("user_id", self.user_id), ("department", self.department)):
            if one is not None:
                object.__setattr__(self, name, _name(name, one))

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Every grant that would include them, ``*`` among them."""
        single = (("user", self.user_id), ("department", self.department))
        several = (("role", self.roles), ("group", self.groups))
        return (
            EVERYONE,
            *(f"{kind}:{name}" for kind, name in single if name is not None),
            *(f"{kind}:{name}" for kind, names in several for name in names),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions(Record):
    """Who may read something: a denial beats every grant.

    Attributes:
        grants: Tokens, sorted, none twice; without any nobody but a collection's owners may.
        denials: Likewise.
    """

    grants: Public[tuple[str, ...]] = (EVERYONE,)
    denials: Public[tuple[str, ...]] = ()

    def as_tokens(self) -> tuple[str, ...]:
        """As they are written: the grants, then the denials, each with a ``!`` before it."""
        return (*self.grants, *(DENIAL + token for token in self.denials))


def reads_as(principal: Principal | None, rules: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Further grants that include somebody, because of their roles.

    Args:
        principal: Somebody; None: the owner of the store, who needs none.
        rules: By role the departments whose documents it reads; ``*``: every one.
    """
    if principal is None:
        return ()
    names = {_name("department", name) for role in principal.roles for name in rules.get(role, ())}
    return tuple(sorted(ALL_DEPARTMENTS if name == EVERYONE else f"department:{name}" for name in names))


def includes(grants: Sequence[str], tokens: Sequence[str]) -> bool:
    """Whether grants include somebody who has these tokens, those of `reads_as` among them."""
    if not set(grants).isdisjoint(tokens):
        return True
    return ALL_DEPARTMENTS in tokens and any(grant.startswith("department:") for grant in grants)


def read_permissions(given: Iterable[str] | str, *, name: str = "permissions") -> Permissions:
    """Grants and denials as people and files write them: ``role:hr``, ``user:ann``, ``*``, ``!group:interns``.

    Args:
        given: Tokens, or one text with commas between them; brackets and quotation marks around them are let pass.
        name: What the error calls them.

    Raises:
        UsageError: One of them is neither ``*`` nor a kind and a name, or there is none.
    """
    if isinstance(given, str):
        given = [part.strip().strip("\"'") for part in given.strip().strip("[]").split(",")]
    try:
        texts: list[object] = list(given)
    except TypeError as exc:
        raise UsageError(f"{name} must be texts such as 'role:hr', not {given!r}.") from exc
    if not texts:
        raise UsageError(f"{name} is empty: name who may read, for instance 'role:hr', or leave it out.")
    granted: list[object] = []
    denied: list[object] = []
    for text in texts:
        if isinstance(text, str) and text.strip().startswith(DENIAL):
            denied.append(text.strip()[1:])
        else:
            granted.append(text)
    return Permissions(
        grants=tuple(sorted({read_token(text, name=name) for text in granted})),
        denials=tuple(sorted({read_token(text, name=name) for text in denied})),
    )


@dataclass(frozen=True, slots=True)
class DefaultPermissions:
    """Who may read documents that nobody has given permissions, as it is configured.

    Attributes:
        rule: ``everyone``: whoever the collection's own default names, at first everybody; ``department``: the
            document's department; or grants and denials.
    """

    rule: Literal["everyone", "department"] | tuple[str, ...] = "everyone"

    def of(self, department: str | None) -> Permissions | None:
        """The permissions of a document of a department; None: the collection's own default.

        A document without a department is no department's: nobody reads it but the owners of its collection, and the
        writer who stored it.
        """
        if self.rule == "everyone":
            return None
        if self.rule != "department":
            return read_permissions(self.rule)
        try:
            return Permissions(grants=() if department is None else (read_token(f"department:{department}"),))
        except UsageError:  # a folder's name that no grant can have
            return Permissions(grants=())


def read_token(given: object, *, name: str = "A grant") -> str:
    """One grant or denial, checked, in Unicode's composed form.

    Raises:
        UsageError: It is neither ``*`` nor a kind and a name.
    """
    text = given.strip() if isinstance(given, str) else ""
    kind, colon, whom = text.partition(":")
    if text == EVERYONE:
        return text
    if not colon or kind.strip() not in KINDS:
        raise UsageError(
            f"{name}: {given!r} names nobody. Write user:NAME, role:NAME, department:NAME, group:NAME, or * for "
            "everybody."
        )
    return f"{kind.strip()}:{_name(name, whom)}"


def _name(what: str, given: object) -> str:
    if not isinstance(given, str):
        raise UsageError(f"{what}: a name is text, not {reprlib.repr(given)}.")
    text = unicodedata.normalize("NFC", given.strip())
    if not text or len(text) > _MAX_NAME_CHARACTERS or not text.isprintable():
        raise UsageError(f"{what}: a name is 1 to {_MAX_NAME_CHARACTERS} printable characters, not {given[:60]!r}.")
    return text
