"""``.recollectignore``: which files of a folder its owner wants left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect.documents.opening import open_file
from recollect.model.globs import reached

IGNORE_FILE = ".recollectignore"
# A list of patterns, not a document: what is longer was not meant as one.
_MAX_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file.

    Attributes:
        base: The folder of the file, as a path below the root that ends with ``/``; the root's is empty.
        segments: The pattern's parts between slashes; ``**`` stands for any number of folders.
        folders_only: The pattern ends with ``/``.
        include: The pattern begins with ``!``: what an earlier rule leaves out is read after all.
    """

    base: str
    segments: tuple[str, ...]
    folders_only: bool
    include: bool


def rules_of(folder: Path, base: str, *, below: Path | None = None) -> tuple[Rule, ...]:
    """The rules of the ignore file in a folder; none where there is none.

    Args:
        folder: Where to look.
        base: The folder's path below the root, ending with ``/`` unless it is the root.
        below: As in `recollect.documents.opening.open_file`.

    Raises:
        OSError: The file is there but cannot be read.
    """
    path = folder / IGNORE_FILE
    if not path.is_file() or (below is not None and path.is_symlink()):
        return ()
    with open_file(path, below=below) as file:
        text = file.read(_MAX_BYTES).decode("utf-8-sig", "replace")
    return tuple(rule for line in text.splitlines() if (rule := _rule(line, base)))


def _rule(line: str, base: str) -> Rule | None:
    pattern = line.strip()
    if not pattern or pattern.startswith("#"):
        return None
    include = pattern.startswith("!")
    pattern = pattern.removeprefix("!").lstrip()
    folders_only = pattern.endswith("/")
    # A slash at the beginning or inside ties the pattern to the file's own folder.
    anchored = "/" in pattern.rstrip("/")
    segments = tuple(part for part in pattern.split("/") if part)
    if not segments:
        return None
    return Rule(base, segments if anchored else ("**", *segments), folders_only, include)


def ignored(rules: Sequence[Rule], path: str, *, is_folder: bool) -> bool:
    """Whether a file or folder is left out: the last rule that matches it decides.

    Args:
        rules: Those of the root first, then those of the folders on the way down.
        path: Below the root, with ``/`` between the parts.
        is_folder: Whether it is a folder.
    """
    for rule in reversed(rules):
        if (is_folder or not rule.folders_only) and path.startswith(rule.base):
            parts = path[len(rule.base) :].split("/")
            if len(parts) in reached(rule.segments, parts, {0}):
                return not rule.include
    return False
