"""Files that are sent: streamed from where they are, and named as the server is to call them."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from recollect.errors import ParseError


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToSend:
    """A file to be sent.

    Attributes:
        path: Where it is.
        name: What its document is called: a name, or a path with ``/``.
    """

    path: Path
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A form with files.

    Attributes:
        files: In their order.
        fields: Beside them, each with its values.
    """

    files: tuple[FileToSend, ...]
    fields: Mapping[str, list[str]]

    @contextmanager
    def opened(self) -> Iterator[dict[str, Any]]:
        """What the HTTP library takes; the files are open meanwhile, and read as they are sent.

        Raises:
            ParseError: One cannot be read.
        """
        with ExitStack() as open_files:
            parts: list[tuple[str, tuple[str, IO[bytes], str]]] = []
            for one in self.files:
                try:
                    file = open_files.enter_context(one.path.open("rb"))
                except OSError as exc:
                    raise ParseError(str(one.path), exc.strerror or str(exc)) from exc
                kind = mimetypes.guess_type(one.name)[0] or "application/octet-stream"
                parts.append(("file", (one.name, file, kind)))
            yield {"files": parts, "data": {name: values for name, values in self.fields.items() if values}}
