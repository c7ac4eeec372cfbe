"""Why somebody may read a document: what is explained is what the store does, and what the rules say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import Document, Principal, RAGPipeline
from recollect.errors import NotFoundError, PermissionDeniedError
from recollect.evaluation.persona_audit import CollectionRights, DocumentRights, may_read
from recollect.model.access import CollectionAccess, DocumentPermissions, explain_reading
from recollect.model.principal import Permissions

NAMES = ("a", "b")
TOKENS = st.lists(
    st.sampled_from(["*", *(f"{kind}:{name}" for kind in ("user", "role", "department", "group") for name in NAMES)]),
    unique=True,
    max_size=3,
).map(lambda tokens: tuple(sorted(tokens)))
SOMEBODY = st.builds(
    Principal,
    user_id=st.sampled_from([None, *NAMES]),
    roles=st.lists(st.sampled_from(NAMES), unique=True).map(tuple),
    department=st.sampled_from([None, *NAMES]),
    groups=st.lists(st.sampled_from(NAMES), unique=True).map(tuple),
)
RULES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from([("a",), ("b",), ("*",)]))


@given(SOMEBODY, TOKENS, TOKENS, TOKENS, TOKENS, RULES)
def test_the_reason_is_one_that_decides(principal, owners, readers, grants, denials, rules):
    """Held against the rules as they are written down a second time, for tests of permissions."""
    permissions = Permissions(grants=grants, denials=denials)
    document = DocumentPermissions(
        document_id=1, source="x", collection="c", department=None, grants=grants, denials=denials, inherited=False
    )
    access = CollectionAccess(collection="c", owners=owners, readers=readers, writers=(), default=Permissions())
    rights = CollectionRights(
        owners=owners, readers=readers, documents=(), find=lambda _: None, text=str, role_departments=rules
    )
    allowed = may_read(principal, DocumentRights(document_id=1, source="x", permissions=permissions), rights)
    told = explain_reading(principal, document, access, allowed=allowed, role_departments=rules)
    assert allowed == (told.reason in {"owner", "granted"})
    assert set(told.owns) <= set(owners) and set(told.granted) <= set(grants) and set(told.denied) <= set(denials)


def test_the_store_decides_and_the_rules_are_told(pipeline: RAGPipeline):
    kim = Principal(user_id="kim", department="hr")
    pipeline.ingest(Document(content="Salaries are paid on the 25th.", source="pay.md", permissions=("department:hr",)))
    granted = pipeline.grants.explain("pay.md", kim)
    assert (granted.allowed, granted.reason, granted.granted) == (True, "granted", ("department:hr",))
    assert pipeline.grants.explain("pay.md", Principal(user_id="max")).reason == "not_granted"
    pipeline.grants.deny("user:kim", documents="pay.md")
    denied = pipeline.grants.explain("pay.md", kim)
    assert (denied.allowed, denied.reason, denied.denied) == (False, "denied", ("user:kim",))
    pipeline.grants.set_collection(owners=("user:kim",), readers=("role:board",))
    owned = pipeline.grants.explain("pay.md", kim)
    assert (owned.allowed, owned.reason) == (True, "owner")
    hidden = pipeline.grants.explain("pay.md", Principal(user_id="max"))
    assert (hidden.allowed, hidden.reason) == (False, "hidden")
    with pytest.raises(NotFoundError):
        pipeline.grants.explain("none.md", kim)
    with pytest.raises((NotFoundError, PermissionDeniedError)):  # only whoever may change it is told
        pipeline.view(principal=Principal(user_id="max")).grants.explain("pay.md", kim)


def test_the_users_whom_keys_name_are_listed_as_their_newest_says(pipeline: RAGPipeline):
    pipeline.keys.create("first", principal=Principal(user_id="kim", department="it"))
    pipeline.keys.create("second", principal=Principal(user_id="kim", department="hr"))
    gone = pipeline.keys.create("third", principal=Principal(user_id="max"))
    pipeline.keys.revoke(gone.key.key_id)
    pipeline.keys.create("owner")
    found = pipeline.keys.users()
    assert [(one.principal.user_id, one.principal.department, one.keys, one.logins) for one in found] == [
        ("kim", "hr", 2, 0),
        ("max", None, 0, 0),
    ]
    assert [one.principal.user_id for one in pipeline.keys.users(cursor=pipeline.keys.users(limit=1).next_cursor)] == [
        "max"
    ]
    own = pipeline.view(principal=Principal(user_id="kim")).keys.users()
    assert [one.principal.user_id for one in own] == ["kim"]
