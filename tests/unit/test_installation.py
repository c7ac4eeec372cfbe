"""What installs an extra, by how the program was installed; and another project of the package's name beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"


def installed(folder: Path, *, name: str = "recollect_rag", origin: object = None) -> None:
    """Writes what pip notes of a package into a folder."""
    info = folder / f"{name}-0.17.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.17.0\n", encoding="utf-8")
    (info / "RECORD").write_text("recollect/__init__.py,,\n", encoding="utf-8")
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")


def ours(folder: Path) -> None:
    """Puts this package into a folder."""
    folder.mkdir(exist_ok=True)
    for path in (SOURCE / "recollect", SOURCE / "recollect_command.py"):
        (folder / path.name).symlink_to(path)


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, cwd=folder, check=False)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'recollect-rag[server]'"),
        ({"url": "file:///src/recollect", "dir_info": {"editable": True}}, "pip install '.[server]'"),
        ({"url": "file:///src/recollect", "dir_info": {}}, "pip install '.[server]'"),
        (
            {"url": "file:///dist/recollect_rag-0.17.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'recollect-rag[server] @ file:///dist/recollect_rag-0.17.0-py3-none-any.whl'",
        ),
        (
            {"url": "https://git.example/rag.git", "vcs_info": {"vcs": "git", "commit_id": "4e2a1c"}},
            "pip install 'recollect-rag[server] @ git+https://git.example/rag.git@4e2a1c'",
        ),
    ],
)
def test_extras_are_installed_the_way_the_program_was(tmp_path, origin, command):
    installed(tmp_path, origin=origin)
    ours(tmp_path)
    code = "from recollect.installation import install_command, version; print(version(), install_command('server'))"
    assert python(code, tmp_path).stdout == f"0.17.0 {command}\n"


def test_a_folder_that_was_never_installed_is_taken_for_a_checkout(tmp_path):
    ours(tmp_path)
    code = (
        "import sys; sys.path = [one for one in sys.path if 'site-packages' not in one];"
        "from recollect.installation import install_command, version; print(version(), install_command('ocr'))"
    )
    assert python(code, tmp_path).stdout == "unknown pip install '.[ocr]'\n"


def test_the_library_refuses_to_share_its_folder_with_another_project(tmp_path):
    installed(tmp_path, name="recollect")
    ours(tmp_path)
    refused = python("import recollect", tmp_path)
    assert refused.returncode == 1
    assert "Another project, recollect 0.17.0, is installed" in refused.stderr
    assert "pip uninstall recollect recollect-rag" in refused.stderr


def test_the_command_names_another_project_that_has_overwritten_the_package(tmp_path):
    installed(tmp_path, name="recollect")
    (tmp_path / "recollect").mkdir()
    (tmp_path / "recollect" / "__init__.py").write_text("class Memory: ...\n", encoding="utf-8")
    refused = python("import sys, recollect_command; sys.exit(recollect_command.main())", tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: Another project, recollect 0.17.0, is installed")


def test_what_was_installed_under_the_old_name_is_no_other_project(tmp_path):
    installed(tmp_path, name="recollect")
    (tmp_path / "recollect-0.17.0.dist-info" / "RECORD").write_text("recollect_command.py,,\n", encoding="utf-8")
    ours(tmp_path)
    assert python("import recollect", tmp_path).returncode == 0
