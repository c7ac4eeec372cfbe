"""URLs taken apart once, strictly: what is checked is what is sent, and no second parser reads it differently."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote, unquote, urljoin

from recollect.errors import FetchError

#: Bytes of a URL at most: longer ones are refused by most servers, and by the index of documents.
MAX_URL_BYTES = 2_000
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
# White space and control characters have no place in a URL; browsers drop some of them, so a check and a request may
# come to different hosts. Browsers read a backslash as a slash, others as a part of the host.
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\]")
_HOST = re.compile(
    r"(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$"
)
_NUMERIC_LABEL = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)$")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SAFE_IN_PATH = "/:@!$&'()*+,;=-._~%"
_SAFE_IN_QUERY = _SAFE_IN_PATH + "?"


@dataclass(frozen=True, slots=True)
class WebUrl:
    """A URL in its normal form: two that mean the same are equal.

    Attributes:
        scheme: ``http`` or ``https``.
        host: In lower case; a name in ASCII, an address in its canonical notation.
        port: The one that is connected to.
        path: Begins with a slash; percent-encoded.
        query: Percent-encoded, without its question mark; None where there is none.
        address: The host as an address, where it is one.
    """

    scheme: str
    host: str
    port: int
    path: str
    query: str | None
    address: IPv4Address | IPv6Address | None = None

    @property
    def authority(self) -> str:
        """Host and port, the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """What cookies, credentials and politeness go by."""
        return self.scheme, self.host, self.port

    @property
    def target(self) -> str:
        """What the request line says."""
        return self.path if self.query is None else f"{self.path}?{self.query}"

    def at(self, path: str) -> WebUrl:
        """Another path on the same server, without a query."""
        return replace(self, path=path, query=None)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_url(text: str) -> WebUrl:
    """Takes a URL apart; its fragment is dropped.

    Raises:
        FetchError: It is none of the web's, or is written so that readers may differ about what it means. The message
            does not repeat a password.
    """
    given = text.strip(" \t\r\n")
    if not given or len(given.encode("utf-8", "surrogatepass")) > MAX_URL_BYTES:
        raise refused(given, "is no URL" if not given else f"is longer than {MAX_URL_BYTES:,} bytes")
    if _FORBIDDEN.search(given):
        raise refused(given, "has white space, a control character or a backslash in it")
    scheme = _SCHEME.match(given)
    if scheme is None or scheme[1].lower() not in _DEFAULT_PORTS:
        raise refused(given, "only http:// and https:// addresses are fetched")
    rest = given[scheme.end() :].partition("#")[0]
    if not rest.startswith("//"):
        raise refused(given, "lacks the two slashes behind its scheme")
    authority, path, query = _split(rest[2:])
    if "@" in authority:
        raise refused(given, "carries a user name or password; send credentials as a header")
    name, port = _host_and_port(given, authority, _DEFAULT_PORTS[scheme[1].lower()])
    host, address = _host(given, name)
    try:
        return WebUrl(
            scheme=scheme[1].lower(),
            host=host,
            port=port,
            path=_normal_path(path),
            query=None if query is None else _normal(query, _SAFE_IN_QUERY),
            address=address,
        )
    except UnicodeEncodeError as error:
        raise refused(given, "has a character in it that is none of Unicode's") from error


def join_url(base: WebUrl, reference: str) -> WebUrl:
    """The URL that a link on a page means.

    Raises:
        FetchError: As `parse_url`.
    """
    given = reference.strip(" \t\r\n\f")
    if _FORBIDDEN.search(given):
        raise refused(given, "has white space, a control character or a backslash in it")
    # With a scheme it stands for itself; the library would read some of those as relative, browsers would not.
    if _SCHEME.match(given) or given.startswith("///"):
        return parse_url(given)
    try:
        return parse_url(urljoin(str(base), given))
    except ValueError as error:
        raise refused(given, "is no URL") from error


def refused(url: str, reason: str) -> FetchError:
    """The error of a URL that will never be fetched; credentials in it are not repeated."""
    shown = re.sub(r"//[^/?#]*@", "//…@", url)
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in shown)
    return FetchError(shown if len(shown) <= 200 else shown[:200] + "…", reason)


def _split(rest: str) -> tuple[str, str, str | None]:
    end = min((at for at in map(rest.find, "/?") if at >= 0), default=len(rest))
    path, mark, query = rest[end:].partition("?")
    return rest[:end], path, query if mark else None


def _host_and_port(url: str, authority: str, default: int) -> tuple[str, int]:
    name, colon, port = authority, "", ""
    if authority.startswith("["):
        name, bracket, behind = authority.partition("]")
        if not bracket or (behind and not behind.startswith(":")):
            raise refused(url, "has brackets in its host that do not match")
        name, colon, port = name + "]", behind[:1], behind[1:]
    elif ":" in authority:
        name, colon, port = authority.rpartition(":")
    if not port:
        return name, default
    if not (colon and port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65_536):
        raise refused(url, "has a port that is no number from 1 to 65535")
    return name, int(port)


def _host(url: str, name: str) -> tuple[str, IPv4Address | IPv6Address | None]:
    if name.startswith("["):
        try:
            address = IPv6Address(name[1:-1])
        except AddressValueError as error:
            raise refused(url, "has no IPv6 address in its brackets") from error
        if address.scope_id is not None:
            raise refused(url, "names a network interface beside its address")
        return str(address), address
    host = _ascii_name(url, name)
    if not _NUMERIC_LABEL.match(host.rpartition(".")[2]):
        return host, None
    # Names never end in a number. What does is an address, in decimal, octal, hexadecimal or short notation if not in
    # the usual one; systems differ in what they make of those.
    try:
        return host, IPv4Address(host)
    except AddressValueError as error:
        raise refused(url, "is an address in an unusual notation; write it as four decimal numbers") from error


def _ascii_name(url: str, name: str) -> str:
    """A name in ASCII, and as the network knows it: full-width letters and dots are what they look like."""
    if "%" in name:
        raise refused(url, "has percent signs in its host")
    host = name.lower()
    if not host.isascii():
        import idna

        try:
            # What is left of the name once look-alikes are mapped may be all ASCII; it is read like any other.
            mapped = unicodedata.normalize("NFKC", idna.uts46_remap(host, std3_rules=False, transitional=False))
            host = mapped if mapped.isascii() else idna.encode(mapped, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError) as error:
            raise refused(url, "has a host that is no name of the web") from error
    host = host.lower().removesuffix(".")
    if not _HOST.match(host):
        raise refused(url, "has a host that is no name of the web" if host else "has no host")
    return host


def _normal_path(path: str) -> str:
    segments: list[str] = []
    parts = _normal(path, _SAFE_IN_PATH).split("/")[1:] or [""]
    for part in parts:
        if part == "..":
            del segments[-1:]
        elif part != ".":
            segments.append(part)
    ends_open = parts[-1] in {".", ".."}
    return "/" + "/".join(segments) + ("/" if ends_open and segments else "")


def _normal(text: str, safe: str) -> str:
    """Percent-encoded where it must be, in capitals, and nowhere else."""

    def same(match: re.Match[str]) -> str:
        char = chr(int(match[1], 16))
        return char if char in _UNRESERVED else f"%{match[1].upper()}"

    # A percent sign that begins no escape stands for itself.
    text = re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", text)
    return _ESCAPE.sub(same, quote(text, safe=safe))


def last_name(url: WebUrl) -> str:
    """The last part of a URL's path that says something, decoded; the host where there is none."""
    parts = [part for part in url.path.split("/") if part]
    return unquote(parts[-1]) if parts else url.host
