"""Outlook's messages, written by the tests: compound files of named streams ([MS-CFB], [MS-OXMSG])."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

Tree = Mapping[str, "bytes | Tree"]

_END, _FREE, _TABLE = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
_SECTOR, _MINI, _SMALL = 512, 64, 4096


class _Sectors:
    """Sectors of one size, and which follows which."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.parts: list[bytes] = []
        self.table: list[int] = []

    def put(self, data: bytes) -> int:
        first = len(self.parts)
        for at in range(0, len(data), self.size):
            self.parts.append(data[at : at + self.size].ljust(self.size, b"\0"))
            self.table.append(len(self.parts))
        if not data:
            return _END
        self.table[-1] = _END
        return first


def compound(tree: Tree) -> bytes:
    """A compound file with a stream for each of the bytes, and a storage for each of the trees."""
    large, small = _Sectors(_SECTOR), _Sectors(_MINI)
    entries: list[list[object]] = []

    def entry(name: str, kind: int, start: int, size: int) -> int:
        entries.append([name, kind, start, size, _FREE, _FREE])  # its first child, and its right neighbour
        return len(entries) - 1

    def fill(number: int, tree: Tree) -> None:
        before = None
        for name, value in sorted(tree.items(), key=lambda pair: (len(pair[0]), pair[0].upper())):
            if isinstance(value, bytes):
                one = entry(name, 2, (large if len(value) >= _SMALL else small).put(value), len(value))
            else:
                one = entry(name, 1, 0, 0)
                fill(one, value)
            entries[number if before is None else before][4 if before is None else 5] = one
            before = one

    root = entry("Root Entry", 5, _END, 0)
    fill(root, tree)
    entries[root][2:4] = [large.put(b"".join(small.parts)), _MINI * len(small.parts)]
    links = small.table + [_FREE] * (-len(small.table) % 128)
    mini_table = large.put(struct.pack(f"<{len(links)}I", *links))
    directory = large.put(b"".join(map(_written, entries)))
    count = 1
    while len(large.table) + count > 128 * count:
        count += 1
    at = len(large.parts)
    whole = [*large.table, *[_TABLE] * count]
    whole += [_FREE] * (128 * count - len(whole))
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 16
    head += struct.pack("<5H", 0x3E, 3, 0xFFFE, 9, 6) + b"\0" * 6
    head += struct.pack("<9I", 0, count, directory, 0, _SMALL, mini_table, len(links) // 128, _END, 0)
    head += struct.pack("<109I", *[at + one for one in range(count)], *[_FREE] * (109 - count))
    return head + b"".join(large.parts) + struct.pack(f"<{len(whole)}I", *whole)


def _written(entry: Sequence[object]) -> bytes:
    name, kind, start, size, child, right = entry
    coded = str(name).encode("utf-16-le") + b"\0\0"
    numbers = struct.pack("<HBB3I", len(coded), kind, 1, _FREE, right, child)
    return coded.ljust(64, b"\0") + numbers + b"\0" * 36 + struct.pack("<IQ", start, size)


def outlook(
    subject: str, body: str, *, attachments: Sequence[tuple[str, bytes | Tree]] = (), headers: str = ""
) -> dict[str, bytes | Tree]:
    """A message; `compound` makes a file of it. What is attached is bytes, or another message."""
    tree: dict[str, bytes | Tree] = {
        "__properties_version1.0": b"\0" * 32,
        "__substg1.0_0037001F": subject.encode("utf-16-le"),
        "__substg1.0_0C1A001F": "Ann Smith".encode("utf-16-le"),
        "__substg1.0_0C1F001F": "ann@x.example".encode("utf-16-le"),
        "__substg1.0_1000001F": body.encode("utf-16-le"),
        "__substg1.0_007D001F": headers.encode("utf-16-le"),
    }
    for number, (name, content) in enumerate(attachments):
        part: dict[str, bytes | Tree] = {
            "__properties_version1.0": b"\0" * 8,
            "__substg1.0_3707001F": name.encode("utf-16-le"),
        }
        part["__substg1.0_37010102" if isinstance(content, bytes) else "__substg1.0_3701000D"] = content
        tree[f"__attach_version1.0_#{number:08X}"] = part
    return tree
