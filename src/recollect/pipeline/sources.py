"""The sources of a view's documents: what changes outside changes inside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from recollect.model.arguments import checked
from recollect.model.principal import read_permissions
from recollect.pipeline.ingesting import FileOptions
from recollect.pipeline.standpoint import Group
from recollect.pipeline.watching import Watching, require_folders


@checked
class Sources(Group):
    """Where the documents of a view's collection come from; see `recollect.View`."""

    def watch(
        self,
        folders: Sequence[Path],
        *,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        follow_links: bool | None = None,
        polling: bool | None = None,
    ) -> Watching:
        """Store what is in folders, and from then on what changes in them; what goes there is closed here.

        A change is taken up once its file has settled, a fifth of a second after the last write, together with what
        changes at the same time, and costs what the changed files cost. What is read is what `ingest` reads. A folder
        that goes as a whole, as one on another machine may, is waited for, and nothing of it is closed. Interrupting it
        at any moment leaves every document whole or absent.

        Args:
            folders: Which; one inside another is watched with it.
            tags: Given to every document.
            permissions: Who may read every document, as for `ingest`.
            follow_links: As for `ingest`. What changes behind a link is seen when the folder is looked through, once an
                hour.
            polling: Whether to compare files every now and then rather than be told by the system; None: on network
                file systems.

        Returns:
            An iterator over what is done, which waits for changes until its ``stop()`` is called.

        Raises:
            NotFoundError: A folder does not exist.
            UsageError: One of them is a file, or an option is not valid.
            PermissionDeniedError: The principal may not write there.

        Example:
            >>> from pathlib import Path
            >>> from recollect import RAGPipeline
            >>> with RAGPipeline() as rag:  # doctest: +SKIP
            ...     for done in rag.sources.watch([Path("docs")]):
            ...         print(done.report)
        """
        if permissions is not None:
            read_permissions(permissions)
        self._at.present()
        options = FileOptions(tags=tags, permissions=permissions, follow_links=follow_links)
        return Watching(self._at, require_folders(list(folders)), options, polling=polling)
