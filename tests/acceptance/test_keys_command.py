"""Keys on the command line, as whoever runs a server makes and ends them."""

from __future__ import annotations

import getpass

from recollect.model.key import read_key


def test_a_key_from_its_making_to_its_end(recollect):
    assert "recollect keys create NAME" in recollect("keys", "list").out
    made = recollect("keys", "create", "reports", "--scope", "write", "--scope", "read", "--expires", "90d")
    key = read_key(made.out.strip())
    assert f"not shown again. Its id is {key.key_id}" in made.err

    (listed,) = recollect("keys", "list", "--json").json["items"]
    assert (listed["key_id"], listed["scopes"], listed["status"]) == (key.key_id, ["read", "write"], "active")
    assert (listed["principal"], listed["created_by"]) == (None, getpass.getuser())
    secret = key.text.rpartition("_")[2]
    shown = recollect("keys", "list").out
    assert "reports" in shown and "the owner" in shown and secret not in shown

    rotated = recollect("keys", "rotate", key.key_id, "--grace", "2h", "--json").json
    assert rotated["key"]["previous_until"] and read_key(rotated["secret"]).key_id == key.key_id
    assert recollect("keys", "rotate", key.key_id, "--grace", "0", "--json").json["key"]["previous_until"] is None

    assert f"{key.key_id} (reports) is revoked" in recollect("keys", "revoke", key.key_id).out
    assert "revoked" in recollect("keys", "list").out
    assert "make a new one" in recollect("keys", "rotate", key.key_id, status=1).err
    actions = [one["action"] for one in recollect("audit", "list", "--json").json["items"]]
    assert actions == ["revoke_key", "rotate_key", "rotate_key", "create_key"]


def test_a_key_is_of_a_user_and_of_a_tenant(recollect):
    recollect("tenants", "create", "acme")
    made = recollect("keys", "create", "laptop", "--as", "ann", "--roles", "clerk,lead", "--tenant", "acme", "--json")
    assert made.json["key"]["principal"] == {
        "user_id": "ann",
        "roles": ["clerk", "lead"],
        "department": None,
        "groups": [],
    }
    assert (made.json["key"]["tenant_id"], made.json["key"]["scopes"]) == (2, ["read"])
    assert recollect("keys", "list", "--json").json == {"items": [], "next_cursor": None}
    assert len(recollect("keys", "list", "--tenant", "2", "--as", "ann", "--json").json["items"]) == 1
    assert recollect("keys", "list", "--tenant", "2", "--as", "bob", "--json").json["items"] == []
    key_id = made.json["key"]["key_id"]
    assert "no key" in recollect("keys", "revoke", key_id, status=1).err


def test_what_is_wrong_is_said(recollect):
    assert "length of time" in recollect("keys", "create", "x", "--expires", "soon", status=2).err
    assert "root" in recollect("keys", "create", "x", "--scope", "root", status=2).err
    assert "to whom" in recollect("keys", "create", "x", "--roles", "clerk", status=2).err
    assert "length of time" in recollect("keys", "rotate", "x", "--grace", "-1", status=2).err
