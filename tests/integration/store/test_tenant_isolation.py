"""One tenant's statements, through the application's own connection, against the rows of another."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import numpy as np
import psycopg
import pytest
from pgvector import HalfVector
from psycopg import sql

from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import IsolationError, NotFoundError, RecollectError, StoreError
from recollect.model import Scope
from recollect.store.catalogue import read_isolation
from recollect.store.migrate import migrate
from recollect.store.tenants import tables_in_order

# These must run as the owner, lest the planner leave out the index on lexemes.
RETRIEVERS = {"dense_candidates", "lexical_candidates"}
SECRET = "The zebrafish merger closes in March (Zebrafish Merger Plan, ZMP)."
VALUES = {
    "int4": "77",
    "int8": "77",
    "float4": "1",
    "float8": "1",
    "text": "'x'",
    "_text": "'{x}'",
    "_int4": "'{1}'",
    "jsonb": "'{}'",
    "bytea": "'\\x00'",
    "bool": "true",
    "date": "now()",
    "timestamptz": "now()",
    "halfvec": "'[1]'",
    "sparsevec": "'{1:1}/9'",
}


@pytest.fixture(scope="module")
def two(
    clone: Callable[..., AbstractContextManager[str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RAGPipeline, int, int]]:
    """A store of two tenants, one with a row in every table; no test changes what the others look at."""
    with (
        clone() as dsn,
        RAGPipeline(_config(dsn, tmp_path_factory.mktemp("unused")), embedder=HashingEmbedder()) as opened,
    ):
        yield _filled(opened)


def _filled(pipeline: RAGPipeline) -> tuple[RAGPipeline, int, int]:
    mine, theirs = pipeline.tenants.create("mine").tenant_id, pipeline.tenants.create("theirs").tenant_id
    for tenant in (mine, theirs):
        pipeline.view(tenant=tenant).ingest(Document(content=f"{SECRET} Of tenant {tenant}.", source="plan.txt"))
        pipeline.view(tenant=tenant).ingest(Document(content="To be erased.", source="old.txt"))
        pipeline.view(tenant=tenant).documents.erase(["old.txt"])
        pipeline.view(session="chat", user="ann", tenant=tenant).remember(f"I told you of the zebrafish, {tenant}.")
        pipeline.view(tenant=tenant).search("zebrafish")
    with pipeline.store.database.autocommit() as connection:
        _fill_the_rest(connection, theirs)
    return pipeline, mine, theirs


def _fill_the_rest(connection: psycopg.Connection, tenant: int) -> None:
    """A made-up row in the tables that the tenant has none in, which a table that is yet to come may be."""
    for table in tables_in_order(connection):
        if connection.execute(f"SELECT EXISTS (SELECT FROM {table} WHERE tenant_id = {tenant})").fetchone()[0]:
            continue
        columns = connection.execute(
            "SELECT a.attname, t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
            "WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull "
            "AND NOT a.atthasdef AND a.attidentity = '' AND a.attname <> 'tenant_id'",
            [table],
        ).fetchall()
        names = ", ".join(["tenant_id", *(name for name, _ in columns)])
        values = ", ".join([str(tenant), *(_made_up(kind) for _, kind in columns)])
        checks = connection.execute(
            "SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'c'", [table]
        ).fetchall()
        with connection.transaction():
            # Without the keys that point elsewhere, and whatever the values would have to be.
            connection.execute("SET LOCAL session_replication_role = replica")
            for (check,) in checks:
                connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {check}")
            connection.execute(f"INSERT INTO {table} ({names}) VALUES ({values})")


def _made_up(kind: str) -> str:
    return VALUES[kind] if kind in VALUES else {"_": "'{}'"}[kind[0]]


def _tables(rag: RAGPipeline, tenant: int) -> list[str]:
    """Every table of the catalogue; the other tenant has a row in each."""
    with rag.store.database.autocommit() as connection:
        tables = tables_in_order(connection)
        for table in tables:
            assert connection.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = {tenant}").fetchone()[0], table
    return tables


@pytest.mark.parametrize("way", ["single_reads", "transaction"])
def test_a_statement_that_forgets_its_tenant_sees_no_other_ones_rows(two, way: str):
    rag, mine, theirs = two
    with getattr(rag.store.database, way)(Scope(tenant_id=mine)) as connection:
        for table in _tables(rag, theirs):
            seen = connection.execute(f"SELECT tenant_id FROM {table}").fetchall()
            assert {row[0] for row in seen} <= {mine}, table
            assert connection.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = {theirs}").fetchone() == (0,)
            text = connection.execute(f"SELECT string_agg(t::text, ' ') FROM {table} t").fetchone()[0] or ""
            assert f"Of tenant {theirs}" not in text and "theirs" not in text, table


def test_without_a_tenant_no_table_can_be_read(two):
    rag, mine, theirs = two
    with rag.store.database.single_reads(Scope(tenant_id=mine)):
        pass
    for table in _tables(rag, theirs):
        with pytest.raises(StoreError, match="no tenant is set"), rag.store.database.untenanted() as connection:
            connection.execute(f"SELECT count(*) FROM {table}")


def test_no_row_of_another_tenant_is_changed_removed_or_made(two):
    rag, mine, theirs = two
    tables = _tables(rag, theirs)
    before = _everything(rag, theirs, tables)
    for table in tables:
        for statement in (
            f"DELETE FROM {table} WHERE tenant_id = {theirs}",
            f"UPDATE {table} SET tenant_id = {mine} WHERE tenant_id = {theirs}",
        ):
            assert _tried(rag, mine, statement) in {0, "InsufficientPrivilege"}, statement
        moved = f"UPDATE {table} SET tenant_id = {theirs} WHERE tenant_id = {mine}"
        assert _tried(rag, mine, moved) in {0, "InsufficientPrivilege"}, moved
    assert _everything(rag, theirs, tables) == before


def _tried(rag: RAGPipeline, tenant: int, statement: str) -> int | str:
    try:
        with rag.store.database.transaction(Scope(tenant_id=tenant)) as connection:
            return connection.execute(statement).rowcount
    except RecollectError as exc:
        return type(exc.__cause__).__name__


def _everything(rag: RAGPipeline, tenant: int, tables: list[str]) -> list[tuple]:
    with rag.store.database.autocommit() as connection:
        return [
            (table, *row)
            for table in tables
            for row in connection.execute(f"SELECT t::text FROM {table} t WHERE tenant_id = {tenant} ORDER BY 1")
        ]


def test_a_row_cannot_be_stored_for_another_tenant(two):
    rag, mine, theirs = two
    for way in ("single_reads", "transaction"):
        with (
            pytest.raises(StoreError, match="row-level security"),
            getattr(rag.store.database, way)(Scope(tenant_id=mine)) as connection,
        ):
            connection.execute(
                "INSERT INTO embedding_cache (tenant_id, model, content_hash, embedding) "
                "VALUES (%s, 'm', '\\x01', '[1]')",
                [theirs],
            )


@pytest.mark.parametrize(
    "call",
    [
        "dense_candidates({t}, {c}, {s}, {rows}, '{v}', 5)",
        "dense_candidates({t}, {c}, {s}, {past}, '{v}', 5, p_words => false)",
        "lexical_candidates({t}, {c}, {s}, {rows}, NULL, '{{1:1}}/1000000000', 5)",
        "lexical_candidates({t}, {c}, {s}, {past}, NULL, '{{1:1}}/1000000000', 5, '{v}')",
        "collections_shared_with({t})",
        "readers_of_collection({t}, {c})",
    ],
)
def test_functions_that_run_as_the_owner_serve_the_tenant_that_is_set_alone(two, call: str):
    rag, mine, theirs = two
    with rag.store.database.autocommit() as connection:
        collection, space, vector = connection.execute(
            "SELECT l.collection_id, x.space_id, x.embedding FROM chunk_vectors x "
            "JOIN chunk_lexical l USING (tenant_id, chunk_id) WHERE tenant_id = %s",
            [theirs],
        ).fetchone()
    rows, past = (
        f"ROW({given})::row_selection" for given in (", ".join(["NULL"] * 6), "now(), '{}', '{}', '{1}', NULL, NULL")
    )
    call = call.format(t=theirs, c=collection, s=space, v=_text(vector), rows=rows, past=past)
    with (
        pytest.raises(StoreError, match="another tenant"),
        rag.store.database.single_reads(Scope(tenant_id=mine)) as connection,
    ):
        connection.execute(f"SELECT * FROM {call}")
    with pytest.raises(StoreError, match="another tenant"), rag.store.database.untenanted() as connection:
        connection.execute(f"SELECT * FROM {call}")
    with rag.store.database.single_reads(Scope(tenant_id=theirs)) as connection:
        connection.execute(f"SELECT * FROM {call}")


def _text(vector: HalfVector) -> str:
    return str(np.asarray(vector.to_numpy(), dtype=float).tolist())


def test_every_function_that_runs_as_the_owner_is_pinned_and_asks_for_the_tenant(dsn: str):
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "SELECT p.proname, p.proconfig, p.prosrc, has_function_privilege('public', p.oid, 'EXECUTE') "
            "FROM pg_proc p WHERE p.pronamespace = 'recollect'::regnamespace AND p.prosecdef"
        ).fetchall()
    assert {row[0] for row in found} >= RETRIEVERS
    for name, settings, source, public in found:
        assert "search_path=recollect, public, pg_temp" in settings, name
        assert "PERFORM require_tenant(p_" in source, name
        assert not public, name


def test_statistics_of_terms_are_the_tenants_own(two):
    rag, mine, theirs = two
    with rag.store.database.autocommit() as connection:
        collection = connection.execute(
            "SELECT collection_id FROM collections WHERE tenant_id = %s", [theirs]
        ).fetchone()[0]
        before = connection.execute("SELECT count(*) FROM term_stats WHERE tenant_id = %s", [theirs]).fetchone()
    with rag.store.database.transaction(Scope(tenant_id=mine)) as connection:
        assert connection.execute("SELECT refresh_term_stats(%s, %s)", [theirs, collection]).fetchone() == (False,)
    with rag.store.database.autocommit() as connection:
        after = connection.execute("SELECT count(*) FROM term_stats WHERE tenant_id = %s", [theirs]).fetchone()
    assert after == before and before[0] > 0


def test_errors_say_the_same_of_what_another_tenant_has_and_of_what_nobody_has(two):
    rag, mine, theirs = two
    (record,) = rag.view(tenant=theirs).documents.list()
    rag.view(tenant=theirs).collections.create("only theirs")
    told = []
    for document, collection in ((record.document_id, "only theirs"), (10**9, "nobodys own")):
        errors = []
        for attempt in (
            lambda document=document: rag.view(tenant=mine).documents.get(document),
            lambda document=document: rag.view(tenant=mine).documents.erase([document]),
            lambda document=document: rag.view(tenant=mine).documents.history(document),
            lambda collection=collection: rag.view(collections=collection, tenant=mine).search("x"),
            lambda collection=collection: rag.view(tenant=mine).collections.delete(collection),
        ):
            with pytest.raises(NotFoundError) as caught:
                attempt()
            errors.append(str(caught.value).replace(str(document), "N").replace(collection, "NAME"))
        told.append(errors)
    assert told[0] == told[1]
    # A name that another tenant has is free.
    rag.view(tenant=mine).collections.create("only theirs")


def test_a_reply_kept_for_one_tenant_is_given_to_no_other(two):
    rag, mine, theirs = two
    for _ in range(2):
        for tenant in (mine, theirs):
            reply = rag.view(tenant=tenant).search("zebrafish merger")
            assert [one.content.rstrip(".")[-1] for one in reply.results] == [str(tenant)]
    assert reply.cached
    first = rag.view(tenant=theirs).search("a question that only one asks")
    assert not first.cached and not rag.view(tenant=mine).search("a question that only one asks").cached


def test_cached_embeddings_are_the_tenants_own(two):
    rag, mine, theirs = two
    with rag.store.database.autocommit() as connection:
        model, key = connection.execute(
            "SELECT model, content_hash FROM embedding_cache WHERE tenant_id = %s", [theirs]
        ).fetchone()
        connection.execute("DELETE FROM embedding_cache WHERE tenant_id = %s", [mine])
    from recollect.store.embedding_cache import EmbeddingCacheRepository

    read = {
        tenant: EmbeddingCacheRepository(rag.store.database, Scope(tenant_id=tenant)).get_many(model, [bytes(key)])
        for tenant in (mine, theirs)
    }
    assert read[mine] == {} and list(read[theirs]) == [bytes(key)]


# The role


def test_isolation_is_in_force_and_the_program_owns_nothing(two):
    rag, _, _ = two
    found = read_isolation(rag.store.database)
    assert found.in_force and found.role == "recollect_app" and found.unguarded == ()


HOSTED = "hosted"
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def hosted_template(server_dsn: str) -> Iterator[str]:
    """A migrated database of a role that is no superuser and may not make roles, as a hosted server gives one."""
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {HOSTED} LOGIN NOCREATEROLE")
        connection.execute(f"CREATE DATABASE {HOSTED} OWNER {HOSTED} TEMPLATE template0")
    with psycopg.connect(server_dsn, dbname=HOSTED, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    migrate(psycopg.conninfo.make_conninfo(server_dsn, dbname=HOSTED, user=HOSTED))
    yield HOSTED
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {HOSTED} WITH (FORCE)")
        connection.execute(f"DROP ROLE {HOSTED}")


@pytest.fixture
def plain_owner(server_dsn: str, hosted_template: str) -> Iterator[str]:
    """A database of that role; what a test grants it is taken back."""
    name = f"{hosted_template}_{next(NUMBERS)}"
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} OWNER {HOSTED} TEMPLATE {hosted_template}")
    yield psycopg.conninfo.make_conninfo(server_dsn, dbname=name, user=HOSTED)
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        connection.execute(f"ALTER ROLE {HOSTED} NOBYPASSRLS")
        connection.execute(f"REVOKE {HOSTED} FROM recollect_app")
        connection.execute(f"REVOKE recollect_app FROM {HOSTED} CASCADE")
        connection.execute(f"REVOKE recollect_app FROM {HOSTED} GRANTED BY {HOSTED}")


def _config(dsn: str, folder, **storage) -> RAGConfig:
    return RAGConfig.load(storage={"data_dir": folder, "dsn": dsn, **storage}, embedding={"provider": "hashing"})


def _as_administrator(server_dsn: str, dsn: str, statement: str) -> None:
    """Run a statement as the superuser in the database of ``dsn``; ``{}`` is its owner."""
    parts = psycopg.conninfo.conninfo_to_dict(dsn)
    with psycopg.connect(server_dsn, dbname=parts["dbname"], autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(parts["user"])))


def test_an_owner_that_may_not_take_the_role_serves_one_tenant(plain_owner, tmp_path):
    with RAGPipeline(_config(plain_owner, tmp_path)) as rag:
        rag.ingest(Document(content=SECRET, source="plan.txt"))
        assert len(rag.search("zebrafish").results) == 1
        found = rag.tenants.isolation()
        assert not found.in_force and "documents" in found.unguarded and found.role == found.login
        assert found.remedy == (f"GRANT recollect_app TO {found.login} WITH SET TRUE, INHERIT TRUE;",)
        with pytest.raises(IsolationError, match=found.remedy[0]):
            rag.tenants.create("other")
        assert [tenant.name for tenant in rag.tenants.list()] == ["default"]


@pytest.mark.parametrize(
    "unbinding",
    [
        "GRANT recollect_app TO {} WITH SET FALSE, INHERIT TRUE",
        "ALTER ROLE {} BYPASSRLS",
        "GRANT {} TO recollect_app",
    ],
)
def test_a_store_of_several_tenants_is_not_opened_by_whom_no_policy_binds(
    plain_owner, server_dsn: str, tmp_path, unbinding: str
):
    with RAGPipeline(_config(plain_owner, tmp_path)) as rag:
        rag.ingest(Document(content=SECRET, source="plan.txt"))
        _as_administrator(server_dsn, plain_owner, "INSERT INTO recollect.tenants VALUES (77, 'other')")
        # Whatever was open before the other tenant came serves nobody either.
        for attempt in (rag.search, rag.ingest):
            with pytest.raises(IsolationError):
                attempt("zebrafish")
    _as_administrator(server_dsn, plain_owner, unbinding)
    with pytest.raises(IsolationError) as caught, RAGPipeline(_config(plain_owner, tmp_path)) as rag:
        rag.search("zebrafish")
    # The statements that the message names are what it takes.
    statements = [line.strip() for line in str(caught.value).splitlines() if line.endswith(";")]
    assert statements
    for statement in statements:
        _as_administrator(server_dsn, plain_owner, statement)
    with RAGPipeline(_config(plain_owner, tmp_path)) as rag:
        assert rag.tenants.isolation().in_force and len(rag.search("zebrafish").results) == 1
        assert rag.view(tenant=77).search("zebrafish").results == ()


def test_an_owner_that_may_grant_the_role_takes_it(plain_owner, server_dsn: str, tmp_path):
    """From PostgreSQL 16 on, CREATE ROLE makes its creator a member with ADMIN, who still may not SET ROLE."""
    _as_administrator(server_dsn, plain_owner, "GRANT recollect_app TO {} WITH ADMIN TRUE, SET FALSE, INHERIT FALSE")
    with RAGPipeline(_config(plain_owner, tmp_path)) as rag:
        tenant = rag.tenants.create("other").tenant_id
        rag.view(tenant=tenant).ingest(Document(content=SECRET, source="plan.txt"))
        assert rag.tenants.isolation().in_force and rag.tenants.isolation().role == "recollect_app"
        assert rag.search("zebrafish").results == ()
        with pytest.raises(StoreError, match="no tenant"), rag.store.database.untenanted() as connection:
            connection.execute("SELECT count(*) FROM chunks")


def test_an_owner_that_may_grant_the_role_by_now_takes_it(plain_owner, server_dsn: str, tmp_path):
    with RAGPipeline(_config(plain_owner, tmp_path)) as rag:
        assert not rag.tenants.isolation().in_force
    _as_administrator(server_dsn, plain_owner, "GRANT recollect_app TO {} WITH ADMIN TRUE, SET FALSE, INHERIT FALSE")
    with RAGPipeline(_config(plain_owner, tmp_path)) as rag:
        assert rag.tenants.isolation().in_force


def test_a_role_of_the_program_that_bypasses_policies_serves_one_tenant(plain_owner, server_dsn: str, tmp_path):
    _as_administrator(server_dsn, plain_owner, "GRANT recollect_app TO {}; ALTER ROLE recollect_app BYPASSRLS")
    try:
        with RAGPipeline(_config(plain_owner, tmp_path)) as rag:
            assert rag.tenants.isolation().remedy == ("ALTER ROLE recollect_app NOSUPERUSER NOBYPASSRLS;",)
            with pytest.raises(IsolationError):
                rag.tenants.create("other")
    finally:
        _as_administrator(server_dsn, plain_owner, "ALTER ROLE recollect_app NOBYPASSRLS")


def test_an_owner_that_is_given_the_role_takes_it(plain_owner, server_dsn: str, tmp_path):
    owner = psycopg.conninfo.conninfo_to_dict(plain_owner)["user"]
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("GRANT recollect_app TO {} WITH INHERIT FALSE").format(sql.Identifier(owner)))
    with RAGPipeline(_config(plain_owner, tmp_path)) as rag:
        rag.ingest(Document(content=SECRET, source="plan.txt"))
        assert len(rag.search("zebrafish").results) == 1
        found = rag.tenants.isolation()
        assert found.in_force and found.role == "recollect_app" and found.login == owner
        with pytest.raises(StoreError, match="no tenant"), rag.store.database.untenanted() as connection:
            connection.execute("SELECT count(*) FROM chunks")


def test_a_login_of_its_own_for_the_application(plain_owner, server_dsn: str, tmp_path):
    login = psycopg.conninfo.make_conninfo(plain_owner, user="recollect_app")
    owner = psycopg.conninfo.conninfo_to_dict(plain_owner)["user"]
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute("ALTER ROLE recollect_app LOGIN")
    try:
        with RAGPipeline(_config(plain_owner, tmp_path, application_dsn=login)) as rag:
            rag.ingest(Document(content=SECRET, source="plan.txt"))
            assert len(rag.search("zebrafish").results) == 1
            found = rag.tenants.isolation()
            assert found.in_force and found.login == "recollect_app"
            with pytest.raises(StoreError, match="permission denied"), rag.store.database.untenanted() as connection:
                connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(owner)))
    finally:
        with psycopg.connect(server_dsn, autocommit=True) as connection:
            connection.execute("ALTER ROLE recollect_app NOLOGIN")
