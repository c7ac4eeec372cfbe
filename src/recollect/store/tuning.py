"""Settings of the embedded server for the machine it finds itself on.

The store shares the machine with the embedding model and everything else its owner runs, so memory stays modest: what
PostgreSQL does not cache itself, the operating system's page cache does.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import psutil

_MIB = 1024 * 1024

# Neighbours, pointers and their allocation, as pgvector holds them while it builds, with m = 16: measured.
_GRAPH_BYTES_A_VECTOR = 1_000

# While pgvector looks for the centres of lists, it holds this many sampled vectors for each list, and four bytes for
# each pair of a sampled vector and a list.
_SAMPLES_A_LIST = 50
_MOST_LISTS = 32_768


@dataclass(frozen=True, slots=True)
class Machine:
    """What the server may use.

    Attributes:
        memory_bytes: Memory of the machine, or of the container if that is less.
        cpu_count: Processors this process may run on.
        shared_memory_bytes: Room for POSIX shared memory (``/dev/shm``), or None where that is not a file system.
    """

    memory_bytes: int
    cpu_count: int
    shared_memory_bytes: int | None = None


def settings_for(machine: Machine, *, max_connections: int = 100) -> dict[str, str]:
    """Choose the server's settings.

    Durability is never traded for speed: ``fsync``, ``full_page_writes`` and ``synchronous_commit`` are on.

    Args:
        machine: What the server may use.
        max_connections: Connections of all processes together; default: 100.

    Returns:
        Setting names and values, as in ``postgresql.conf``.

    Example:
        >>> settings_for(Machine(memory_bytes=8 * 2**30, cpu_count=4))["shared_buffers"]
        '256MB'
    """
    memory = machine.memory_bytes
    # For index builds of up to 150,000 vectors of 384 dimensions; larger ones ask for more: see index_build_settings.
    maintenance = _clamp(memory // 16, 64 * _MIB, 256 * _MIB)
    workers = max(0, min(machine.cpu_count - 1, 4))
    return {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "max_connections": str(max_connections),
        "shared_buffers": _megabytes(_clamp(memory // 32, 32 * _MIB, 384 * _MIB)),
        "effective_cache_size": _megabytes(max(memory // 2, 64 * _MIB)),
        "work_mem": _megabytes(_clamp(memory // 512, 4 * _MIB, 16 * _MIB)),
        "maintenance_work_mem": _megabytes(maintenance),
        "autovacuum_work_mem": _megabytes(_clamp(memory // 64, 16 * _MIB, 64 * _MIB)),
        "dynamic_shared_memory_type": _dynamic_shared_memory(machine.shared_memory_bytes, maintenance),
        "huge_pages": "off",
        "max_worker_processes": str(workers + 2),
        "max_parallel_workers": str(workers),
        "max_parallel_maintenance_workers": str(workers),
        # A search takes a few milliseconds, and starting workers for it takes longer.
        "max_parallel_workers_per_gather": "0",
        "jit": "off",
        "random_page_cost": "1.1",
        # One machine, no replicas: less is logged, and fewer processes run.
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "max_logical_replication_workers": "0",
        "io_method": "sync",
        # Compressing the pages that are logged whole took up to a third of the time that storing a document takes.
        "wal_compression": "off",
        # A checkpoint removes old segments of the log. Reused, they would hold hundreds of megabytes after a load, and
        # the bytes of erased rows.
        "wal_recycle": "off",
        "min_wal_size": "32MB",
        "max_wal_size": "512MB",
        "checkpoint_timeout": "10min",
    }


def index_build_settings(machine: Machine, *, vectors: int, dimension: int) -> dict[str, str]:
    """Settings of a session that builds an index of vectors: the whole graph in memory, where a quarter is enough.

    The memory is taken while the graph grows, and given back at the end.

    Args:
        machine: What the server may use; it must be this one's.
        vectors: How many there are.
        dimension: Of each.

    Returns:
        Setting names and values; none where the server's own settings do.
    """
    own = settings_for(machine)
    granted = min(_graph_bytes(vectors, dimension), _most_for_an_index(machine))
    if granted <= int(own["maintenance_work_mem"].removesuffix("MB")) * _MIB:
        return {}
    settings = {"maintenance_work_mem": _megabytes(granted)}
    room = machine.shared_memory_bytes
    if own["dynamic_shared_memory_type"] == "posix" and room is not None and room < 2 * granted:
        # Several workers would share the graph there; one builds it in its own memory.
        settings["max_parallel_maintenance_workers"] = "0"
    return settings


def index_lists(machine: Machine | None, *, vectors: int, dimension: int) -> int | None:
    """How many lists an index divides vectors into whose graph does not fit in memory; None: it fits, or none is known.

    PostgreSQL would go on building such a graph on disk, ten times more slowly.
    """
    if machine is None or _graph_bytes(vectors, dimension) <= _most_for_an_index(machine):
        return None
    half = _most_for_an_index(machine) // 2
    lists = min(math.isqrt(min(vectors, half // (4 * _SAMPLES_A_LIST))), half // (2 * dimension * _SAMPLES_A_LIST))
    return max(1, min(lists, _MOST_LISTS))


def _graph_bytes(vectors: int, dimension: int) -> int:
    return vectors * (_GRAPH_BYTES_A_VECTOR + 2 * dimension)


def _most_for_an_index(machine: Machine) -> int:
    return machine.memory_bytes // 4


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def _megabytes(value: int) -> str:
    return f"{value // _MIB}MB"


def _dynamic_shared_memory(room: int | None, maintenance: int) -> str:
    # A parallel index build takes maintenance_work_mem from /dev/shm, of which a container has 64 MB by default.
    return "mmap" if room is not None and room < 2 * maintenance else "posix"


def this_machine() -> Machine:
    """Measure the machine, or the container around this process."""
    limits = [psutil.virtual_memory().total, *_container_memory_limits(Path("/sys/fs/cgroup"), _own_groups())]
    return Machine(
        memory_bytes=min(limits), cpu_count=_cpu_count(), shared_memory_bytes=_shared_memory(Path("/dev/shm"))
    )


def _cpu_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _shared_memory(folder: Path) -> int | None:
    try:
        info = os.statvfs(folder)
    except OSError:
        return None
    return info.f_frsize * info.f_blocks


def _own_groups() -> list[tuple[str, str]]:
    """This process's control groups as (controllers, path): the controllers are empty in version 2."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    fields = [line.split(":", 2) for line in lines]
    return [(field[1], field[2]) for field in fields if len(field) == 3]


def _container_memory_limits(root: Path, groups: list[tuple[str, str]]) -> list[int]:
    """Every memory limit that holds for a process: its group's own and those of the groups above it."""
    limits: list[int] = []
    for controllers, path in groups:
        if controllers == "":
            base, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            base, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = base / path.lstrip("/")
        # Inside a container the path may be the host's: then the mounted root is the container's own group.
        for folder in (group, *group.parents):
            if folder == base.parent:
                break
            limits.extend(_limit_in(folder / name))
    return limits


def _limit_in(file: Path) -> list[int]:
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        return []
    return [int(text)] if text.isdigit() and int(text) > 0 else []
