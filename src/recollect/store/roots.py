"""Names of documents whose path other roots (folders, uploads, given sources) have too: ``docs/README.md``. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def told_apart(roots: Collection[str]) -> dict[str, str]:
    """Return for each root the last parts of its name that no other one ends with, by the root's name."""
    parts = {root: root.strip("/").split("/") for root in roots}
    told: dict[str, str] = {}
    for root, own in parts.items():
        others = [other for name, other in parts.items() if name != root]
        enough = (n for n in range(1, len(own)) if all(other[-n:] != own[-n:] for other in others))
        told[root] = "/".join(own[-next(enough, len(own)) :])
    return told


def ends(names: Iterable[str]) -> list[str]:
    """Return what may be the path within a root, of names that may begin with the root's."""
    split = [name.split("/") for name in names]
    return list(dict.fromkeys("/".join(parts[n:]) for parts in split for n in range(1, len(parts))))
