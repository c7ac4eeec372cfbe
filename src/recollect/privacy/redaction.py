"""Documents without the personal data that they came with, every offset moved with their text."""

from __future__ import annotations

import hashlib
import hmac
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from recollect.privacy.detector import KINDS, Detector, Finding, Kind, counted, repeated, without_overlaps

if TYPE_CHECKING:
    from recollect.model import Document

#: What stands in the place of each kind.
PLACEHOLDERS: Mapping[Kind, str] = {kind: f"[redacted {kind.replace('_', ' ')}]" for kind in KINDS}

_DIGEST_DIGITS = 8


class Redacted:
    """A text with placeholders, and where the offsets of the text before have gone.

    Args:
        text: The text before.
        found: What is taken out, in order and without overlaps.
    """

    def __init__(self, text: str, found: Sequence[Finding]) -> None:
        self._starts = [one.start for one in found]
        self._ends = [one.end for one in found]
        # Behind each finding, by how much what follows has moved.
        self._moved = [0]
        parts: list[str] = []
        at = 0
        for one in found:
            placeholder = PLACEHOLDERS[one.kind]
            parts += [text[at : one.start], placeholder]
            self._moved.append(self._moved[-1] + len(placeholder) - (one.end - one.start))
            at = one.end
        self.text = "".join([*parts, text[at:]])

    def offset(self, before: int) -> int:
        """Where an offset of the text before is now; within something that was taken out: behind its placeholder."""
        rank = bisect_right(self._ends, before)
        if rank < len(self._starts) and self._starts[rank] < before:
            return self._ends[rank] + self._moved[rank + 1]
        return before + self._moved[rank]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What was found in a document.

    Attributes:
        in_content: In its text.
        elsewhere: In its other fields, by their names: each kind once.
        counts: How many of each kind; what stands elsewhere and in the text alike is counted once.
        redacted: The document without any of it, and without its original.
    """

    in_content: tuple[Finding, ...]
    elsewhere: Mapping[str, tuple[Kind, ...]]
    counts: Mapping[str, int]
    redacted: Document


class _Fields:
    """Redacts the fields of one document, and notes what they held.

    Args:
        detector: Finds.
        values: Of the text, known by the words beside them there: they are looked for without these.
    """

    def __init__(self, detector: Detector, content: str, found: Sequence[Finding]) -> None:
        self._detector = detector
        by_context = {content[one.start : one.end]: one.kind for one in found if one.by_context}
        self._known = by_context
        self._again = repeated(by_context)
        self._values = {content[one.start : one.end] for one in found}
        self.kinds: dict[str, set[Kind]] = {}
        self.more: list[Finding] = []

    def text(self, field: str, value: str) -> str:
        found = self._detector.find(value)
        if self._again is not None:
            repeats = self._again.finditer(value)
            found = without_overlaps(
                [*found, *(Finding(self._known[match.group()], *match.span()) for match in repeats)]
            )
        if not found:
            return value
        self.kinds.setdefault(field, set()).update(one.kind for one in found)
        for one in found:
            if (stretch := value[one.start : one.end]) not in self._values:
                self._values.add(stretch)
                self.more.append(one)
        return Redacted(value, found).text

    def texts(self, field: str, values: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.text(field, value) for value in values))

    def optional(self, field: str, value: str | None) -> str | None:
        return None if value is None else self.text(field, value)

    def any(self, field: str, value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
        match value:
            case str():
                return self.text(field, value)
            case Mapping():
                return {self.any(field, key): self.any(field, item) for key, item in value.items()}
            case list() | tuple():
                return [self.any(field, item) for item in value]
            case bool() | None:
                return value
            case int() | float():
                # A number may be somebody's too: a card's, a telephone's.
                text = str(value)
                return value if self.text(field, text) == text else self.text(field, text)
            case _:
                return value


def inspect(document: Document, detector: Detector, *, name: Renaming) -> Inspection:
    """Find the personal data of a document, and make one without it.

    Args:
        document: As it came.
        detector: Finds.
        name: Renames its source and its id.
    """
    content = document.content
    found = detector.find(content)
    taken = Redacted(content, found)
    fields = _Fields(detector, content, found)
    redacted = replace(
        document,
        content=taken.text,
        source=None if document.source is None else name(document.source),
        id=None if document.id is None else name(document.id),
        title=fields.optional("title", document.title),
        metadata=fields.any("metadata", dict(document.metadata)),
        tags=fields.texts("tags", document.tags),
        department=None if document.department is None else name(document.department),
        headings=tuple(
            replace(
                heading,
                title=fields.text("headings", heading.title),
                start_offset=taken.offset(heading.start_offset),
                end_offset=taken.offset(heading.end_offset),
            )
            for heading in document.headings
        ),
        pages=tuple(
            replace(
                page,
                start_offset=taken.offset(page.start_offset),
                end_offset=taken.offset(page.end_offset),
                lines=tuple(
                    replace(
                        line, start_offset=taken.offset(line.start_offset), end_offset=taken.offset(line.end_offset)
                    )
                    for line in page.lines
                ),
            )
            for page in document.pages
        ),
    )
    for field in ("source", "id", "department"):
        value = getattr(document, field)
        if value is not None:
            fields.text(field, value)
    if found or fields.kinds:
        redacted = replace(redacted, original=None)
    return Inspection(
        in_content=tuple(found),
        elsewhere={field: tuple(sorted(kinds, key=KINDS.index)) for field, kinds in fields.kinds.items()},
        counts=counted([*found, *fields.more]),
        redacted=redacted,
    )


class Renaming:
    """Names of documents without personal data, part of a path by part, different ones staying different.

    Args:
        detector: Finds.
        salt: The tenant's: without it, nobody can try which value a name was made of.
    """

    def __init__(self, detector: Detector, salt: bytes) -> None:
        self._detector = detector
        self._salt = salt

    def __call__(self, source: str) -> str:
        """The name that a document is stored under; the same whenever the same one comes."""
        return "/".join(self._part(part) for part in source.split("/"))

    def _part(self, part: str) -> str:
        found = self._detector.find(part)
        if not found:
            return part
        digest = hmac.new(self._salt, part.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        stem, dot, suffix = Redacted(part, found).text.rpartition(".")
        if not stem or "]" in suffix:
            return f"{stem}{dot}{suffix}~{digest[:_DIGEST_DIGITS]}"
        return f"{stem}~{digest[:_DIGEST_DIGITS]}{dot}{suffix}"
