"""Which files a folder holds, and which of them can be read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from recollect.documents._ignore import IGNORE_FILE, Rule, ignored, rules_of
from recollect.documents.formats import can_read_name, is_picture_name, picture_extra
from recollect.documents.opening import open_folder
from recollect.errors import NotFoundError

MAX_BYTES = 50 * 1024 * 1024

__all__ = [
    "IGNORE_FILE",
    "MAX_BYTES",
    "FoundFile",
    "SkipReason",
    "SkippedFile",
    "look",
    "printable",
    "require_roots",
    "walk",
]

SkipReason = Literal["hidden", "too_large", "unsupported", "unreadable", "special", "link", "link_loop", "ignored"]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read.

    Attributes:
        path: Where it is.
        source: Its path below the root, with ``/`` between the parts; a root that is a file: its name.
        size: In bytes.
        below: The folder below which no link may be followed to it; None: links are followed.
    """

    path: Path
    source: str
    size: int
    below: Path | None = None


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file or folder that is not read.

    Attributes:
        path: Where it is.
        source: As of `FoundFile`.
        kind: Why, for counting; ``unreadable`` is a failure that people should hear of, the others are as asked.
        reason: Why, in words.
    """

    path: Path
    source: str
    kind: SkipReason
    reason: str


def printable(name: str | Path) -> str:
    """A name or path as text that can be stored: bytes that are no UTF-8 become escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace").replace(os.sep, "/")


def require_roots(roots: Iterable[Path]) -> None:
    """Raise a `NotFoundError` that names the first of the folders and files that does not exist."""
    for root in roots:
        if not os.path.lexists(root):
            raise NotFoundError(f"{printable(str(root))}: no such file or folder")


def walk(
    roots: Sequence[Path], *, max_bytes: int = MAX_BYTES, hidden: bool = False, follow_links: bool = False
) -> Iterator[FoundFile | SkippedFile]:
    """All files below the roots, in a fixed order: roots as given, then names by their characters.

    Folders are read one at a time and files are given out as they are met, so memory depends on the fullest folder,
    not on the number of files. Links below a root are not followed, unless that is asked for: they lead out of what was
    given. A root itself may be one. A folder that has been entered already below the same root is not entered again.
    A file ``.recollectignore`` names what is left out of its folder and those
    below, in the manner of Git's; a root itself is read even if such a file names it.

    Args:
        roots: Folders and files. Each must exist before anything is given out.
        max_bytes: Skip larger files.
        hidden: Whether to read files and folders whose names begin with a dot.
        follow_links: Whether to read what links lead to, wherever it is.

    Raises:
        NotFoundError: A root does not exist; the message names it.
    """
    require_roots(roots)
    return _walk_roots(roots, max_bytes, hidden, follow_links)


def _walk_roots(
    roots: Sequence[Path], max_bytes: int, hidden: bool, follow_links: bool
) -> Iterator[FoundFile | SkippedFile]:
    for root in roots:
        if root.is_dir():
            yield from _walk_folder(root, max_bytes, hidden, None if follow_links else root)
        else:
            yield _judge(root, printable(root.name), max_bytes, None)


def look(
    root: Path, paths: Iterable[Path], *, max_bytes: int = MAX_BYTES, hidden: bool = False, follow_links: bool = False
) -> Iterator[FoundFile | SkippedFile]:
    """What `walk` would give out of some paths below a folder, without a look at the rest of it.

    Args:
        root: The folder that `walk` would be given.
        paths: Files and folders below it; a folder stands for all that is in it, and what does not exist for nothing.
        max_bytes: As for `walk`.
        hidden: As for `walk`.
        follow_links: As for `walk`.
    """
    below = None if follow_links else root

    @cache
    def rules_in(folder: Path) -> tuple[Rule, ...]:
        base = printable(folder.relative_to(root)) + "/" if folder != root else ""
        own = rules_of(folder, base, below=below)
        return own if folder == root else rules_in(folder.parent) + own

    for path in paths:
        if path == root:
            yield from _walk_folder(root, max_bytes, hidden, below)
        elif os.path.lexists(path):
            yield from _look_at(root, path, rules_in, max_bytes, hidden, below)


def _look_at(
    root: Path,
    path: Path,
    rules_in: Callable[[Path], tuple[Rule, ...]],
    max_bytes: int,
    hidden: bool,
    below: Path | None,
) -> Iterator[FoundFile | SkippedFile]:
    on_the_way = [path, *path.parents][: len(path.relative_to(root).parts)][::-1]
    for step in on_the_way:
        source = printable(step.relative_to(root))
        try:
            rules = rules_in(step.parent)
        except OSError as error:
            reason = f"cannot be opened: {error.strerror or error}"
            yield SkippedFile(step.parent, source.rpartition("/")[0] or ".", "unreadable", reason)
            return
        is_link = below is not None and step.is_symlink()
        left_out = _named_out(step, source, rules, hidden, is_folder=step.is_dir(), is_link=is_link)
        if left_out is not None:
            yield left_out
            return
    if path.is_dir():
        yield from _walk_folder(path, max_bytes, hidden, below, prefix=f"{source}/", rules=rules)
    else:
        yield _judge(path, source, max_bytes, below)


def _named_out(
    path: Path, source: str, rules: Sequence[Rule], hidden: bool, *, is_folder: bool, is_link: bool
) -> SkippedFile | None:
    """What is not even looked at, by its name or because it is a link that is not followed."""
    if (not hidden and path.name.startswith(".")) or path.name == ".git":
        return SkippedFile(path, source, "hidden", "is hidden (begins with a dot)")
    if ignored(rules, source, is_folder=is_folder):
        return SkippedFile(path, source, "ignored", "is named in .recollectignore")
    if is_link:
        return SkippedFile(path, source, "link", "is a link, which is not followed")
    return None


def _walk_folder(
    root: Path,
    max_bytes: int,
    hidden: bool,
    below: Path | None,
    *,
    prefix: str = "",
    rules: tuple[Rule, ...] = (),
) -> Iterator[FoundFile | SkippedFile]:
    seen: set[tuple[int, int]] = set()
    waiting = [(root, prefix, rules)]
    while waiting:
        folder, prefix, rules = waiting.pop()
        source = prefix.rstrip("/") or "."
        try:
            names = _names(folder, below, seen)
            if names is None:
                yield SkippedFile(folder, source, "link_loop", "is a link to a folder that is read already")
                continue
            rules += rules_of(folder, prefix, below=below)
        except OSError as error:
            yield SkippedFile(folder, source, "unreadable", f"cannot be opened: {error.strerror or error}")
            continue
        # Files come before the folders beside them: so the folders can wait as a stack of paths.
        folders: list[tuple[Path, str, tuple[Rule, ...]]] = []
        for name, is_folder, is_link in names:
            path, named = folder / name, prefix + printable(name)
            outside = is_link and below is not None
            left_out = _named_out(path, named, rules, hidden, is_folder=is_folder, is_link=outside)
            if left_out is not None:
                yield left_out
            elif is_folder:
                folders.append((path, f"{named}/", rules))
            else:
                yield _judge(path, named, max_bytes, below)
        waiting.extend(reversed(folders))


def _names(folder: Path, below: Path | None, seen: set[tuple[int, int]]) -> list[tuple[str, bool, bool]] | None:
    """The names in a folder, whether each is a folder and a link; None where the folder was seen already."""
    descriptor = open_folder(folder, below=below)
    try:
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) in seen:
            return None
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(descriptor) as entries:
            return sorted((entry.name, _is_folder(entry), entry.is_symlink()) for entry in entries)
    finally:
        os.close(descriptor)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _judge(path: Path, source: str, max_bytes: int, below: Path | None) -> FoundFile | SkippedFile:
    if not can_read_name(path.name):
        return SkippedFile(path, source, "unsupported", _why_unsupported(path))
    try:
        status = path.stat()
    except OSError as error:
        return SkippedFile(path, source, "unreadable", f"cannot be read: {error.strerror or error}")
    if not stat.S_ISREG(status.st_mode):
        return SkippedFile(path, source, "special", "is not a regular file")
    if status.st_size > max_bytes:
        reason = f"is larger than the limit ({status.st_size:,} of {max_bytes:,} bytes)"
        return SkippedFile(path, source, "too_large", reason)
    if not os.access(path, os.R_OK):
        return SkippedFile(path, source, "unreadable", "may not be read: permission denied")
    return FoundFile(path, source, status.st_size, below)


def _why_unsupported(path: Path) -> str:
    if is_picture_name(path.name):
        return f"is a picture: {picture_extra(path.name)} reads the text in it"
    suffix = printable(path.suffix)
    return f"has a type that cannot be read ({suffix})" if suffix else "has no extension that tells its type"
