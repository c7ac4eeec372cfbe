"""What the settings of the server refuse, before it is reached by anybody."""

from __future__ import annotations

import pytest

from recollect import RAGConfig
from recollect.errors import ConfigurationError


def test_a_server_is_this_machines_and_takes_no_tokens_unless_it_is_told_to():
    server = RAGConfig().server
    assert (server.host, server.port, server.authentication) == ("127.0.0.1", 8321, "auto")
    assert not server.jwt.configured


@pytest.mark.parametrize(
    ("jwt", "words"),
    [
        ({"secret": "hunter2-hunter2"}, "env:NAME"),
        ({"secret": "env:"}, "env:NAME"),
        ({"secret": "env:KEY", "public_key": "key.pem", "audience": "us"}, "secret and public_key"),
        ({"public_key": "key.pem"}, "audience"),
        ({"jwks_url": "https://issuer.example/keys"}, "audience"),
        ({"jwks_url": "file:///etc/passwd", "audience": "us"}, "https://"),
        ({"max_scopes": ["root"]}, "max_scopes"),
        ({"leeway_seconds": 3600}, "leeway_seconds"),
    ],
)
def test_what_would_let_in_too_many_is_refused(jwt, words):
    with pytest.raises(ConfigurationError, match=words) as caught:
        RAGConfig.load(server={"jwt": jwt})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "jwt",
    [
        {"secret": "env:KEY"},
        {"public_key": "key.pem", "audience": "us"},
        {"jwks_url": "https://issuer.example/keys", "audience": "us", "issuer": "https://issuer.example"},
    ],
)
def test_one_way_to_verify_tokens_is_taken(jwt):
    assert RAGConfig.load(server={"jwt": jwt}).server.jwt.configured


CLIENT = {"issuer": "https://login.example.org/realms/x", "client_id": "recollect"}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"client_secret": "env:OIDC"},
        {"issuer": "http://127.0.0.1:9400"},
        {"issuer": "http://localhost:9400"},
        {"scopes": ["openid", "groups"]},
    ],
)
def test_an_issuer_to_log_in_with(more):
    config = RAGConfig.load(
        server={"host": "0.0.0.0", "public_url": "https://k", "login": {"oidc": {**CLIENT, **more}}}
    )
    assert config.server.login.oidc.configured
    assert RAGConfig.load(server={"login": {"oidc": {**CLIENT, **more}}}).server.login.oidc.configured


@pytest.mark.parametrize(
    ("more", "word"),
    [
        *(
            ({"issuer": url}, "https")
            for url in ("http://login.example.org", "http://127.0.0.1.example.org", "https://", "x")
        ),
        *(({"issuer": f"https://e.example{rest}"}, "https") for rest in ("?x", "#x", "@[x")),
        ({"issuer": "https://u:p@e.example"}, "https"),
        ({"client_id": None}, "client_id"),
        ({"client_secret": "hunter2"}, "env:NAME"),
        ({"scopes": ["email"]}, "openid"),
        ({"scopes": ["openid email"]}, "openid"),
    ],
)
def test_an_issuer_that_could_not_be_trusted(more, word):
    with pytest.raises(ConfigurationError, match=word) as caught:
        RAGConfig.load(server={"public_url": "https://k", "login": {"oidc": {**CLIENT, **more}}})
    assert "hunter2" not in str(caught.value)


def test_an_issuer_has_to_know_where_people_come_back_to():
    with pytest.raises(ConfigurationError, match="public_url"):
        RAGConfig.load(server={"host": "0.0.0.0", "login": {"oidc": CLIENT}})


@pytest.mark.parametrize("proxy", ["*", "proxy.example", "10.0.0.1/8", ""])
def test_a_trusted_proxy_is_an_address_or_a_network(proxy):
    with pytest.raises(ConfigurationError, match="network"):
        RAGConfig.load(server={"trusted_proxies": [proxy]})
    assert RAGConfig.load(server={"trusted_proxies": ["10.0.0.0/8", "::1"]}).server.trusted_proxies
