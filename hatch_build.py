"""Compiles what is written in C into the package, where there is a compiler; without it numpy does the same, slower."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SOURCE = "src/recollect/retrieval/resident/_kernels.c"
_NAME = "recollect.retrieval.resident._kernels"


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """The build hook that `pyproject.toml` names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the extension beside its source, and name the platform in the wheel's tag."""
        made = self._compiled()
        if made is None:
            self.app.display_warning("There is no C compiler here: searches in memory will use numpy.")
            return
        build_data["pure_python"] = False
        build_data["artifacts"].append(f"/{made}")
        if version != "editable":
            from packaging.tags import sys_tags

            # One file for every Python from 3.11 on: it uses nothing but the stable interface.
            build_data["tag"] = f"cp311-abi3-{next(sys_tags()).platform}"

    def _compiled(self) -> str | None:
        """The file that was made, from the root; None: there is no compiler that can."""
        from setuptools import Distribution, Extension

        root = Path(self.root)
        options = ["/O2"] if os.name == "nt" else ["-O3"]
        extension = Extension(_NAME, [_SOURCE], py_limited_api=True, extra_compile_args=options, optional=True)
        distribution = Distribution({"ext_modules": [extension], "package_dir": {"": "src"}})
        here = Path.cwd()
        os.chdir(root)
        try:
            with tempfile.TemporaryDirectory() as scratch:
                command: Any = distribution.get_command_obj("build_ext")
                command.inplace, command.build_temp = True, scratch
                command.ensure_finalized()
                Path(command.get_ext_fullpath(_NAME)).unlink(missing_ok=True)
                command.run()
                made = Path(command.get_ext_fullpath(_NAME))
            return made.resolve().relative_to(root.resolve()).as_posix() if made.is_file() else None
        except Exception as exc:  # noqa: BLE001 - whatever a compiler fails with, the package works without
            sys.stderr.write(f"{exc}\n")
            return None
        finally:
            os.chdir(here)
