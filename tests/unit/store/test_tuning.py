from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.store.tuning import (
    Machine,
    _container_memory_limits,
    index_build_settings,
    index_lists,
    settings_for,
    this_machine,
)

MIB = 2**20
GIB = 2**30

machines = st.builds(
    Machine,
    memory_bytes=st.integers(64 * MIB, 4096 * GIB),
    cpu_count=st.integers(1, 512),
    shared_memory_bytes=st.none() | st.integers(0, 64 * GIB),
)


def megabytes(text: str) -> int:
    matched = re.fullmatch(r"(\d+)MB", text)
    assert matched is not None
    return int(matched[1])


@given(machines)
def test_durability_is_never_traded(machine):
    settings = settings_for(machine)
    assert {settings[name] for name in ("fsync", "full_page_writes", "synchronous_commit")} == {"on"}


@given(machines)
def test_memory_stays_modest_on_any_machine(machine):
    settings = settings_for(machine)
    assert 32 <= megabytes(settings["shared_buffers"]) <= 384
    assert 4 <= megabytes(settings["work_mem"]) <= 16
    assert 64 <= megabytes(settings["maintenance_work_mem"]) <= 256
    assert megabytes(settings["effective_cache_size"]) >= megabytes(settings["shared_buffers"])


@given(machines)
def test_workers_fit_the_processors_and_each_other(machine):
    settings = settings_for(machine)
    building = int(settings["max_parallel_maintenance_workers"])
    assert building <= max(0, machine.cpu_count - 1)
    assert building <= int(settings["max_parallel_workers"]) <= int(settings["max_worker_processes"])


@given(machines, st.integers(1, 8))
def test_more_memory_never_means_smaller_settings(machine, factor):
    larger = Machine(memory_bytes=machine.memory_bytes * factor, cpu_count=machine.cpu_count)
    for name in ("shared_buffers", "work_mem", "maintenance_work_mem", "effective_cache_size"):
        assert megabytes(settings_for(larger)[name]) >= megabytes(settings_for(machine)[name])


@given(machines, st.integers(0, 10**8), st.sampled_from([384, 1024, 4000]))
def test_a_build_takes_what_its_graph_needs_and_never_more_than_a_quarter(machine, vectors, dimension):
    own = settings_for(machine)
    asked = index_build_settings(machine, vectors=vectors, dimension=dimension)
    if not asked:
        assert min(vectors * 2 * dimension, machine.memory_bytes // 4) <= megabytes(own["maintenance_work_mem"]) * MIB
        return
    granted = megabytes(asked["maintenance_work_mem"])
    assert megabytes(own["maintenance_work_mem"]) <= granted <= machine.memory_bytes // 4 // MIB
    shared = machine.shared_memory_bytes
    in_shared_memory = own["dynamic_shared_memory_type"] == "posix" and "max_parallel_maintenance_workers" not in asked
    assert not in_shared_memory or shared is None or shared >= 2 * granted * MIB


def test_a_million_vectors_are_built_in_memory_where_there_is_some():
    server = Machine(memory_bytes=24 * GIB, cpu_count=2, shared_memory_bytes=24 * GIB)
    assert index_build_settings(server, vectors=100_000, dimension=384) == {}
    assert index_build_settings(server, vectors=1_000_000, dimension=384) == {"maintenance_work_mem": "1686MB"}
    docker = Machine(memory_bytes=24 * GIB, cpu_count=2, shared_memory_bytes=600 * MIB)
    assert index_build_settings(docker, vectors=1_000_000, dimension=384)["max_parallel_maintenance_workers"] == "0"


@given(machines, st.integers(0, 10**9), st.sampled_from([384, 1024, 4000]))
def test_lists_are_made_of_vectors_whose_graph_does_not_fit(machine, vectors, dimension):
    lists = index_lists(machine, vectors=vectors, dimension=dimension)
    if lists is None:
        assert vectors * 2 * dimension <= machine.memory_bytes // 4
        return
    assert 1 <= lists <= 32_768, "more lists than pgvector takes"
    # What pgvector holds while it divides: bounds of 50 samples a list against all lists, and the samples.
    assert 50 * lists * (4 * lists + 2 * dimension) <= machine.memory_bytes // 4
    assert index_lists(None, vectors=vectors, dimension=dimension) is None


def test_a_small_shared_memory_file_system_is_not_relied_on():
    docker = Machine(memory_bytes=8 * GIB, cpu_count=4, shared_memory_bytes=64 * MIB)
    usual = Machine(memory_bytes=8 * GIB, cpu_count=4, shared_memory_bytes=4 * GIB)
    assert settings_for(docker)["dynamic_shared_memory_type"] == "mmap"
    assert settings_for(usual)["dynamic_shared_memory_type"] == "posix"


def test_connections_are_the_callers_to_choose():
    machine = Machine(memory_bytes=GIB, cpu_count=1)
    assert settings_for(machine)["max_connections"] == "100"
    assert settings_for(machine, max_connections=20)["max_connections"] == "20"


@pytest.mark.parametrize(
    ("controllers", "base", "name"), [("", "", "memory.max"), ("cpu,memory", "memory", "memory.limit_in_bytes")]
)
def test_the_limits_of_all_groups_above_count(tmp_path, controllers, base, name):
    group = tmp_path / base / "outer" / "inner"
    group.mkdir(parents=True)
    (group / name).write_text("max\n" if controllers == "" else "9223372036854771712\n", encoding="ascii")
    (group.parent / name).write_text("1000000000\n", encoding="ascii")
    (tmp_path / base / name).write_text("2000000000\n", encoding="ascii")
    assert min(_container_memory_limits(tmp_path, [("cpuset", "/x"), (controllers, "/outer/inner")])) == 1_000_000_000


def test_a_group_seen_from_inside_a_container_falls_back_to_the_mounted_root(tmp_path):
    (tmp_path / "memory.max").write_text("500000000\n", encoding="ascii")
    assert _container_memory_limits(tmp_path, [("", "/docker/of-the-host")]) == [500_000_000]


def test_no_limits_where_nothing_is_mounted(tmp_path):
    assert _container_memory_limits(tmp_path / "absent", [("", "/"), ("memory", "/a")]) == []


def test_this_machine_is_measured():
    machine = this_machine()
    assert machine.memory_bytes > 64 * MIB
    assert machine.cpu_count >= 1
