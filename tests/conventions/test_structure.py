"""Conventions of the code that no linter knows."""

from __future__ import annotations

import ast
import graphlib
import hashlib
import importlib
import inspect
import io
import os
import pkgutil
import re
import subprocess
import sys
import tokenize
import types
from collections.abc import Iterable
from pathlib import Path

import grimp
import pytest

import recollect
import recollect.store

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "recollect"
MODULES = sorted(PACKAGE.rglob("*.py"))

#: Without docstrings, comments and blank lines.
MAX_CODE_LINES = 600
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
MAX_FUNCTION_LINES = 60
# Longer ones, each with its reason.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}

HEAVY = ("onnx", "onnxruntime", "kreuzberg", "scipy", "ir_measures", "safetensors", "tokenizers", "psycopg")
HEAVY += ("anthropic", "boto3", "cohere", "google.genai", "huggingface_hub", "ollama", "openai", "tenacity", "voyageai")

COMMANDS = [f"recollect.cli.{path.stem}" for path in (PACKAGE / "cli").glob("[a-z]*.py") if path.stem != "main"]
UNUSED_BY_VERSION = ("numpy", "pydantic", "rich", "asyncio", "psutil", "filelock")
#: A query from a cold process takes as long as its imports: what it does not need it must not import.
UNUSED_BY_QUERIES = (
    *("recollect.answer", "recollect.chunking", "recollect.context", "recollect.documents", "recollect.evaluation"),
    *("recollect.ingest", "recollect.memory", "onnxruntime", "tokenizers", "onnx", "rich", "http.client"),
    *("recollect.store.documents", "recollect.store.erasure", "recollect.store.facts", "recollect.store.history"),
    *(
        "recollect.tools",
        "recollect.integrations",
        "recollect.pipeline.asynchronous",
        "recollect.pipeline.contents",
        "re2",
    ),
    *(
        "procrastinate",
        "recollect.jobs",
        "recollect.pipeline.jobs",
        "recollect.store.jobs",
        "recollect.store.job_queue",
    ),
    *("recollect.providers", "recollect.store.logs"),
    *("recollect.store.memory", "recollect.store.verification", "recollect.store.writer", "recollect.model.memory"),
)

# Writes, and reads that have no tenant: everything else in a repository takes a scope first.
UNSCOPED: set[str] = set()


def test_the_packages_public_names_are_sorted_and_exactly_what_is_visible():
    visible = {
        name
        for name, value in vars(recollect).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType) and name != "TYPE_CHECKING"
    }
    assert recollect.__all__ == sorted(recollect.__all__) == dir(recollect)
    assert visible <= set(recollect.__all__)
    # What a type checker is told of where they come from is what happens.
    (typed,) = (part for part in ast.parse(inspect.getsource(recollect)).body if isinstance(part, ast.If))
    homes = {alias.name: statement.module for statement in typed.body for alias in statement.names}
    assert homes.keys() == set(recollect.__all__)
    for name, home in homes.items():
        assert getattr(recollect, name) is getattr(importlib.import_module(home), name)
    with pytest.raises(AttributeError, match="no attribute 'Nobody'"):
        _ = recollect.Nobody


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.name == "__init__.py" and path.parent.name != "sql"],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_packages_hold_no_logic(path: Path):
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        allowed = ast.Import | ast.ImportFrom | ast.Expr | ast.Assign
        for_types = isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"
        assert for_types or isinstance(statement, allowed), f"{path}:{statement.lineno}"


def test_files_are_short():
    # Only a file with more lines than code may have is worth taking apart.
    large = [path for path in MODULES if len(path.read_text(encoding="utf-8").splitlines()) > MAX_CODE_LINES]
    long = {str(path.relative_to(PACKAGE)): count for path in large if (count := _code_lines(path)) > MAX_CODE_LINES}
    assert set(long) == set(LONG_FILES), long


def _code_lines(path: Path) -> int:
    """The number of lines that hold a token of code."""
    source = path.read_text(encoding="utf-8")
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for part in node.body:
                if (
                    isinstance(part, ast.Expr)
                    and isinstance(part.value, ast.Constant)
                    and isinstance(part.value.value, str)
                ):
                    lines.difference_update(range(part.lineno, part.end_lineno + 1))
    return len(lines)


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


def _imported_by(*arguments: str, folder: Path) -> set[str]:
    """The modules that a run of the command has imported at its end."""
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=open('modules', 'w'))); "
        f"sys.argv = {['recollect', *arguments]!r}; from recollect_command import main; sys.exit(main())"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT")}
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=folder, env=environment)
    return set((folder / "modules").read_text(encoding="utf-8").split())


def _of(packages: Iterable[str], modules: Iterable[str]) -> list[str]:
    return [one for one in sorted(modules) if any(one == name or one.startswith(f"{name}.") for name in packages)]


def test_a_bare_version_imports_the_command_line_and_nothing_below_it(tmp_path: Path):
    modules = _imported_by("--version", folder=tmp_path)
    assert {one.split(".")[1] for one in _of(["recollect"], modules) if "." in one} == {
        *("cli", "errors", "installation", "_names")
    }
    assert _of([*COMMANDS, *HEAVY, *UNUSED_BY_VERSION], modules) == []


def test_the_list_of_commands_imports_none_of_them(tmp_path: Path):
    assert _of([*COMMANDS, *HEAVY], _imported_by("--help", folder=tmp_path)) == []


def test_a_query_imports_neither_other_commands_nor_what_reads_and_cuts_documents(dsn: str, tmp_path: Path):
    with recollect.RAGPipeline(
        recollect.RAGConfig.load(storage={"dsn": dsn}, embedding={"provider": "hashing"})
    ) as rag:
        rag.ingest("Annual leave is 30 days.")
    settings = tmp_path / "settings.toml"
    settings.write_text('[rag.embedding]\nprovider = "hashing"\n', encoding="utf-8")
    modules = _imported_by("--config", str(settings), "query", "leave", "--json", "--dsn", dsn, folder=tmp_path)
    assert "recollect.retrieval.lexical" in modules
    assert _of([name for name in COMMANDS if name != "recollect.cli.query"], modules) == []
    assert _of(UNUSED_BY_QUERIES, modules) == []


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


def test_the_files_that_the_architecture_sends_a_stranger_to_are_there():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = page.split("## I want to change …")[1].split("\n## ")[0]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) >= 20
    for row in rows:
        folder = PACKAGE
        for name in re.findall(r"`([^`]+)`", row):
            if "/" in name:
                found = [*PACKAGE.glob(name.rstrip("/")), *ROOT.glob(name.rstrip("/"))]
                folder = found[0].parent if found and "." in name else folder
                assert found or (folder / name).is_dir(), name
            elif "." in name:
                assert (folder / name).is_file() or (PACKAGE / name).is_file(), name
