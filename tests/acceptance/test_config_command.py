"""``recollect config``: whether the settings can be worked with, and where each comes from."""

from __future__ import annotations

from dataclasses import replace

import psycopg


def with_environment(recollect, **more: str):
    return replace(recollect, environment={**recollect.environment, **more})


def test_check_tells_every_problem_and_fails(recollect):
    (recollect.folder / "recollect.toml").write_text("[rag.retrieval]\ntopk = 7\n", encoding="utf-8")
    wrong = with_environment(recollect, RECOLLECT_SERVER__PORT="99999")
    told = wrong("config", "check", status=1)
    assert "Did you mean rag.retrieval.top_k?" in told.out
    assert "RECOLLECT_SERVER__PORT: rag.server.port: " in told.out
    as_json = wrong("config", "check", "--json", status=1).json
    assert (as_json["file"], as_json["valid"], len(as_json["problems"])) == ("recollect.toml", False, 2)
    assert {one["where"] for one in as_json["problems"]} == {"recollect.toml", "RECOLLECT_SERVER__PORT"}


def test_check_asks_nobody_unless_it_is_told_to(recollect):
    away = "postgresql://ann:hunter2@127.0.0.1:1/x?connect_timeout=2"
    unreached = replace(recollect, environment={**recollect.environment, "RECOLLECT_DSN": away})
    assert unreached("config", "check").out == "The settings are valid (no file).\n"
    told = unreached("config", "check", "--connect", status=1)
    assert "The database: Cannot connect" in told.out
    assert "hunter2" not in told.out + told.err


def test_check_looks_at_the_database_and_at_keys_and_changes_neither(recollect, dsn):
    assert "reached; its schema has version" in recollect("config", "check", "--connect").out
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP SCHEMA recollect, recollect_jobs CASCADE")
    for _ in range(2):
        assert "the first command makes one" in recollect("config", "check", "--connect").out
    needy = with_environment(recollect, RECOLLECT_ANSWER__PROVIDER="openai", RECOLLECT_SERVER__JWT__SECRET="env:NONE_X")
    needy.environment.pop("OPENAI_API_KEY", None)
    told = needy("config", "check", "--connect", "--json", status=1).json
    messages = [one["message"] for one in told["problems"]]
    assert any("OPENAI_API_KEY" in message for message in messages)
    assert any("NONE_X is not in the environment" in message for message in messages)


def test_show_says_where_each_setting_comes_from(recollect):
    (recollect.folder / "recollect.toml").write_text("[rag.server]\nport = 9000\n", encoding="utf-8")
    told = recollect("config", "show", "--changed").out.splitlines()
    assert "rag.server.port = 9000 (file: recollect.toml)" in told
    assert 'rag.storage.dsn = "(set, not shown)" (environment: RECOLLECT_DSN)' in told
    assert not any("(default)" in line for line in told)
    rows = {one["name"]: one for one in recollect("config", "show", "--json", "--tenant", "acme").json["settings"]}
    assert rows["rag.tenant"] == {"name": "rag.tenant", "value": "acme", "source": "option", "where": None}
    assert rows["rag.server.host"]["source"] == "default"
