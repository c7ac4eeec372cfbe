"""The protocols that await are made of those that wait: ``python tests/conventions/test_awaited_operations.py``."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/recollect/operations"
WRITTEN = SOURCE / "awaited.py"


def awaited(source: str) -> tuple[list[str], list[str]]:
    """The imports and classes of a module of operations, awaited."""
    tree = ast.parse(source)
    imports = [ast.unparse(one) for one in tree.body if isinstance(one, ast.ImportFrom) and one.module != "__future__"]
    classes = [one for one in tree.body if isinstance(one, ast.ClassDef) and one.name.endswith("Operations")]
    return imports, [ast.unparse(ast.fix_missing_locations(twin(one))) for one in classes]


def twin(group: ast.ClassDef) -> ast.ClassDef:
    """The awaited twin of a protocol."""
    body: list[ast.stmt] = [said(f"{ast.get_docstring(group)} Awaited.")]
    for method in group.body:
        if not isinstance(method, ast.FunctionDef):
            continue
        assert method.returns is not None
        summary = said((ast.get_docstring(method) or "").partition("\n")[0])
        if method.decorator_list:
            head = {"name": method.name, "args": method.args, "returns": method.returns, "decorator_list": []}
            body.append(ast.AsyncFunctionDef(body=[summary, ast.Expr(ast.Constant(...))], **head))
        else:
            text = ast.unparse(method).replace("Iterator[", "AsyncGenerator[").replace("every(", "every_awaited(")
            body += ast.parse(text).body
    declared = ast.parse(f"awaiting({group.name})", mode="eval").body
    return ast.ClassDef(f"Async{group.name}", [ast.Name("Protocol")], [], body, [declared])


def said(text: str) -> ast.Expr:
    """A docstring."""
    return ast.Expr(ast.Constant(text))


def module() -> str:
    """The module as it is to be."""
    imports, classes = {"from recollect.operations.declaring import awaiting"}, []
    for path in sorted(SOURCE.glob("*.py")):
        if path.name in {"__init__.py", "declaring.py", "values.py", WRITTEN.name}:
            continue
        told, made = awaited(path.read_text("utf-8"))
        names = [one.name for one in ast.parse(path.read_text("utf-8")).body if isinstance(one, ast.ClassDef)]
        groups = ", ".join(name for name in names if name.endswith("Operations"))
        imports |= {one.replace("Iterator", "AsyncGenerator").replace("every", "every_awaited") for one in told}
        imports.add(f"from recollect.operations.{path.stem} import {groups}")
        classes += made
    text = "\n\n".join(
        [
            '"""Operations as coroutines; written by ``tests/conventions/test_awaited_operations.py``."""',
            "from __future__ import annotations",
            "\n".join(sorted(imports)),
            *classes,
        ]
    )
    return formatted(text)


def formatted(text: str) -> str:
    """As ruff writes it, without what is not used."""
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--fix-only", "--quiet"], ["format", "--quiet"]):
        done = subprocess.run(
            [*ruff, *command, "--stdin-filename", str(WRITTEN), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = done.stdout
    return text


def test_awaited_operations_are_those_that_wait():
    assert WRITTEN.read_text("utf-8") == module(), f"write them anew: python {Path(__file__).name}"


if __name__ == "__main__":
    WRITTEN.write_text(module(), "utf-8")
