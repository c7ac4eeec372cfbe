"""Templates: everything that they show is escaped, and a name that nobody gave is an error."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import BytecodeCache, Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket

from recollect.ui.assets import asset, imports
from recollect.ui.languages import Language, languages


class _Compiled(BytecodeCache):
    """What templates were compiled to, which is the same in every language."""

    def __init__(self) -> None:
        self._codes: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._codes:
            bucket.bytecode_from_string(self._codes[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key] = bucket.bytecode_to_string()


_COMPILED = _Compiled()


@cache
def _environment(code: str, base: str) -> Environment:
    language = Language.named(code)
    environment = Environment(
        loader=PackageLoader("recollect.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n", "jinja2.ext.loopcontrols"],
        auto_reload=False,
        cache_size=-1,
        bytecode_cache=_COMPILED,
    )
    environment.install_gettext_callables(language.gettext, language.ngettext, newstyle=True)  # type: ignore[attr-defined]
    environment.globals |= {"asset": asset, "imports": imports, "language": language, "base": base}
    environment.filters |= {
        "number": language.number,
        "short_number": language.short_number,
        "percent": language.percent,
        "money": language.money,
        "bytes": language.bytes,
        "moment": language.moment,
        "day": language.day,
        "ago": language.ago,
    }
    return environment


def rendered(template: str, language: Language, context: Mapping[str, Any], *, base: str = "") -> str:
    """A template with what it shows.

    Args:
        template: Its path below ``templates``.
        language: The texts' language.
        context: What it shows.
        base: What paths of this server begin with: nothing, or what a proxy puts before them.
    """
    return _environment(language.code, base).get_template(template).render(context)


def compile_all() -> None:
    """Compile every template, so that nobody who visits waits for that."""
    for code in languages():
        environment = _environment(code, "")
        for name in environment.list_templates():
            environment.get_template(name)
