"""Threads of a server share few heaps of the C library, and its garbage collector looks at little, seldom."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# In a fork, sixteen threads hold memory of the C library at the same time; then it is asked for its heaps.
SCRIPT = """
import ctypes, os, sys, threading
from recollect.server.running import keep_few_arenas

libc = ctypes.CDLL(None)
for name in ("malloc", "fopen"):
    getattr(libc, name).restype = ctypes.c_void_p

def heaps(done):
    held = threading.Barrier(17)

    def hold():
        libc.malloc(5_000)
        held.wait()
        held.wait()

    for _ in range(16):
        threading.Thread(target=hold, daemon=True).start()
    held.wait()
    stream = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    held.wait()
    with open(sys.argv[1]) as told:
        print(done, told.read().count("<heap nr="), flush=True)

os.environ.pop("MALLOC_ARENA_MAX", None)
for few in (True, False):
    if os.fork() == 0:
        heaps(keep_few_arenas() if few else False)
        os._exit(0)
    os.wait()
os.environ["MALLOC_ARENA_MAX"] = "1"
print(keep_few_arenas())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of glibc")
def test_threads_share_two_heaps_unless_the_environment_says_otherwise(tmp_path):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "heaps.xml")]
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    few, many, told = ended.stdout.splitlines()
    assert few == "True 2"
    assert many.startswith("False ") and int(many.split()[1]) > 2
    assert told == "False"


def test_the_garbage_collector_is_as_it_was_afterwards():
    code = """
import gc
from recollect.server.running import seldom_collecting
before, frozen = gc.get_threshold(), gc.get_freeze_count()
with seldom_collecting() as settle:
    assert gc.get_threshold()[0] > before[0]
    kept = [object() for _ in range(10)]
    settle()
    assert gc.get_freeze_count() > frozen and len(kept) == 10
    assert not gc.get_objects(generation=2)
assert gc.get_threshold() == before
assert gc.get_freeze_count() == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True)
