"""What becomes of personal data before anything of a document is cut, embedded or stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recollect.errors import PersonalDataError
from recollect.model import Document
from recollect.model.principal import read_permissions
from recollect.privacy.detector import told
from recollect.privacy.redaction import PLACEHOLDERS, Inspection, Redacted, Renaming, inspect

if TYPE_CHECKING:
    from recollect.model.memory import Turn
    from recollect.model.tenant import PersonalDataPolicy
    from recollect.privacy.detector import Detector

#: The key of metadata under which counts by kind stand, and what tags begin with.
KEY = "pii"


class Door:
    """Applies a tenant's policy to what comes in. Safe to share between threads.

    Args:
        policy: What is done: ``tag``, ``redact`` or ``refuse``.
        detector: Finds personal data.
        salt: The tenant's, for names of documents.
        shows_pictures: Whether pictures, which nobody has looked at, may be shown to a model that describes them.
    """

    def __init__(
        self, policy: PersonalDataPolicy, detector: Detector, *, salt: bytes, shows_pictures: bool = False
    ) -> None:
        self.policy = policy
        self.shows_pictures = shows_pictures
        self._detector = detector
        self._rename = Renaming(detector, salt)

    def name(self, source: str) -> str:
        """The name that something is stored under: without personal data, where that is taken out."""
        return self._rename(source) if self.policy == "redact" else source

    def shown(self, name: str) -> str:
        """A name as messages may have it."""
        return self._rename(name)

    def admit(self, document: Document) -> Document:
        """The document as it may be stored.

        Raises:
            PersonalDataError: It holds personal data, and the policy is to refuse that.
        """
        found = inspect(document, self._detector, name=self._rename)
        if not found.counts:
            return replace(document, original=None) if self._holds_unseen(document) else document
        if self.policy == "refuse":
            raise _refused(f"The document {found.redacted.source or 'that was given'!r}", found)
        if self.policy == "redact":
            # Who may read it is said by names, which are no content: they stay what they are.
            permissions = document.permissions
            if permissions is None and document.metadata.get("permissions") is not None:
                permissions = read_permissions(document.metadata["permissions"]).as_tokens()
            return replace(_counted(found.redacted, found), permissions=permissions)
        tags = (f"{KEY}:{kind}" for kind in found.counts)
        return _counted(replace(document, tags=tuple(dict.fromkeys((*document.tags, *tags)))), found)

    def _holds_unseen(self, document: Document) -> bool:
        """Whether a page's own bytes say what its text does not, in links for instance."""
        original = document.original
        if self.policy == "tag" or original is None or not original.mime_type.endswith(("html", "xml", "html+xml")):
            return False
        return bool(self._detector.find(original.read().decode("utf-8", "replace")))

    def sentence(self, text: str) -> str:
        """What a model has written of a stored document as it may be stored; empty where that would be refused."""
        found = self._detector.find(text)
        if not found or self.policy == "tag":
            return text
        return "" if self.policy == "refuse" else Redacted(text, found).text

    def renamed(self, values: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Values beside a document, each text as `name` has it; keys stay."""
        match values:
            case str():
                return self.name(values)
            case Mapping():
                return {key: self.renamed(value) for key, value in values.items()}
            case list() | tuple():
                return [self.renamed(value) for value in values]
            case _:
                return values

    def holds(self, values: object) -> bool:
        """Whether values beside a document, such as its chunks' metadata, hold personal data."""
        return _holds(self._detector, values)

    def admit_turn(self, turn: Turn) -> Turn:
        """A turn of a conversation as it may be stored.

        Raises:
            PersonalDataError: It holds personal data, and the policy is to refuse that.
        """
        found = inspect(Document(content=turn.content, metadata=turn.metadata), self._detector, name=self._rename)
        if not found.counts:
            return turn
        if self.policy == "refuse":
            raise _refused("What was said", found)
        kept = found.redacted if self.policy == "redact" else None
        return replace(
            turn,
            content=turn.content if kept is None else kept.content,
            metadata={**(turn.metadata if kept is None else kept.metadata), KEY: dict(found.counts)},
        )


def _counted(document: Document, found: Inspection) -> Document:
    return replace(document, metadata={**document.metadata, KEY: dict(found.counts)})


def _refused(what: str, found: Inspection) -> PersonalDataError:
    elsewhere = [f"{', '.join(kinds)} in its {field}" for field, kinds in found.elsewhere.items()]
    said = "; ".join([*([told(found.in_content)] if found.in_content else []), *elsewhere])
    return PersonalDataError(
        f"{what} holds personal data ({said}), which this tenant's policy refuses. Take it out, or have the "
        "owner of the store choose another policy (recollect tenants set-pii).",
        kinds=tuple(found.counts),
    )


def _holds(detector: Detector, value: object) -> bool:
    match value:
        case str():
            return value not in PLACEHOLDERS.values() and bool(detector.find(value))
        case dict():
            return any(_holds(detector, one) for pair in value.items() for one in pair)
        case list() | tuple():
            return any(_holds(detector, one) for one in value)
        case bool() | None:
            return False
        case int() | float():
            return bool(detector.find(str(value)))
        case _:
            return False
