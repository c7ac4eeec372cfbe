"""Conventions of the code that no linter knows."""

from __future__ import annotations

import ast
import graphlib
import hashlib
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path

import grimp
import pytest

import recollect
import recollect.store

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "recollect"
MODULES = sorted(PACKAGE.rglob("*.py"))

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
# Longer ones, each with its reason.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}

HEAVY = ("onnx", "onnxruntime", "kreuzberg", "scipy", "ir_measures", "openai", "safetensors", "tokenizers", "psycopg")

# Writes, and reads that have no tenant: everything else in a repository takes a scope first.
UNSCOPED: set[str] = set()


def test_the_packages_public_names_are_sorted_and_exactly_what_is_visible():
    visible = {
        name
        for name, value in vars(recollect).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert set(recollect.__all__) == visible
    assert recollect.__all__ == sorted(recollect.__all__)


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.name == "__init__.py" and path.parent.name != "sql"],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_packages_hold_no_logic(path: Path):
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        allowed = ast.Import | ast.ImportFrom | ast.Expr | ast.Assign
        assert isinstance(statement, allowed), f"{path}:{statement.lineno}"


def test_files_are_short():
    long = {
        str(path.relative_to(PACKAGE)): count
        for path in MODULES
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > MAX_FILE_LINES
    }
    assert set(long) == set(LONG_FILES), long


def test_functions_are_short():
    long = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = _length_without_docstring(node)
                if length > MAX_FUNCTION_LINES:
                    long[f"{path.relative_to(PACKAGE)}:{node.name}"] = length
    assert set(long) == set(LONG_FUNCTIONS), long


def _length_without_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno - first.lineno + 1) if documented else 0
    return node.end_lineno - node.lineno + 1 - docstring


def _repositories() -> list[type]:
    found = []
    for info in pkgutil.iter_modules(recollect.store.__path__):
        module = importlib.import_module(f"recollect.store.{info.name}")
        found += [
            value
            for name, value in vars(module).items()
            if inspect.isclass(value)
            and value.__module__ == module.__name__
            and name.endswith(("Repository", "Writer"))
        ]
    return found


def test_every_method_of_a_repository_takes_a_scope_first():
    repositories = _repositories()
    assert len(repositories) >= 5, repositories
    without = []
    for repository in repositories:
        # A repository that is made for one scope asks for it once.
        if "scope" in inspect.signature(repository).parameters:
            continue
        for name, method in vars(repository).items():
            if name.startswith("_") or not inspect.isfunction(method):
                continue
            first = list(inspect.signature(method).parameters.values())[1]
            required = first.default is inspect.Parameter.empty
            if (first.name, first.annotation, required) != ("scope", "Scope", True):
                without.append(f"{repository.__name__}.{name}")
    assert set(without) == UNSCOPED


@pytest.mark.parametrize("module", ["recollect", "recollect.cli.main"])
def test_importing_stays_light(module: str):
    code = f"import sys, {module}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_migrations_are_numbered_without_gaps():
    names = [path.name for path in sorted((PACKAGE / "store/sql/migrations").iterdir()) if path.suffix == ".sql"]
    assert names
    for number, name in enumerate(names, start=1):
        assert re.fullmatch(rf"{number:04}_[a-z0-9_]+\.sql", name), name


def test_migrations_are_frozen():
    """A migration that someone has applied must never change: write a new one in its place, and add its sum.

    Until the first release the baseline may change and its sum be renewed: ``sha256sum *.sql`` in the folder of the
    migrations, into the file ``frozen.txt`` beside this one.
    """
    folder = PACKAGE / "store/sql/migrations"
    frozen = dict(
        reversed(line.split(maxsplit=1)) for line in (Path(__file__).parent / "frozen.txt").read_text().splitlines()
    )
    actual = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.sql")}
    assert actual == frozen


def test_imports_point_down_only():
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([str(program)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_two_modules_import_each_other():
    """Not even for their types, nor by way of others: whoever changes one would have to know them all."""
    imports = grimp.build_graph("recollect", exclude_type_checking_imports=False)
    below = {module: imports.find_modules_directly_imported_by(module) for module in imports.modules}
    # Raises CycleError, which names the modules of a circle.
    graphlib.TopologicalSorter(below).prepare()


def test_names_of_test_files_differ():
    """Files without a package around them are imported by their bare name: two of one name would hide each other."""
    bare = [path.name for path in (ROOT / "tests").rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    assert sorted(bare) == sorted(set(bare))
