"""Which source the files of a given path belong to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.store.documents import DocumentRepository, Source


@dataclass(frozen=True, slots=True)
class Root:
    """A path to ingest, and the source that its files belong to.

    Attributes:
        path: The folder or file, as given.
        source: The directory that its files are named from.
        prefix: Path of the folder below that directory (ends in ``/``), or the file's own name with its folders;
            empty where the folder is that directory.
        is_file: Whether the path is a single file.
    """

    path: Path
    source: Source
    prefix: str
    is_file: bool

    def uri(self, found_source: str) -> str:
        """The document's URI: its path below the source's directory."""
        return self.prefix if self.is_file else self.prefix + found_source


def department_of(uri: str) -> str | None:
    """The first folder of a URI, or None for a file that stands in none."""
    parts = PurePosixPath(uri).parts
    return parts[0] if len(parts) > 1 else None


def resolve_roots(
    paths: Sequence[Path], *, scope: Scope, repository: DocumentRepository, collection: Collection
) -> list[Root]:
    """The sources of the paths, made where they are missing.

    A folder or file below a directory that was ingested before belongs to that directory's source, so that ingesting
    a part again meets the same documents; the other way round, a directory takes over what came from inside it. A
    path inside another given one is left out: it is read with it.

    Raises:
        NotFoundError: A path does not exist.
    """
    for path in paths:
        if not os.path.lexists(path):
            raise NotFoundError(f"{str(path)!r} does not exist. Give a folder or a file to ingest.")
    distinct = {path.resolve(): path for path in paths}
    outermost = [(full, path) for full, path in distinct.items() if not any(p in distinct for p in full.parents)]
    return [_root(full, path, scope, repository, collection) for full, path in outermost]


def _root(full: Path, path: Path, scope: Scope, repository: DocumentRepository, collection: Collection) -> Root:
    own = full if full.is_dir() else full.parent
    names = [_text(directory) for directory in (own, *own.parents)]
    known = repository.sources_named(scope, collection, names, "directory")
    # The outermost: what was ingested as part of a larger folder keeps its name there.
    source = min(known, key=lambda candidate: len(candidate.name), default=None)
    if source is None:
        source = repository.ensure_source(scope, collection, _text(own), "directory")
        repository.adopt_inner_sources(scope, collection, source)
    base = next(directory for directory in (own, *own.parents) if _text(directory) == source.name)
    below = _text(full.relative_to(base))
    if full.is_dir():
        return Root(path, source, "" if below == "." else below + "/", is_file=False)
    return Root(path, source, below, is_file=True)


def _text(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace").replace(os.sep, "/")
