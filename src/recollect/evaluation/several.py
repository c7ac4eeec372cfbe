"""Several data sets judged at once: a change of a default is worth what it does to the set that it serves worst."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from recollect.errors import NotFoundError, UsageError
from recollect.model.written_files import require_writable

SetKind = Literal["beir", "spans", "pages", "memory"]

# What a folder holds that is of a kind.
_SIGNS: tuple[tuple[str, SetKind], ...] = (("corpus.jsonl", "beir"), ("corpora", "spans"), ("pdf", "pages"))


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSet:
    """A data set.

    Attributes:
        name: What baselines know it by.
        kind: How it is measured.
        path: Its folder, or its file.
    """

    name: str
    kind: SetKind
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One figure of one set.

    Attributes:
        name: The set's.
        kind: How it is measured.
        metric: The figure's.
        value: Measured now.
        baseline: Measured before; None: it was not.
    """

    name: str
    kind: SetKind
    metric: str
    value: float
    baseline: float | None = None

    @property
    def change(self) -> float | None:
        """Relative to the baseline, -0.02 for two per cent less; None where there is none, or it was 0."""
        return self.value / self.baseline - 1 if self.baseline else None


def named_sets(given: Sequence[str]) -> list[NamedSet]:
    """The data sets that a command names.

    Args:
        given: Paths, or ``NAME=PATH`` each; a path alone is known by its own name.

    Raises:
        NotFoundError: A path does not exist.
        UsageError: It is no data set, or two have one name.
    """
    sets = [_named_set(text) for text in given]
    names = [one.name for one in sets]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"Two data sets are called {twice!r}: give one another name, OTHER={_path_of(sets, twice)}")
    return sets


def _path_of(sets: Sequence[NamedSet], name: str) -> Path:
    return [one.path for one in sets if one.name == name][-1]


def _named_set(text: str) -> NamedSet:
    name, separator, rest = text.partition("=")
    path = Path(rest if separator and not Path(text).exists() else text)
    if not path.exists():
        raise NotFoundError(f"{path} does not exist")
    own = name if str(path) == rest and separator else path.resolve().name
    if path.is_file():
        return NamedSet(name=own, kind="memory", path=path)
    for sign, kind in _SIGNS:
        if (path / sign).exists():
            return NamedSet(name=own, kind=kind, path=path)
    raise UsageError(
        f"{path} is no data set: it holds neither corpus.jsonl (eval beir) nor corpora/ (eval spans) nor pdf/ (eval "
        "pages), and is no file of conversations (eval memory)"
    )


def judged(
    one: NamedSet, figures: Mapping[str, float], baseline: Mapping[str, Mapping[str, float]]
) -> Iterator[Judged]:
    """The figures of a set beside those of before."""
    before = baseline.get(one.name, {})
    for metric, value in figures.items():
        yield Judged(name=one.name, kind=one.kind, metric=metric, value=value, baseline=before.get(metric))


def worst(found: Sequence[Judged]) -> Judged | None:
    """The figure with the largest relative loss, or the smallest gain; None where none was measured before."""
    compared = [one for one in found if one.change is not None]
    return min(compared, key=lambda one: one.change or 0.0, default=None)


def as_json(found: Sequence[Judged], seconds: float) -> dict[str, object]:
    """Plain values for ``json.dumps``."""
    least = worst(found)
    return {
        "sets": [
            {
                "set": one.name,
                "kind": one.kind,
                "metric": one.metric,
                "value": one.value,
                "baseline": one.baseline,
                "change": one.change,
            }
            for one in found
        ],
        "worst": None if least is None else {"set": least.name, "metric": least.metric, "change": least.change},
        "seconds": round(seconds, 3),
    }


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


def write_baseline(path: Path, found: Sequence[Judged], before: Mapping[str, Mapping[str, float]]) -> None:
    """Write figures down, to be compared with later.

    Args:
        path: The file.
        found: Measured now.
        before: Of other sets, which stay.
    """
    require_writable(path, overwrite=True)
    sets = {name: dict(figures) for name, figures in before.items()}
    for name in {one.name for one in found}:
        sets[name] = {one.metric: one.value for one in found if one.name == name}
    path.write_text(json.dumps({"sets": sets}, indent=2, sort_keys=True) + "\n", encoding="utf-8")
