"""What was recognised on a page, where it is kept so that none is read twice, and whether any can be."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import os
import tempfile
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from recollect.documents._text import clean
from recollect.installation import install_command

_MOST_LINES = 20_000

#: Left, upper, right and lower edge, as shares of the page's width and height from its upper left corner.
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line that was recognised.

    Attributes:
        text: The words.
        x0: The left edge, in points from the left side of the page as it is read.
        y0: The upper edge, in points from its top.
        x1: The right edge.
        y1: The lower edge.
    """

    text: str
    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, slots=True)
class PageReading:
    """The lines of a page, as it is read: turned until they are level.

    Attributes:
        width: In points.
        height: The same.
        quarters: By how many quarters of a turn to the left the page as it is shown has to be turned to be read.
        slant: By how many radians its lines fall then, as of a crooked scan.
        lines: In no order.
    """

    width: float
    height: float
    quarters: int
    slant: float
    lines: tuple[ReadLine, ...]

    def box(self, x0: float, y0: float, x1: float, y1: float) -> Box:
        """Where a rectangle, in the coordinates of lines, is on the page as it is shown."""
        corners = [(x, y) for x in (x0, x1) for y in (y0, y1)]
        places = [self._shown(*turned(corner, -self.slant, self.width, self.height)) for corner in corners]
        across, down = [min(max(x, 0.0), 1.0) for x, _ in places], [min(max(y, 0.0), 1.0) for _, y in places]
        return min(across), min(down), max(across), max(down)

    def _shown(self, x: float, y: float) -> tuple[float, float]:
        across, down = x / self.width, y / self.height
        match self.quarters:
            case 1:
                return 1 - down, across
            case 2:
                return 1 - across, 1 - down
            case 3:
                return down, 1 - across
            case _:
                return across, down

    def as_json(self) -> dict[str, Any]:
        """As JSON can say it."""
        return {
            "page": [self.width, self.height, self.quarters, self.slant],
            "lines": [[one.text, one.x0, one.y0, one.x1, one.y1] for one in self.lines],
        }

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> PageReading:
        """The other way round.

        Raises:
            ValueError: It is not what `as_json` writes. (So are KeyError, TypeError and AttributeError.)
        """
        width, height, quarters, slant = map(float, value["page"])
        if not (0 < width < math.inf and 0 < height < math.inf):
            raise ValueError("a page without a size")
        lines: list[ReadLine] = []
        for text, *box in value["lines"][:_MOST_LINES]:
            x0, y0, x1, y1 = map(float, box)
            lines.append(ReadLine(clean(text), x0, y0, x1, y1))
        return cls(width, height, int(quarters), slant, tuple(lines))


def turned(point: tuple[float, float], angle: float, width: float, height: float) -> tuple[float, float]:
    """A point of a page whose lines fall by an angle, once the page is turned so that they are level."""
    x, y = point[0] - width / 2, point[1] - height / 2
    cosine, sine = math.cos(angle), math.sin(angle)
    return x * cosine + y * sine + width / 2, y * cosine - x * sine + height / 2


Readings = Mapping[int, PageReading]


def readings_json(readings: Readings) -> dict[str, Any]:
    """Readings by page as JSON can say it."""
    return {str(number): one.as_json() for number, one in readings.items()}


def readings_of_json(value: Mapping[str, Any]) -> dict[int, PageReading]:
    """The other way round; errors as of `PageReading.of_json`."""
    return {int(number): PageReading.of_json(one) for number, one in value.items()}


class ReadingCache:
    """What was recognised, by the picture of each page, by who recognised it and for whom (`KeptFolder`).

    Args:
        folder: Made when the first page is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._kept = KeptFolder(folder)

    def get(self, picture: bytes) -> PageReading | None:
        """What was recognised in a picture, by its hash; None: nothing yet."""
        kept = self._kept.get(picture)
        try:
            return None if kept is None else PageReading.of_json(json.loads(kept))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def put(self, picture: bytes, reading: PageReading) -> None:
        """Keeps what was recognised; a folder that cannot be written to keeps nothing."""
        self._kept.put(picture, json.dumps(reading.as_json()).encode())

    def tidy(self) -> None:
        """Removes what was not used for ninety days."""
        self._kept.tidy()


def picture_hash(engine: str, size: Sequence[int], pixels: bytes, *, owner: str = "") -> bytes:
    """The hash of a picture as an engine is shown it.

    Args:
        engine: Who recognises.
        size: Of the picture.
        pixels: Of the picture.
        owner: For whom: nobody can tell by the time that a page takes whether another one has the same.
    """
    return hashlib.sha256(f"{owner}\0{engine}\0{tuple(size)}\0".encode() + pixels).digest()


# What is kept in the cache folder of what was made of pictures, so that none costs twice.


_KEPT_SECONDS = 90 * 24 * 3600.0


class KeptFolder:
    """A folder of what was made of pictures, by the hash of each picture and of whatever else it depends on.

    Only who has the picture can read its entry: name and key of an entry are hashes of the picture. So what is left
    there of a document that was erased says nothing to anybody else, and goes after ninety days without use.

    Args:
        folder: Made when the first entry is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, picture: bytes) -> bytes | None:
        """What was made of a picture, by its hash; None: nothing yet."""
        path, key = self._place(picture)
        try:
            found = zlib.decompress(_veiled(path.read_bytes(), key))
            os.utime(path)
        except (OSError, zlib.error):
            return None
        return found

    def put(self, picture: bytes, made: bytes) -> None:
        """Keep what was made; a folder that cannot be written to keeps nothing."""
        path, key = self._place(picture)
        data = _veiled(zlib.compress(made), key)
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, written = tempfile.mkstemp(dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                Path(written).replace(path)
            except OSError:
                Path(written).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what was not used for ninety days."""
        before = time.time() - _KEPT_SECONDS
        with suppress(OSError):
            for path in self._folder.glob("*/*"):
                if path.stat().st_mtime < before:
                    path.unlink(missing_ok=True)

    def _place(self, picture: bytes) -> tuple[Path, bytes]:
        name = hashlib.sha256(b"name of\0" + picture).hexdigest()
        return self._folder / name[:2] / name[2:], hashlib.sha256(b"key of\0" + picture).digest()


def _veiled(data: bytes, key: bytes) -> bytes:
    """``data`` combined with a stream of bits that only the key gives; twice gives ``data`` again.

    A key is of one picture, and a picture has one entry: no stream is used for two texts.
    """
    stream = hashlib.shake_256(key).digest(len(data))
    return (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(data), "big")


# Whether text can be recognised here, and what is said where it cannot.


@cache
def can_recognise() -> bool:
    """Whether the extra ``ocr`` is installed. Nothing is imported for that."""
    return all(importlib.util.find_spec(name) is not None for name in ("rapidocr", "PIL"))


@cache
def can_open_heic() -> bool:
    """Whether what opens HEIC pictures is installed: ``pi_heif``, or ``pillow_heif``, which it is a part of."""
    return heic_opener() is not None


def heic_opener() -> str | None:
    """The package that opens HEIC pictures; None: there is none. Nothing is imported for that."""
    return next((name for name in ("pi_heif", "pillow_heif") if importlib.util.find_spec(name) is not None), None)


def without_text(unread: int, pages: int, *, ocr: bool = True) -> str:
    """What is said of pages that nobody has recognised: ``12 of 40 pages hold no text``, and the remedy.

    Args:
        unread: Pages that are pictures.
        pages: Pages of the file.
        ocr: Whether their text was to be recognised.
    """
    remedy = "their text was not recognised" if can_recognise() else install_command("ocr")
    if not ocr:
        remedy = 'recognition is switched off (rag.documents.ocr = "off")'
    several = "pages holds no text" if unread == 1 else "pages hold no text"
    return f"{unread:,} of {pages:,} {'page holds no text' if pages == 1 else several}: {remedy}"


def pages_without_text(metadata: Mapping[str, object]) -> str | None:
    """`without_text` of a document, by its metadata; None where all its pages were read."""
    unread, pages = metadata.get("pages_without_text"), metadata.get("page_count")
    if not isinstance(unread, int) or not isinstance(pages, int):
        return None
    said = without_text(unread, pages, ocr=metadata.get("ocr") != "off")
    left_out = metadata.get("pages_left_out")
    return f"{said}; {left_out}" if isinstance(left_out, str) else said
