"""The trained reader: finds the span of a passage that answers a question, and says how likely there is one.

The encoder is the default embedding model, with low-rank changes to its weights and two heads (`reader.safetensors`).
Other changes to the same weights (`checker.safetensors`) say whether a passage supports a statement.
``training/README.md`` describes how they were trained, and on what.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from recollect.embedding._tokens import Span, TextTokenizer
from recollect.embedding.local import LocalModel
from recollect.embedding.models import DEFAULT_MODEL, ModelCache
from recollect.embedding.quantise import SAMPLE_TEXTS, Precision, ensure_built, load_session
from recollect.errors import UsageError

if TYPE_CHECKING:
    import onnxruntime

#: What was trained, beside the embedding model's own weights.
WEIGHTS = Path(__file__).with_name("reader.safetensors")
#: What was trained to say whether a passage supports a statement, which stands in the question's place.
CHECKER = Path(__file__).with_name("checker.safetensors")
#: At most so many windows of all passages together are read, first the first one of each passage, which is always read.
MAX_WINDOWS = 16
#: In 8 bits nothing is surer than ten thousand to one.
MOST_LOG_ODDS = math.log(1e4)

_WINDOW_TOKENS = 320
_QUESTION_TOKENS = 64
_HEADING_TOKENS = 40
# A window begins this many tokens before the end of the last one, so that no short answer is cut in two.
_OVERLAP = 64
_LONGEST_SPAN = 160

_Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the reader finds in one passage.

    Attributes:
        start: Where the span begins that answers best, in characters of the passage.
        end: Where it ends; equal to ``start`` only if the passage has no words.
        probability: That the passage answers the question, from 0 to 1.
    """

    start: int
    end: int
    probability: float
    _windows: tuple[_Read, ...] = field(repr=False, compare=False)

    @property
    def log_odds(self) -> float:
        """The logarithm of the odds that the passage answers, at most `MOST_LOG_ODDS` either way."""
        rest = math.exp(-MOST_LOG_ODDS)
        return math.log(max(self.probability, rest) / max(1 - self.probability, rest))

    def begins_within(self, start: int, end: int) -> float:
        """The logarithm of the probability that the answer begins between two characters of the passage.

        Minus infinity where nothing was read there.
        """
        inside = [[at for at, span in enumerate(one.spans) if start <= span[0] < end] for one in self._windows]
        found = [np.logaddexp.reduce(one.begins[at]) for one, at in zip(self._windows, inside, strict=True) if at]
        return float(max(found, default=-np.inf))


@dataclass(frozen=True, slots=True)
class _Read:
    """A stretch of a passage that was read.

    Attributes:
        probability: That it answers the question.
        best: The span that answers best, in characters of the passage.
        spans: Its tokens, in characters of the passage.
        begins: For each token the logarithm of the probability that the answer begins there.
    """

    probability: float
    best: Span
    spans: tuple[Span, ...]
    begins: _Array


@dataclass(frozen=True, slots=True)
class _Window:
    """A stretch of a passage as the model reads it, the first one with ``number`` 0.

    ``spans`` are the character offsets of its last tokens but one.
    """

    passage: int
    number: int
    token_ids: tuple[int, ...]
    question_tokens: int
    spans: tuple[Span, ...]


_Loaded: TypeAlias = "tuple[onnxruntime.InferenceSession, TextTokenizer, Mapping[str, _Array]]"


class Reader(LocalModel):
    """Reads passages for the answer to a question.

    Constructing costs nothing; the model is fetched, built and loaded on first use, once. Safe to share between
    threads.

    Args:
        cache: Where models and built graphs are kept.
        weights: What was trained: `WEIGHTS` for questions, `CHECKER` for statements in their place.
        precision: ``"int8"`` or ``"fp32"``, which is slower.
        threads: How many windows are computed at once; by default, one for each processor this process may use.

    Raises:
        UsageError: A parameter is out of range.
    """

    def __init__(
        self, cache: ModelCache, *, weights: Path = WEIGHTS, precision: Precision = "int8", threads: int | None = None
    ) -> None:
        super().__init__(DEFAULT_MODEL, cache, precision, threads)
        self._weights = weights

    def _unload(self) -> None:
        super()._unload()
        self._loaded: _Loaded | None = None

    def _of_the_process(self) -> tuple[object, ...]:
        return (*super()._of_the_process(), self._loaded)

    def read(self, question: str, passages: Sequence[str], headings: Sequence[str] = ()) -> list[Reading]:
        """Find the best span of each passage.

        Args:
            question: In plain words; of a very long one only the beginning is read.
            passages: Texts of any length. A long one is read in windows, as far as ``MAX_WINDOWS`` allows, and the
                window that answers best counts.
            headings: The path of headings above each passage, which is read and never answers; empty: there are none.

        Returns:
            One reading for each passage, in order.

        Raises:
            ModelUnavailableError: The model cannot be fetched, built or loaded.
            UsageError: There are headings, but not one for each passage.
        """
        if isinstance(passages, str):
            raise UsageError("read takes a sequence of passages, not one text")
        if headings and len(headings) != len(passages):
            raise UsageError(f"{len(passages)} passages need as many headings, not {len(headings)}")
        session, tokenizer, heads = self._load()
        windows = list(_windows(tokenizer, question, passages, headings or [""] * len(passages)))
        windows = sorted(windows, key=lambda window: window.number)[: max(MAX_WINDOWS, len(passages))]
        # The longest first: then no thread starts its longest piece of work when the others are done.
        windows.sort(key=lambda window: -len(window.token_ids))

        def run(window: _Window) -> _Read:
            types = np.ones((1, len(window.token_ids)), np.int32)
            types[0, : window.question_tokens] = 0
            ids = np.array([window.token_ids], np.int32)
            vectors: _Array = session.run(None, {"input_ids": ids, "token_types": types})[0][0]
            return _judged(heads, vectors, window.spans)

        found: list[list[_Read]] = [[] for _ in passages]
        for window, read in self.each(run, windows):
            found[window.passage].append(read)
        best = [max(own, key=lambda read: read.probability) for own in found]
        return [Reading(*read.best, read.probability, tuple(own)) for read, own in zip(best, found, strict=True)]

    def _load(self) -> _Loaded:
        from safetensors.numpy import load_file

        with self._lock:
            if self._loaded is None:
                files = self._cache.pull(self._model)
                tokenizer = TextTokenizer(files.tokenizer, compiled=files.build_directory)
                before, after = tokenizer.specials
                sample = [(*before, *ids[:_WINDOW_TOKENS], *after) for ids in tokenizer.ids_batch(SAMPLE_TEXTS)]
                graph = ensure_built(
                    files, precision=self._precision, sample=sample, head="pairs", deltas=self._weights
                )
                trained = load_file(self._weights).items()
                heads = {name: array.astype(np.float32) for name, array in trained if name.startswith("heads.")}
                self._loaded = load_session(graph.path), tokenizer, heads
            return self._loaded


def _windows(
    tokenizer: TextTokenizer, question: str, passages: Sequence[str], headings: Sequence[str]
) -> Iterator[_Window]:
    before, between, behind, _ = tokenizer.pair_template()
    # Pieces keep the tokenizer's memory small; of a huge text only the first one can matter.
    asked, *texts = [text[slice(*next(iter(TextTokenizer.pieces(text))))] for text in (question, *passages)]
    first = (*before, *tokenizer.ids_batch([asked])[0][:_QUESTION_TOKENS], *between)
    tops = tokenizer.ids_batch([heading[-1000:] for heading in headings])
    ids_of, spans_of = tokenizer.ids_batch(texts), tokenizer.spans_batch(texts)
    for index, (top, ids, spans) in enumerate(zip(tops, ids_of, spans_of, strict=True)):
        lead = (*first, *top[-_HEADING_TOKENS:])
        room = _WINDOW_TOKENS - len(lead) - len(behind)
        starts = range(0, max(1, len(ids) - _OVERLAP), room - _OVERLAP)[:MAX_WINDOWS]
        for number, start in enumerate(starts):
            part = ids[start : start + room]
            yield _Window(index, number, (*lead, *part, *behind), len(first), tuple(spans[start : start + room]))


def _judged(heads: Mapping[str, _Array], vectors: _Array, spans: tuple[Span, ...]) -> _Read:
    """Read the vectors of one window, whose last tokens but one are those of ``spans``.

    The heads stay in 32 bits and outside the graph: they are a thousandth of its arithmetic.
    """
    pooled = np.tanh(vectors[0] @ heads["heads.pooler.weight"].T + heads["heads.pooler.bias"])
    odds = pooled @ heads["heads.answerable.weight"].T + heads["heads.answerable.bias"]
    probability = float(1 / (1 + np.exp(-odds[0])))
    logits = vectors @ heads["heads.span"].T
    starts, ends = logits[len(logits) - 1 - len(spans) : -1].T
    if not spans:
        return _Read(probability, (0, 0), (), starts)
    # The first token stands for "not here".
    begins = starts - np.logaddexp(np.logaddexp.reduce(starts), logits[0, 0])
    first, last = divmod(int((starts[:, None] + ends[None, :] + _allowed(len(spans))).argmax()), len(spans))
    return _Read(probability, (spans[first][0], spans[last][1]), spans, begins)


@cache
def _allowed(tokens: int) -> _Array:
    """Zero where a span of so many tokens may begin and end, and minus infinity elsewhere."""
    distance = np.arange(tokens)[None, :] - np.arange(tokens)[:, None]
    return np.where((distance >= 0) & (distance < _LONGEST_SPAN), 0, -np.inf).astype(np.float32)
