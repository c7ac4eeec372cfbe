"""Pictures in documents, and what a model that sees says of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from recollect.documents._parsed import one_line
from recollect.model import Document, LineBox, PageSpan
from recollect.model.pictures import DESCRIBED, DESCRIBED_BY, MOST_PICTURES

#: What the pictures that are taken out of a file may weigh together.
MOST_PICTURE_BYTES = 24 << 20
_LONGEST_DESCRIPTION = 1_500
_LONGEST_REASON = 200

#: Left, upper, right and lower edge, as shares of the page's width and height from its upper left corner.
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture in a file.

    Attributes:
        data: Its own file.
        mime_type: Of that: ``image/png``, ``image/jpeg``, ``image/gif`` or ``image/webp``.
        page: Where it is shown, from 1; None: not known.
        box: Where on that page; None: not known.
    """

    data: bytes = field(repr=False)
    mime_type: str
    page: int | None = None
    box: Box | None = None


@dataclass(frozen=True, slots=True)
class Descriptions:
    """What was said of pictures.

    Attributes:
        texts: Of each; empty: nothing.
        problem: Why not of all; None: there is no problem.
    """

    texts: Sequence[str]
    problem: str | None = None


class PictureDescriber(Protocol):
    """Says what pictures show."""

    @property
    def described_by(self) -> str:
        """The model, as ``provider/model``."""
        ...

    def describe(self, pictures: Sequence[Picture]) -> Descriptions:
        """What each of the pictures of one document shows. Never raises for what a model or its server does."""
        ...


def with_descriptions(document: Document, pictures: Sequence[Picture], describer: PictureDescriber) -> Document:
    """A document with what its pictures show, behind its own text, a paragraph each.

    Each says where its picture stands, and that a model has written it; the metadata says how many there are and whose.

    Args:
        document: As it was read.
        pictures: In it.
        describer: Describes them.
    """
    described = describer.describe(pictures)
    by = one_line(describer.described_by)
    parts, end = [document.content], len(document.content)
    pages: list[PageSpan] = []
    count = 0
    for picture, text in zip(pictures, described.texts, strict=True):
        said = one_line(text)[:_LONGEST_DESCRIPTION]
        if not said:
            continue
        where = f" on page {picture.page}" if picture.page is not None else ""
        paragraph = f"[Picture{where}, described by {by}] {said}"
        joint = "\n\n" if end else ""
        start = end + len(joint)
        parts += (joint, paragraph)
        end = start + len(paragraph)
        count += 1
        if picture.page is not None:
            box = () if picture.box is None else (LineBox(start, end, *picture.box),)
            pages.append(PageSpan(picture.page, start, end, box))
    told: dict[str, Any] = {DESCRIBED: count, DESCRIBED_BY: by} if count else {}
    if described.problem:
        told["pictures_left_out"] = one_line(described.problem)[:_LONGEST_REASON]
    if not told:
        return document
    return replace(
        document,
        content="".join(parts),
        pages=(*document.pages, *pages),
        metadata={**document.metadata, **told},
    )


def distinct(pictures: Sequence[Picture]) -> list[Picture]:
    """The pictures without what comes again: of two alike the first, of those on three pages or more none."""
    by_hash: dict[bytes, list[Picture]] = {}
    for one in pictures:
        by_hash.setdefault(hashlib.sha256(one.data).digest(), []).append(one)
    kept = [alike[0] for alike in by_hash.values() if len({one.page for one in alike}) < 3]
    return kept[:MOST_PICTURES]


def pictures_of(message: Mapping[str, Any], data: bytes) -> list[Picture]:
    """What a worker has found.

    Raises:
        ValueError: It is not what a worker says. (So are KeyError and TypeError.)
    """
    found: list[Picture] = []
    at = 0
    for mime_type, page, box, length in message["pictures"][: 4 * MOST_PICTURES]:
        if not 0 <= int(length) <= len(data) - at:
            raise ValueError("pictures of impossible lengths")
        left = None if box is None else tuple(min(max(float(edge), 0.0), 1.0) for edge in box)
        edges = None if left is None or len(left) != 4 else (left[0], left[1], left[2], left[3])
        number = None if page is None else int(page)
        found.append(Picture(data=data[at : at + length], mime_type=str(mime_type), page=number, box=edges))
        at += length
    return found
