"""A cross-encoder: a BERT-family classifier that reads question and passage together and says how well they fit."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recollect.embedding._settings import EncoderSettings
from recollect.embedding._tokens import TextTokenizer
from recollect.embedding.models import ModelCache
from recollect.embedding.quantise import SAMPLE_TEXTS, Precision, ensure_built, load_session
from recollect.errors import ProviderError, UsageError
from recollect.forking import leave_to_parent, renew_in_children
from recollect.interruption import check

if TYPE_CHECKING:
    import onnxruntime

#: Windows of one passage that are scored at most: what a passage of ten thousand words says after these is not read.
MAX_WINDOWS = 16


@dataclass(frozen=True, slots=True)
class _Pair:
    """A question and a stretch of one passage as the model reads them."""

    passage_index: int
    token_ids: tuple[int, ...]
    token_types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Loaded:
    session: onnxruntime.InferenceSession
    tokenizer: TextTokenizer
    max_tokens: int


class CrossEncoder:
    """Scores pairs of question and passage on this machine (Nogueira and Cho 2019, "Passage Re-ranking with BERT").

    A passage longer than the model's window is scored in consecutive windows, and the best one counts (MaxP; Dai and
    Callan 2019). A question takes at most half of the window; the rest of a longer one is not read.

    Constructing costs nothing; the model is fetched, built and loaded on first use, once. Safe to share between
    threads.

    Args:
        model: A directory with ``model.safetensors``, ``config.json`` and ``tokenizer.json`` of a BERT, RoBERTa,
            XLM-RoBERTa or CamemBERT sequence classifier with one or two labels, or a name that ``cache`` knows.
        cache: Where models and built graphs are kept.
        precision: ``"int8"`` (32 bits are used where it does not agree with them) or ``"fp32"``.
        threads: How many pairs are computed at once; by default, one for each processor this process may use.

    Raises:
        UsageError: A parameter is out of range.
    """

    def __init__(
        self, model: str, *, cache: ModelCache, precision: Precision = "int8", threads: int | None = None
    ) -> None:
        if precision not in {"int8", "fp32"}:
            raise UsageError(f"precision must be 'int8' or 'fp32', not {precision!r}")
        if threads is not None and threads < 1:
            raise UsageError(f"threads must be at least 1, not {threads!r}")
        self._model = model
        self._cache = cache
        self._precision: Precision = precision
        self._threads = threads or os.cpu_count() or 1
        self._unload()
        renew_in_children(self)

    def _unload(self) -> None:
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None
        self._pool: ThreadPoolExecutor | None = None

    def renew_in_child(self) -> None:
        """In the child of a fork: the model is loaded again when it is needed; its threads are the parent's."""
        leave_to_parent(self._lock, self._loaded, self._pool)
        self._unload()

    @property
    def model_name(self) -> str:
        """The model and the precision asked for."""
        return f"{self._model}:{self._precision}"

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """How well each passage answers the question.

        Args:
            query: The question.
            passages: Any number of texts of any length.

        Returns:
            One number per passage, higher is better: the logit of the only label, or the second label's above the
            first's.

        Raises:
            ModelUnavailableError: The model cannot be fetched, built or loaded, or has more than two labels.
            ProviderError: The model's window leaves no room for a passage.
        """
        if isinstance(passages, str):
            raise UsageError("scores takes a sequence of passages, not one text")
        loaded = self._load()
        # The longest first: then no thread starts its longest piece of work when the others are done.
        pairs = sorted(self._pairs(query, passages, loaded), key=lambda pair: -len(pair.token_ids))
        best = [-np.inf] * len(passages)

        def run(pair: _Pair) -> float:
            feed = {
                "input_ids": np.array([pair.token_ids], np.int32),
                "token_types": np.array([pair.token_types], np.int32),
            }
            logits = loaded.session.run(None, feed)[0][0]
            return float(logits[0] if len(logits) == 1 else logits[1] - logits[0])

        parallel = self._threads > 1 and len(pairs) > 1
        for pair, score in zip(pairs, self._executor().map(run, pairs) if parallel else map(run, pairs), strict=True):
            check()
            best[pair.passage_index] = max(best[pair.passage_index], score)
        return best

    def _pairs(self, query: str, passages: Sequence[str], loaded: _Loaded) -> list[_Pair]:
        before, between, behind, second_type = loaded.tokenizer.pair_template()
        room = loaded.max_tokens - len(before) - len(between) - len(behind)
        if room < 2:
            raise ProviderError(
                f"The model's window of {loaded.max_tokens} tokens leaves no room for a question and a passage.",
                provider="local",
                model=self._model,
            )
        # Pieces keep the tokenizer's memory small; of a huge text only the first ones can matter.
        start, end = next(iter(TextTokenizer.pieces(query)))
        question = loaded.tokenizer.ids_batch([query[start:end]])[0][: room // 2]
        step = room - len(question)
        heads = [passage[slice(*next(iter(TextTokenizer.pieces(passage))))] for passage in passages]
        first = (*before, *question, *between)
        pairs: list[_Pair] = []
        for index, ids in enumerate(loaded.tokenizer.ids_batch(heads)):
            for offset in range(0, max(1, min(len(ids), step * MAX_WINDOWS)), step):
                rest = (*ids[offset : offset + step], *behind)
                pairs.append(_Pair(index, (*first, *rest), (0,) * len(first) + (second_type,) * len(rest)))
        return pairs

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                files = self._cache.pull(self._model)
                tokenizer = TextTokenizer(files.tokenizer)
                limit = EncoderSettings.read(files).max_tokens
                room = limit - len(tokenizer.specials[0]) - len(tokenizer.specials[1])
                ids = tokenizer.ids_batch(SAMPLE_TEXTS)
                sample = [(*tokenizer.specials[0], *part[:room], *tokenizer.specials[1]) for part in ids]
                graph = ensure_built(files, precision=self._precision, sample=sample, head="classifier")
                self._loaded = _Loaded(load_session(graph.path), tokenizer, limit)
            return self._loaded

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="recollect-cross-encoder")
            return self._pool
