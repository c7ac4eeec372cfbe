"""Pictures in documents, and what a model that sees says of them."""

from __future__ import annotations

import hashlib
import io
import re
import struct
import zipfile
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import dirname, join, normpath
from typing import Any, Protocol

from recollect.documents._packed import parse_tree
from recollect.documents._parsed import one_line
from recollect.documents.formats import UnreadableError, detect
from recollect.documents.pdf import figures_of_pdf
from recollect.model import Document, LineBox, PageSpan
from recollect.model.document import DESCRIBED, DESCRIBED_BY, MOST_PICTURES

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


# Pictures taken out of files: of their pages, their slides, their archives, their pages' own text.


# Smaller pictures are marks, buttons and rules.
_LEAST_SIDE, _LEAST_PIXELS = 100, 40_000
# What every provider takes.
_MOST_BYTES = 5_000_000
_MOST_LOOKED_AT = 300
_MEDIA = re.compile(r"(?:word|ppt|xl)/media/[^/]+\.(?:png|jpe?g|gif|webp)", re.IGNORECASE)
_SLIDE_RELATIONS = re.compile(r"ppt/slides/_rels/slide(\d{1,5})\.xml\.rels")
_DATA_URI = re.compile(rb"data:image/(?:png|jpe?g|gif|webp);base64,([A-Za-z0-9+/=\s]{200,})")


def find_pictures(data: bytes, name: str, mime_type: str | None) -> list[Picture]:
    """The pictures in a file that show something; none of a file that holds no pictures.

    Marks and rules are left out by their size, what stands on three pages or more as an ornament, and pictures of more
    than 5 MB because no provider takes them.

    Raises:
        UnreadableError: The file is damaged or protected.
    """
    file_format = detect(data, name=name, mime_type=mime_type)
    match file_format.kind:
        case "pdf":
            found: Iterator[Picture] = (
                Picture(data=one, mime_type=sized[0], page=page, box=box)
                for one, page, box in figures_of_pdf(data)
                if (sized := _shown(one)) is not None
            )
        case "office" if data.startswith(b"PK"):
            found = _packed(data)
        case "html":
            found = _inline(data)
        case "picture":
            sized = _shown(data)
            found = iter(() if sized is None else (Picture(data=data, mime_type=sized[0], page=1, box=(0, 0, 1, 1)),))
        case _:
            return []
    kept: list[Picture] = []
    left = MOST_PICTURE_BYTES
    for one in found:
        if len(one.data) > left or len(kept) >= _MOST_LOOKED_AT:
            break
        left -= len(one.data)
        kept.append(one)
    return distinct(kept)


def _packed(data: bytes) -> Iterator[Picture]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            slides = dict(_slides(archive))
            entries = [one for one in archive.infolist() if _MEDIA.fullmatch(one.filename)]
            for entry in sorted(entries, key=lambda one: (slides.get(one.filename, 0), one.filename)):
                if entry.file_size > _MOST_BYTES:
                    continue
                content = archive.read(entry)
                sized = _shown(content)
                if sized is not None:
                    yield Picture(data=content, mime_type=sized[0], page=slides.get(entry.filename))
    except MemoryError:
        raise
    except Exception as error:  # zlib.error, struct.error and whatever else a hostile archive provokes
        raise UnreadableError("is damaged: its packed parts cannot be read") from error


def _slides(archive: zipfile.ZipFile) -> Iterator[tuple[str, int]]:
    """The first slide that each picture is on."""
    found = [(int(match[1]), one) for one in archive.namelist() if (match := _SLIDE_RELATIONS.fullmatch(one))]
    for number, name in sorted(found, reverse=True):
        root = parse_tree(archive.read(name))
        for relation in () if root is None else root.iter("{*}Relationship"):
            if str(relation.get("Type", "")).endswith("/image"):
                yield normpath(join(dirname(dirname(name)), str(relation.get("Target", "")))), number


def _inline(data: bytes) -> Iterator[Picture]:
    for match in _DATA_URI.finditer(data):
        if len(match[1]) > 2 * _MOST_BYTES:
            continue
        try:
            content = b64decode(b"".join(match[1].split()))
        except ValueError:
            continue
        sized = _shown(content)
        if sized is not None:
            yield Picture(data=content, mime_type=sized[0])


def _shown(data: bytes) -> tuple[str, int, int] | None:
    """The type and size of a picture that says something, and that a model can be shown."""
    sized = _size(data) if len(data) <= _MOST_BYTES else None
    if sized is None or min(sized[1:]) < _LEAST_SIDE or sized[1] * sized[2] < _LEAST_PIXELS:
        return None
    return sized


def _size(data: bytes) -> tuple[str, int, int] | None:
    """The type, width and height that a picture's first bytes say."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return "image/png", *struct.unpack(">II", data[16:24])
        if data.startswith((b"GIF87a", b"GIF89a")):
            return "image/gif", *struct.unpack("<HH", data[6:10])
        if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            return _size_of_webp(data)
        return _size_of_jpeg(data) if data.startswith(b"\xff\xd8\xff") else None
    except (struct.error, IndexError):
        return None


def _size_of_webp(data: bytes) -> tuple[str, int, int] | None:
    match data[12:16]:
        case b"VP8X":
            width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = (side & 0x3FFF for side in struct.unpack("<HH", data[26:30]))
        case _:
            return None
    return "image/webp", width, height


def _size_of_jpeg(data: bytes) -> tuple[str, int, int] | None:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return "image/jpeg", width, height
        at += 1 if marker == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None
