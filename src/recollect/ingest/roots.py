"""Which source the files of a given path belong to."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
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
        stored_name: What a path is stored as.
    """

    path: Path
    source: Source
    prefix: str
    is_file: bool
    stored_name: Callable[[str], str] = str

    def uri(self, found_source: str) -> str:
        """The document's URI: its path below the source's directory, as it is stored."""
        return self.prefix if self.is_file else self.prefix + self.stored_name(found_source)


def department_of(uri: str) -> str | None:
    """The first folder of a URI, or None for a file that stands in none."""
    parts = PurePosixPath(uri).parts
    return parts[0] if len(parts) > 1 else None


def resolve_roots(
    paths: Sequence[Path],
    *,
    scope: Scope,
    repository: DocumentRepository,
    collection: Collection,
    stored_name: Callable[[str], str] = str,
) -> list[Root]:
    """The sources of the paths, made where they are missing.

    A folder or file below a directory that was ingested before belongs to that directory's source, so that ingesting
    a part again meets the same documents; the other way round, a directory takes over what came from inside it. A
    path inside another given one is left out: it is read with it.

    Args:
        paths: Folders and files.
        scope: Whose.
        repository: Knows the sources.
        collection: Where.
        stored_name: What a path is stored as, part by part.

    Raises:
        NotFoundError: A path does not exist.
    """
    for path in paths:
        if not os.path.lexists(path):
            raise NotFoundError(f"{str(path)!r} does not exist. Give a folder or a file to ingest.")
    distinct = {path.resolve(): path for path in paths}
    outermost = [(full, path) for full, path in distinct.items() if not any(p in distinct for p in full.parents)]
    places = _Places(scope, repository, collection, stored_name)
    return [places.root(full, path) for full, path in outermost]


@dataclass(frozen=True, slots=True)
class _Places:
    scope: Scope
    repository: DocumentRepository
    collection: Collection
    stored_name: Callable[[str], str]

    def root(self, full: Path, path: Path) -> Root:
        own = full if full.is_dir() else full.parent
        above = (own, *own.parents)
        # What a source was given as is stored as it is, what its documents are named by as the tenant has it stored.
        names = {_text(directory): directory for directory in above}
        names |= {self.stored_name(name): directory for name, directory in names.items()}
        known = self.repository.sources_named(self.scope, self.collection, list(names), "directory")
        # The outermost: what was ingested as part of a larger folder keeps its name there. Of one folder, the source
        # that was given a name.
        source = min(
            known,
            key=lambda one: (len(names[one.directory].parts), one.name in names, one.source_id),
            default=None,
        )
        if source is None:
            source = self.repository.ensure_source(
                self.scope, self.collection, self.stored_name(_text(own)), "directory"
            )
        if source.name not in names or source not in known:
            self.repository.adopt_inner_sources(self.scope, self.collection, source)
        below = self.stored_name(_text(full.relative_to(names.get(source.directory, own))))
        if full.is_dir():
            return Root(path, source, "" if below == "." else below + "/", is_file=False, stored_name=self.stored_name)
        return Root(path, source, below, is_file=True, stored_name=self.stored_name)


def _text(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace").replace(os.sep, "/")
