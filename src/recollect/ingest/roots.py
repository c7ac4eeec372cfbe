"""Which source the files of a given path belong to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from recollect.errors import NotFoundError
from recollect.model.uploaded_file import file_of_source

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


# In the metadata of a directory's source: what of it was read, and how.
_READ = "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How files of a directory were read, so that they are read again in the same way.

    Attributes:
        tags: Given to every document.
        permissions: Who may read every document; None: whom it names, if any.
        follow_links: Whether links were followed.
    """

    tags: tuple[str, ...] = ()
    permissions: tuple[str, ...] | None = None
    follow_links: bool = False


def readings(metadata: Mapping[str, Any]) -> dict[str, Reading]:
    """What was read of a directory by an ingest: by the path below it (a folder's ends in ``/``), how."""
    return {
        path: Reading(
            tags=tuple(one["tags"]),
            permissions=None if one["permissions"] is None else tuple(one["permissions"]),
            follow_links=one["follow_links"],
        )
        for one in metadata.get(_READ, ())
        for path in one["paths"]
    }


def note_reading(repository: DocumentRepository, scope: Scope, roots: Sequence[Root], how: Reading) -> None:
    """Note of each source what is read of it; what was read inside such a folder before is read with it from now on."""
    for source_id, group in groupby(sorted(roots, key=_source_id), key=_source_id):
        of_source = list(group)
        source = of_source[0].source
        assert source.source_id == source_id
        before = readings(repository.source_metadata(scope, source))
        after = dict(before)
        for root in of_source:
            if not root.is_file:
                after = {path: one for path, one in after.items() if not path.startswith(root.prefix)}
            above = next((after[folder] for folder in _folders(root.prefix) if folder in after), None)
            after.pop(root.prefix, None)
            if above != how:
                after[root.prefix] = how
        if after != before:
            repository.note_source(scope, source, {_READ: _as_metadata(after)})


def _source_id(root: Root) -> int:
    return root.source.source_id


def _folders(path: str) -> Iterator[str]:
    """The folders that a path is in, the innermost first; the last is the directory itself."""
    if path:
        yield from (f"{folder}/" if str(folder) != "." else "" for folder in PurePosixPath(path).parents)


def _as_metadata(read: Mapping[str, Reading]) -> list[dict[str, Any]]:
    return [
        {
            "paths": sorted(path for path, one in read.items() if one == how),
            "tags": list(how.tags),
            "permissions": None if how.permissions is None else list(how.permissions),
            "follow_links": how.follow_links,
        }
        for how in dict.fromkeys(read.values())
    ]


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


@dataclass(eq=False, repr=False)
class Origins:
    """Where documents belong that come from another store, by what their source is called there.

    What a folder around a document, which was ingested here, would call its own is the folder's. Whatever else is put
    where the origin is looked for when it is read here. It is no folder before: what a file says of folders does not
    have them read, nor does it decide what is called after them.

    Attributes:
        scope: Whose.
        repository: Knows the sources.
        collection: Where.
        stored_name: What a name is stored as.
    """

    scope: Scope
    repository: DocumentRepository
    collection: Collection
    stored_name: Callable[[str], str] = str
    _folders: dict[str, Source | None] = field(init=False, default_factory=dict)
    _sources: dict[str, Source] = field(init=False, default_factory=dict)

    def place(self, origin: str, uri: str) -> tuple[Source, str]:
        """The source of a document, and its name there."""
        if file_of_source(origin) is not None:
            origin = f"imported:{origin}"  # the number is that of a file here, or will be
        origin = self.stored_name(origin)
        path = f"{origin.rstrip('/')}/{self.stored_name(uri)}"
        folder = self._folder(path.rpartition("/")[0]) if origin.startswith("/") else None
        if folder is not None:
            return folder, path[len(folder.directory.rstrip("/")) + 1 :]
        if origin not in self._sources:
            self._sources[origin] = self.repository.ensure_source(self.scope, self.collection, origin, "manual")
        return self._sources[origin], uri

    def _folder(self, path: str) -> Source | None:
        """The outermost folder around a path, or at it, that was ingested here."""
        if path not in self._folders:
            around = {path, *(path[:end] or "/" for end, letter in enumerate(path) if letter == "/")}
            known = self.repository.sources_named(self.scope, self.collection, list(around), "directory")
            self._folders[path] = min(known, key=lambda one: (len(one.directory), one.source_id), default=None)
        return self._folders[path]


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
