"""Which workers of this machine have ended, as their processes tell long before their heartbeats are missed."""

from __future__ import annotations

import os
import socket
import sys
from functools import cache
from pathlib import Path

import psutil

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


@cache
def machine() -> str:
    """Names where this process runs: two processes with the same name there see each other's numbers.

    A host's name alone does not tell: containers may share it, whose processes have numbers of their own, and so may
    machines that were copied. So the name is that of one start of one kernel, and of one space of process numbers.
    Where the system does not tell these, it is a name that no other process has, and heartbeats alone tell who is gone.
    """
    try:
        if sys.platform == "linux":
            told = f"{_BOOT.read_text(encoding='ascii').strip()} {_NAMESPACE.readlink()}"
        else:
            told = f"{psutil.boot_time():.0f}"
    except OSError:
        told = f"{os.getpid()} {os.urandom(8).hex()}"
    return f"{socket.gethostname()} {told}"


def has_ended(process: int) -> bool:
    """Whether no process of this machine has a number, or it is one that was ended and that nobody has asked after.

    One whose number was given to another process since counts as running.
    """
    try:
        status: str = psutil.Process(process).status()
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False
    return status == psutil.STATUS_ZOMBIE
