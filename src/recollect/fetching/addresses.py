"""Which network addresses belong to the web, and which to the machine, its network or nobody."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

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
