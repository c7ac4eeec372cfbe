"""What a repository's location may be: nothing that Git, ssh or a shell would take for something else."""

from __future__ import annotations

import pytest

from recollect.errors import UsageError
from recollect.sources.base import Surroundings
from recollect.sources.declared import connector_class, connector_names, connector_of, read_settings
from recollect.sources.git import GitConnector, GitSettings, read_location


def surroundings(tmp_path, **how) -> Surroundings:
    return Surroundings(folder=tmp_path, addresses=lambda url: ["127.0.0.1"], environment={}, **how)


@pytest.mark.parametrize(
    ("location", "scheme", "host", "path"),
    [
        ("https://github.com/a/b.git", "https", "github.com", "/a/b.git"),
        ("git+https://host:8443/a", "https", "host", "/a"),
        ("ssh://git@host/a.git", "ssh", "host", "/a.git"),
        ("git@host:a/b.git", "ssh", "host", "/a/b.git"),
        ("git://host/a.git", "git", "host", "/a.git"),
        ("https://[2001:db8::1]/a", "https", "[2001:db8::1]", "/a"),
    ],
)
def test_a_location_is_taken_apart(location: str, scheme: str, host: str, path: str):
    where = read_location(location)
    assert (where.scheme, where.host, where.path) == (scheme, host, path)


@pytest.mark.parametrize(
    "location",
    [
        "--upload-pack=touch /tmp/x",
        "-u",
        "ext::sh -c touch% /tmp/x",
        "fd::17",
        "git+ext::sh",
        "ssh://-oProxyCommand=touch x/a.git",
        "ssh://-oProxyCommand=x@host/a.git",
        "ssh://git:secret@host/a.git",
        "https://user:secret@host/a.git",
        "https://token@host/a.git",
        "https://host",
        "https://host/",
        "https://host/a.git?x=1",
        "https://host/a.git#main",
        "https://ho st/a.git",
        "https://host/a.git\nconfig",
        "https://host:port/a.git",
        "-oProxyCommand=x:a.git",
        "git@-oProxyCommand=x:a.git",
        "file://host/a.git",
        "ftp://host/a.git",
        "transport::address",
    ],
)
def test_a_location_that_could_be_something_else_is_refused(location: str):
    with pytest.raises(UsageError) as refused:
        read_settings("git", location, {})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "branch", ["--upload-pack=x", "-b", "a..b", "a b", "a:b", "+main", "a\nb", "x.lock", "a^", "/"]
)
def test_a_branch_that_could_be_something_else_is_refused(branch: str):
    if branch in {"+main", "/"}:
        branch += ":x"
    with pytest.raises(UsageError):
        read_settings("git", "https://host/a.git", {"branch": branch})


@pytest.mark.parametrize("path", ["../x", "/etc", "a/../../b", "a\0b"])
def test_a_path_outside_the_repository_is_refused(path: str):
    with pytest.raises(UsageError):
        read_settings("git", "https://host/a.git", {"path": path})


@pytest.mark.parametrize("location", ["/srv/a.git", "file:///srv/a.git"])
def test_a_repository_of_this_machine_is_read_only_where_that_is_allowed(tmp_path, location: str):
    settings = GitSettings(location=location)
    with pytest.raises(UsageError, match="allow_local_repositories"):
        GitConnector(settings, surroundings(tmp_path))
    GitConnector(settings, surroundings(tmp_path, allow_local=True)).close()


def test_a_secret_in_the_place_of_its_variables_name_is_not_repeated(tmp_path):
    for name, setting in (("git", "token"), ("s3", "secret_key"), ("s3", "access_key")):
        location = "https://host/a.git" if name == "git" else "s3://bucket"
        with pytest.raises(UsageError) as refused:
            read_settings(name, location, {setting: "ghp_verysecret"})
        assert "ghp_verysecret" not in str(refused.value) and "env:NAME" in str(refused.value)
    settings = read_settings("git", "https://host/a.git", {"token": "env:NOT_THERE"})
    with pytest.raises(UsageError, match="NOT_THERE is not set"):
        GitConnector(settings, surroundings(tmp_path))


def test_a_token_does_not_travel_in_the_clear(tmp_path):
    settings = GitSettings(location="http://example.org/a.git", token="env:TOKEN")
    around = Surroundings(folder=tmp_path, addresses=lambda url: ["192.0.2.1"], environment={"TOKEN": "x"})
    with pytest.raises(UsageError, match="HTTPS"):
        GitConnector(settings, around)


def test_connectors_are_found_by_name_and_by_the_form_of_a_location():
    assert {"git", "s3"} <= set(connector_names())
    assert connector_of("s3://bucket/x") == "s3" and connector_of("https://host/a.git") == "git"
    assert connector_of("https://host/page") is None
    with pytest.raises(UsageError, match="There is no connector"):
        connector_class("nothing")
    with pytest.raises(UsageError, match="Known are"):
        read_settings("s3", "s3://bucket", {"unknown": 1})
