"""What is not the web is not contacted: not by any notation, name, redirect or change of mind of a resolver."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from recollect.errors import AddressRefusedError, FetchError, UsageError
from recollect.fetching.client import Fetcher, PageRequest
from recollect.fetching.guard import Guard, host_rules
from recollect.fetching.urls import parse_url
from web_site import PUBLIC, Page, Redirected, WebSite, resolving, web_site

NAMES = {
    "loopback.test": ["127.0.0.1"],
    "loopback6.test": ["::1"],
    "private.test": ["10.0.0.7"],
    "mixed.test": [PUBLIC, "192.168.0.5"],
    "mapped.test": ["::ffff:10.0.0.1"],
    "nat64.test": ["64:ff9b::a9fe:a9fe"],
    "scoped.test": ["fe80::1%eth0"],
    "metadata.google.internal": ["169.254.169.254"],
    "cgnat.test": ["100.64.0.1"],
    "zero.test": ["0.0.0.0"],
    "teredo.test": ["2001:0:7f00:1::1"],
    "nonsense.test": ["127.1"],
    "127.0.0.1.nip.test": ["127.0.0.1"],
    "xn--lopback-90a.test": ["127.0.0.1"],
}

# {port} is the site's, so that a request that got through would stand in its log.
HOSTILE = [
    # Loopback, in every notation
    "http://127.0.0.1:{port}/",
    "http://127.0.0.1:/",
    "http://127.0.0.1.:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://127.255.255.254:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.0x0.0x0.0x1:{port}/",
    "http://0x7f.1:{port}/",
    "http://017700000001:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://0177.0.0.01:{port}/",
    "http://00000177.0.0.1:{port}/",
    "http://127.0.0.0x1:{port}/",
    "http://127.00.00.01:{port}/",
    "http://4294967295:{port}/",
    "http://6425673729:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST:{port}/",
    "http://localhost.:{port}/",
    "http://admin.localhost:{port}/",
    "http://localhost.localdomain:{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    "http://0.0.0.0.:{port}/",
    "http://１２７.０.０.１:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://127。0。0。1:{port}/",
    "http://127｡0｡0｡1:{port}/",
    "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{port}/",
    "http://%31%32%37.0.0.1:{port}/",
    "http://127.0.0.1%2f@example.com:{port}/",
    "http://127.0.0.1%00.example.com:{port}/",
    "http://loc\u00adalhost:{port}/",
    # IPv6, and IPv4 within it
    "http://[::1]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[0000:0000:0000:0000:0000:0000:0000:0001]:{port}/",
    "http://[::]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[::7f00:1]:{port}/",
    "http://[::ffff:0:127.0.0.1]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[64:ff9b::169.254.169.254]/",
    "http://[64:ff9b:1::7f00:1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[2002:a9fe:a9fe::]/",
    "http://[2001:0:7f00:1::1]:{port}/",
    "http://[fe80::1]:{port}/",
    "http://[fe80::1%25lo]:{port}/",
    "http://[fe80::1%lo]:{port}/",
    "http://[::1%25lo]:{port}/",
    "http://[fec0::1]/",
    "http://[fc00::1]/",
    "http://[fd12:3456::1]/",
    "http://[ff02::1]/",
    "http://[100::1]/",
    "http://[2001:db8::1]/",
    "http://[4000::1]/",
    "http://[v1.fe80::a]/",
    "http://[::1/",
    "http://::1:{port}/",
    # Private, shared, reserved
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.0.1/",
    "http://0xc0a80001/",
    "http://3232235521/",
    "http://100.64.0.1/",
    "http://100.127.255.254/",
    "http://192.0.0.8/",
    "http://192.0.2.1/",
    "http://198.18.0.1/",
    "http://203.0.113.9/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    # Link-local, and what clouds hand credentials out at
    "http://169.254.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/latest/meta-data/",
    "http://0xA9FEA9FE/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://100.100.100.200/latest/meta-data/",
    "http://192.0.0.192/opc/v1/instance/",
    "http://168.63.129.16/machine",
    "http://metadata.google.internal/computeMetadata/v1/",
    # Names that lead there
    *(f"http://{name}:{{port}}/" for name in NAMES),
    "http://löopback.test:{port}/",
    "http://LOOPBACK.test:{port}/",
    "http://loopback.test.:{port}/",
    # User information, and what readers of URLs disagree about
    "http://example.com@127.0.0.1:{port}/",
    "http://user:secret@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}@example.com/",
    "http://example.com:80@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@example.com/",
    "http://example.com\\@127.0.0.1:{port}/",
    "http:\\\\127.0.0.1:{port}\\",
    "http:/127.0.0.1:{port}/",
    "http:127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "127.0.0.1:{port}/",
    "http://127.0.0.1\t:{port}/",
    "http://127.0.\n0.1:{port}/",
    "http://exam ple.com@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\r\nHost: example.com/",
    "http://example.com:{port}:80/",
    "http://example.com:0x50/",
    "http://example.com:-1/",
    "http://example.com:99999/",
    "http://example.com:０８０/",
    "http:// /",
    "http://",
    "http://.",
    "http://..",
    "",
    # Other ports, other schemes
    "http://example.com:22/",
    "http://example.com:25/",
    "http://example.com:6379/",
    "https://example.com:5432/",
    "ftp://127.0.0.1:{port}/",
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "gopher://127.0.0.1:{port}/_GET%20/",
    "dict://127.0.0.1:{port}/",
    "ldap://127.0.0.1:{port}/",
    "jar:http://127.0.0.1:{port}/!/",
    "data:text/html,hello",
    "javascript:alert(1)",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "ws://127.0.0.1:{port}/",
    "view-source:http://127.0.0.1:{port}/",
    "hTTp-x://127.0.0.1:{port}/",
]
# As relative references these mean another page of the same site.
RELATIVE = {"", "127.0.0.1:{port}/", "http://127.0.0.1:{port}\r\nHost: example.com/", "http://127.0.\n0.1:{port}/"}


@pytest.fixture
def site() -> Iterator[WebSite]:
    with web_site({"/": Page("a secret")}) as running:
        yield running


def test_the_table_is_as_long_as_promised() -> None:
    assert len(set(HOSTILE)) >= 60


@pytest.fixture(scope="module")
def watched() -> Iterator[tuple[WebSite, Redirected, Fetcher]]:
    with web_site({"/": Page("a secret")}) as running:
        network = Redirected(running)
        # Its port is one of the web's here, so that targets are refused for their address.
        guard = Guard(resolver=resolving(NAMES), ports=(80, 443, running.port))
        with Fetcher(guard, network=network, timeout_seconds=5) as fetcher:
            yield running, network, fetcher


@pytest.mark.parametrize("target", HOSTILE)
def test_a_hostile_target_is_refused_and_not_contacted(
    target: str, watched: tuple[WebSite, Redirected, Fetcher]
) -> None:
    site, network, fetcher = watched

    with pytest.raises(FetchError) as refused:
        fetcher.fetch(target.format(port=site.port))

    assert not refused.value.retryable
    assert "secret@" not in str(refused.value)
    assert site.connections == 0
    assert network.connected == []


@pytest.fixture(scope="module")
def redirecting() -> Iterator[tuple[WebSite, Redirected, Fetcher]]:
    with web_site() as running:
        network = Redirected(running)
        with Fetcher(Guard(resolver=resolving(NAMES)), network=network, timeout_seconds=5) as fetcher:
            yield running, network, fetcher


@pytest.mark.parametrize("target", [one for one in HOSTILE if one not in RELATIVE])
def test_a_redirect_to_a_hostile_target_is_not_followed(
    target: str, redirecting: tuple[WebSite, Redirected, Fetcher]
) -> None:
    site, network, fetcher = redirecting
    location = target.format(port=8080)
    site.routes["/start"] = Page(status=302, headers={"Location": location})

    with pytest.raises(FetchError):
        fetcher.fetch("http://example.com/start")

    assert set(network.connected) == {(PUBLIC, 80)}
    assert set(site.paths) == {"/start"}


def test_a_fragment_hides_no_host(site: WebSite) -> None:
    network = Redirected(site)
    with Fetcher(Guard(resolver=resolving()), network=network) as fetcher:
        fetcher.fetch("http://example.com#@127.0.0.1/")

    assert network.connected == [(PUBLIC, 80)]


def test_a_name_is_resolved_once_and_that_address_is_connected_to(site: WebSite) -> None:
    answers = [[PUBLIC], ["127.0.0.1"]]
    asked: list[str] = []

    def changing(host: str) -> list[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    network = Redirected(site)
    with Fetcher(Guard(resolver=changing), network=network) as fetcher:
        fetcher.fetch("http://rebinding.test/")
        assert (asked, network.connected) == (["rebinding.test"], [(PUBLIC, 80)])

    with Fetcher(Guard(resolver=changing), network=network) as fetcher, pytest.raises(AddressRefusedError):
        fetcher.fetch("http://rebinding.test/")
    assert network.connected == [(PUBLIC, 80)]


def test_a_redirect_to_the_same_name_is_checked_again(site: WebSite) -> None:
    answers = iter([[PUBLIC], ["169.254.169.254"]])
    site.routes["/start"] = Page(status=307, headers={"Location": "http://rebinding.test:8080/latest"})
    network = Redirected(site)

    guard = Guard(resolver=lambda _: next(answers))
    with Fetcher(guard, network=network) as fetcher, pytest.raises(AddressRefusedError, match="metadata"):
        fetcher.fetch("http://rebinding.test/start")

    assert network.connected == [(PUBLIC, 80)]


def test_proxies_of_the_environment_are_not_asked(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, site.url())
    network = Redirected(site)

    with Fetcher(Guard(resolver=resolving()), network=network) as fetcher:
        fetcher.fetch("http://example.com/")

    assert network.connected == [(PUBLIC, 80)]
    assert site.visits[0].headers["Host"] == "example.com"


def test_the_systems_resolver_is_asked_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(host: str, *_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(AddressRefusedError, match=r"resolves to 127\.0\.0\.1, a loopback address"):
        Guard().addresses(parse_url("http://innocent.example/"), timeout_seconds=5)


@pytest.mark.parametrize(
    ("number", "retryable"), [(socket.EAI_NONAME, False), (socket.EAI_AGAIN, True), (socket.EAI_FAIL, True)]
)
def test_a_name_that_does_not_resolve(number: int, retryable: bool) -> None:
    def fail(_: str) -> list[str]:
        raise socket.gaierror(number, "no")

    with pytest.raises(FetchError) as failed:
        Guard(resolver=fail).addresses(parse_url("http://example.com/"), timeout_seconds=5)
    assert failed.value.retryable is retryable


class TestSettings:
    def test_private_addresses_may_be_allowed_but_not_metadata(self, site: WebSite) -> None:
        guard = Guard(allow_private_addresses=True)
        with Fetcher(guard) as fetcher:
            assert fetcher.fetch(site.url()).body == b"a secret"
        for target in ("http://169.254.169.254/", "http://0.0.0.0/", "http://[fd00:ec2::254]/", "http://224.0.0.1/"):
            with pytest.raises(AddressRefusedError):
                guard.check(parse_url(target))

    def test_allowed_private_addresses_do_not_open_the_ports_of_others(self) -> None:
        guard = Guard(allow_private_addresses=True, resolver=resolving())
        with pytest.raises(AddressRefusedError, match="port 6379"):
            guard.addresses(parse_url("http://example.com:6379/"), timeout_seconds=5)

    def test_allowed_hosts_exclude_everything_else(self) -> None:
        guard = Guard(allowed_hosts=host_rules(["example.com", "docs.test:9000"]), resolver=resolving())
        for allowed in ("https://example.com/", "https://www.example.com/", "http://docs.test:9000/"):
            assert guard.addresses(parse_url(allowed), timeout_seconds=5) == [PUBLIC]
        for refused in ("https://other.test/", "https://notexample.com/", "http://docs.test/", f"http://{PUBLIC}/"):
            with pytest.raises(AddressRefusedError, match="allowed_hosts"):
                guard.addresses(parse_url(refused), timeout_seconds=5)

    def test_allowed_hosts_do_not_open_private_addresses(self) -> None:
        guard = Guard(allowed_hosts=host_rules(["loopback.test", "10.0.0.0/8"]), resolver=resolving(NAMES))
        for refused in ("http://loopback.test/", "http://private.test/", "http://10.0.0.7/"):
            with pytest.raises(AddressRefusedError, match="allow_private_addresses"):
                guard.addresses(parse_url(refused), timeout_seconds=5)

    def test_a_network_may_be_all_that_is_allowed(self) -> None:
        guard = Guard(
            allow_private_addresses=True, allowed_hosts=host_rules(["10.0.0.0/24"]), resolver=resolving(NAMES)
        )
        assert guard.addresses(parse_url("http://private.test/"), timeout_seconds=5) == ["10.0.0.7"]
        for refused in ("http://loopback.test/", "http://example.com/"):
            with pytest.raises(AddressRefusedError):
                guard.addresses(parse_url(refused), timeout_seconds=5)

    def test_denied_hosts_win(self) -> None:
        guard = Guard(
            allow_private_addresses=True,
            denied_hosts=host_rules(["example.com", "10.0.0.0/8", "*.evil.test"]),
            resolver=resolving(NAMES),
        )
        for refused in ("http://example.com/", "http://a.example.com/", "http://private.test/", "http://x.evil.test/"):
            with pytest.raises(AddressRefusedError, match="denied_hosts"):
                guard.addresses(parse_url(refused), timeout_seconds=5)
        assert guard.addresses(parse_url("http://loopback.test/"), timeout_seconds=5) == ["127.0.0.1"]

    @pytest.mark.parametrize(
        "entry", ["", "http://example.com", "example.com/path", "user@example.com", "a b", "1.2.3"]
    )
    def test_a_host_that_is_none_is_refused(self, entry: str) -> None:
        with pytest.raises(UsageError, match="allowed_hosts"):
            host_rules([entry], name="allowed_hosts")


def test_ordinary_pages_are_fetched(site: WebSite) -> None:
    site.routes["/page?q=1"] = Page("hello")
    with Fetcher(Guard(resolver=resolving()), network=Redirected(site)) as fetcher:
        fetched = fetcher.fetch(PageRequest(url="HTTP://Example.COM.:80/a/../page?q=1#part"))

    assert (fetched.body, str(fetched.url)) == (b"hello", "http://example.com/page?q=1")
    assert site.visits[0].headers["Host"] == "example.com"
