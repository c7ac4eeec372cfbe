"""The languages of the interface: gettext catalogues, and dates and numbers as each language writes them."""

from __future__ import annotations

import gettext as standard_gettext
import io
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from babel import Locale, UnknownLocaleError, negotiate_locale
from babel.dates import format_datetime, format_timedelta
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_compact_decimal, format_currency, format_decimal, format_percent

if TYPE_CHECKING:
    from starlette.requests import Request

_CATALOGUES = Path(__file__).parent / "locale"
COOKIE = "recollect-language"
SOURCE = "en"
_MOST_HEADER = 500


def _(text: str) -> str:
    """Marks a text for the catalogues; who shows it translates it."""
    return text


@cache
def languages() -> tuple[str, ...]:
    """The languages that there are texts in; the first is the one they are written in."""
    return (SOURCE, *sorted(path.name for path in _CATALOGUES.iterdir() if path.is_dir()))


def language_of(request: Request) -> Language:
    """The language of a request: what was chosen, or what the browser asks for, or English."""
    chosen = request.cookies.get(COOKIE, "")
    if chosen in languages():
        return Language.named(chosen)
    asked = [
        part.partition(";")[0].strip().replace("-", "_")
        for part in request.headers.get("accept-language", "")[:_MOST_HEADER].split(",")
    ]
    try:
        found = negotiate_locale(asked, languages()) or SOURCE
    except (UnknownLocaleError, ValueError):
        found = SOURCE
    return Language.named(found)


@dataclass(frozen=True, slots=True)
class Language:
    """A language, with its texts.

    Attributes:
        code: As it stands in HTML, ``de``.
        locale: How it writes dates and numbers.
        texts: Its catalogue.
    """

    code: str
    locale: Locale
    texts: standard_gettext.NullTranslations

    @classmethod
    @cache
    def named(cls, code: str) -> Language:
        """The language of that name, which is one of `languages`."""
        return cls(code, Locale.parse(code), _catalogue(code))

    @property
    def name(self) -> str:
        """What it calls itself."""
        return self.locale.get_display_name() or self.code

    def gettext(self, text: str) -> str:
        """A text in this language."""
        return self.texts.gettext(text)

    def ngettext(self, one: str, many: str, count: int) -> str:
        """A text that depends on a number."""
        return self.texts.ngettext(one, many, count)

    def number(self, value: float) -> str:
        """A number as people write it."""
        return format_decimal(value, locale=self.locale)

    def short_number(self, value: float) -> str:
        """A large number in few characters: 12K."""
        return format_compact_decimal(value, locale=self.locale, fraction_digits=1)

    def percent(self, share: float, digits: int = 0) -> str:
        """A share of 1 as a percentage."""
        return format_percent(share, locale=self.locale, format=f"#,##0.{'0' * digits} %" if digits else None)

    def money(self, amount: float, currency: str = "USD") -> str:
        """An amount of money."""
        return format_currency(amount, currency, locale=self.locale)

    def bytes(self, count: float) -> str:
        """A size: 1.2 MB."""
        for unit in ("B", "kB", "MB", "GB"):
            if count < 1000:
                return f"{self.number(round(count, 1 if unit != 'B' else 0))} {unit}"
            count /= 1000
        return f"{self.number(round(count, 1))} TB"

    def moment(self, at: datetime | None, form: str = "medium") -> str:
        """A date with its time, in UTC; an empty text for none."""
        return "" if at is None else format_datetime(at, form, locale=self.locale)

    def day(self, at: datetime | None) -> str:
        """A date; an empty text for none."""
        return "" if at is None else format_datetime(at, "d MMM y", locale=self.locale)

    def ago(self, at: datetime | None) -> str:
        """How long ago that was, or how far ahead: 3 hours ago."""
        if at is None:
            return ""
        return format_timedelta(at - datetime.now(at.tzinfo), add_direction=True, locale=self.locale)


def _catalogue(code: str) -> standard_gettext.NullTranslations:
    """The texts of a language: all files of its folder, one an area, so that each stands with those who write it."""
    whole = Catalog(locale=code)
    for path in sorted((_CATALOGUES / code).glob("*.po")):
        with path.open("rb") as file:
            for message in read_po(file, locale=code):
                if message.id:
                    whole[message.id] = message
    if not len(whole):
        return standard_gettext.NullTranslations()
    compiled = io.BytesIO()
    write_mo(compiled, whole)
    compiled.seek(0)
    return standard_gettext.GNUTranslations(compiled)
