"""The reference of the library says what its docstrings say. Run as a program, this writes it anew."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import textwrap
from pathlib import Path
from typing import Any

import recollect
import recollect.errors
import recollect.pipeline
from recollect.pipeline.standpoint import Group
from recollect.pipeline.view import Groups

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/python.md"
HEAD = """# Python reference

Generated from the docstrings: every public name of `recollect`, the groups of methods that a `View` has, and values
that live elsewhere, with what they take, give and raise. The [quickstart](../quickstart.md) and
[views](../how-to/views.md) show how they are used together; settings stand in the
[configuration reference](configuration.md).
"""
#: What programs that do more than most give or get, by the module that it is imported from.
ELSEWHERE = {
    "recollect.context": ("RetrievalWeights",),
    "recollect.model": ("Chunk", "Scope"),
    "recollect.model.contents": (
        *("DocumentEntry", "DocumentOutline", "DocumentPart", "ExactMatch", "GrepReply", "MatchedDocument"),
    ),
    "recollect.model.document_session": ("DocumentSession", "SessionConfig"),
    "recollect.model.facts": ("ConsolidationReport", "Fact", "RecalledFact"),
    "recollect.model.memory": ("Recollection",),
    "recollect.model.tenant": ("TenantQuota",),
    "recollect.tools": ("Parameter", "Tool", "ToolResult", "Toolbox"),
}
SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises", "Example")
_WIDTH = 100


def reference() -> str:
    parts = [HEAD]
    for name in recollect.__all__:
        value = getattr(recollect, name)
        if not (inspect.isclass(value) and issubclass(value, Exception)):
            parts.append(_described(name, value, level=2))
    parts += [_described(f"View.{name}", group, level=2, made=False) for name, group in groups().items()]
    for module, names in ELSEWHERE.items():
        parts.append(f"## From `{module}`\n")
        parts += [_described(name, getattr(importlib.import_module(module), name), level=3) for name in names]
    parts.append("## Errors\n\nFrom `recollect.errors`; catching `RecollectError` catches all of them.\n")
    for value in _errors(recollect.errors.RecollectError):
        above = value.__mro__[1].__name__
        inherits = "" if value is recollect.errors.RecollectError else f"*A `{above}`.*\n\n"
        parts.append(f"### {value.__name__}\n\n{inherits}{_prose(value.__doc__ or '')}\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def groups() -> dict[str, type]:
    """The groups of methods of a view, by the name of the property."""
    for module in pkgutil.iter_modules(recollect.pipeline.__path__, "recollect.pipeline."):
        importlib.import_module(module.name)
    kinds = {kind.__name__: kind for kind in Group.__subclasses__()}
    return {name: kinds[kind] for name, kind in sorted(inspect.get_annotations(Groups).items())}


def _errors(root: type[Exception]) -> list[type[Exception]]:
    return [root, *(inner for child in root.__subclasses__() for inner in _errors(child) if _ours(inner))]


def _ours(value: type) -> bool:
    return value.__module__ == "recollect.errors"


def members(value: type) -> list[tuple[str, Any]]:
    """The public methods and properties of a class of ours, by name; what it has from one on this page stands there."""
    found: dict[str, Any] = {}
    elsewhere = {getattr(recollect, name) for name in recollect.__all__} - {value}
    for owner in reversed([one for one in value.__mro__ if one.__module__.startswith("recollect")]):
        if owner in elsewhere:
            continue
        for name, member in vars(owner).items():
            if name.startswith("_") or name == "model_config":
                continue
            plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if inspect.isfunction(plain) or isinstance(plain, property):
                found[name] = member
    return sorted(found.items())


def _described(name: str, value: Any, *, level: int, made: bool = True) -> str:
    heading = "#" * level
    if not inspect.isclass(value):
        return f"{heading} {name}\n\n{_code(name, value)}\n\n{_prose(inspect.getdoc(value) or '')}\n"
    code = f"{_code(name, value)}\n\n" if made else ""
    text = f"{heading} {name}\n\n{code}{_prose(value.__doc__ or '')}\n"
    for inner, member in members(value):
        if value is recollect.View and inner in groups():  # each has a chapter of its own
            continue
        text += f"\n{heading}# {name}.{inner}\n\n"
        if isinstance(member, property):
            text += f"*A property.* {_prose(inspect.getdoc(member) or '')}\n"
            continue
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        bound = not isinstance(member, staticmethod)
        text += f"{_code(inner, function, bound=bound)}\n\n{_prose(inspect.getdoc(function) or '')}\n"
    return text


def _code(name: str, value: Any, *, bound: bool = False) -> str:
    signature = inspect.signature(value)
    parameters = list(signature.parameters.values())[1 if bound else 0 :]
    parameters = [one for one in parameters if not one.name.startswith("_")]
    shown, star = [], False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not star:
            shown.append("*")
        star = star or one.kind in {one.KEYWORD_ONLY, one.VAR_POSITIONAL}
        shown.append(_parameter(one))
    returned = (
        ""
        if signature.return_annotation in {inspect.Signature.empty, None, "None"}
        else (f" -> {_annotation(signature.return_annotation)}")
    )
    line = f"{name}({', '.join(shown)}){returned}"
    if len(line) > _WIDTH:
        line = f"{name}(\n" + "".join(f"    {one},\n" for one in shown) + f"){returned}"
    return f"```python\n{line}\n```"


def _parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    text = stars + one.name
    if one.annotation is not one.empty:
        text += f": {_annotation(one.annotation)}"
    if one.default is not one.empty:
        default = repr(one.default)
        text += f" = {'…' if default.startswith('<') else default}"
    return text


def _annotation(given: Any) -> str:
    text = given if isinstance(given, str) else inspect.formatannotation(given)
    text = re.sub(r"\b(?:typing|datetime|pathlib|collections\.abc|recollect(?:\.\w+)*)\.", "", text)
    return re.sub(r"^Public(?:IfKnown)?\[(.*)\]$", r"\1", text)  # what JSON shows is no type


def _prose(docstring: str) -> str:
    """A docstring of Google's style as Markdown."""
    blocks: list[str] = []
    section, body = None, []

    def close() -> None:
        text = textwrap.dedent("\n".join(body)).strip("\n")
        if text and section is None:
            blocks.append(_literal_blocks(text))
        elif text and section == "Example":
            blocks.append(f"```python\n{text}\n```")
        elif text:
            entries = _entries(text) if section in {"Args", "Attributes", "Raises"} else " ".join(text.split())
            blocks.append(f"**{section}**{chr(10) * 2 if entries.startswith('- ') else ' '}{entries}")
        body.clear()

    for line in inspect.cleandoc(docstring).splitlines():
        match = re.fullmatch(r"(\w+):", line)
        if match and match[1] in SECTIONS:
            close()
            section = match[1]
        elif section and line and not line.startswith(" "):
            close()
            section = None
            body.append(line)
        else:
            body.append(line)
    close()
    return "\n\n".join(_ticks(block) for block in blocks)


def _entries(text: str) -> str:
    """``name: what it is`` lines, continued by indented ones, as a list."""
    items: list[str] = []
    for line in text.splitlines():
        if line.startswith(" ") and items:
            items[-1] += " " + line.strip()
        elif line.strip():
            items.append(line.strip())
    return "\n".join("- " + re.sub(r"^(\*{0,2})([\w.]+):", r"`\1\2`:", item) for item in items)


def _literal_blocks(text: str) -> str:
    """``::`` and an indented block behind it, as Sphinx writes code, in Markdown."""
    return re.sub(
        r"::\n\n((?:    .*\n?|\n)+)",
        lambda match: f":\n\n```python\n{textwrap.dedent(match[1]).rstrip()}\n```\n\n",
        text,
    )


def _ticks(block: str) -> str:
    return block if block.startswith("```") else block.replace("``", "`")


def test_the_reference_is_what_the_docstrings_say():
    assert PAGE.read_text(encoding="utf-8") == reference(), f"run: python tests/conventions/{Path(__file__).name}"


def test_every_public_name_and_member_is_explained():
    for name in recollect.__all__:
        value = getattr(recollect, name)
        assert inspect.getdoc(value), name
        for inner, member in members(value) if inspect.isclass(value) else ():
            assert inspect.getdoc(member), f"{name}.{inner}"
    assert len(groups()) == 17
    for name, group in groups().items():
        for inner, member in members(group):
            assert inspect.getdoc(member), f"View.{name}.{inner}"


def test_every_public_name_and_error_has_its_heading():
    headings = re.findall(r"^#+ (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(recollect.__all__) <= set(headings)
    assert {one.__name__ for one in _errors(recollect.errors.RecollectError)} <= set(headings)
    assert len(headings) == len(set(headings))


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(reference(), encoding="utf-8")
