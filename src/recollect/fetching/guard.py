"""What may be contacted: decided for every request, every redirect and every connection, by one object.

A check that comes before the use is worth nothing if the name means something else by then. So names are resolved once,
in `Guard.addresses`, every address is looked at, and connections go to those addresses (`_connections`), while the Host
header, SNI and the certificate are the name's.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from recollect.errors import AddressRefusedError, FetchError, UsageError
from recollect.fetching.urls import WebUrl, parse_url

# Which network addresses belong to the web, and which to the machine, its network or nobody.


Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# The registries of special-purpose addresses (RFC 6890 and its successors), written out: `ipaddress.is_global` says
# different things in different releases of Python.
#: Somebody's own network, or this machine. Contacted where `allow_private_addresses` says so.
_PRIVATE: dict[str, tuple[Network, ...]] = {
    "a loopback address": (ip_network("127.0.0.0/8"), ip_network("::1/128")),
    "a private address": tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"))),
    "a carrier's private address": (ip_network("100.64.0.0/10"),),
}
#: Never contacted: what answers there is no web server, or hands out the machine's own credentials.
_NEVER: dict[str, tuple[Network, ...]] = {
    "a cloud's metadata service": tuple(
        map(
            ip_network,
            ("169.254.169.254/32", "169.254.170.2/32", "fd00:ec2::/32", "100.100.100.200/32", "192.0.0.192/32",
             "168.63.129.16/32", "fd20:ce::254/128"),
        )
    ),
    "a link-local address": (ip_network("169.254.0.0/16"), ip_network("fe80::/10"), ip_network("fec0::/10")),
    "the unspecified address": (ip_network("0.0.0.0/8"), ip_network("::/128")),
    "a multicast address": (ip_network("224.0.0.0/4"), ip_network("ff00::/8")),
    "a broadcast or reserved address": tuple(
        map(
            ip_network,
            ("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24",
             "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
             "::/8", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "2002::/16",
             "3fff::/20", "5f00::/16", "2620:4f:8000::/48"),
        )
    ),
}  # fmt: skip
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")


def refusal(address: Address, *, allow_private: bool = False) -> str | None:
    """Why an address is not contacted, in words; None where it may be.

    IPv6 addresses that carry an IPv4 address within them (mapped, NAT64) are judged by that one. Other ways of writing
    one into the other (compatible, 6to4, Teredo) are not used by the web any more and never contacted.
    """
    carried = _carried(address)
    if carried is not None:
        return refusal(carried, allow_private=allow_private)
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "an address of one network interface"
    for label, networks in _NEVER.items():
        if label == "a broadcast or reserved address":
            continue
        if _within(address, networks):
            return label
    for label, networks in _PRIVATE.items():
        if _within(address, networks):
            return None if allow_private else label
    if _within(address, _NEVER["a broadcast or reserved address"]):
        return "a broadcast or reserved address"
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return "an address outside the public network"
    return None


def is_private(address: Address) -> bool:
    """Whether an address is somebody's own network or this machine."""
    return refusal(address) is not None and refusal(address, allow_private=True) is None


def _carried(address: Address) -> IPv4Address | None:
    if isinstance(address, IPv6Address) and (address in _MAPPED or address in _NAT64):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def _within(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(network.version == address.version and address in network for network in networks)


#: Gives every address of a name; a test's says what it likes. OSError: it has none, or nobody knows.
Resolver = Callable[[str], Sequence[str]]

#: Where the public web answers. Other ports are other services', which a page must not make this machine talk to.
WEB_PORTS = (80, 443, 8080, 8443)
# Names that mean this machine wherever they are resolved (RFC 6761), without asking.
_LOCAL_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")


def resolve(host: str) -> list[str]:
    """Every address of a name, as the system knows them."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, slots=True)
class HostRule:
    """One entry of a list of hosts: a name with the names below it, an address, a network, each perhaps with a port."""

    name: str = ""
    network: Network | None = None
    port: int | None = None

    def meets_name(self, url: WebUrl) -> bool:
        """Whether a URL's host is the name or one below it."""
        return bool(self.name) and self._meets_port(url.port) and f".{url.host}".endswith(f".{self.name}")

    def meets_address(self, address: Address, port: int) -> bool:
        """Whether an address is in the network."""
        network = self.network
        return (
            network is not None and self._meets_port(port) and network.version == address.version and address in network
        )

    def _meets_port(self, port: int) -> bool:
        return self.port in {None, port}


def host_rules(entries: Sequence[str], *, name: str = "hosts") -> tuple[HostRule, ...]:
    """Reads a list of hosts: ``example.com`` (with every name below it), ``example.com:8000``, ``10.1.0.0/16``.

    Raises:
        UsageError: An entry is neither a name, nor an address, nor a network.
    """
    return tuple(_rule(entry.strip().lower().removeprefix("*.").removeprefix("."), name) for entry in entries)


def _rule(entry: str, name: str) -> HostRule:
    try:
        return HostRule(network=ip_network(entry.strip("[]"), strict=False))
    except ValueError:
        pass
    try:
        url = parse_url(f"https://{entry}")
    except FetchError as error:
        raise UsageError(
            f"{name}: {entry!r} is neither a host, nor an address, nor a network ({error.reason})."
        ) from error
    if url.target != "/":
        raise UsageError(f"{name}: {entry!r} is no host: leave out what stands behind it.")
    port = url.port if entry.rpartition("]")[2].rpartition(":")[1] else None
    if url.address is not None:
        return HostRule(network=ip_network(str(url.address)), port=port)
    return HostRule(name=url.host, port=port)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Decides what may be contacted. Safe to share between threads.

    Attributes:
        allow_private_addresses: Whether loopback and private networks may be, on any port. Link-local addresses, with
            clouds' metadata services, and reserved ones never may.
        allowed_hosts: Where there are any, nothing else may be. A port named here is allowed too.
        denied_hosts: Never, whatever else is said.
        ports: Those of public addresses.
        resolver: Gives the addresses of a name.
    """

    allow_private_addresses: bool = False
    allowed_hosts: tuple[HostRule, ...] = ()
    denied_hosts: tuple[HostRule, ...] = ()
    ports: tuple[int, ...] = WEB_PORTS
    resolver: Resolver = field(default=resolve, repr=False)

    def check(self, url: WebUrl) -> None:
        """Refuse a URL for what can be seen of it without asking anybody.

        Raises:
            AddressRefusedError: It may not be contacted.
        """
        if any(rule.meets_name(url) for rule in self.denied_hosts):
            raise AddressRefusedError(str(url), "its host is among denied_hosts")
        if url.address is not None:
            self._check_address(url, url.address)
        elif not self.allow_private_addresses and _is_local_name(url.host):
            raise AddressRefusedError(str(url), "its name means this machine" + _REMEDY)
        elif self.allowed_hosts and not any(rule.meets_name(url) or rule.network for rule in self.allowed_hosts):
            raise AddressRefusedError(str(url), _NOT_ALLOWED)
        elif not self.allow_private_addresses and not self._port_allowed(url):
            raise AddressRefusedError(str(url), self._wrong_port(url))

    def addresses(self, url: WebUrl, *, timeout_seconds: float) -> list[str]:
        """The addresses to connect to, every one of them checked; the caller connects to no other.

        Raises:
            AddressRefusedError: One of them may not be contacted: then none is.
            FetchError: There is none.
        """
        self.check(url)
        if url.address is not None:
            return [str(url.address)]
        found = self._resolved(url, timeout_seconds)
        if not found:
            raise FetchError(str(url), "its host has no address")
        for text in found:
            try:
                address = ip_address(text)
            except ValueError as error:
                raise AddressRefusedError(str(url), f"its host resolves to {text!r}, which is no address") from error
            self._check_address(url, address)
        return list(found)

    def _resolved(self, url: WebUrl, timeout_seconds: float) -> Sequence[str]:
        # The system's resolver knows no limit of time; a thread that nobody waits for any more ends by itself.
        answer: list[Sequence[str] | OSError] = []

        def ask() -> None:
            try:
                answer.append(self.resolver(url.host))
            except UnicodeError:
                answer.append(socket.gaierror(socket.EAI_NONAME, "no name"))
            except OSError as error:
                answer.append(error)

        if self.resolver is not resolve:
            ask()
        else:
            thread = threading.Thread(target=ask, name="recollect-resolve", daemon=True)
            thread.start()
            thread.join(timeout_seconds)
        if not answer:
            raise FetchError(str(url), "its host's name was not resolved in time", retryable=True)
        if isinstance(answer[0], OSError):
            unknown = getattr(answer[0], "errno", None) in {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", None)}
            reason = "there is no host of its name" if unknown else "its host's name cannot be resolved now"
            raise FetchError(str(url), reason, retryable=not unknown) from answer[0]
        return answer[0]

    def _check_address(self, url: WebUrl, address: Address) -> None:
        if any(rule.meets_address(address, url.port) for rule in self.denied_hosts):
            raise AddressRefusedError(str(url), "its address is among denied_hosts")
        reason = refusal(address, allow_private=self.allow_private_addresses)
        if reason is not None:
            remedy = _REMEDY if is_private(address) else ""
            meaning = "it is" if url.address is not None else f"its host resolves to {address},"
            raise AddressRefusedError(str(url), f"{meaning} {reason}{remedy}")
        by_address = any(rule.meets_address(address, url.port) for rule in self.allowed_hosts)
        if self.allowed_hosts and not by_address and not any(rule.meets_name(url) for rule in self.allowed_hosts):
            raise AddressRefusedError(str(url), _NOT_ALLOWED)
        if not is_private(address) and not by_address and not self._port_allowed(url):
            raise AddressRefusedError(str(url), self._wrong_port(url))

    def _port_allowed(self, url: WebUrl) -> bool:
        named = any(rule.port == url.port and rule.meets_name(url) for rule in self.allowed_hosts)
        return named or url.port in self.ports

    def _wrong_port(self, url: WebUrl) -> str:
        allowed = ", ".join(map(str, self.ports))
        return f"port {url.port} is none of the web's ({allowed}); to allow it, name {url.authority} in allowed_hosts"


_NOT_ALLOWED = "its host is not among allowed_hosts"
_REMEDY = "; to fetch from one's own network set allow_private_addresses in [rag.sources]"


def _is_local_name(host: str) -> bool:
    return host in _LOCAL_NAMES or host.endswith(".localhost")
