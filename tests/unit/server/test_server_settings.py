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
