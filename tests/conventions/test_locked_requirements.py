"""What CI and containers install from is what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_PINNED = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)(.*)$")


def asked(extra: str | None) -> list[Requirement]:
    if extra == "build":
        return [Requirement(one) for one in PROJECT["build-system"]["requires"]]
    if extra in {"clients", "installer"}:
        lines = (ROOT / f"requirements/{extra}.in").read_text(encoding="utf-8").splitlines()
        return [Requirement(line) for line in lines if not line.startswith("#")]
    found = list(PROJECT["project"]["dependencies"])
    if extra is not None:
        found += PROJECT["project"]["optional-dependencies"][extra]
    if extra == "dev":
        found += PROJECT["build-system"]["requires"]
    return [Requirement(one) for one in found]


def locked(name: str) -> dict[str, list[tuple[str, int]]]:
    """Versions by package, each with the number of its hashes; platforms may have different ones."""
    found: dict[str, list[tuple[str, int]]] = {}
    package = ""
    for line in (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8").splitlines():
        if pinned := _PINNED.match(line):
            package = canonicalize_name(pinned[1])
            found.setdefault(package, []).append((pinned[2], 0))
        elif line.strip().startswith("--hash=sha256:"):
            version, hashes = found[package].pop()
            found[package].append((version, hashes + 1))
        else:
            assert line.startswith("#"), line
    return found


@pytest.mark.parametrize(
    ("name", "extra"),
    [("runtime", None), *((name, name) for name in ("dev", "docs", "build", "clients", "installer", "server"))],
)
def test_locks_hold_what_is_asked_for_with_hashes_and_name_no_index(name, extra):
    versions = locked(name)
    assert all(hashes for several in versions.values() for _, hashes in several)
    missing = [
        str(one)
        for one in asked(extra)
        if not any(one.specifier.contains(version) for version, _ in versions.get(canonicalize_name(one.name), []))
    ]
    assert missing == [], "run: requirements/lock"
    assert "://" not in (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8")


def test_packages_are_built_with_what_is_locked():
    """Wherever CI builds one: an environment that pip makes for a build takes the latest of everything, unchecked."""
    assert locked("build").items() <= locked("dev").items()
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    builds = [line for line in script.splitlines() if '/pip" wheel ' in line]
    assert builds and all("--no-build-isolation" in line for line in builds)
    assert "PIP_NO_BUILD_ISOLATION=0" in script
    assert 'install_locked "$scratch/build" requirements/build.txt' in script
    installations = [line for line in script.splitlines() if "pip" in line and " install " in line and "-r " in line]
    assert len(installations) == 3
    assert all("--require-hashes --no-deps -r" in line for line in installations)


def test_bytecode_is_kept_for_the_processes_that_tests_start():
    """Whatever the caller's shell says: hundreds of processes would each compile all that they import."""
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "unset PYTHONDONTWRITEBYTECODE" in script and 'PYTHONPYCACHEPREFIX="$scratch/bytecode"' in script
