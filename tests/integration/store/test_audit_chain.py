"""The audit as a chain: the application can only append, and whatever is done to it otherwise shows."""

from __future__ import annotations

import hashlib
import json
import threading
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostile import EFFORT
from recollect import Document, RAGPipeline
from recollect.errors import StoreError
from recollect.model import Scope
from recollect.model.audit import AuditChain, AuditEntry
from recollect.store.connections import APPLICATION_ROLE
from recollect.store.logs import follow, record, record_all
from recollect.store.store import Store

RIGHTS = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")


def fill(store: Store, count: int = 4, *, tenant: int = 1) -> None:
    store.audit.append(
        Scope(tenant_id=tenant), [AuditEntry(action="erase", actor="ann", details={"n": n}) for n in range(count)]
    )


def owner(store: Store, statement: str, *params) -> None:
    with store.database.autocommit() as connection:
        connection.execute(statement, params)


def chain(store: Store) -> AuditChain:
    return store.audit.verify(Scope())


# The application's rights


FORBIDDEN = [
    "UPDATE audit SET actor = 'nobody'",
    "DELETE FROM audit",
    "TRUNCATE audit",
    "INSERT INTO audit (tenant_id, action, actor, number, hash) VALUES (1, 'x', 'y', 9, '')",
    "UPDATE audit_heads SET number = 0",
    "DELETE FROM audit_heads",
    "DELETE FROM audit_default",
    "DROP TABLE audit_default",
    "ALTER TABLE audit DETACH PARTITION audit_default",
    "SELECT drop_audit(now() + interval '1 day')",
    "SELECT drop_time_partitions('audit', now() + interval '1 day')",
    "SELECT append_audit(2, '{x}', '{y}', ARRAY['{}'::jsonb])",
    "SELECT setval('audit_numbers', 1)",
]


def test_the_application_may_append_and_nothing_else(store: Store):
    fill(store)
    for statement in FORBIDDEN:
        with pytest.raises(StoreError, match="refused"), store.database.transaction(Scope()) as connection:
            connection.execute(statement)
    assert chain(store).intact and chain(store).number == 4


def test_no_partition_of_any_time_gives_it_more(store: Store, dsn: str):
    fill(store)
    store.audit.maintain(Scope(), partitions="daily", retention_days=None)
    with psycopg.connect(dsn) as connection:
        held = connection.execute(
            "SELECT c.relname, r FROM pg_class c, unnest(%s::text[]) AS r "
            "WHERE c.relnamespace = 'recollect'::regnamespace AND c.relname ~ '^audit' AND c.relkind IN ('r', 'p') "
            "AND has_table_privilege(%s, c.oid, r)",
            [list(RIGHTS), APPLICATION_ROLE],
        ).fetchall()
    assert held == []


# Whatever is done by the owner shows


TAMPERED = [
    ("UPDATE audit SET actor = 'bob' WHERE number = 2", 2),
    ("UPDATE audit SET action = 'forget' WHERE number = 3", 3),
    ("UPDATE audit SET details = '{}' WHERE number = 1", 1),
    ("UPDATE audit SET at = at + interval '1 microsecond' WHERE number = 4", 4),
    ("UPDATE audit SET audit_id = audit_id + 1000 WHERE number = 4", 4),
    ("UPDATE audit SET hash = sha256('x') WHERE number = 2", 2),
    ("DELETE FROM audit WHERE number = 1", 1),
    ("DELETE FROM audit WHERE number IN (2, 3)", 2),
    ("DELETE FROM audit WHERE number = 4", 4),
    ("DELETE FROM audit WHERE number > 1", 2),
    ("DELETE FROM audit", 1),
    ("TRUNCATE audit", 1),
    ("DELETE FROM audit_heads", 4),
    ("UPDATE audit_heads SET number = 3", 4),
    ("UPDATE audit_heads SET hash = sha256('x')", 4),
    ("UPDATE audit_heads SET dropped = 1", 2),
    ("UPDATE audit_heads SET dropped_hash = sha256('x')", 1),
    ("INSERT INTO audit SELECT tenant_id, at, audit_id + 1000, action, actor, details, 5, hash FROM audit "
     "WHERE number = 4", 5),
    ("INSERT INTO audit SELECT tenant_id, at, audit_id + 1000, action, actor, details, 4, hash FROM audit "
     "WHERE number = 4", 5),
]  # fmt: skip


def test_the_first_broken_entry_is_named(store: Store):
    fill(store)
    assert chain(store).intact
    with store.database.autocommit() as connection:
        for statement, number in TAMPERED:
            with connection.transaction(force_rollback=True):
                connection.execute(statement)
                broken = follow(connection, 1).broken
                assert broken is not None and broken.number == number, statement
    assert chain(store).intact


def test_a_chain_is_its_tenants_own(pipeline: RAGPipeline):
    tenant = pipeline.tenants.create("acme").tenant_id
    fill(pipeline.store, 2)
    fill(pipeline.store, 3, tenant=tenant)
    owner(pipeline.store, "UPDATE audit SET actor = 'bob' WHERE tenant_id = %s AND number = 2", tenant)
    assert [(one.tenant_id, one.number, one.intact) for one in pipeline.audit.verify().chains] == [
        (1, 2, True),
        (tenant, 3, False),
    ]
    assert pipeline.view(tenant=1).audit.verify().intact
    (finding,) = pipeline.maintenance.check()
    assert f"tenant {tenant}" in finding.problem and "number 2" in finding.problem


@settings(max_examples=12 * EFFORT, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4),
            st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
            max_size=3,
        ),
        min_size=1, max_size=4,
    )
)  # fmt: skip
def test_whatever_is_written_verifies_in_the_store_and_outside(store: Store, details):
    store.audit.append(Scope(), [AuditEntry(action="x", actor="é\n\"'", details=one) for one in details])
    assert chain(store).intact
    lines = [json.loads(line) for line in store.audit.lines(Scope())]
    before = bytes(32)
    for line in lines:
        assert bytes.fromhex(line["previous_hash"]) == before
        before = hashlib.sha256(before + line["content"].encode()).digest()
        assert line["hash"] == before.hex()
        said = json.loads(line["content"])
        assert {name: line[name] for name in said} == said
    assert (lines[-1]["number"], lines[-1]["hash"]) == (chain(store).number, chain(store).hash)


# What is dropped, erased


def test_a_chain_holds_from_where_retention_has_cut_it(store: Store):
    fill(store, 3)
    # As though it had been written long ago; the hash is made anew, as the owner alone could.
    owner(
        store,
        "UPDATE audit SET at = at - interval '100 days' WHERE number <= 2;"
        "UPDATE audit SET hash = sha256(decode(repeat('00', 32), 'hex') || convert_to(audit_content(tenant_id, number, "
        "audit_id, at, action, actor, details), 'UTF8')) WHERE number = 1;"
        "UPDATE audit a SET hash = sha256(b.hash || convert_to(audit_content(a.tenant_id, a.number, a.audit_id, a.at, "
        "a.action, a.actor, a.details), 'UTF8')) FROM audit b WHERE b.number = a.number - 1 AND a.number = 2;"
        "UPDATE audit a SET hash = sha256(b.hash || convert_to(audit_content(a.tenant_id, a.number, a.audit_id, a.at, "
        "a.action, a.actor, a.details), 'UTF8')) FROM audit b WHERE b.number = a.number - 1 AND a.number = 3;"
        "UPDATE audit_heads h SET hash = a.hash FROM audit a WHERE a.number = 3",
    )
    assert chain(store).intact
    store.audit.maintain(Scope(), partitions="daily", retention_days=None)
    assert store.audit.maintain(Scope(), partitions="daily", retention_days=30)
    assert (chain(store).dropped, chain(store).number, chain(store).broken) == (2, 3, None)
    fill(store, 1)
    assert chain(store).intact
    first = json.loads(next(iter(store.audit.lines(Scope()))))
    assert first["number"] == 3
    owner(store, "DELETE FROM audit WHERE number = 3")
    assert chain(store).broken.number == 3


def test_everything_dropped_leaves_a_chain_that_goes_on(store: Store):
    fill(store, 3)
    owner(store, "SELECT drop_audit(%s)", datetime.now(UTC) + timedelta(days=1))
    assert (chain(store).dropped, chain(store).number, chain(store).broken) == (3, 3, None)
    fill(store, 1)
    assert (chain(store).number, chain(store).broken) == (4, None)


def test_an_erased_tenants_chain_goes_on_with_its_receipt(pipeline: RAGPipeline):
    tenant = pipeline.tenants.create("acme").tenant_id
    fill(pipeline.store, 3, tenant=tenant)
    pipeline.tenants.erase(tenant)
    (found,) = [one for one in pipeline.audit.verify().chains if one.tenant_id == tenant]
    assert (found.dropped, found.number, found.broken) == (3, 4, None)


# Several at once


def test_writers_of_one_tenant_wait_for_one_another_and_break_nothing(store: Store):
    failed = []

    def write(name: str) -> None:
        try:
            for _ in range(10):
                fill(store, 3)
                with store.database.transaction(Scope()) as connection:
                    record(connection, Scope(), action="restore", actor=name, details={})
        except Exception as exc:  # noqa: BLE001 - told by the test itself
            failed.append(exc)

    threads = [threading.Thread(target=write, args=(f"w{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        store.audit.maintain(Scope(), partitions="hourly", retention_days=1)
        assert chain(store).intact
    for thread in threads:
        thread.join()
    assert failed == []
    assert (chain(store).number, chain(store).broken) == (160, None)


def test_what_is_rolled_back_leaves_no_gap(store: Store):
    fill(store, 2)
    with pytest.raises(ZeroDivisionError), store.database.transaction(Scope()) as connection:
        record_all(connection, Scope(), [AuditEntry(action="x", actor="y", details={})] * 3)
        raise ZeroDivisionError
    fill(store, 1)
    assert (chain(store).number, chain(store).broken) == (3, None)


def test_a_clock_that_was_set_back_does_not_turn_the_chain_round(store: Store):
    fill(store, 1)
    owner(store, "UPDATE audit_heads SET at = now() + interval '1 hour'")
    fill(store, 1)
    fill(store, 1)
    newest = store.audit.page(Scope(), limit=2)
    assert newest[0].at == newest[1].at > datetime.now(UTC) + timedelta(minutes=59)
    assert [one.number for one in newest] == [3, 2] and chain(store).intact


def test_an_erasure_is_recorded_twice_and_shown_once(pipeline: RAGPipeline):
    pipeline.ingest(Document(content="The pump in hall C leaked on the ninth of May.", source="report"))
    receipt = pipeline.view(actor="ann").documents.erase(["report"])
    assert [one.action for one in pipeline.audit.list()] == ["erase_proof", "erase"]
    (kept,) = pipeline.audit.list(action="erase")
    assert kept.audit_id == receipt.receipt_id and kept.details["probe"]["found"] == {}
    assert pipeline.audit.list(action="erase", since=receipt.erased_at)
    assert not pipeline.audit.list(action="erase", until=receipt.erased_at)
    assert pipeline.audit.verify().intact
