"""The one place that calls pypdfium2, except for the characters of a page (`_words`): files, fonts, paths, pictures."""

from __future__ import annotations

import contextlib
import ctypes
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.documents.formats import UnreadableError
from recollect.documents.pdf._ruled import Edge

if TYPE_CHECKING:
    import pypdfium2


# Chinese, Japanese and Korean text in PDF files whose fonts are neither in the file nor on the machine.
#
# pdfium leaves out the text of a font that it cannot load, and servers rarely have fonts for these scripts. A font that
# draws a square for every character (748 bytes) replaces them. Positions come from the file, so the text is read as it
# is on a machine with such fonts. `requirements/squares` makes the font.

_FONT = Path(__file__).with_name("squares.ttf").read_bytes()
#: An address that names our font to pdfium, which hands it back and never follows it.
_OURS = 1
#: Windows' numbers for Shift-JIS, Korean, simplified and traditional Chinese, as pdfium uses them.
_CHARSETS = frozenset({128, 129, 134, 136})


def _copied(data: bytes, buffer: Any, size: int) -> int:  # noqa: ANN401 - an address
    """The length of the data, which is copied if the buffer has room for it."""
    if buffer and size >= len(data):
        ctypes.memmove(buffer, data, len(data))
    return len(data)


#: What pdfium's functions return for our font. A table of number 0 is the whole file.
_OF_OURS: dict[str, Callable[..., Any]] = {
    "GetFontData": lambda table, buffer, size: 0 if table else _copied(_FONT, buffer, size),
    "GetFaceName": lambda buffer, size: _copied(b"Recollect Squares\0", buffer, size),
    "GetFontCharset": lambda: 1,
    "DeleteFont": lambda: None,
}


@cache
def install_fonts() -> Any:  # noqa: ANN401 - a structure of pdfium, which must live as long as pdfium
    """Let pdfium use the squares where the machine has no font for a script."""
    import pypdfium2.raw as pdfium

    machine = pdfium.FPDF_GetDefaultSystemFontInfo()
    info = pdfium.FPDF_SYSFONTINFO(version=machine.contents.version)

    def function(name: str) -> Callable[..., Any]:
        of_machine = getattr(machine.contents, name)
        of_ours = _OF_OURS.get(name)

        def called(_: Any, *arguments: Any) -> Any:  # noqa: ANN401
            if of_ours is not None and arguments[0] == _OURS:
                return of_ours(*arguments[1:])
            found = of_machine(machine, *arguments)
            # The arguments are weight, italic and charset.
            return _OURS if name == "MapFont" and found is None and arguments[2] in _CHARSETS else found

        return called

    for name, kind in pdfium.FPDF_SYSFONTINFO._fields_:
        if name not in {"version", "Release"} and getattr(machine.contents, name):
            setattr(info, name, kind(function(name)))
    pdfium.FPDF_SetSystemFontInfo(info)
    return info


_PASSWORD_ERROR = 4
_SECURITY_ERROR = 5
_MOST_ENTRIES = 20_000
_MOST_RULES = 4_000
_THIN = 2.5
_IMAGE, _PATH, _FORM = 3, 2, 5
_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?([-+Zz])?(\d\d)?'?(\d\d)?")


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """An entry of a file's outline: its depth from 1, and the page, from 0, and height that it leads to."""

    level: int
    title: str
    page: int
    top: float | None


@contextlib.contextmanager
def opened(data: bytes) -> Iterator[pypdfium2.PdfDocument]:
    """A file, open for as long as the block runs.

    Raises:
        UnreadableError: It is protected or damaged.
    """
    import pypdfium2

    install_fonts()
    try:
        document = pypdfium2.PdfDocument(data)
        # Before any page is opened: fields are read with it. A document that is let go of here closes itself.
        document.init_forms()
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) in {_PASSWORD_ERROR, _SECURITY_ERROR}:
            raise UnreadableError("is protected by a password; save it without one") from error
        raise UnreadableError(f"is damaged, or not a PDF file ({error})") from error
    try:
        yield document
    finally:
        document.close()


def facts(document: pypdfium2.PdfDocument) -> dict[str, str]:
    """What the file says about itself, without blank entries."""
    found = document.get_metadata_dict(skip_empty=True)
    return {key: " ".join(value.split())[:500] for key, value in found.items() if value.strip()}


def pdf_time(stated: str | None) -> str | None:
    """A date as PDF writes it, ``D:20240506070809+02'00'``, as ISO 8601 does; one without a zone is taken for UTC."""
    match = _DATE.match(stated or "")
    if match is None:
        return None
    lowest = ("0001", "01", "01", "00", "00", "00")
    year, month, day, hour, minute, second = (part or low for part, low in zip(match.groups(), lowest, strict=False))
    sign, hours, minutes = match[7], match[8] or "00", match[9] or "00"
    zone = f"{sign}{hours}:{minutes}" if sign in {"+", "-"} else "+00:00"
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}{zone}"


def outline(document: pypdfium2.PdfDocument) -> list[OutlineEntry]:
    """The entries of the outline that lead to a page, in order."""
    import pypdfium2

    entries: list[OutlineEntry] = []
    # An outline may refer to itself or to what is not there: what was read until then counts.
    with contextlib.suppress(pypdfium2.PdfiumError, RecursionError):
        for bookmark in document.get_toc(max_depth=8):
            title = " ".join(bookmark.get_title().split())
            destination = bookmark.get_dest()
            page = destination.get_index() if destination else None
            if title and page is not None and 0 <= page < len(document):
                view = destination.get_view()[1]
                entries.append(OutlineEntry(bookmark.level + 1, title, page, view[1] if len(view) > 1 else None))
            if len(entries) >= _MOST_ENTRIES:
                break
    return entries


def edges(page: Any) -> list[Edge]:  # noqa: ANN401 - a handle of pdfium
    """The straight lines that are drawn on a page: rules, and the sides of boxes that are drawn around something."""
    functions = _object_functions()
    handle = ctypes.cast(page, ctypes.c_void_p).value
    found: list[Edge] = []
    box = (ctypes.c_float * 4)()
    first = ctypes.addressof(box)
    things = list(map(functions.get, repeat(handle), range(functions.count(handle))))
    paths = [thing for thing, kind in zip(things, map(functions.kind, things), strict=True) if kind == _PATH]
    for thing in paths:
        if not functions.bounds(thing, first, first + 4, first + 8, first + 12):
            continue
        left, bottom, right, top = box
        if top - bottom <= _THIN and right - left > 3 * _THIN:
            found.append(Edge(True, left, right, (top + bottom) / 2))
        elif right - left <= _THIN and top - bottom > 3 * _THIN:
            found.append(Edge(False, bottom, top, (left + right) / 2))
        elif _is_box(functions, thing):
            found += (Edge(True, left, right, bottom), Edge(True, left, right, top))
            found += (Edge(False, bottom, top, left), Edge(False, bottom, top, right))
        if len(found) >= _MOST_RULES:
            break
    return found


def _is_box(functions: _ObjectFunctions, thing: int) -> bool:
    """Whether a path is a rectangle whose sides are drawn."""
    filled, stroked = ctypes.c_int(), ctypes.c_int()
    functions.mode(thing, ctypes.addressof(filled), ctypes.addressof(stroked))
    return bool(stroked) and functions.corners(thing) in {4, 5}


@dataclass(frozen=True, slots=True)
class _ObjectFunctions:
    count: Any
    get: Any
    kind: Any
    bounds: Any
    mode: Any
    corners: Any


@cache
def _object_functions() -> _ObjectFunctions:
    """Pdfium's functions with plain addresses: a page has thousands of objects, and checked handles cost most of it."""
    import pypdfium2.raw as pdfium

    number, handle = ctypes.c_int, ctypes.c_void_p

    def plain(function: Any, result: Any, *arguments: Any) -> Any:  # noqa: ANN401
        # Not CFUNCTYPE, which lets go of the interpreter's lock for each of thousands of calls.
        return ctypes.PYFUNCTYPE(result, *arguments)(ctypes.cast(function, handle).value or 0)

    return _ObjectFunctions(
        count=plain(pdfium.FPDFPage_CountObjects, number, handle),
        get=plain(pdfium.FPDFPage_GetObject, handle, handle, number),
        kind=plain(pdfium.FPDFPageObj_GetType, number, handle),
        bounds=plain(pdfium.FPDFPageObj_GetBounds, number, *[handle] * 5),
        mode=plain(pdfium.FPDFPath_GetDrawMode, number, handle, handle, handle),
        corners=plain(pdfium.FPDFPath_CountSegments, number, handle),
    )


# Pages as pictures, and the pictures that are placed on pages.


# A page as a picture, for those who recognise its text.

_POINTS_AN_INCH = 72
_DOTS_AN_INCH = 170
# A page that shows no words and is drawn of so many lines has its words drawn as lines.
_MANY_PATHS = 200
#: Characters that a scanned page may have beside its picture: a number, a stamp.
FEW_CHARACTERS = 40
_MOST_OF_PAGE = 0.4
_LARGE = 0.02


def draw_page(data: bytes, number: int, *, longest_side: int) -> tuple[Any, tuple[float, float]]:
    """A page's pixels as it is shown, blue first, and its size in points.

    Args:
        data: The whole file.
        number: The page, from 1.
        longest_side: In pixels, however large the page is.

    Raises:
        UnreadableError: The file is damaged or protected, or has no such page.
    """
    import numpy as np
    import pypdfium2

    with opened(data) as document:
        try:
            page = document[number - 1]
            size = page.get_size()
            if min(size) <= 0:
                raise UnreadableError(f"is damaged: page {number} has no size")
            scale = min(_DOTS_AN_INCH / _POINTS_AN_INCH, longest_side / max(size))
            drawn = page.render(scale=scale, fill_color=(255, 255, 255, 255)).to_numpy()
            pixels = np.ascontiguousarray(np.broadcast_to(drawn[:, :, :3], (*drawn.shape[:2], 3)))
        except (pypdfium2.PdfiumError, IndexError) as error:
            raise UnreadableError(f"is damaged: page {number} cannot be drawn ({error})") from error
    return pixels, size


def is_picture(page: Any, characters: int) -> bool:  # noqa: ANN401 - a handle of pdfium
    """Whether what a page says is in pictures, or in words that are drawn as lines.

    Args:
        page: It.
        characters: How many it has as text.
    """
    import pypdfium2.raw as pdfium

    if characters > FEW_CHARACTERS:
        return False
    whole = max(1.0, pdfium.FPDF_GetPageWidthF(page) * pdfium.FPDF_GetPageHeightF(page))
    covered, paths = 0.0, 0
    edges = [ctypes.c_float() for _ in range(4)]
    for index in range(pdfium.FPDFPage_CountObjects(page)):
        thing = pdfium.FPDFPage_GetObject(page, index)
        kind = pdfium.FPDFPageObj_GetType(thing)
        paths += kind == _PATH
        if kind in {_IMAGE, _FORM} and pdfium.FPDFPageObj_GetBounds(thing, *edges):
            left, bottom, right, top = (edge.value for edge in edges)
            covered += max(0.0, right - left) * max(0.0, top - bottom)
    if characters:
        return bool(covered >= _MOST_OF_PAGE * whole)
    return bool(covered >= _LARGE * whole or paths >= _MANY_PATHS)


# Pictures that are placed on pages, each as a file of its own.

_MOST_PAGES = 2_000
_MOST_PIXELS = 40_000_000
_LONGEST_SIDE = 1_600
# Less of a page is a mark; more is the page itself, scanned, or its background.
_LEAST_SHARE, _MOST_SHARE = 0.01, 0.9

Box = tuple[float, float, float, float]


def figures_of_pdf(data: bytes) -> Iterator[tuple[bytes, int, Box | None]]:
    """The pictures on pages, in order: JPEG files as they are, others as PNG of 1,600 pixels a side at most.

    Figures that are drawn of lines are none. With each its page, from 1, and its place there, as shares of width and
    height from the upper left corner; None where the page is turned.

    Raises:
        UnreadableError: The file is damaged or protected.
    """
    import pypdfium2
    import pypdfium2.raw as pdfium

    with opened(data) as document:
        for number in range(min(len(document), _MOST_PAGES)):
            try:
                page = document[number]
                for one in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=4):
                    box = _place(page, one.get_bounds())
                    if box is None or not _LEAST_SHARE <= (box[2] - box[0]) * (box[3] - box[1]) <= _MOST_SHARE:
                        continue
                    content = _file(one)
                    if content is not None:
                        yield content, number + 1, box if page.get_rotation() == 0 else None
            except (pypdfium2.PdfiumError, ValueError, TypeError):
                continue  # a page that cannot be drawn costs its pictures alone


def _place(page: Any, bounds: tuple[float, float, float, float]) -> Box | None:  # noqa: ANN401 - pypdfium2 has no types
    left, bottom, right, top = page.get_cropbox()
    width, height = right - left, top - bottom
    if width <= 0 or height <= 0:
        return None
    x0, y0, x1, y1 = bounds
    edges = ((x0 - left) / width, (top - y1) / height, (x1 - left) / width, (top - y0) / height)
    across, above, beyond, below = (round(min(max(edge, 0.0), 1.0), 4) for edge in edges)
    return across, above, beyond, below


def _file(picture: Any) -> bytes | None:  # noqa: ANN401 - as above
    width, height = picture.get_px_size()
    if not 0 < width * height <= _MOST_PIXELS:
        return None
    if list(picture.get_filters()) == ["DCTDecode"]:
        return bytes(picture.get_data())
    pixels = picture.get_bitmap(render=False).to_numpy()
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    step = -(-max(pixels.shape[:2]) // _LONGEST_SIDE)
    pixels = pixels[::step, ::step]
    # Blue comes first there, and what lies behind the colours is left out.
    return _png(pixels[:, :, :1] if pixels.shape[2] < 3 else pixels[:, :, 2::-1])


def _png(pixels: Any) -> bytes:  # noqa: ANN401 - an array of numpy, of shape (height, width, 1 or 3)
    import numpy as np

    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # before each row its filter: none
    rows[:, 1:] = np.ascontiguousarray(pixels).reshape(height, width * channels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part)) for kind, part in parts
    )
