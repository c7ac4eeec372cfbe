"""Bearer tokens: what is taken, and everything that must not be."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st

import hostile
from recollect import Principal
from recollect.config.server import JwtConfig
from recollect.errors import AuthenticationError, ConfigurationError, RecollectError
from recollect.server.tokens import MOST_TOKEN_CHARACTERS, TokenVerifier

SECRET = "a secret of thirty-two bytes or more"
ENVIRONMENT = {"KEY": SECRET}
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ELLIPTIC = ec.generate_private_key(ec.SECP256R1())
NOW = int(time.time())
CLAIMS = {
    "sub": "ann",
    "exp": NOW + 86_400,
    "iss": "https://issuer.example",
    "aud": "recollect",
    "tenant": "acme",
    "roles": ["clerk", "lead"],
    "department": "hr",
    "groups": ["interns"],
    "scope": "openid read write",
}


def pem(key) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def private_pem(key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def token(key=SECRET, algorithm="HS256", *, headers=None, without=(), **changes) -> str:
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if name not in without}
    return jwt.encode(claims, key, algorithm, headers=headers)


def verifier(**settings) -> TokenVerifier:
    given = {"secret": "env:KEY", "issuer": CLAIMS["iss"], "audience": CLAIMS["aud"]} | settings
    return TokenVerifier(JwtConfig(**given), ENVIRONMENT)


@pytest.fixture
def by_pem(tmp_path):
    def make(key) -> TokenVerifier:
        path = tmp_path / "key.pem"
        path.write_bytes(pem(key) if hasattr(key, "public_key") else key)
        return verifier(secret=None, public_key=path)

    return make


def refused(verify, text: str, words: str) -> None:
    with pytest.raises(AuthenticationError, match=words) as caught:
        verify.verify(text)
    # Neither the message nor what a traceback would show repeats a part of the token.
    assert caught.value.__cause__ is None
    assert not [part for part in text.split(".") if len(part) > 8 and part in str(caught.value)]


# Taken


def test_a_token_says_whose_and_who():
    found = verifier().verify(token())
    assert found.tenant == "acme"
    assert found.principal == Principal(user_id="ann", roles=("clerk", "lead"), department="hr", groups=("interns",))
    assert found.scopes == {"read", "write"}
    assert found.expires_at == datetime.fromtimestamp(CLAIMS["exp"], UTC)


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (ELLIPTIC, "ES256")])
def test_the_kind_of_the_public_key_is_the_algorithm(by_pem, key, algorithm):
    assert by_pem(key).verify(token(key, algorithm)).principal.user_id == "ann"


def test_a_certificate_holds_a_public_key_too(by_pem):
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "issuer")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(RSA.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2040, 1, 1, tzinfo=UTC))
        .sign(RSA, hashes.SHA256())
    )
    assert by_pem(certificate.public_bytes(serialization.Encoding.PEM)).verify(token(RSA, "RS256"))


def test_clocks_may_differ_a_little():
    now = int(time.time())
    assert verifier(leeway_seconds=300).verify(token(exp=now - 20, nbf=now + 20, iat=now + 20))


def test_claims_have_the_names_that_are_configured():
    claims = {"tenant": "org", "user": "email", "roles": "realm_access.roles", "groups": "https://ours.example/groups"}
    found = verifier(claims=claims).verify(
        token(
            without=("sub", "tenant", "roles", "groups"),
            org=7,
            email="ann@example.org",
            realm_access={"roles": ["lead"]},
            **{"https://ours.example/groups": "one two"},
        )
    )
    assert (found.tenant, found.principal.user_id) == (7, "ann@example.org")
    assert (found.principal.roles, found.principal.groups) == (("lead",), ("one", "two"))


@pytest.mark.parametrize(
    ("settings", "scope", "opens"),
    [
        ({}, "openid email", {"read"}),
        ({}, None, {"read"}),
        ({"scopes": ()}, None, set()),
        ({}, ["recollect:write"], {"write"}),
        ({}, "admin", {"admin"}),
        ({}, "read operator", {"read"}),
        ({"max_scopes": ("read", "operator")}, "operator write", {"operator"}),
        ({"role_scopes": {"lead": ("admin",), "boss": ("write",)}}, "read", {"read", "admin"}),
        ({"max_scopes": ("read",), "role_scopes": {"lead": ("admin",)}}, "read write", {"read"}),
    ],
)
def test_what_a_token_opens(settings, scope, opens):
    assert verifier(**settings).verify(token(scope=scope)).scopes == opens


# Refused


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"exp": NOW - 60}, "expired"),
        ({"without": ("exp",)}, "'exp'"),
        ({"exp": None}, "'exp'"),
        ({"exp": "soon"}, "none, or was not signed"),
        ({"exp": str(NOW + 86_400)}, "'exp' is not a number"),
        ({"nbf": str(NOW - 600)}, "'nbf' is not a number"),
        ({"iat": True}, "'iat' is not a number"),
        ({"exp": 1e300}, "no names|none, or"),
        ({"nbf": NOW + 86_400}, "not valid yet"),
        ({"iat": NOW + 86_400}, "not valid yet"),
        ({"iss": "https://elsewhere.example"}, "another issuer"),
        ({"without": ("iss",)}, "'iss'"),
        ({"aud": "someone-else"}, "audience"),
        ({"aud": ["recollect-other", "else"]}, "audience"),
        ({"without": ("aud",)}, "'aud'"),
        ({"without": ("sub",)}, "no user"),
        ({"sub": " "}, "no user"),
        ({"sub": "a\nb"}, "no names"),
        ({"roles": {"a": 1}}, "'roles' cannot be read"),
        ({"roles": ["clerk", 5]}, "'roles' cannot be read"),
        ({"groups": 5}, "'groups' cannot be read"),
        ({"groups": ["a" * 600]}, "no names"),
        ({"department": ["hr", "it"]}, "'department' cannot be read"),
        ({"tenant": True}, "'tenant' cannot be read"),
        ({"tenant": ["acme"]}, "'tenant' cannot be read"),
        ({"tenant": ""}, "'tenant' cannot be read"),
        ({"scope": 5}, "'scope' cannot be read"),
        ({"without": ("groups",), "hasgroups": True}, "too many"),
        ({"without": ("groups",), "_claim_names": {"groups": "src1"}}, "too many"),
    ],
)
def test_what_a_token_must_not_say(changes, words):
    without = changes.pop("without", ())
    refused(verifier(), token(without=without, **changes), words)


def test_an_unsigned_token_is_refused(by_pem):
    unsigned = jwt.encode(CLAIMS, "", "none")
    for verify in (verifier(), by_pem(RSA)):
        refused(verify, unsigned, "not signed with")
    for alg in ("None", "NONE", "nOnE", "", "HS256"):
        header = base64.urlsafe_b64encode(json.dumps({"alg": alg, "typ": "JWT"}).encode()).rstrip(b"=").decode()
        refused(verifier(), f"{header}.{unsigned.split('.')[1]}.", "not signed")


def test_a_token_that_is_signed_with_the_public_key_as_a_secret_is_refused(by_pem):
    body = token().split(".")[1]
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=").decode()
    signer = jwt.get_algorithm_by_name("HS256")
    signature = signer.sign(f"{header}.{body}".encode(), pem(RSA))
    forged = f"{header}.{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    refused(by_pem(RSA), forged, "not signed with RS256")


def test_no_other_algorithm_of_the_same_key_is_taken(by_pem):
    for algorithm in ("RS384", "RS512", "PS256"):
        refused(by_pem(RSA), token(RSA, algorithm), "not signed with RS256")
    refused(verifier(), token(SECRET * 2, "HS512"), "not signed with HS256")
    refused(by_pem(RSA), token(), "not signed with RS256")
    refused(verifier(), token(RSA, "RS256"), "not signed with HS256")


def test_another_key_is_refused(by_pem):
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    refused(by_pem(RSA), token(other, "RS256"), "not signed by its issuer")
    refused(verifier(), token("another secret of thirty-two bytes"), "not signed by its issuer")


def test_what_a_token_names_as_its_key_is_never_used(by_pem, tmp_path):
    """`kid` as a path or as SQL, and keys that a token brings along."""
    own = {"kty": "oct", "k": base64.urlsafe_b64encode(b"x" * 32).decode()}
    (tmp_path / "empty").write_bytes(b"")
    for headers in (
        {"kid": str(tmp_path / "empty")},
        {"kid": "../../../../dev/null"},
        {"kid": "' UNION SELECT 'x"},
        {"jwk": own},
        {"jku": "http://127.0.0.1/keys"},
        {"x5u": "http://127.0.0.1/key"},
    ):
        refused(verifier(), token("x" * 32, headers=headers), "not signed by its issuer")
        # A name alone changes nothing: the trusted key is tried.
        assert verifier().verify(token(headers=headers))


def test_what_a_token_declares_critical_and_is_not_known_is_refused():
    refused(verifier(), token(headers={"crit": ["exp2"], "exp2": 1}), "not signed")
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","b64":false,"crit":["b64"]}').rstrip(b"=").decode()
    refused(verifier(), f"{header}..{token().split('.')[2]}", "not signed")


def test_a_changed_token_is_refused():
    header, body, signature = token().split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    more = base64.urlsafe_b64encode(json.dumps({**claims, "tenant": 1}).encode()).rstrip(b"=").decode()
    for text in (
        f"{header}.{more}.{signature}",
        f"{header}.{body}.",
        f"{header}.{body}",
        f"{header}.{body}.{signature}x",
    ):
        refused(verifier(), text, "not signed by its issuer")


def test_a_huge_token_is_not_even_looked_at(monkeypatch):
    verify, huge = verifier(), token(scope="a" * MOST_TOKEN_CHARACTERS)
    monkeypatch.setattr("jwt.get_unverified_header", lambda _: pytest.fail("it was read"))
    refused(verify, huge, "more than 16,384 characters")


@given(text=hostile.texts.filter(lambda text: text.isascii()) | st.text("abcXYZ019-_=.", max_size=60))
def test_whatever_is_presented_is_refused(text: str):
    with pytest.raises(AuthenticationError):
        verifier().verify(text)


@given(
    claims=st.dictionaries(
        st.sampled_from(["sub", "exp", "nbf", "iat", "aud", "iss", "tenant", "roles", "groups", "department", "scope"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
            max_leaves=4,
        ),
    )
)
def test_whatever_a_token_says_it_is_read_or_refused(claims):
    text = jwt.PyJWT().encode({**CLAIMS, **claims}, SECRET) if _encodable(claims) else None
    if text is None:
        return
    try:
        found = verifier().verify(text)
    except RecollectError as error:
        assert isinstance(error, AuthenticationError)
    else:
        assert found.principal.user_id


def _encodable(claims) -> bool:
    return isinstance(claims.get("iss", ""), str)


# Keys that are none


@pytest.mark.parametrize(
    ("secret", "words"), [("", "32 bytes"), ("a short one", "32 bytes"), (pem(RSA).decode(), "name its file")]
)
def test_a_secret_that_could_be_guessed_or_is_public_is_refused(secret, words):
    with pytest.raises(ConfigurationError, match=words) as caught:
        TokenVerifier(JwtConfig(secret="env:KEY"), {"KEY": secret})
    assert not secret or secret not in str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        private_pem(RSA),
        pem(rsa.generate_private_key(public_exponent=65537, key_size=1024)),
        pem(ec.generate_private_key(ec.SECP384R1())),
        pem(ed25519.Ed25519PrivateKey.generate()),
        b"",
        b"no key",
    ],
    ids=["private", "short", "P-384", "Ed25519", "empty", "text"],
)
def test_a_file_without_a_fitting_public_key_is_refused(tmp_path, key):
    path = tmp_path / "key.pem"
    path.write_bytes(key)
    with pytest.raises(ConfigurationError, match=r"key\.pem"):
        verifier(secret=None, public_key=path)
    with pytest.raises(ConfigurationError, match=r"No such file"):
        verifier(secret=None, public_key=tmp_path / "nothing.pem")
