"""Logins on the command line, as whoever runs a server looks after them."""

from __future__ import annotations

import psycopg

from recollect.model import Principal, Scope
from recollect.model.key import draw_login, read_key
from recollect.store.database import Database
from recollect.store.logins import LoginRepository


def test_logins_are_listed_and_ended(recollect, dsn):
    assert "Nobody is logged in" in recollect("logins", "list").out
    # An id may consist of digits alone, and is a name all the same.
    assert "Nobody is logged in" in recollect("logins", "list", "--before", "123456789012").out
    key = read_key(recollect("keys", "create", "laptop").out.strip())
    times = {"idle_seconds": 600.0, "lifetime_seconds": 600.0, "actor": "test"}
    database = Database(dsn, max_connections=2)
    try:
        repository, scope = LoginRepository(database), Scope(tenant_id=1)
        texts = [draw_login(1) for _ in range(3)]
        repository.create_with_key(scope, texts[0], key=key, **times)
        for text in texts[1:]:
            user = Principal(user_id="ann", roles=("clerk",))
            repository.create_with_token(scope, text, scopes=("read",), principal=user, id_token=b"x", **times)
    finally:
        database.close()
    shown = recollect("logins", "list").out
    assert all(word in shown for word in ("owner", "issuer", *(text.key_id for text in texts)))
    assert all(text.text not in shown for text in texts)
    listed = recollect("logins", "list", "--json").json["items"]
    assert {one["login_id"] for one in listed} == {text.key_id for text in texts}
    assert [one["method"] for one in recollect("logins", "list", "--user", "ann", "--json").json["items"]] == [
        "oidc"
    ] * 2
    first = recollect("logins", "list", "--limit", "2", "--json").json
    assert len(first["items"]) == 2
    for following in ("--cursor", first["next_cursor"]), ("--before", first["items"][-1]["login_id"]):
        assert len(recollect("logins", "list", *following, "--json").json["items"]) == 1

    assert "has ended" in recollect("logins", "revoke", texts[0].key_id).out
    assert recollect("logins", "revoke", "--user", "bob", "--json").json == {"ended": 0}
    assert "2 logins ended" in recollect("logins", "revoke", "--user", "ann").out
    assert recollect("logins", "revoke", "--everybody", "--json").json == {"ended": 0}
    assert "no login" in recollect("logins", "revoke", "unknown", status=1).err
    assert "Name one" in recollect("logins", "revoke", status=2).err
    assert "Name one" in recollect("logins", "revoke", "x", "--user", "ann", status=2).err
    assert {one["status"] for one in recollect("logins", "list", "--json").json["items"]} == {"ended"}
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(id_token) FROM recollect.logins").fetchone() == (0,)
