"""What is kept in the cache folder of what was made of pictures, so that none costs twice."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
import zlib
from contextlib import suppress
from pathlib import Path

_KEPT_SECONDS = 90 * 24 * 3600.0


class KeptFolder:
    """A folder of what was made of pictures, by the hash of each picture and of whatever else it depends on.

    Only who has the picture can read its entry: name and key of an entry are hashes of the picture. So what is left
    there of a document that was erased says nothing to anybody else, and goes after ninety days without use.

    Args:
        folder: Made when the first entry is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, picture: bytes) -> bytes | None:
        """What was made of a picture, by its hash; None: nothing yet."""
        path, key = self._place(picture)
        try:
            found = zlib.decompress(_veiled(path.read_bytes(), key))
            os.utime(path)
        except (OSError, zlib.error):
            return None
        return found

    def put(self, picture: bytes, made: bytes) -> None:
        """Keep what was made; a folder that cannot be written to keeps nothing."""
        path, key = self._place(picture)
        data = _veiled(zlib.compress(made), key)
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, written = tempfile.mkstemp(dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                Path(written).replace(path)
            except OSError:
                Path(written).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what was not used for ninety days."""
        before = time.time() - _KEPT_SECONDS
        with suppress(OSError):
            for path in self._folder.glob("*/*"):
                if path.stat().st_mtime < before:
                    path.unlink(missing_ok=True)

    def _place(self, picture: bytes) -> tuple[Path, bytes]:
        name = hashlib.sha256(b"name of\0" + picture).hexdigest()
        return self._folder / name[:2] / name[2:], hashlib.sha256(b"key of\0" + picture).digest()


def _veiled(data: bytes, key: bytes) -> bytes:
    """``data`` combined with a stream of bits that only the key gives; twice gives ``data`` again.

    A key is of one picture, and a picture has one entry: no stream is used for two texts.
    """
    stream = hashlib.shake_256(key).digest(len(data))
    return (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(data), "big")
