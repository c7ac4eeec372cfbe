"""The default embedder and reranker: BERT-family encoders on this machine's processor, through ONNX Runtime."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from recollect.embedding._tokens import Span, TextTokenizer
from recollect.embedding.base import Vectors
from recollect.embedding.bert_graph import BertConfig, Pooling
from recollect.embedding.models import DEFAULT_MODEL, KNOWN_MODELS, ModelCache, ModelFiles, full_name
from recollect.embedding.quantise import SAMPLE_TEXTS, BuiltGraph, Precision, ensure_built, load_session
from recollect.errors import ModelUnavailableError, ProviderError, UsageError
from recollect.forking import leave_to_parent, renew_in_children
from recollect.interruption import check

if TYPE_CHECKING:
    import onnxruntime

    from recollect.embedding._download import Progress
    from recollect.embedding.bert_graph import Head


logger = logging.getLogger(__name__)

Work = TypeVar("Work")
Result = TypeVar("Result")

# Texts are tokenised a slice at a time, so that memory does not grow with their number.
_SLICE_TEXTS = 512
_SLICE_CHARACTERS = 1_000_000


@dataclass(frozen=True, slots=True)
class _Window:
    """A stretch of one text's tokens, specials included, that fits the model."""

    text_index: int
    token_ids: tuple[int, ...]
    weight: int


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Everything that the first use brings into memory."""

    session: onnxruntime.InferenceSession
    graph: BuiltGraph
    tokenizer: TextTokenizer
    settings: EncoderSettings


class LocalModel:
    """A model on this machine: fetched, built and loaded on first use, once, and computed in several threads.

    Subclasses keep what they load in attributes that `_unload` sets to None.
    """

    def __init__(self, model: str, cache: ModelCache, precision: Precision, threads: int | None) -> None:
        if precision not in {"int8", "fp32"}:
            raise UsageError(f"precision must be 'int8' or 'fp32', not {precision!r}")
        if threads is not None and threads < 1:
            raise UsageError(f"threads must be at least 1, not {threads!r}")
        self._model = model
        self._cache = cache
        self._precision: Precision = precision
        self._threads = threads or _usable_processors()
        self._unload()
        renew_in_children(self)

    def _unload(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def renew_in_child(self) -> None:
        """In the child of a fork: the model is loaded again when it is needed; its threads are the parent's."""
        leave_to_parent(*self._of_the_process())
        self._unload()

    def _of_the_process(self) -> tuple[object, ...]:
        """What cannot be used after a fork."""
        return self._lock, self._pool

    @property
    def model_name(self) -> str:
        """The model and the precision asked for, for instance ``"…/all-MiniLM-L6-v2:int8"``.

        It does not change where 8 bits are rejected on this processor and 32 are used: vectors of the two are
        comparable.
        """
        return f"{self._model}:{self._precision}"

    def each(self, compute: Callable[[Work], Result], work: Sequence[Work]) -> Iterator[tuple[Work, Result]]:
        """Compute pieces of work side by side; each with its result, in order."""
        alone = self._threads == 1 or len(work) < 2
        results = map(compute, work) if alone else self._executor().map(compute, work)
        for piece, result in zip(work, results, strict=True):
            check()
            yield piece, result

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="recollect-embed")
            return self._pool


class LocalEmbedder(LocalModel):
    """Embeds on this machine: no key, no network once the weights are here; in 32 bits on a GPU, if there is one.

    A text longer than the model's window is embedded in consecutive windows, and their vectors are averaged
    by token count: no part of it is ignored. The empty text has a vector like any other.

    With 8 bits every window runs through the model by itself, because activations are quantised over what is
    computed together: a text's vector depends on nothing but the text. With 32 bits, windows of equal length share a
    call. Both spread over ``threads`` threads. One instance may be shared between threads.

    Constructing costs nothing; the model is fetched, built and loaded on first use, once.

    Args:
        model: The name of a known model, or a directory with ``model.safetensors``, ``config.json`` and
            ``tokenizer.json``.
        cache: Where models are kept.
        precision: ``"int8"`` (three times as fast, cosine to 32 bits about 0.995) or ``"fp32"``.
        threads: How many windows are computed at once; by default, one for each processor this process may use.
        batch_tokens: The most tokens of one call to the model with 32 bits; with threads, what bounds memory.
        progress: Told how a download advances, should first use need one.

    Raises:
        UsageError: A parameter is out of range.

    Example:
        >>> embedder = LocalEmbedder(cache=ModelCache(Path("models")))  # doctest: +SKIP
        >>> embedder.embed_query("How much leave do I have?").shape  # doctest: +SKIP
        (384,)
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        cache: ModelCache,
        precision: Precision = "int8",
        threads: int | None = None,
        batch_tokens: int = 2048,
        progress: Progress | None = None,
    ) -> None:
        if batch_tokens < 1:
            raise UsageError(f"batch_tokens must be at least 1, not {batch_tokens!r}")
        super().__init__(full_name(model), cache, precision, threads)
        self._batch_tokens = batch_tokens
        self._progress = progress

    def _unload(self) -> None:
        super()._unload()
        self._loaded: _Loaded | None = None
        self._loaded_tokens: _Loaded | None = None
        self._tokenizer: TextTokenizer | None = None

    def _of_the_process(self) -> tuple[object, ...]:
        return (*super()._of_the_process(), self._loaded, self._loaded_tokens, self._tokenizer)

    @property
    def dimension(self) -> int:
        """The length of every vector; of a known model without fetching it, and of none by loading it."""
        known = KNOWN_MODELS.get(self._model)
        if known is not None:
            return known.dimension
        loaded = self._loaded
        settings = loaded.settings if loaded is not None else EncoderSettings.read(self._files())
        return settings.dimension

    @property
    def active_precision(self) -> Precision:
        """The precision at work, once 8 bits have passed or failed their check on this processor; loads the model."""
        return self._load().graph.precision

    def load_ahead(self) -> None:
        """Load the model before its first use, where it is on this machine; what is not there is not fetched for it."""
        if self._cache.find(self._model) is not None:
            self._load()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed texts to be found; see `EmbeddingProvider`.

        Raises:
            ModelUnavailableError: The model cannot be fetched, built or loaded.
        """
        if isinstance(texts, str):
            raise UsageError("embed_documents takes a sequence of texts, not one text")
        loaded = self._load()
        return self._embed(texts, loaded, loaded.settings.document_prefix)

    def embed_query(self, text: str) -> Vectors:
        """Embed a question; see `EmbeddingProvider`.

        Raises:
            ModelUnavailableError: The model cannot be fetched, built or loaded.
        """
        loaded = self._load()
        vector: Vectors = self._embed([text], loaded, loaded.settings.query_prefix)[0]
        return vector

    def token_vectors(self, texts: Sequence[str], *, as_query: bool = False) -> list[Vectors]:
        """The model's last layer: one vector a token, as late interaction compares them.

        Special tokens are left out: with them, rankings measured the same. A text longer than the model's window is
        computed in consecutive windows. Loads a second graph, beside the one that gives one vector a text.

        Args:
            texts: Any number of texts of any length.
            as_query: Whether they are questions, which some models prefix differently.

        Returns:
            For each text a float32 array of shape (tokens, dimension), rows of unit length; a text without tokens has
            none.

        Raises:
            ModelUnavailableError: The model cannot be fetched, built or loaded.
        """
        if isinstance(texts, str):
            raise UsageError("token_vectors takes a sequence of texts, not one text")
        loaded = self._load_tokens()
        prefix = loaded.settings.query_prefix if as_query else loaded.settings.document_prefix
        lead = len(loaded.tokenizer.ids_batch([prefix])[0]) if prefix else 0
        first, behind = len(loaded.tokenizer.specials[0]) + lead, len(loaded.tokenizer.specials[1])
        parts: list[list[Vectors]] = [[] for _ in texts]
        for pieces in _slices(texts):
            windows = self._windows(pieces, loaded, prefix)
            computed: dict[int, Vectors] = {}
            for batch, result in self._run_all(self._batches(windows, loaded.graph.precision), loaded):
                computed |= {id(window): vectors for window, vectors in zip(batch, result, strict=True)}
            for window in windows:
                parts[window.text_index].append(computed[id(window)][first : len(window.token_ids) - behind])
        return [_unit_rows(np.concatenate(own)) for own in parts]

    def token_spans(self, text: str) -> list[Span]:
        """The character offsets of the model's tokens in a text, in order, without the special tokens.

        Args:
            text: Of any length.

        Raises:
            ModelUnavailableError: The model cannot be fetched, or its tokenizer cannot be read.
        """
        return self._text_tokenizer().spans(text)

    def token_spans_batch(self, texts: Sequence[str]) -> list[list[Span]]:
        """`token_spans` of many texts, in parallel.

        Args:
            texts: Any number of texts.

        Raises:
            ModelUnavailableError: As for `token_spans`.
        """
        return self._text_tokenizer().spans_batch(texts)

    def splits_at_blanks(self) -> bool:
        """Whether a text's tokens are those of what stands between its blanks and line breaks, each for itself.

        Raises:
            ModelUnavailableError: As for `token_spans`.
        """
        return self._text_tokenizer().splits_at_blanks

    def _files(self) -> ModelFiles:
        return self._cache.pull(self._model, progress=self._progress)

    def _text_tokenizer(self) -> TextTokenizer:
        with self._lock:
            if self._tokenizer is None:
                files = self._files()
                self._tokenizer = TextTokenizer(files.tokenizer, compiled=files.build_directory)
            return self._tokenizer

    def _load(self) -> _Loaded:
        if self._loaded is not None:
            return self._loaded
        tokenizer = self._text_tokenizer()
        with self._lock:
            if self._loaded is None:
                self._loaded = self._open(tokenizer, "pooled")
            return self._loaded

    def _load_tokens(self) -> _Loaded:
        if self._loaded_tokens is not None:
            return self._loaded_tokens
        tokenizer = self._text_tokenizer()
        with self._lock:
            if self._loaded_tokens is None:
                self._loaded_tokens = self._open(tokenizer, "tokens")
            return self._loaded_tokens

    def _open(self, tokenizer: TextTokenizer, head: Head) -> _Loaded:
        files = self._files()
        settings = EncoderSettings.read(files)
        limit = settings.max_tokens - len(tokenizer.specials[0]) - len(tokenizer.specials[1])
        sample = [_with_specials(ids[:limit], tokenizer) for ids in tokenizer.ids_batch(SAMPLE_TEXTS)]

        def build() -> BuiltGraph:
            return ensure_built(files, precision=self._precision, sample=sample, pooling=settings.pooling, head=head)

        graph = build()
        try:
            session = load_session(graph.path, gpu=graph.precision == "fp32")
        except ModelUnavailableError:
            logger.warning("The graph %s is damaged; building it again.", graph.path)
            graph.path.unlink(missing_ok=True)
            graph = build()
            session = load_session(graph.path, gpu=graph.precision == "fp32")
        return _Loaded(session, graph, tokenizer, settings)

    def _embed(self, texts: Sequence[str], loaded: _Loaded, prefix: str) -> Vectors:
        vectors = np.zeros((len(texts), loaded.settings.dimension), np.float32)
        for pieces in _slices(texts):
            windows = self._windows(pieces, loaded, prefix)
            for batch, result in self._run_all(self._batches(windows, loaded.graph.precision), loaded):
                for window, vector in zip(batch, result, strict=True):
                    vectors[window.text_index] += vector * np.float32(window.weight)
        return _unit_rows(vectors)

    def _windows(self, pieces: Sequence[tuple[int, str]], loaded: _Loaded, prefix: str) -> list[_Window]:
        tokenizer = loaded.tokenizer
        lead = tokenizer.ids_batch([prefix])[0] if prefix else []
        room = loaded.settings.max_tokens - len(tokenizer.specials[0]) - len(tokenizer.specials[1]) - len(lead)
        if room < 1:
            raise ProviderError(
                f"The model's window of {loaded.settings.max_tokens} tokens leaves no room for text.",
                provider="local",
                model=self._model,
            )
        windows: list[_Window] = []
        for (index, _), ids in zip(pieces, tokenizer.ids_batch([piece for _, piece in pieces]), strict=True):
            windows.extend(
                _Window(index, _with_specials([*lead, *part], tokenizer), max(1, len(part)))
                for part in _parts(ids, room)
            )
        return windows

    def _batches(self, windows: list[_Window], precision: Precision) -> list[list[_Window]]:
        # The longest first: then no thread starts its longest piece of work when the others are done.
        windows = sorted(windows, key=lambda window: -len(window.token_ids))
        batches: list[list[_Window]] = []
        for length, same in groupby(windows, key=lambda window: len(window.token_ids)):
            group = list(same)
            size = 1 if precision == "int8" else max(1, self._batch_tokens // length)
            batches.extend(group[start : start + size] for start in range(0, len(group), size))
        return batches

    def _run_all(self, batches: list[list[_Window]], loaded: _Loaded) -> Iterator[tuple[list[_Window], Vectors]]:
        def run(batch: list[_Window]) -> Vectors:
            ids = np.array([window.token_ids for window in batch], np.int32)
            result: Vectors = loaded.session.run(None, {"input_ids": ids})[0]
            return result

        return self.each(run, batches)


def _usable_processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def _unit_rows(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Vectors = vectors / np.maximum(lengths, np.float32(1e-12))
    return units


def _with_specials(ids: Sequence[int], tokenizer: TextTokenizer) -> tuple[int, ...]:
    before, after = tokenizer.specials
    return (*before, *ids, *after)


def _slices(texts: Sequence[str]) -> Iterator[list[tuple[int, str]]]:
    """Groups of (text index, piece of that text), bounded in number and characters."""
    group: list[tuple[int, str]] = []
    characters = 0
    for index, text in enumerate(texts):
        for start, end in TextTokenizer.pieces(text):
            if group and (len(group) >= _SLICE_TEXTS or characters + end - start > _SLICE_CHARACTERS):
                yield group
                group, characters = [], 0
            group.append((index, text[start:end]))
            characters += end - start
    if group:
        yield group


def _parts(ids: list[int], room: int) -> Iterator[list[int]]:
    """Cut into parts of ``room``, the last one shorter; the empty list is one empty part."""
    for start in range(0, max(1, len(ids)), room):
        yield ids[start : start + room]


# A cross-encoder: a BERT-family classifier that reads question and passage together and says how well they fit.


#: Windows of one passage that are scored at most: what a passage of ten thousand words says after these is not read.
MAX_WINDOWS = 16


@dataclass(frozen=True, slots=True)
class _Pair:
    """A question and a stretch of one passage as the model reads them."""

    passage_index: int
    token_ids: tuple[int, ...]
    token_types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _LoadedPairs:
    session: onnxruntime.InferenceSession
    tokenizer: TextTokenizer
    max_tokens: int


class CrossEncoder(LocalModel):
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
        super().__init__(model, cache, precision, threads)

    def _unload(self) -> None:
        super()._unload()
        self._loaded: _LoadedPairs | None = None

    def _of_the_process(self) -> tuple[object, ...]:
        return (*super()._of_the_process(), self._loaded)

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

        for pair, score in self.each(run, pairs):
            best[pair.passage_index] = max(best[pair.passage_index], score)
        return best

    def _pairs(self, query: str, passages: Sequence[str], loaded: _LoadedPairs) -> list[_Pair]:
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

    def _load(self) -> _LoadedPairs:
        with self._lock:
            if self._loaded is None:
                files = self._cache.pull(self._model)
                tokenizer = TextTokenizer(files.tokenizer)
                limit = EncoderSettings.read(files).max_tokens
                room = limit - len(tokenizer.specials[0]) - len(tokenizer.specials[1])
                ids = tokenizer.ids_batch(SAMPLE_TEXTS)
                sample = [(*tokenizer.specials[0], *part[:room], *tokenizer.specials[1]) for part in ids]
                graph = ensure_built(files, precision=self._precision, sample=sample, head="classifier")
                self._loaded = _LoadedPairs(load_session(graph.path), tokenizer, limit)
            return self._loaded


# What a model's sentence-transformers files say about how it wants to be used.


_KNOWN_MODULES = frozenset({"Transformer", "Pooling", "Normalize"})


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """How texts become vectors with one model.

    Attributes:
        dimension: The length of a vector.
        max_tokens: The longest window, special tokens included.
        pooling: How token vectors become one; the mean, where the model does not say.
        query_prefix: Put before a question; mostly empty.
        document_prefix: Put before a text to be found; mostly empty.
    """

    dimension: int
    max_tokens: int
    pooling: Pooling
    query_prefix: str
    document_prefix: str

    @classmethod
    def read(cls, files: ModelFiles) -> EncoderSettings:
        """Read the settings of a model.

        Args:
            files: The model; of its files only ``config.json`` must exist.

        Raises:
            ModelUnavailableError: A file is damaged, or asks for something other than mean or first-token pooling.
        """
        bert = BertConfig.read(files.config)
        directory = files.directory
        _check_modules(directory / "modules.json")
        prompts = _read(directory / "config_sentence_transformers.json").get("prompts")
        prompts = prompts if isinstance(prompts, dict) else {}
        longest = _read(directory / "sentence_bert_config.json").get("max_seq_length")
        return cls(
            dimension=bert.hidden,
            max_tokens=min(bert.positions, longest) if isinstance(longest, int) and longest > 0 else bert.positions,
            pooling=_pooling(directory / "1_Pooling" / "config.json"),
            query_prefix=str(prompts.get("query", "")),
            document_prefix=str(prompts.get("document", prompts.get("passage", ""))),
        )


def _check_modules(path: Path) -> None:
    modules = _read(path).get("modules")
    if not isinstance(modules, list):
        return
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules if isinstance(module, dict)]
    unknown = sorted(set(kinds) - _KNOWN_MODULES)
    if unknown:
        raise ModelUnavailableError(
            f"{path} asks for {', '.join(unknown)} after the encoder, which is not supported.",
            provider="local",
            model=path.parent.name,
        )


def _pooling(path: Path) -> Pooling:
    wanted = [key for key, value in _read(path).items() if key.startswith("pooling_mode_") and value is True]
    if wanted in ([], ["pooling_mode_mean_tokens"]):
        return "mean"
    if wanted == ["pooling_mode_cls_token"]:
        return "cls"
    raise ModelUnavailableError(
        f"{path} asks for {', '.join(wanted)}; supported are the mean and the first token.",
        provider="local",
        model=path.parent.parent.name,
    )


def _read(path: Path) -> Mapping[str, object]:
    """The file's JSON object; a list as the member ``modules``; nothing where there is no such file."""
    try:
        parsed = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as exc:
        raise ModelUnavailableError(f"{path} cannot be read ({exc}).", provider="local") from exc
    if isinstance(parsed, list):
        return {"modules": parsed}
    return parsed if isinstance(parsed, dict) else {}
