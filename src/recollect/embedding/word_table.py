"""A model's table of words in 4 or 8 bits a weight: with 250,000 words it is most of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import onnx

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
