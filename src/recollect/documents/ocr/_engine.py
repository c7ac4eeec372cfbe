"""The one place that calls RapidOCR: a picture to lines, whichever way it was laid on the scanner."""

from __future__ import annotations

import importlib.metadata
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

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
def name() -> str:
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
        turned = _lines(np.ascontiguousarray(np.rot90(picture, quarters)))
        if _sureness(turned) > (0 if sideways and best[1] == 0 else _sureness(best[0])):
            best = (turned, quarters)
        if _sureness(turned) >= _DOUBTFUL + 0.1:
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
