"""`recollect db attack`: a store as it should be refuses every attack, and what is broken on purpose is noticed.

Whoever runs a store of their own runs the same attacks against it: ``recollect db attack --dsn …``.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from recollect import Document, RAGConfig, RAGPipeline
from recollect.errors import StoreError, StoreUnavailableError
from recollect.store.attacks import attack
from recollect.store.sql import queries

#: Each break, and the attacks that must be open then.
BREAKS = {
    "ALTER POLICY tenant ON chunks USING (true)": [
        "catalogue: policy tenant on chunks",
        "table chunks: read another",
        "table chunks: see them",
        "table chunks: read without",
        "table chunks: store for",
        "table chunks: change",
    ],
    "CREATE POLICY more ON facts USING (true)": ["table facts: store for another tenant"],
    "CREATE POLICY more ON documents FOR SELECT USING (true)": ["table documents: read another tenant's rows"],
    "ALTER TABLE documents DISABLE ROW LEVEL SECURITY": ["table documents: read another", "table documents: store for"],
    "CREATE OR REPLACE FUNCTION current_tenant() RETURNS int LANGUAGE sql STABLE "
    "AS $$ SELECT nullif(current_setting('recollect.tenant_id', true), '')::int $$": [
        "table documents: read without a tenant"
    ],
    "CREATE OR REPLACE FUNCTION require_tenant(p_tenant int) RETURNS void LANGUAGE sql STABLE AS ''": [
        "dense_candidates: ask for another tenant",
        "dense_candidates: ask without a tenant",
        "append_audit: ask for another tenant",
    ],
    "ALTER FUNCTION collections_shared_with(int) RESET search_path": [
        "catalogue: function recollect.collections_shared_with"
    ],
    "ALTER ROLE recollect_app BYPASSRLS": ["table documents: read another", "catalogue: role recollect_app"],
    "ALTER ROLE recollect_app CREATEROLE": ["catalogue: role recollect_app"],
    "ALTER TABLE documents OWNER TO recollect_app": [
        "policies disable",
        "policies drop",
        "policies add",
        "grants give on",
    ],
    "GRANT CREATE ON SCHEMA recollect TO recollect_app": ["shadow in the schema"],
    "GRANT CREATE ON SCHEMA public TO PUBLIC": ["shadow in public"],
    "GRANT CREATE ON DATABASE {database} TO recollect_app": ["shadow by a schema"],
    "GRANT UPDATE, DELETE, INSERT, TRUNCATE ON audit TO recollect_app": [
        "audit change",
        "audit remove",
        "audit forge",
        "table audit: empty it",
    ],
    "GRANT UPDATE ON audit_heads TO recollect_app": ["audit rewrite"],
    "GRANT USAGE, UPDATE ON SEQUENCE audit_numbers TO recollect_app": [
        "audit number entries",
        "sequence audit_numbers: set",
    ],
    "GRANT SELECT ON audit_default TO recollect_app": ["partition audit_default: read"],
    "GRANT UPDATE, INSERT ON tenants TO recollect_app": ["tenants make one", "tenants resume one"],
    "GRANT UPDATE ON schema_migrations TO recollect_app": ["migrations forge"],
    "GRANT SET ON PARAMETER session_replication_role TO recollect_app": ["triggers switch them off"],
    "GRANT pg_read_server_files TO recollect_app": ["catalogue: role recollect_app"],
    "GRANT pg_execute_server_program TO recollect_app": ["server run a program"],
    "GRANT SELECT ON pg_statistic TO recollect_app": ["statistics read"],
    "GRANT SELECT ON pg_authid TO recollect_app": ["passwords read"],
    "CREATE OR REPLACE FUNCTION selected_parts(p_rows row_selection) RETURNS text[] "
    "LANGUAGE sql IMMUTABLE AS $$ SELECT ARRAY['true'] $$": [
        "access lists: dense",
        "access lists: lexical",
    ],
}
# What belongs to the whole server, and would meet the next test.
UNDO = """
    ALTER ROLE recollect_app NOBYPASSRLS NOCREATEROLE;
    REVOKE SET ON PARAMETER session_replication_role FROM recollect_app;
    REVOKE pg_read_server_files, pg_execute_server_program FROM recollect_app;
    REVOKE ALL ON pg_authid FROM recollect_app
"""


@pytest.fixture(scope="module")
def template(server_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database whose store has something of two tenants."""
    name = "attacked"
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE recollect_template STRATEGY file_copy")
        storage = {
            "data_dir": tmp_path_factory.mktemp("unused"),
            "dsn": psycopg.conninfo.make_conninfo(server_dsn, dbname=name),
        }
        with RAGPipeline(RAGConfig.load(storage=storage, embedding={"provider": "hashing"})) as rag:
            rag.tenants.create("other")
            for tenant in (1, 2):
                rag.view(tenant=tenant).ingest(Document(content="The zebrafish swims.", source="a.txt"))
                rag.view(tenant=tenant).ingest(Document(content="To be erased.", source="b.txt"))
                rag.view(tenant=tenant).documents.erase(["b.txt"])
        yield name
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def filled(server_dsn: str, template: str) -> Iterator[str]:
    """A copy of it."""
    name = f"{template}_now"
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        yield psycopg.conninfo.make_conninfo(server_dsn, dbname=name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        connection.execute(UNDO)


def state(dsn: str) -> list[tuple]:
    """Every row, every number and every object of the store."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(queries("catalogue")["guards"].replace("%%", "%")).fetchall()
        relations = connection.execute(
            "SELECT c.relname, c.relkind FROM pg_class c WHERE c.relnamespace = 'recollect'::regnamespace "
            "AND c.relkind IN ('r', 'p', 'S') ORDER BY 1"
        ).fetchall()
        for name, kind in relations:
            columns = sql.SQL("last_value, is_called" if kind == "S" else "t::text")
            everything = sql.SQL("SELECT {} FROM {} t").format(columns, sql.Identifier("recollect", name))
            found += sorted(connection.execute(everything).fetchall())
        return sorted(found, key=str)


def test_every_attack_is_refused_and_nothing_is_left(filled: str):
    before = state(filled)
    attacks = attack(filled)
    assert [one for one in attacks if one.outcome == "open"] == []
    # The test's login is the owner's.
    assert [one.name for one in attacks if one.outcome == "not tried"] == ["role: become the owner"]
    assert len(attacks) > 250 and len({one.name for one in attacks}) == len(attacks)
    assert state(filled) == before


@pytest.mark.parametrize("breaking", BREAKS, ids=range(len(BREAKS)))
def test_what_is_broken_on_purpose_is_open(filled: str, breaking: str):
    with psycopg.connect(filled, autocommit=True) as connection:
        connection.execute("SET search_path = recollect, public")
        connection.execute(breaking.replace("{database}", connection.info.dbname))
    before = state(filled)
    through = "\n".join(one.name for one in attack(filled) if one.outcome == "open")
    assert [name for name in BREAKS[breaking] if name not in through] == []
    assert state(filled) == before


def test_a_login_that_may_become_the_owner_is_open(filled: str):
    login = psycopg.conninfo.make_conninfo(filled, user="recollect_app")
    with psycopg.connect(filled, autocommit=True) as connection:
        connection.execute("ALTER ROLE recollect_app LOGIN")
        try:
            assert {one.outcome for one in attack(filled, application_dsn=login)} == {"held"}
            connection.execute(
                "CREATE ROLE go_between; GRANT postgres TO go_between; GRANT go_between TO recollect_app"
            )
            told = [one.name for one in attack(filled, application_dsn=login) if one.outcome == "open"]
            assert "role: become the owner" in told
        finally:
            connection.execute("DROP ROLE IF EXISTS go_between; ALTER ROLE recollect_app NOLOGIN")


def test_an_empty_store_and_none_at_all(dsn: str, server_dsn: str):
    assert [one for one in attack(dsn) if one.outcome == "open"] == []
    with pytest.raises(StoreError, match="no recollect store"):
        attack(psycopg.conninfo.make_conninfo(server_dsn, dbname="template1"))
    with pytest.raises(StoreUnavailableError):
        attack("host=127.0.0.1 port=1")
