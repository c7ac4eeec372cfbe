"""A page of a file, drawn and recognised; in this process, whatever it costs."""

from __future__ import annotations

import importlib
import importlib.metadata
import io
import math
import statistics
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.documents._text import clean
from recollect.documents.formats import UnreadableError, detect
from recollect.documents.ocr.readings import PageReading, ReadingCache, ReadLine, heic_opener, picture_hash, turned
from recollect.documents.pdf import draw_page

if TYPE_CHECKING:
    from PIL.Image import Image


# Smaller pictures are marks and buttons, and a page of one colour is blank.
_LEAST_CONTRAST = 16
_LEAST_SIDE = 24
_LONG_ENOUGH = 5.0
_LEAST_LONG = 3
_LEAST_SLANT, _MOST_SLANT = 0.002, 0.35


def load() -> None:
    """Loads the engine, so that what it takes is not counted as a file's."""
    engine()


def recognise_page(
    data: bytes, name: str, mime_type: str | None, number: int, *, cache: Path | None, owner: str = ""
) -> PageReading:
    """What is written on a page.

    Args:
        data: The whole file, a PDF or a picture.
        name: Its name.
        mime_type: As its sender declared it.
        number: The page, from 1.
        cache: The folder where what was recognised is kept; None: nowhere.
        owner: For whom it is kept.

    Raises:
        UnreadableError: The file is damaged, or the page too large.
    """
    pixels, size = _drawn(data, name, mime_type, number)
    kept = None if cache is None else ReadingCache(cache)
    key = picture_hash(engine_name(), pixels.shape, pixels.tobytes(), owner=owner)
    reading = None if kept is None else kept.get(key)
    if reading is None:
        reading = _reading(pixels, size)
        if kept is not None:
            kept.put(key, reading)
    return reading


def picture_pages(data: bytes) -> int:
    """The pages of a picture.

    Raises:
        UnreadableError: It is damaged.
    """
    with opened(data) as picture:
        return page_count(picture)


def _drawn(data: bytes, name: str, mime_type: str | None, number: int) -> tuple[Any, tuple[float, float]]:
    match detect(data, name=name, mime_type=mime_type).kind:
        case "pdf":
            return draw_page(data, number, longest_side=LONGEST_SIDE)
        case "picture":
            with opened(data) as picture:
                return picture_page(picture, number)
        case _:
            raise UnreadableError("has no pages that can be drawn")


def _reading(pixels: Any, size: tuple[float, float]) -> PageReading:  # noqa: ANN401 - an array of numpy
    height, width = pixels.shape[:2]
    if min(width, height) < _LEAST_SIDE or int(pixels.max()) - int(pixels.min()) < _LEAST_CONTRAST:
        return PageReading(*size, 0, 0.0, ())
    found, quarters = recognise(pixels)
    scale = size[0] / width
    if quarters % 2:
        size = (size[1], size[0])
    slant = _slant(found)
    lines = tuple(_line(one, scale, slant, size) for one in found)
    return PageReading(round(size[0], 2), round(size[1], 2), quarters, round(slant, 5), lines)


def _slant(found: Sequence[Found]) -> float:
    """The angle of most long lines."""
    angles = [
        math.atan2(one.corners[1][1] - one.corners[0][1], one.corners[1][0] - one.corners[0][0])
        for one in found
        if one.width > _LONG_ENOUGH * one.height
    ]
    middle = statistics.median(angles) if len(angles) >= _LEAST_LONG else 0.0
    return middle if _LEAST_SLANT < abs(middle) < _MOST_SLANT else 0.0


def _line(found: Found, scale: float, slant: float, size: tuple[float, float]) -> ReadLine:
    corners = [turned((x * scale, y * scale), slant, *size) for x, y in found.corners]
    across, down = [x for x, _ in corners], [y for _, y in corners]
    box = (min(across), min(down), max(across), max(down))
    return ReadLine(clean(" ".join(found.text.split())), *(round(edge, 1) for edge in box))


# The one place that calls RapidOCR: a picture to lines, whichever way it was laid on the scanner.


_MODELS = {
    "Det": "PP-OCRv6_det_small.onnx",
    "Rec": "PP-OCRv6_rec_small.onnx",
    "Cls": "ch_ppocr_mobile_v2.0_cls_mobile.onnx",
}
#: The longer side of what is recognised, in pixels: an A4 page at 170 dots an inch.
LONGEST_SIDE = 2000
# Below it the words are guesses: a page that is upside down reads so.
_DOUBTFUL = 0.8
_TALL = 1.5


@dataclass(frozen=True, slots=True)
class Found:
    """A line in a picture: its corners from the upper left one on, clockwise, in pixels, and how sure it is, 0 to 1."""

    text: str
    corners: tuple[tuple[float, float], ...]
    score: float

    @property
    def width(self) -> float:
        """The length of its upper side."""
        return math.dist(self.corners[0], self.corners[1])

    @property
    def height(self) -> float:
        """The length of its left side."""
        return math.dist(self.corners[0], self.corners[3])


@cache
def engine_name() -> str:
    """What recognises, with its version: another one may read another text."""
    return f"rapidocr {importlib.metadata.version('rapidocr')} PP-OCRv6 {LONGEST_SIDE}"


@cache
def engine() -> Any:  # noqa: ANN401 - RapidOCR's own, without types
    """The engine, loaded once a process; its models are files of its package, so nothing is fetched."""
    import rapidocr

    models = Path(rapidocr.__file__).parent / "models"
    params: dict[str, object] = {f"{task}.model_path": str(models / file) for task, file in _MODELS.items()}
    params |= {
        "Global.log_level": "critical",
        "Global.use_cls": False,
        "Global.max_side_len": LONGEST_SIDE,
        # Several are padded to the longest of them: no faster on a processor, and three times the memory.
        "Rec.rec_batch_num": 1,
        # Pages are read side by side, each by one process.
        "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    }
    return rapidocr.RapidOCR(params=params)


def recognise(picture: Any) -> tuple[list[Found], int]:  # noqa: ANN401 - an array of numpy
    """The lines of a picture, and by how many quarters of a turn to the left it had to be turned to be read.

    Args:
        picture: Rows of pixels of three colours, blue first.
    """
    import numpy as np

    lines = _lines(picture)
    tall = sum(one.height for one in lines if one.height > _TALL * one.width and len(one.text) > 1)
    sideways = tall > sum(one.width for one in lines if one.height <= _TALL * one.width)
    if lines and not sideways and _sureness(lines) >= _DOUBTFUL:
        return lines, 0
    best = (lines, 0)
    for quarters in (1, 3) if sideways else (2,) if lines else ():
        rotated = _lines(np.ascontiguousarray(np.rot90(picture, quarters)))
        if _sureness(rotated) > (0 if sideways and best[1] == 0 else _sureness(best[0])):
            best = (rotated, quarters)
        if _sureness(rotated) >= _DOUBTFUL + 0.1:
            break
    return best


def _sureness(lines: list[Found]) -> float:
    characters = sum(len(one.text) for one in lines)
    return sum(one.score * len(one.text) for one in lines) / characters if characters else 0.0


def _lines(picture: Any) -> list[Found]:  # noqa: ANN401
    read = engine()(picture)
    if read.boxes is None or read.txts is None:
        return []
    return [
        Found(text, tuple((float(x), float(y)) for x, y in corners), float(score))
        for corners, text, score in zip(read.boxes, read.txts, read.scores, strict=True)
        if text.strip()
    ]


# The one place that calls Pillow: pictures of strangers, opened within bounds.


_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP")
_HEIC_MARK = b"ftyp"
_MOST_PIXELS = 100_000_000
_MOST_PAGES = 2_000


@contextmanager
def opened(data: bytes) -> Iterator[Image]:
    """A picture, its pixels not looked at yet.

    Raises:
        UnreadableError: It is damaged or too large, here or anywhere inside the block.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # A warning of many pixels; how many may be is said here.
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=_formats(data)) as picture:
                yield picture
    except (UnreadableError, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise UnreadableError(f"is too large a picture: {_MOST_PIXELS // 1_000_000} megapixels can be read") from error
    except UnidentifiedImageError as error:
        raise UnreadableError("is damaged: the picture cannot be read") from error
    except Exception as error:  # SyntaxError, struct.error, EOFError, and whatever else a hostile picture provokes
        raise UnreadableError(f"is damaged: the picture cannot be read ({error})") from error


def _formats(data: bytes) -> tuple[str, ...]:
    """The formats that a picture may be of; what opens HEIC is loaded for what looks like it alone."""
    opener = heic_opener() if data[4:8] == _HEIC_MARK else None
    if opener is None:
        return _FORMATS
    # It registers itself with Pillow, as often as it is asked to.
    importlib.import_module(opener).register_heif_opener(thumbnails=False)
    return ("HEIF",)


def page_count(picture: Image) -> int:
    """The pages of a TIFF; others show one picture, even those that move.

    Raises:
        UnreadableError: There are more than 2,000.
    """
    count = int(getattr(picture, "n_frames", 1)) if picture.format == "TIFF" else 1
    if count > _MOST_PAGES:
        raise UnreadableError(
            f"has {count:,} pages: {_MOST_PAGES:,} of a picture can be read; save them in several files"
        )
    return count


def picture_page(picture: Image, number: int) -> tuple[Any, tuple[float, float]]:
    """A page's pixels as they are meant to be seen, blue first, and its size in points.

    Args:
        picture: The file.
        number: From 1.

    Raises:
        UnreadableError: It has more than 100 megapixels.
    """
    import numpy as np
    from PIL import Image, ImageOps

    if number > 1:  # the first is that which the file opens with, which in a HEIC need not stand first
        picture.seek(number - 1)
    width, height = picture.size
    if width * height > _MOST_PIXELS:
        raise UnreadableError(
            f"is a picture of {width:,} × {height:,} pixels: {_MOST_PIXELS // 1_000_000} megapixels can be read"
        )
    picture.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))
    shown = picture if picture.mode in {"RGB", "L"} else _with_plain_colours(picture)
    shown.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS, reducing_gap=2.0)
    shown = ImageOps.exif_transpose(shown).convert("RGB")
    # As wide as a page: sizes in points mean nothing in a photograph.
    scale = 612 / min(shown.size)
    return np.ascontiguousarray(np.asarray(shown)[:, :, ::-1]), (shown.width * scale, shown.height * scale)


def _with_plain_colours(picture: Image) -> Image:
    """The picture in red, green and blue, what is transparent as white; its notes (which way is up) are kept."""
    import numpy as np
    from PIL import Image

    if picture.mode.startswith(("I", "F")):  # sixteen bits and more: the brighter eight
        levels = np.asarray(picture, np.float32)
        low, high = float(levels.min()), float(levels.max())
        shown = Image.fromarray(((levels - low) * (255 / max(high - low, 1.0))).astype(np.uint8))
    elif "A" in picture.getbands() or "transparency" in picture.info:
        seen = picture.convert("RGBA")
        shown = Image.new("RGB", seen.size, "white")
        shown.paste(seen, mask=seen.getchannel("A"))
    else:
        shown = picture.convert("RGB")
    shown.info["exif"] = picture.getexif().tobytes()
    return shown
