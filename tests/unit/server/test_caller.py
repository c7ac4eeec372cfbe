"""What a caller may, by the scopes of the credential alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect import Principal
from recollect.errors import PermissionDeniedError
from recollect.server.caller import Caller, Credential

ANN = Principal(user_id="ann", roles=("clerk",))
ENDS = datetime(2030, 1, 1, tzinfo=UTC)


def caller(*scopes, principal=ANN, kind="key"):
    credential = Credential(kind=kind, id="0abc", expires_at=ENDS)
    return Caller(tenant=3, principal=principal, scopes=frozenset(scopes), credential=credential)


def test_the_audit_names_the_user_and_the_key():
    assert caller("read").actor == "user:ann (key:0abc)"
    assert caller("read", kind="jwt").actor == "user:ann"
    assert caller("read", principal=None).actor == "key:0abc"
    assert caller("read", principal=Principal(roles=("clerk",))).actor == "key:0abc"


def test_what_a_caller_makes_is_limited_by_its_own_credential():
    maker = caller("write", "read").maker
    assert (maker.scopes, maker.expires_at) == (("read", "write"), ENDS)
    # A token is renewed every few minutes: keys may live longer.
    assert caller("read", kind="jwt").maker.expires_at is None


def test_a_view_is_the_callers_and_administration_the_owners(pipeline):
    view = caller("read", "admin").view(pipeline)
    assert (view.standpoint.tenant, view.standpoint.principal) == (3, ANN)
    whole = caller("read", "admin").administration(pipeline)
    assert (whole.standpoint.tenant, whole.standpoint.principal) == (3, None)
    with pytest.raises(PermissionDeniedError):
        caller("read", "write", "operator").administration(pipeline)
