"""Data sets by name, and files of what was measured on them before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.datasets import SetKind, kind_of
from recollect.model.written_files import require_writable

#: Values by metric, by the name of a data set.
Figures = Mapping[str, Mapping[str, float]]


def named_sets(given: Sequence[str]) -> dict[str, tuple[SetKind, Path]]:
    """The kinds and paths of the data sets that a command names, by name.

    Args:
        given: Paths, or ``NAME=PATH`` each; a path alone is known by its own name.

    Raises:
        NotFoundError: A path does not exist.
        UsageError: It is no data set, or two have one name.
    """
    sets: dict[str, tuple[SetKind, Path]] = {}
    for text in given:
        name, separator, rest = text.partition("=")
        if Path(text).exists() or not separator:
            name, rest = Path(text).resolve().name, text
        path = Path(rest)
        if name in sets:
            raise UsageError(f"Two data sets are called {name!r}: give one another name, OTHER={path}")
        sets[name] = (kind_of(path), path)
    return sets


def read_baseline(path: Path) -> dict[str, dict[str, float]]:
    """The figures of a file that `write_baseline` wrote, by set and metric.

    Raises:
        NotFoundError: There is no such file.
        UsageError: It is none of these files.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(name): {str(metric): float(value) for metric, value in figures.items()}
            for name, figures in found["sets"].items()
        }
    except FileNotFoundError as exc:
        raise NotFoundError(f"{path} does not exist; --save {path} makes it") from exc
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
        raise UsageError(f"{path} is no baseline: recollect eval all --save writes one ({exc})") from exc


def write_baseline(path: Path, figures: Figures) -> None:
    """Write figures down, to be compared with later."""
    require_writable(path, overwrite=True)
    path.write_text(json.dumps({"sets": figures}, indent=2, sort_keys=True) + "\n", encoding="utf-8")
