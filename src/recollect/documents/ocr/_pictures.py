"""The one place that calls Pillow: pictures of strangers, opened within bounds."""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from recollect.documents.formats import UnreadableError
from recollect.documents.ocr._engine import LONGEST_SIDE
from recollect.documents.ocr.available import heic_opener

if TYPE_CHECKING:
    from PIL.Image import Image

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


def page(picture: Image, number: int) -> tuple[Any, tuple[float, float]]:
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
