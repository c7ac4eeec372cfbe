"""Keys: who may make which, what each opens, and that nobody ever sees a secret again."""

from __future__ import annotations

import json
import logging
import threading
import traceback
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from recollect import Principal, RAGPipeline
from recollect.errors import (
    AuthenticationError,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    TenantSuspendedError,
    UsageError,
)
from recollect.model.key import ACCESS_SCOPES, KeyMaker, draw_key, read_key

ANN = Principal(user_id="ann", roles=("clerk",), department="hr", groups=("interns",))
BOB = Principal(user_id="bob")


def later(dsn: str, change: str, **values: object) -> None:
    """Change a key as time would."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"UPDATE recollect.api_keys SET {change}", values)


def audited(rag: RAGPipeline) -> list[tuple[str, str]]:
    return [(entry.action, entry.actor) for entry in rag.audit.list()]


# Made and taken


def test_a_key_is_taken_as_what_it_was_made_for(pipeline):
    made = pipeline.keys.create("reports", scopes=("write", "read"), principal=ANN, expires="90d")
    taken = pipeline.keys.authenticate(made.secret)
    assert replace(taken, last_used_at=None) == made.key
    assert (taken.tenant_id, taken.principal, taken.scopes) == (1, ANN, ("read", "write"))
    assert taken.expires_at - taken.created_at == pytest.approx(timedelta(days=90), abs=timedelta(minutes=1))


def test_a_key_of_nobody_in_particular_is_the_owners(pipeline):
    assert pipeline.keys.authenticate(pipeline.keys.create("cron").secret).principal is None


def test_scopes_that_are_none_are_refused(pipeline):
    for scopes in [(), "everything", ("read", "root"), ["READ"]]:
        with pytest.raises(UsageError, match="read, write, admin, operator"):
            pipeline.keys.create("reports", scopes=scopes)
        assert not pipeline.keys.list()


def test_a_name_is_something_that_can_be_shown(pipeline):
    for name in ["", "  ", "a" * 101, "a\nb", "\x1b[2J"]:
        with pytest.raises(UsageError, match="name"):
            pipeline.keys.create(name)


def test_a_forged_secret_is_refused_though_its_checksum_fits(pipeline):
    made = pipeline.keys.create("reports")
    forged = draw_key(1, made.key.key_id)
    with pytest.raises(AuthenticationError, match="not valid"):
        pipeline.keys.authenticate(forged.text)
    with pytest.raises(AuthenticationError, match="not valid"):
        pipeline.keys.authenticate(draw_key(1).text)


def test_a_key_with_another_tenants_number_is_no_key(pipeline):
    acme = pipeline.tenants.create("acme")
    made = pipeline.keys.create("reports")
    moved = draw_key(acme.tenant_id, made.key.key_id)
    # The very secret, under the other tenant: its hash is of the whole text, and the row is not that tenant's.
    with pytest.raises(AuthenticationError, match="not valid"):
        pipeline.keys.authenticate(moved.text)
    with pytest.raises(NotFoundError):
        pipeline.view(tenant="acme").keys.get(made.key.key_id)
    assert not pipeline.view(tenant="acme").keys.list()


def test_a_tenant_that_does_not_exist_looks_like_a_key_that_does_not(pipeline):
    with pytest.raises(AuthenticationError, match="not valid"):
        pipeline.keys.authenticate(draw_key(4711).text)


def test_only_who_has_the_secret_learns_that_a_key_is_over(pipeline, dsn):
    made = pipeline.keys.create("reports", expires="1h")
    later(dsn, "expires_at = now() - interval '1 second'")
    with pytest.raises(AuthenticationError, match="expired"):
        pipeline.keys.authenticate(made.secret)
    with pytest.raises(AuthenticationError, match="not valid"):
        pipeline.keys.authenticate(draw_key(1, made.key.key_id).text)
    assert pipeline.keys.get(made.key.key_id).status == "expired"


def test_a_revoked_key_is_refused_and_revoking_it_again_changes_nothing(pipeline):
    made = pipeline.keys.create("reports")
    revoked = pipeline.keys.revoke(made.key.key_id)
    assert revoked.status == "revoked"
    with pytest.raises(AuthenticationError, match="revoked"):
        pipeline.keys.authenticate(made.secret)
    assert pipeline.keys.revoke(made.key.key_id) == revoked
    assert audited(pipeline) == [("revoke_key", "library"), ("create_key", "library")]


def test_keys_of_a_suspended_tenant_do_not_work_and_only_holders_are_told(pipeline):
    acme = pipeline.tenants.create("acme")
    made = pipeline.view(tenant="acme").keys.create("reports")
    pipeline.tenants.suspend("acme")
    with pytest.raises(TenantSuspendedError, match="acme"):
        pipeline.keys.authenticate(made.secret)
    with pytest.raises(AuthenticationError, match="not valid"):
        pipeline.keys.authenticate(draw_key(acme.tenant_id, made.key.key_id).text)
    pipeline.tenants.resume("acme")
    assert pipeline.keys.authenticate(made.secret).tenant_id == acme.tenant_id


def test_with_a_tenant_its_keys_are_erased(pipeline):
    pipeline.tenants.create("acme")
    made = pipeline.view(tenant="acme").keys.create("reports")
    assert pipeline.tenants.erase("acme").rows["api_keys"] == 1
    with pytest.raises(AuthenticationError, match="not valid"):
        pipeline.keys.authenticate(made.secret)


# Rotated


def test_both_secrets_are_taken_during_the_grace_time(pipeline, dsn):
    first = pipeline.keys.create("reports", principal=ANN)
    second = pipeline.keys.rotate(first.key.key_id, grace="1h")
    assert second.key.key_id == first.key.key_id and second.secret != first.secret
    assert pipeline.keys.authenticate(first.secret).principal == ANN
    assert pipeline.keys.authenticate(second.secret).principal == ANN
    later(dsn, "previous_until = now()")
    with pytest.raises(AuthenticationError):
        pipeline.keys.authenticate(first.secret)
    assert pipeline.keys.authenticate(second.secret).previous_until is None


def test_without_grace_the_old_secret_ends_at_once(pipeline):
    first = pipeline.keys.create("reports")
    second = pipeline.keys.rotate(first.key.key_id, grace=0)
    with pytest.raises(AuthenticationError):
        pipeline.keys.authenticate(first.secret)
    assert pipeline.keys.authenticate(second.secret).rotated_at is not None


def test_only_two_secrets_are_ever_taken_and_a_revocation_ends_both(pipeline):
    first = pipeline.keys.create("reports")
    second = pipeline.keys.rotate(first.key.key_id)
    third = pipeline.keys.rotate(first.key.key_id)
    with pytest.raises(AuthenticationError, match="not valid"):
        pipeline.keys.authenticate(first.secret)
    pipeline.keys.revoke(first.key.key_id)
    for text in (second.secret, third.secret):
        with pytest.raises(AuthenticationError):
            pipeline.keys.authenticate(text)


def test_what_is_over_is_not_rotated(pipeline, dsn):
    revoked, expired = pipeline.keys.create("one"), pipeline.keys.create("two", expires="1h")
    pipeline.keys.revoke(revoked.key.key_id)
    later(dsn, "expires_at = now() WHERE expires_at IS NOT NULL")
    for made in (revoked, expired):
        with pytest.raises(ConflictError, match="make a new one"):
            pipeline.keys.rotate(made.key.key_id)


def test_a_rotation_keeps_the_end_unless_another_is_named(pipeline):
    made = pipeline.keys.create("reports", expires="90d")
    assert pipeline.keys.rotate(made.key.key_id).key.expires_at == made.key.expires_at
    assert pipeline.keys.rotate(made.key.key_id, expires="1d").key.expires_at < made.key.expires_at


def test_of_rotations_at_once_two_secrets_are_left(pipeline):
    made = pipeline.keys.create("reports")
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(pipeline.keys.rotate(made.key.key_id).secret)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    def taken(text: str) -> bool:
        try:
            return bool(pipeline.keys.authenticate(text))
        except AuthenticationError:
            return False

    assert len(found) == 4
    assert sum(map(taken, [made.secret, *found])) == 2


# Nobody gives more than they have


def test_a_key_opens_nothing_that_its_makers_does_not(pipeline):
    maker = KeyMaker(scopes=("read", "admin"))
    assert pipeline.keys.create("one", scopes="read", maker=maker).key.scopes == ("read",)
    for wanted in ("write", "operator", ACCESS_SCOPES):
        with pytest.raises(PermissionDeniedError, match="opens nothing"):
            pipeline.keys.create("two", scopes=wanted, maker=maker)
    strong = pipeline.keys.create("operations", scopes="operator")
    with pytest.raises(PermissionDeniedError, match="operator"):
        pipeline.keys.rotate(strong.key.key_id, maker=maker)
    assert len(pipeline.keys.list()) == 2


def test_a_key_does_not_outlive_its_makers(pipeline):
    ends = datetime.now(UTC) + timedelta(hours=2)
    maker = KeyMaker(expires_at=ends)
    assert pipeline.keys.create("one", maker=maker).key.expires_at == ends
    assert pipeline.keys.create("two", expires="1h", maker=maker).key.expires_at < ends
    with pytest.raises(PermissionDeniedError, match="outlive"):
        pipeline.keys.create("three", expires="3h", maker=maker)
    endless = pipeline.keys.create("four")
    for expires in (None, "3h"):
        with pytest.raises(PermissionDeniedError, match="outlive"):
            pipeline.keys.rotate(endless.key.key_id, expires=expires, maker=maker)
    assert pipeline.keys.rotate(endless.key.key_id, expires="1h", maker=maker).key.expires_at < ends


def test_somebody_in_particular_makes_keys_as_themselves_alone(pipeline):
    keys = pipeline.view(principal=ANN).keys
    assert keys.create("mine").key.principal == ANN
    # Without the group she would not be met by what it is denied.
    for other in (BOB, Principal(user_id="ann"), replace(ANN, groups=()), replace(ANN, roles=("clerk", "Manager"))):
        with pytest.raises(PermissionDeniedError, match="as whoever makes it"):
            keys.create("other", principal=other)


def test_somebody_in_particular_sees_and_changes_their_own_keys_alone(pipeline):
    own, bobs, owners = (pipeline.view(principal=who).keys.create("key").key.key_id for who in (ANN, BOB, None))
    keys = pipeline.view(principal=ANN).keys
    assert [key.key_id for key in keys.list()] == [own]
    for other in (bobs, owners):
        for change in (keys.get, keys.revoke, keys.rotate):
            with pytest.raises(NotFoundError):
                change(other)
    assert keys.revoke(own).status == "revoked"
    assert {key.status for key in pipeline.keys.list()} == {"active", "revoked"}


def test_a_key_of_more_roles_than_one_has_now_is_not_rotated(pipeline):
    made = pipeline.keys.create("reports", principal=replace(ANN, roles=("clerk", "Manager")))
    with pytest.raises(PermissionDeniedError, match="make a new one"):
        pipeline.view(principal=ANN).keys.rotate(made.key.key_id)
    assert pipeline.view(principal=ANN).keys.revoke(made.key.key_id).status == "revoked"


def test_where_nobody_is_named_there_are_no_keys(pipeline):
    keys = pipeline.view(principal=Principal(roles=("clerk",))).keys
    for call in (lambda: keys.create("key"), keys.list, lambda: keys.get("0" * 14), lambda: keys.revoke("0" * 14)):
        with pytest.raises(PermissionDeniedError, match="names none"):
            call()


def test_the_past_has_no_keys(pipeline):
    for call in (lambda keys: keys.create("key"), lambda keys: keys.list()):
        with pytest.raises(UsageError, match="past"):
            call(pipeline.view(as_of="1d").keys)


# Listed, noted, audited


def test_keys_are_listed_newest_first_by_pages(pipeline, monkeypatch):
    seconds = iter(range(1_800_000_000, 1_800_000_010))
    monkeypatch.setattr("recollect.model.key.time.time", lambda: next(seconds))
    for name in ("one", "two", "three"):
        pipeline.keys.create(name)
    first = pipeline.keys.list(limit=2)
    assert [key.name for key in first] == ["three", "two"]
    assert [key.name for key in pipeline.keys.list(cursor=first.next_cursor)] == ["one"]


def test_use_is_noted_once_a_minute(pipeline, dsn):
    made = pipeline.keys.create("reports")
    assert pipeline.keys.get(made.key.key_id).last_used_at is None
    pipeline.keys.authenticate(made.secret)
    first = pipeline.keys.get(made.key.key_id).last_used_at
    pipeline.keys.authenticate(made.secret)
    assert pipeline.keys.get(made.key.key_id).last_used_at == first
    later(dsn, "last_used_at = last_used_at - interval '61 seconds'")
    pipeline.keys.authenticate(made.secret)
    assert pipeline.keys.get(made.key.key_id).last_used_at > first


def test_a_key_is_taken_where_its_use_cannot_be_noted(pipeline, dsn, caplog):
    made = pipeline.keys.create("reports")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("REVOKE UPDATE ON recollect.api_keys FROM recollect_app")
    with caplog.at_level(logging.INFO):
        assert pipeline.keys.authenticate(made.secret).last_used_at is None
    assert "not noted" in caplog.text


def test_every_change_is_in_the_audits_chain(pipeline):
    keys = pipeline.view(actor="user:ann").keys
    made = keys.create("reports", principal=ANN, scopes=("read", "admin"))
    keys.rotate(made.key.key_id)
    pipeline.view(actor="user:bob").keys.revoke(made.key.key_id)
    assert audited(pipeline) == [("revoke_key", "user:bob"), ("rotate_key", "user:ann"), ("create_key", "user:ann")]
    details = pipeline.audit.list()[-1].details
    assert (details["key_id"], details["user"], details["scopes"]) == (made.key.key_id, "ann", ["read", "admin"])
    assert all(chain.intact for chain in pipeline.audit.verify().chains)


# A secret is nowhere


def test_a_secret_is_nowhere_but_where_it_was_shown(pipeline, dsn, tmp_path, caplog):
    with caplog.at_level(logging.DEBUG):
        pipeline.tenants.create("acme")
        rag = pipeline.view(tenant="acme")
        first = rag.keys.create("reports", principal=ANN)
        second = rag.keys.rotate(first.key.key_id)
        texts = [first.secret, second.secret]
        said = [repr(first), str(second), repr(rag.keys.authenticate(first.secret)), repr(read_key(first.secret))]
        for failing in (first.secret[:-1], first.secret + "x", first.secret.replace("rk_2", "rk_3")):
            with pytest.raises(AuthenticationError) as caught:
                rag.keys.authenticate(failing)
            said.append("".join(traceback.format_exception(caught.value)))
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("ALTER TABLE recollect.api_keys RENAME TO elsewhere")
            with pytest.raises(Exception, match="api_keys") as caught:
                rag.keys.authenticate(first.secret)
            said.append("".join(traceback.format_exception(caught.value)))
            connection.execute("ALTER TABLE recollect.elsewhere RENAME TO api_keys")
        rag.keys.revoke(first.key.key_id)
    said += [caplog.text, json.dumps([list(rag.audit.export()), list(pipeline.audit.export())])]
    with psycopg.connect(dsn) as connection:
        for (table,) in connection.execute(
            "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace IN "
            "('recollect'::regnamespace, 'recollect_jobs'::regnamespace) AND c.relkind = 'r'"
        ).fetchall():
            said += [row[0] for row in connection.execute(f"SELECT to_jsonb(t)::text FROM {table} t")]
    pipeline.tenants.export("acme", tmp_path / "acme")
    exported = {
        path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "acme").rglob("*") if path.is_file()
    }
    said += exported.values()
    for text in texts:
        secret = text.rpartition("_")[2]
        assert not [one for one in said if secret[:16] in one or secret[-16:] in one]
    # Nor is what is kept of it given away with the tenant's rows.
    (row,) = map(json.loads, exported["api_keys.jsonl"].splitlines())
    assert row["name"] == "reports" and not {"secret_hash", "previous_hash"} & row.keys()


def test_statements_are_those_of_one_tenant(pipeline, dsn):
    pipeline.tenants.create("acme")
    pipeline.keys.create("ours")
    pipeline.view(tenant="acme").keys.create("theirs")
    with psycopg.connect(dsn) as connection:
        connection.execute("SET ROLE recollect_app; SET recollect.tenant_id = '2'")
        assert connection.execute("SELECT name FROM recollect.api_keys").fetchall() == [("theirs",)]


def test_whether_there_is_a_key_at_all(pipeline, dsn):
    from recollect.model import Scope

    keys = pipeline.standpoint.store.keys
    assert not keys.any_active(Scope())
    pipeline.tenants.create("acme")
    made = pipeline.view(tenant="acme").keys.create("theirs")
    assert keys.any_active(Scope())
    pipeline.tenants.suspend("acme")
    assert not keys.any_active(Scope())
    pipeline.tenants.resume("acme")
    pipeline.view(tenant="acme").keys.revoke(made.key.key_id)
    assert not keys.any_active(Scope())
