"""Parts by name: recollect's own, those that a program gives, and those that other packages declare by entry points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from recollect.errors import PluginError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins:
    """The parts of one kind.

    A part is a class or an object of one. Other packages are only asked for a name that is neither recollect's own nor
    given; they never replace either.

    Attributes:
        kind: What a part is called in messages.
        group: The entry points that other packages declare theirs under.
        own: Recollect's own; a text is ``module:attribute``, which is imported when it is used.
        methods: What a part must have.
        reserved: Names that mean something else.
        given: Those of a program.
    """

    kind: str
    group: str
    own: Mapping[str, Any]
    methods: tuple[str, ...]
    reserved: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    _shared: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def with_given(self, given: Mapping[str, Any] | None) -> Plugins:
        """The same parts and those of a program.

        Raises:
            UsageError: A name is taken, or a part lacks a method.
        """
        for name, part in (given or {}).items():
            if not name.strip():
                raise UsageError(f"The name of a {self.kind} is a text, not {name!r}.")
            if name in self.own or name in self.reserved:
                raise UsageError(f"recollect has a {self.kind} {name!r} of its own: give yours another name.")
            self._require(name, part)
        return replace(self, given=dict(given or {}))

    def has(self, name: str) -> bool:
        """Whether there is one of a name."""
        return name in self.own or name in self.names()

    def is_own(self, name: str) -> bool:
        """Whether recollect itself has it."""
        return name in self.own

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted({*self.own, *self.given, *(point.name for point in self._declared())})

    def find(self, name: str) -> Any:  # noqa: ANN401 - of each kind another
        """The part of a name: a class or an object.

        Raises:
            UsageError: There is none.
            PluginError: Another package declares it, and it cannot be imported or lacks a method.
        """
        part = self.own.get(name, self.given.get(name))
        if isinstance(part, str):
            module, _, attribute = part.partition(":")
            return getattr(import_module(module), attribute)
        if part is not None:
            return part
        for point in (one for one in self._declared() if one.name == name):
            try:
                part = point.load()
            except Exception as exc:
                raise PluginError(f"The {self.kind} {name!r} ({point.value}) cannot be imported: {told(exc)}.") from exc
            self._require(name, part, error=PluginError)
            return part
        raise UsageError(f"There is no {self.kind} {name!r}; there are {', '.join(self.names())}.")

    def made(self, name: str, **arguments: object) -> Any:  # noqa: ANN401 - of each kind another
        """An object of the part of a name; a class is called with the arguments.

        Raises:
            UsageError: There is none, or it refuses an argument.
            PluginError: It cannot be made.
        """
        part = self.find(name)
        if not isinstance(part, type):
            return part
        try:
            return part(**arguments)
        except UsageError:
            raise
        except Exception as exc:
            raise PluginError(f"The {self.kind} {name!r} cannot be made: {told(exc)}.") from exc

    def shared(self, name: str) -> Any:  # noqa: ANN401 - of each kind another
        """As `made` without arguments, once."""
        if name not in self._shared:
            self._shared.setdefault(name, self.made(name))
        return self._shared[name]

    def _declared(self) -> Iterator[Any]:
        from importlib.metadata import entry_points

        return iter(entry_points(group=self.group))

    def _require(self, name: str, part: object, *, error: type[UsageError] = UsageError) -> None:
        missing = [one for one in self.methods if not hasattr(part, one)]
        if missing:
            what = part.__name__ if isinstance(part, type) else type(part).__name__
            raise error(f"The {self.kind} {name!r} cannot be used: {what} has no {', '.join(missing)}.")


def told(exc: BaseException) -> str:
    """An error of a plug-in, for a message."""
    return f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__
