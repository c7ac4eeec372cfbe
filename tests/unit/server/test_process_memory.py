"""Threads of a server share few heaps of the C library, and its garbage collector looks at little, seldom."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

from recollect.server.running import seldom_collecting

# Sixteen threads hold memory of the C library at the same time; then it is asked for its heaps.
SCRIPT = """
import ctypes, sys, threading
from recollect.server.running import keep_few_arenas

libc = ctypes.CDLL(None)
for name in ("malloc", "fopen"):
    getattr(libc, name).restype = ctypes.c_void_p
done = keep_few_arenas() if sys.argv[1] == "few" else False
held = threading.Barrier(17)

def hold():
    libc.malloc(5_000)
    held.wait()
    held.wait()

for _ in range(16):
    threading.Thread(target=hold, daemon=True).start()
held.wait()
stream = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, stream)
libc.fclose(stream)
held.wait()
print(done)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of glibc")
def test_threads_share_two_heaps_unless_the_environment_says_otherwise(tmp_path):
    def heaps(*arguments: str, **environment: str) -> tuple[str, int]:
        told = tmp_path / "heaps.xml"
        command = [sys.executable, "-c", SCRIPT, *arguments, str(told)]
        ended = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
        return ended.stdout.strip(), told.read_text(encoding="utf-8").count("<heap nr=")

    assert heaps("few") == ("True", 2)
    assert heaps("few", MALLOC_ARENA_MAX="1") == ("False", 1)
    done, many = heaps("many")
    assert (done, many > 2) == ("False", True)


def test_the_garbage_collector_is_as_it_was_afterwards():
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    with seldom_collecting() as settle:
        assert gc.get_threshold()[0] > before[0]
        kept = [object() for _ in range(10)]
        settle()
        assert gc.get_freeze_count() > frozen and len(kept) == 10
        assert not gc.get_objects(generation=2)
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
