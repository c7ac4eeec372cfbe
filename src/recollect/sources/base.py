"""What a connector is: it lists what a source outside holds, says what has changed and who may read it, and fetches it.

Whoever runs one stores what it fetches, keeps its cursor, and closes what has gone (`recollect.ingest.source`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from recollect.errors import SourceError, UsageError
from recollect.model.globs import reached
from recollect.model.principal import read_permissions


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A document outside.

    Attributes:
        uri: Its name within the source, the same as long as it is the same document; ends like a file's name.
        revision: Differs whenever its bytes do: an ETag, a hash, a time with a size.
        size: In bytes; None: not known before it is fetched.
        modified: When it was changed last, where the source says so.
        key: What it is fetched by, where that is not the URI.
        attached_to: Of what is attached to a message: the message's URI. It is closed and erased with the message; who
            may read it is `Connector.grants`'s to say.
    """

    uri: str
    revision: str
    size: int | None = None
    modified: datetime | None = None
    key: str = ""
    attached_to: str | None = None


@dataclass(frozen=True, slots=True)
class ListingBegins:
    """From here on everything that is there is named, until `ListingEnds`."""


@dataclass(frozen=True, slots=True)
class ListingEnds:
    """Everything was named since `ListingBegins`: what was not has gone."""


@dataclass(frozen=True, slots=True)
class Found:
    """This is there. Whether it has changed, whoever runs the connector knows by its revision."""

    item: Item


@dataclass(frozen=True, slots=True)
class Removed:
    """This is there no longer, said by a source that knows its changes."""

    uri: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """``changes(cursor)`` goes on from here; what came before need not be told again. None: begin anew next time."""

    cursor: str | None


#: What `Connector.changes` yields.
Change: TypeAlias = ListingBegins | ListingEnds | Found | Removed | Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What was fetched.

    Attributes:
        data: All of it.
        content_type: As the source declares it; None: the name tells.
        metadata: What else is known of it; stored with the document.
        revision: Of what was fetched, where it is another one than was listed.
        attachments: Whether what is attached to a message is read from these bytes; a connector that names attachments
            as items of their own says no.
    """

    data: bytes
    content_type: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    revision: str | None = None
    attachments: bool = True


class ItemGoneError(Exception):
    """It went between being listed and being fetched."""


class ItemLeftOutError(Exception):
    """It is there, and is no document: why, in words."""


class MissingSecretError(UsageError):
    """The environment variable that a setting names is not set on this machine."""


class Connector(Protocol):
    """One source outside. Used by one run at a time; `fetch` and `grants` from several threads."""

    def changes(self, cursor: str | None) -> Iterator[Change]:
        """What has changed since a cursor; None: everything.

        Raises:
            SourceError: It cannot be listed. Nothing is concluded from what it has not named.
        """
        ...

    def fetch(self, item: Item, *, max_bytes: int) -> Content:
        """One item's bytes.

        Raises:
            ItemGoneError: It has gone meanwhile.
            ItemLeftOutError: It is no document after all.
            ParseError: It alone cannot be read; the others go on.
            SourceError: The source cannot be reached.
        """
        ...

    def grants(self, item: Item) -> tuple[str, ...] | None:
        """Who may read it, as the source says (``("role:hr", "!group:interns")``); None: it does not say.

        Raises:
            ParseError: What the source says of this item is not to be understood: it is not stored.
            SourceError: What it says of any item is not: nothing is.
        """
        ...

    def close(self) -> None:
        """Let go of connections and processes."""
        ...


class ConnectorSettings(BaseModel):
    """What every connector is told; each adds its own.

    Secrets are never among them: a setting that takes one takes ``env:NAME``, and the variable is read when the
    connector is opened.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    location: str
    #: Lines of `recollect.sources.base.GrantRules`.
    grants: tuple[str, ...] = ()
    #: Patterns of what is read, as of those rules; none: everything.
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    #: Every document is given these.
    tags: tuple[str, ...] = ()
    #: Where a larger share of the documents has gone at once, none is closed before somebody has confirmed it.
    max_removed_share: float = Field(0.5, ge=0, le=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a connector may use of the machine that it runs on.

    Attributes:
        folder: Its own, kept between runs; it may be emptied at any time.
        addresses: Gives the checked addresses of a URL's host, or refuses it.
        environment: Where ``env:NAME`` is looked up.
        timeout_seconds: How long it waits for an answer.
        allow_local: Whether it may read files of this machine.
    """

    folder: Path
    addresses: Callable[[str], Sequence[str]]
    environment: Mapping[str, str]
    timeout_seconds: float = 30.0
    allow_local: bool = False

    def secret(self, reference: str) -> str:
        """The value of ``env:NAME``.

        Raises:
            UsageError: It is no such reference.
            MissingSecretError: There is no such variable.
        """
        name = secret_name(reference)
        value = self.environment.get(name)
        if not value:
            raise MissingSecretError(
                f"The environment variable {name} is not set: the source's credentials are read from it."
            )
        return value


class ConnectorClass(Protocol):
    """How a connector is made."""

    Settings: ClassVar[type[ConnectorSettings]]

    def __call__(self, settings: Any, surroundings: Surroundings) -> Connector:  # noqa: ANN401 - its own Settings
        """Open it. Nothing is contacted yet."""
        ...


def secret_name(reference: str) -> str:
    """The name of the variable that ``env:NAME`` refers to.

    Raises:
        UsageError: It is no such reference. The message does not repeat it: it may be the secret itself.
    """
    kind, separator, name = reference.partition(":")
    if kind != "env" or not separator or not name.isidentifier():
        raise UsageError(
            "Credentials are not stored: give env:NAME, the name of the environment variable that holds them, in "
            "place of the secret."
        )
    return name


def _checked_reference(reference: str) -> str:
    try:
        secret_name(reference)
    except UsageError as exc:
        raise ValueError(str(exc)) from exc
    return reference


_CHECK = AfterValidator(_checked_reference)

#: A setting that names the environment variable with a secret, as ``env:NAME``.
SecretReference = Annotated[str, _CHECK]


def is_secret_reference(hint: object) -> bool:
    """Whether a setting is of the type `SecretReference`."""
    return _CHECK in getattr(hint, "__metadata__", ())


#: The longest file of rules.
RULES_BYTES = 1024 * 1024

# Rules over paths: which items of a source are read, and who may read them.


@dataclass(frozen=True, slots=True)
class GrantRules:
    """Who may read what, by path; the last rule that matches a path decides.

    A rule is a pattern and grants, as in a code owners file: ``hr/** role:hr !group:interns``. ``*`` stands for
    anything but a slash, ``**`` for any folders; a pattern without a slash matches at any depth, one that names a
    folder all that is below it. Empty lines and those that begin with ``#`` are left out.

    Example:
        >>> rules = GrantRules.read(["* role:staff", "hr/ role:hr"])
        >>> rules.of("hr/pay/2024.md"), rules.of("guide.md")
        (('role:hr',), ('role:staff',))
    """

    rules: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def read(cls, lines: Iterable[str], *, name: str = "grants") -> GrantRules:
        """Read rules, one a line.

        Raises:
            UsageError: A line has no grants, or one of them is none.
        """
        rules: list[tuple[str, tuple[str, ...]]] = []
        for line in lines:
            try:
                words = shlex.split(line, comments=True)
            except ValueError as exc:
                raise UsageError(f"{name}: {line!r} cannot be read: {exc}.") from exc
            if not words:
                continue
            pattern, *given = words
            if not given:
                raise UsageError(f"{name}: {line!r} has no grants: write a path and who may read it, hr/** role:hr.")
            rules.append((pattern, read_permissions(given, name=name).as_tokens()))
        return cls(tuple(rules))

    @classmethod
    def with_file(cls, settings: ConnectorSettings, name: str, data: bytes) -> GrantRules:
        """The rules of a source's settings, and of a file of its own, which count before them.

        Raises:
            SourceError: The file cannot be understood: nobody knows who may read what.
        """
        if len(data) > RULES_BYTES:
            raise SourceError(settings.location, f"{name!r} is too long", retryable=False)
        try:
            own = cls.read(data.decode("utf-8").splitlines(), name=name)
        except (UsageError, UnicodeDecodeError) as exc:
            raise SourceError(settings.location, f"{name!r} cannot be read: {exc}", retryable=False) from exc
        return cls((*cls.read(settings.grants).rules, *own.rules))

    def of(self, path: str) -> tuple[str, ...] | None:
        """The grants of a path; None: no rule matches it."""
        for pattern, grants in reversed(self.rules):
            if matches(pattern, path):
                return grants
        return None


def wanted(path: str, *, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether a path is to be read: one of ``include`` matches, where there are any, and none of ``exclude``."""
    if include and not any(matches(pattern, path) for pattern in include):
        return False
    return not any(matches(pattern, path) for pattern in exclude)


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern names a path, or a folder that it is in."""
    anchored = "/" in pattern.rstrip("/")
    segments = [part for part in pattern.split("/") if part]
    parts = path.split("/")
    places = reached(segments, parts, {0} if anchored else set(range(len(parts))))
    # A folder that is named holds all that is below it.
    return bool(segments and places) and (not pattern.endswith("/") or min(places) < len(parts))
