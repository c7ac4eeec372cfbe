"""From weights to the graph file that is loaded: optimised once, 8-bit where that holds up, kept beside the weights."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import shutil
import sys
import tempfile
import types
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from recollect.embedding.bert_graph import Head, Pooling, build_graph
from recollect.errors import ModelUnavailableError

if TYPE_CHECKING:
    import onnx
    import onnxruntime

    from recollect.embedding.models import ModelFiles


logger = logging.getLogger(__name__)

Precision = Literal["fp32", "int8"]

#: Raised whenever the same weights would be built into another graph; older files are then ignored.
BUILDER_VERSION = 2

#: The least mean cosine between the 8-bit and the 32-bit vectors of the sample below.
MINIMUM_COSINE = 0.98

_X86 = frozenset({"x86_64", "amd64", "i386", "i686", "x86"})

#: What the 8-bit graph is checked on: short and long, plain and technical, several scripts.
SAMPLE_TEXTS = (
    "How many days of annual leave do I have?",
    "Employees may carry over up to five days of unused leave into the first quarter of the following year.",
    "ERR-4012: the connection to the database was refused after three attempts (timeout=30s).",
    "def mean(values):\n    return sum(values) / len(values)",
    "La réunion du comité est reportée au mardi 14 mars à neuf heures.",
    "Die Lieferung erfolgt innerhalb von zehn Werktagen nach Eingang der Zahlung.",
    "数据库连接失败，请稍后再试。",
    "Срок действия договора составляет двенадцать месяцев.",
    "يرجى مراجعة سياسة الخصوصية قبل المتابعة.",
    "",
    "An experimental study of the boundary layer on a flat plate at zero incidence shows that transition moves forward "
    "with increasing free-stream turbulence. Measurements of the skin friction agree with theory up to a Reynolds "
    "number of three million; beyond it the scatter grows, and heat transfer follows the same pattern. The results "
    "are compared with earlier work, and limits of the linear theory are pointed out for blunt bodies.",
    "Total revenue rose by 12.4% to $3,481 million, while operating expenses fell slightly; net income per share was "
    "$2.07, against $1.66 in the year before.",
)


@dataclass(frozen=True, slots=True)
class BuiltGraph:
    """A graph file ready to load.

    Attributes:
        path: The ONNX file.
        precision: Of its arithmetic; ``"fp32"`` where 8 bits were asked for and rejected.
    """

    path: Path
    precision: Precision


def cpu_class() -> str:
    """Names what 8-bit arithmetic this machine has: ``"vnni"``, ``"x86"`` (without it) or the architecture.

    Without VNNI, x86 sums pairs of 8-bit products in 16 bits and saturates, so weights get one bit less there.
    """
    machine = platform.machine().lower()
    if machine not in _X86:
        return machine or "unknown"
    if sys.platform != "linux":
        return "x86"
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return "x86"
    return "vnni" if "avx512_vnni" in flags or "avx_vnni" in flags else "x86"


def ensure_built(
    files: ModelFiles,
    *,
    precision: Precision,
    sample: Sequence[Sequence[int]],
    pooling: Pooling = "mean",
    head: Head = "pooled",
    deltas: Path | None = None,
) -> BuiltGraph:
    """The graph file of a model, built where it is not there yet.

    Any number of processes may call this at once: one builds, the others wait, and the file appears whole.

    Args:
        files: The weights and their configuration.
        precision: ``"int8"`` quantises the matrix products' weights per channel and their inputs as they come.
        sample: Token ids of a few texts; the 8-bit graph must agree with the 32-bit one on them, see
            ``MINIMUM_COSINE``, or the 32-bit one is used and a warning logged.
        pooling: How token vectors become one.
        head: What the graph gives, see `build_graph`.
        deltas: A file of changes to the weights, see `build_graph`; other changes make another graph.

    Raises:
        ModelUnavailableError: The weights cannot be used, or the disk is full or refuses.
    """
    kind = f"{head}-{pooling}.v{BUILDER_VERSION}"
    if deltas is not None:
        kind += f".{hashlib.sha256(deltas.read_bytes()).hexdigest()[:12]}"
    directory = files.build_directory
    full = directory / f"encoder.fp32.{kind}.onnx"
    small = directory / f"encoder.int8.{kind}.{cpu_class()}.onnx"
    rejected = small.with_suffix(".rejected")
    try:
        found = _built(precision, full, small, rejected)
        if found is not None:
            return found
        directory.mkdir(parents=True, exist_ok=True)
        with FileLock(directory / ".build.lock"):
            found = _built(precision, full, small, rejected)
            if found is not None:
                return found
            with tempfile.TemporaryDirectory(prefix=".build-", dir=directory, ignore_cleanup_errors=True) as temporary:
                work = Path(temporary)
                model = build_graph(files.weights, files.config, head=head, pooling=pooling, deltas=deltas)
                if precision == "fp32":
                    _publish(_optimise(model, work / "fp32.onnx"), full)
                    return BuiltGraph(full, "fp32")
                return _build_int8(model, work, full=full, small=small, rejected=rejected, sample=sample)
    except OSError as exc:
        raise ModelUnavailableError(
            f"The graph of {files.name!r} cannot be written to {directory} ({exc.strerror or exc}). Free some space, "
            "run `recollect models pull` as a user who may write there, or choose another directory for the model "
            "cache.",
            provider="local",
            model=files.name,
        ) from exc


def load_session(path: Path, *, threads: int = 1, gpu: bool = False) -> onnxruntime.InferenceSession:
    """Load a graph file that `ensure_built` made.

    Args:
        path: The file; it is optimised already, which is why loading is quick.
        threads: Threads within one operator. With 1, a call runs on its caller's thread alone.
        gpu: Whether it runs on an NVIDIA GPU where ONNX Runtime finds one; otherwise, and if none is found, on the
            processor. Graphs in 8 bits gain nothing there.

    Raises:
        ModelUnavailableError: The file is damaged or of a form this ONNX Runtime cannot load.
    """
    return _session(path, threads=threads, optimise_into=None, gpu=gpu)


def _built(precision: Precision, full: Path, small: Path, rejected: Path) -> BuiltGraph | None:
    if precision == "int8":
        if small.is_file():
            return BuiltGraph(small, "int8")
        if not rejected.is_file():
            return None
    return BuiltGraph(full, "fp32") if full.is_file() else None


def _build_int8(
    model: onnx.ModelProto, work: Path, *, full: Path, small: Path, rejected: Path, sample: Sequence[Sequence[int]]
) -> BuiltGraph:
    reference = _optimise(model, work / "fp32.onnx")
    quantised = _optimise(_quantise(model, work), work / "int8.onnx")
    cosine = _mean_cosine(reference, quantised, sample)
    if cosine >= MINIMUM_COSINE:
        _publish(quantised, small)
        return BuiltGraph(small, "int8")
    logger.warning(
        "8-bit weights change this model's vectors too much on this processor (mean cosine %.4f, least allowed %.4f): "
        "using 32 bits, which is slower.",
        cosine,
        MINIMUM_COSINE,
    )
    _publish(reference, full)
    rejected.touch()
    return BuiltGraph(full, "fp32")


def _quantise(model: onnx.ModelProto, work: Path) -> onnx.ModelProto:
    import onnx

    _runtime()
    from onnxruntime.quantization import QuantType, quantize_dynamic

    # Tells the quantiser that there is nothing left to prepare; it would log advice to do so otherwise.
    mark = model.metadata_props.add()
    mark.key, mark.value = "onnx.quant.pre_process", "onnxruntime.quant"
    plain, target = work / "plain.onnx", work / "quantised.onnx"
    onnx.save(model, plain)
    quantize_dynamic(
        plain,
        target,
        op_types_to_quantize=["MatMul", "Attention"],
        per_channel=True,
        reduce_range=cpu_class() == "x86",
        weight_type=QuantType.QInt8,
        # The fused operators have no shape inference, so the type of what they pass on must be told.
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )
    plain.unlink()
    quantised: onnx.ModelProto = onnx.load(target)
    return with_small_words(quantised)


def _optimise(model: onnx.ModelProto, target: Path) -> Path:
    """Let ONNX Runtime fuse what it can and write the result, so that no later start pays for it."""
    import onnx

    source = target.with_suffix(".source")
    onnx.save(model, source)
    _session(source, threads=1, optimise_into=target)
    source.unlink()
    return target


def _session(
    path: Path, *, threads: int, optimise_into: Path | None, gpu: bool = False
) -> onnxruntime.InferenceSession:
    ort = _runtime()
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if optimise_into is None:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    else:
        # The last level would choose layouts of this machine's own.
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(optimise_into)
    try:
        return ort.InferenceSession(
            str(path),
            options,
            providers=[*(_gpus(ort) if gpu else ()), "CPUExecutionProvider"],
            # See bert_graph: the operator that this would put in is the slower one.
            disabled_optimizers=[] if optimise_into is None else ["SkipLayerNormFusion"],
        )
    except Exception as exc:  # ONNX Runtime's own errors share no base class but this one
        raise ModelUnavailableError(
            f"The graph {path} cannot be loaded ({exc}). Delete it, and it is built again.", provider="local"
        ) from exc


def _gpus(ort: types.ModuleType) -> list[tuple[str, dict[str, str]]]:
    """The GPU's way of computing, where this ONNX Runtime has one, with the libraries of CUDA that pip installed."""
    if "CUDAExecutionProvider" not in ort.get_available_providers():
        if any(distributions(name="onnxruntime-gpu")):
            logger.warning(
                "onnxruntime lies over onnxruntime-gpu, and no GPU is used: pip uninstall onnxruntime, and then "
                "pip install --force-reinstall --no-deps onnxruntime-gpu"
            )
        return []
    # It prints what it misses, and standard output may be a reply in JSON, or a protocol.
    with redirect_stdout(sys.stderr):
        ort.preload_dlls()
    # TF32 rounds what is multiplied to ten bits: vectors would be others than the processor's.
    return [("CUDAExecutionProvider", {"use_tf32": "0"})]


def _runtime() -> types.ModuleType:
    """ONNX Runtime, without its telemetry.

    Nothing here sends anything anywhere; and the thread that would (since 1.31) keeps the child of a fork from ending.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    runtime: types.ModuleType = onnxruntime
    return runtime


def _mean_cosine(reference: Path, candidate: Path, sample: Sequence[Sequence[int]]) -> float:
    """The mean cosine between two graphs' vectors, over the texts (and over the tokens, where they give those)."""
    first, second = load_session(reference), load_session(candidate)
    cosines: list[float] = []
    pairs = len(first.get_inputs()) > 1
    if pairs and first.get_outputs()[0].name == "logits":
        return _correlation(first, second, sample)
    for token_ids in sample:
        feed = {"input_ids": np.asarray([token_ids], np.int32)}
        if pairs:
            feed["token_types"] = np.zeros_like(feed["input_ids"])
        one: npt.NDArray[np.float32] = first.run(None, feed)[0]
        two: npt.NDArray[np.float32] = second.run(None, feed)[0]
        lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(two, axis=-1)
        cosines.append(float(np.mean(np.sum(one * two, axis=-1) / np.maximum(lengths, 1e-12))))
    return float(np.mean(cosines)) if cosines else 1.0


def _correlation(
    first: onnxruntime.InferenceSession, second: onnxruntime.InferenceSession, sample: Sequence[Sequence[int]]
) -> float:
    """How well two classifiers' logits agree over the texts: a cosine between numbers would only tell their signs."""
    logits = []
    for session in (first, second):
        rows = []
        for token_ids in sample:
            ids = np.asarray([token_ids], np.int32)
            rows.append(session.run(None, {"input_ids": ids, "token_types": np.zeros_like(ids)})[0][0])
        logits.append(np.array(rows) - np.mean(rows, axis=0))
    lengths = np.linalg.norm(logits[0]) * np.linalg.norm(logits[1])
    return float(np.sum(logits[0] * logits[1]) / max(lengths, 1e-12))


def _publish(source: Path, target: Path) -> None:
    with source.open("rb+") as handle:
        os.fsync(handle.fileno())
    shutil.move(source, target)


# A model's table of words in 4 or 8 bits a weight: with 250,000 words it is most of the model.


#: Tables of at least so many words are stored in 4 or 8 bits.
LARGE_VOCABULARY = 100_000
# Weights that share a scale where they were published in 4 bits, and what half precision may round off them.
_BLOCK = 32
_ROUNDING = 1e-3
_MOST_AT_ONCE = 4_000_000


def with_small_words(model: onnx.ModelProto) -> onnx.ModelProto:
    """The graph with a large table of words in 4 or 8 bits a weight: of 250,000 words 54 or 97 MB in place of 384.

    Weights that were published in 4 bits are kept so and lose nothing. The fused operator takes 32 bits only, so what
    it does is spelled out: look up, scale, add positions, normalise.
    """
    from onnx import helper, numpy_helper

    graph = model.graph
    weights = {one.name: one for one in graph.initializer}
    fused = next((node for node in graph.node if node.op_type == "EmbedLayerNormalization"), None)
    if fused is None or fused.input[1] or weights[fused.input[2]].dims[0] < LARGE_VOCABULARY:
        return model
    ids, word, position, scale, shift = (fused.input[at] for at in (0, 2, 3, 5, 6))
    table = numpy_helper.to_array(weights[word])
    blocks = four_bit_blocks(table)
    looked_up, arrays = _in_8_bits(table, ids) if blocks is None else _in_4_bits(*blocks, ids)
    arrays |= {"word.first": np.array([0], np.int64), "word.length_axis": np.array([1], np.int64)}
    graph.initializer.remove(weights[word])
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    epsilon = next(one.f for one in fused.attribute if one.name == "epsilon")
    spelled = [
        *looked_up,
        helper.make_node("Shape", [ids], ["word.shape"]),
        helper.make_node("Gather", ["word.shape", "word.length_axis"], ["word.length"]),
        helper.make_node("Slice", [position, "word.first", "word.length", "word.first"], ["word.positions"]),
        helper.make_node("Add", ["word.vectors", "word.positions"], ["word.placed"]),
        helper.make_node(
            "LayerNormalization", ["word.placed", scale, shift], [fused.output[0]], axis=-1, epsilon=epsilon
        ),
    ]
    place = list(graph.node).index(fused)
    graph.node.remove(fused)
    for offset, node in enumerate(spelled):
        graph.node.insert(place + offset, node)
    return model


def four_bit_blocks(table: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float16]] | None:
    """A table that holds 16 values in each block of 32 weights, as these values and a scale for each block.

    Args:
        table: Words by dimensions.

    Returns:
        The values, 0 to 15, of the table's shape, and the scales, words by blocks: a weight is (value - 8) times its
        scale. None where the table holds more than that, or its dimensions are no whole blocks.
    """
    if table.shape[1] % _BLOCK:
        return None
    rows, step = table.shape[0], max(1, _MOST_AT_ONCE // table.shape[1])
    values = np.empty(table.shape, np.uint8)
    scales = np.empty((rows, table.shape[1] // _BLOCK), np.float16)
    for start in range(0, rows, step):
        part = table[start : start + step].astype(np.float32)
        blocks = part.reshape(len(part), -1, _BLOCK)
        largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=2, keepdims=True), axis=2)
        # The value farthest from zero is the one of which there is no counterpart: -8 of -8 to 7.
        scale = (largest / -8).astype(np.float16).astype(np.float32)
        found = np.clip(np.round(blocks / np.where(scale == 0, 1, scale)), -8, 7)
        if np.any(np.abs(found * scale - blocks) > _ROUNDING * np.abs(largest)):
            return None
        values[start : start + step] = (found + 8).reshape(part.shape).astype(np.uint8)
        scales[start : start + step] = scale[:, :, 0]
    return values, scales


def _in_4_bits(
    values: npt.NDArray[np.uint8], scales: npt.NDArray[np.float16], ids: str
) -> tuple[list[onnx.NodeProto], dict[str, npt.NDArray[Any]]]:
    """What gives the vectors of words, and its tables: the second half of a row stands in the upper bits of the first.

    Plain operators, which every version of the runtime has, take no longer than one made for it: the layers behind
    them take a hundred times as long.
    """
    from onnx import TensorProto, helper

    half, blocks = values.shape[1] // 2, scales.shape[1]
    nodes = [
        helper.make_node("Gather", ["word.small", ids], ["word.pairs"]),
        helper.make_node("Cast", ["word.pairs"], ["word.numbers"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["word.numbers", "word.sixteen"], ["word.shifted"]),
        helper.make_node("Floor", ["word.shifted"], ["word.upper"]),
        helper.make_node("Mul", ["word.upper", "word.sixteen"], ["word.raised"]),
        helper.make_node("Sub", ["word.numbers", "word.raised"], ["word.lower"]),
        helper.make_node("Concat", ["word.lower", "word.upper"], ["word.unsigned"], axis=-1),
        helper.make_node("Sub", ["word.unsigned", "word.eight"], ["word.signed"]),
        helper.make_node("Reshape", ["word.signed", "word.in_blocks"], ["word.blocks"]),
        helper.make_node("Gather", ["word.steps", ids], ["word.half_steps"]),
        helper.make_node("Cast", ["word.half_steps"], ["word.row_steps"], to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["word.row_steps", "word.by_block"], ["word.block_steps"]),
        helper.make_node("Mul", ["word.blocks", "word.block_steps"], ["word.scaled"]),
        helper.make_node("Reshape", ["word.scaled", "word.in_a_row"], ["word.vectors"]),
    ]
    return nodes, {
        "word.small": values[:, :half] | (values[:, half:] << 4),
        "word.steps": scales,
        "word.sixteen": np.array(16, np.float32),
        "word.eight": np.array(8, np.float32),
        "word.in_blocks": np.array([0, 0, blocks, _BLOCK], np.int64),
        "word.by_block": np.array([0, 0, blocks, 1], np.int64),
        "word.in_a_row": np.array([0, 0, 2 * half], np.int64),
    }


def _in_8_bits(table: npt.NDArray[Any], ids: str) -> tuple[list[onnx.NodeProto], dict[str, npt.NDArray[Any]]]:
    """What gives the vectors of words, and its tables: a scale for each row."""
    from onnx import TensorProto, helper

    steps = np.maximum(np.abs(table).max(axis=1, keepdims=True) / 127, np.finfo(np.float32).tiny).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["word.small", ids], ["word.bytes"]),
        helper.make_node("Cast", ["word.bytes"], ["word.numbers"], to=TensorProto.FLOAT),
        helper.make_node("Gather", ["word.steps", ids], ["word.row_steps"]),
        helper.make_node("Mul", ["word.numbers", "word.row_steps"], ["word.vectors"]),
    ]
    return nodes, {"word.small": np.round(table / steps).astype(np.int8), "word.steps": steps}
