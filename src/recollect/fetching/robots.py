"""What sites ask of programs that visit them (RFC 9309), asked once a site."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.errors import AddressRefusedError, FetchError
from recollect.fetching.client import Fetcher, PageRequest

if TYPE_CHECKING:
    from recollect.fetching.urls import WebUrl

_MAX_BYTES = 4 << 20
# What a program must read at least; the rest of a longer file is left.
_READ_BYTES = 512_000
_KEPT_SECONDS = 24 * 3600.0
_KEPT_SITES = 1_000
_LONGEST_DELAY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SiteRules:
    """A site's rules for one program.

    Attributes:
        delay_seconds: Between two requests, as the site asks; 0: it does not say.
        sitemaps: Addresses of its sitemaps, as they stand there.
    """

    delay_seconds: float = 0.0
    sitemaps: tuple[str, ...] = ()
    _parsed: Any = None
    _agent: str = ""
    _nothing: bool = False

    def allows(self, url: WebUrl) -> bool:
        """Whether the page may be visited."""
        if self._nothing:
            return False
        return self._parsed is None or bool(self._parsed.can_fetch(str(url), self._agent))


#: Of a site that cannot say what it allows now: nothing may be visited until it can.
NOTHING = SiteRules(_nothing=True)


class Robots:
    """The rules of sites, kept for a day. Safe to share between threads.

    Args:
        fetcher: Fetches them, as whom it says.
        clock: Seconds that never run back.
    """

    def __init__(self, fetcher: Fetcher, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, int], tuple[float, SiteRules]] = OrderedDict()

    def rules(self, url: WebUrl) -> SiteRules:
        """The rules of a page's site."""
        with self._lock:
            kept = self._kept.get(url.origin)
        if kept is not None and self._clock() - kept[0] < _KEPT_SECONDS:
            return kept[1]
        rules = self._asked(url)
        if rules is not NOTHING:
            with self._lock:
                self._kept[url.origin] = (self._clock(), rules)
                while len(self._kept) > _KEPT_SITES:
                    self._kept.popitem(last=False)
        return rules

    def _asked(self, url: WebUrl) -> SiteRules:
        try:
            fetched = self._fetcher.fetch(PageRequest(url=str(url.at("/robots.txt"))), max_bytes=_MAX_BYTES)
        except AddressRefusedError:
            return SiteRules()  # it leads nowhere that may be asked; pages are checked one by one anyway
        except FetchError as error:
            # Without the file everything is allowed; without an answer, nothing.
            return NOTHING if error.retryable else SiteRules()
        return read_rules(fetched.body, self._fetcher.user_agent)


def read_rules(data: bytes, user_agent: str) -> SiteRules:
    """The rules that a ``robots.txt`` has for a program."""
    from protego import Protego

    parsed = Protego.parse(data[:_READ_BYTES].decode("utf-8-sig", "replace"))
    agent = user_agent.partition("/")[0].split(" ")[0] or user_agent
    rate = parsed.request_rate(agent)
    delay = float(parsed.crawl_delay(agent) or 0.0)
    if rate is not None and rate.requests:
        delay = max(delay, rate.seconds / rate.requests)
    return SiteRules(min(max(delay, 0.0), _LONGEST_DELAY_SECONDS), tuple(parsed.sitemaps), parsed, agent)
