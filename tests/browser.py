"""A real Chromium, and what every page is held to: no error, nothing refused by its policy, usable by all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT, AxeResults
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
#: Set it to a folder, and every picture that a test takes stays there.
PICTURES = os.environ.get("TEST_PICTURES")
# What the guidelines ask for; what axe calls best practice is more than that, and is not asked.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
OF_COLOURS = ["color-contrast", "link-in-text-block"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser for the tests of pages: its driver keeps an event loop running, which other tests must not meet."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here (Debian: chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visitor:
    """Somebody with a browser of their own."""

    context: BrowserContext
    url: str
    #: What went wrong unnoticed: uncaught errors, refused scripts, files that are missing.
    complaints: list[str] = field(default_factory=list)
    #: Statuses that a test brings about on purpose.
    expected: set[int] = field(default_factory=set)

    def open(self, path: str = "/", **options) -> Page:
        """A page in a new tab."""
        page = self.context.new_page()
        self.watch(page)
        page.goto(self.url + path, **options)
        return page

    def watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", lambda message: message.type == "error" and self._note(message.text))
        page.on("response", lambda reply: reply.status >= 400 and self._failed(reply.status, reply.url))

    def _note(self, text: str) -> None:
        # Both are told with their URL by `_failed`.
        if not text.startswith(("Failed to load resource", "Response Status Error Code")):
            self.complaints.append(text)

    def _failed(self, status: int, url: str) -> None:
        if status not in self.expected:
            self.complaints.append(f"{status} {url}")


@contextmanager
def visitor(browser: Browser, url: str, **options) -> Iterator[Visitor]:
    """A visitor; at the end nothing may have gone wrong unnoticed."""
    usual = {"locale": "en-GB", "viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"}
    context = browser.new_context(**{**usual, **options})
    # A busy machine takes its time; nothing here is timed.
    context.set_default_timeout(60_000)
    one = Visitor(context, url)
    try:
        yield one
        assert one.complaints == []
    finally:
        context.close()


def require_usable_by_all(page: Page, *, in_both_themes: bool = False) -> None:
    """Holds a page to WCAG 2.2 AA as far as a program can tell.

    Args:
        page: Of a visitor.
        in_both_themes: In the other colours too, where only what depends on colours is looked at again.
    """
    _require_no_violation(page, {"type": "tag", "values": RULES})
    if in_both_themes:
        is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        page.emulate_media(color_scheme="light" if is_dark else "dark")
        require_readable_colours(page)
        page.emulate_media(color_scheme="dark" if is_dark else "light")


def require_readable_colours(page: Page) -> None:
    """Holds a page that was looked at in another theme to what depends on colours."""
    _require_no_violation(page, {"type": "rule", "values": OF_COLOURS})


def _require_no_violation(page: Page, rules: dict) -> None:
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(AXE_SCRIPT)
    # Of what is as it should be nothing is written down.
    results = AxeResults(
        page.evaluate("(options) => axe.run(options)", {"runOnly": rules, "resultTypes": ["violations"]})
    )
    assert results.violations_count == 0, results.generate_report()


def picture(page: Page, name: str, *, full: bool = False) -> None:
    """Keeps a picture of a page, where pictures are wanted."""
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=full)
