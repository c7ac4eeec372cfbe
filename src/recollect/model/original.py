"""The file that a document was read from, as it came."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from recollect.model.written_files import written_whole

#: What is read, stored and given out at a time: an original of any size takes little memory.
PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A file as it was uploaded or fetched, byte by byte.

    Attributes:
        name: The file's name, as its sender wrote it: for people to read, not to be used as a path.
        mime_type: Of the file.
        byte_count: Its length.
        file_hash: SHA-256 of its bytes.
        opened: Begins to read it, piece by piece.
    """

    name: str
    mime_type: str
    byte_count: int
    file_hash: bytes
    opened: Callable[[], Iterator[bytes]] = field(repr=False, compare=False)

    @classmethod
    def of_bytes(cls, data: bytes, *, name: str, mime_type: str) -> Original:
        """The original whose bytes are in memory."""

        def pieces() -> Iterator[bytes]:
            return (data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES))

        digest = hashlib.sha256(data).digest()
        return cls(name=name, mime_type=mime_type, byte_count=len(data), file_hash=digest, opened=pieces)

    @classmethod
    def of_file(cls, path: Path, *, mime_type: str, name: str | None = None) -> Original:
        """The original that is a file; it is read once for its hash, and again when it is stored.

        Args:
            path: The file; it must stay as it is until the document is stored.
            mime_type: Of the file.
            name: Its sender's name for it; None: the path's last part.

        Raises:
            OSError: It cannot be read.
        """

        def pieces() -> Iterator[bytes]:
            with path.open("rb") as file:
                while piece := file.read(PIECE_BYTES):
                    yield piece

        return cls._of_pieces(pieces, name=path.name if name is None else name, mime_type=mime_type)

    @classmethod
    def of_open_file(cls, file: BinaryIO, *, name: str, mime_type: str) -> Original:
        """The original that is an open file; it is read once for its hash, and again when it is stored.

        Args:
            file: Open for reading, from its beginning wherever it is; it must stay open until it is stored.
            name: Its sender's name for it.
            mime_type: Of the file.
        """

        def pieces() -> Iterator[bytes]:
            file.seek(0)
            while piece := file.read(PIECE_BYTES):
                yield piece

        return cls._of_pieces(pieces, name=name, mime_type=mime_type)

    @classmethod
    def _of_pieces(cls, pieces: Callable[[], Iterator[bytes]], *, name: str, mime_type: str) -> Original:
        digest, size = hashlib.sha256(), 0
        for piece in pieces():
            digest.update(piece)
            size += len(piece)
        return cls(name=name, mime_type=mime_type, byte_count=size, file_hash=digest.digest(), opened=pieces)

    def pieces(self) -> Iterator[bytes]:
        """The bytes in order, at most `PIECE_BYTES` at a time.

        Raises:
            NotFoundError: It was erased meanwhile.
            StoreError: What is stored is damaged.
        """
        return self.opened()

    def read(self) -> bytes:
        """All of it, in memory."""
        return b"".join(self.pieces())

    def save(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write it to a file, which appears when it is complete, or not at all.

        Args:
            path: Where; its folder must exist.
            overwrite: Replace an existing file; default: no.

        Raises:
            ConflictError: The file exists, and is not to be overwritten.
            NotFoundError: There is no such folder.
            UsageError: It is a folder, a link or a device, or cannot be written.
        """
        with written_whole(Path(path), overwrite=overwrite) as file:
            for piece in self.pieces():
                file.write(piece)
