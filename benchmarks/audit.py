r"""How fast the audit is appended to: by one writer and several, of one tenant and several, singly and in batches.

An entry waits for the chain of its tenant and for the disk; a batch does both once. Run from the repository root::

    python benchmarks/audit.py --work ../audit-bench --seconds 5
"""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path

from harness import machine, say, table

from recollect.model import Scope
from recollect.model.audit import AuditEntry
from recollect.model.tenant import TenantQuota
from recollect.store.store import Store

WRITERS = 8
BATCHES = (1, 100)
ENTRY = AuditEntry(action="read", actor="user:ada", details={"documents": [17, 4711], "collection": 3})


def main() -> None:
    parser = argparse.ArgumentParser(description="Appends to the audit a second.")
    parser.add_argument("--work", type=Path, required=True, help="Where the store is kept.")
    parser.add_argument("--seconds", type=float, default=5.0, help="How long each case runs.")
    arguments = parser.parse_args()
    say(machine())
    store = Store(data_dir=arguments.work, max_connections=2 * WRITERS)
    try:
        lines = [_case(store, arguments.seconds, *case) for case in _cases()]
        started = time.perf_counter()
        chains = store.audit.verify_all(Scope())
        seconds = time.perf_counter() - started
    finally:
        store.close()
    assert all(chain.intact for chain in chains)
    say(table(["writers", "tenants", "entries a transaction", "entries/s", "transactions/s"], lines))
    entries = sum(chain.number for chain in chains)
    say(f"Verified {entries:,} entries in {seconds:.1f} s: {entries / seconds:,.0f} a second.")


def _cases() -> list[tuple[int, int, int]]:
    return [
        (writers, tenants, batch)
        for writers, tenants in ((1, 1), (WRITERS, 1), (WRITERS, WRITERS))
        for batch in BATCHES
    ]


def _case(store: Store, seconds: float, writers: int, tenants: int, batch: int) -> list[str]:
    scopes = [_scope(store, number) for number in range(tenants)]
    counts = [0] * writers
    begin = threading.Barrier(writers + 1)
    stop = threading.Event()

    def write(number: int) -> None:
        scope = scopes[number % tenants]
        store.audit.append(scope, [ENTRY])
        begin.wait()
        while not stop.is_set():
            store.audit.append(scope, [ENTRY] * batch)
            counts[number] += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    begin.wait()
    started = time.perf_counter()
    stop.wait(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    rate = sum(counts) / (time.perf_counter() - started)
    return [str(writers), str(tenants), str(batch), f"{rate * batch:,.0f}", f"{rate:,.0f}"]


def _scope(store: Store, number: int) -> Scope:
    if number == 0:
        return Scope()
    name = f"tenant-{number}"
    known = {tenant.name: tenant.tenant_id for tenant in store.tenants.page()}
    return Scope(tenant_id=known.get(name) or store.tenants.create(name, quota=TenantQuota()).tenant_id)


if __name__ == "__main__":
    main()
