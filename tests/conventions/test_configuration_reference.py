"""The reference of settings says what `RAGConfig` says. Run as a program, this writes it anew."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from recollect.chunking.registry import describe_chunker, make_chunker, parameter_names, strategy_names
from recollect.config import SHORT_NAMES, ChunkingConfig, RAGConfig
from recollect.config._reading import variable

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/configuration.md"
HEAD = """# Configuration reference

Generated from the program itself: every key of the TOML file, its name in the environment, its default and its unit.

Of several places the later one wins: the defaults, a TOML file (`--config FILE`, else `RECOLLECT_CONFIG`, else
`recollect.toml` in the working directory), the environment, and the command line or the arguments of `RAGConfig`. A key
or a variable that does not exist, and a value that is not allowed, is an error, which names the nearest key there is.

```toml
[rag]
collection = "handbook"

[rag.retrieval]
top_k = 5

[rag.retrieval.enhance]
multi_query = 2
synonyms = { handbook = "~/words.txt" }
```

```console
export RECOLLECT_COLLECTION=handbook
export RECOLLECT_RETRIEVAL__TOP_K=5
export RECOLLECT_RETRIEVAL__ENHANCE__MULTI_QUERY=2
export RECOLLECT_RETRIEVAL__ENHANCE__SYNONYMS__handbook='~/words.txt'
```

## How values are written in the environment

A variable is `RECOLLECT_`, the names of the tables and the key, with `__` between them, in capital letters.

- Numbers, texts and paths as they are; `true` or `false`. A path may begin with `~`; a relative one is meant from the
  working directory, in the file too.
- A list: its items with commas between (`legal,audit`), or a JSON array where an item holds a comma.
- A table: one variable for each of its keys, or the whole as a JSON object (`RECOLLECT_RETRIEVAL='{"top_k": 5}'`); a
  single variable wins over the object. Where the keys of a table are the user's own (collections, roles), they stand in
  the variable's name as they are, in upper and lower case; what no variable can be called needs the JSON object.
- An empty variable counts as not set.
- `RECOLLECT_SERVICE_HOST`, `RECOLLECT_PORT` and the like, which Kubernetes sets for a service called `recollect`, are
  passed over; any other unknown name that begins with `RECOLLECT_` is refused.

Some settings have short names, which win over the long ones:
"""

#: Of numbers whose name does not tell.
UNITS = {
    "embedding.threads": "threads",
    "embedding.dimensions": "dimensions",
    "embedding.parallel": "requests",
    "embedding.batch_size": "texts",
    "embedding.max_retries": "repetitions",
    "embedding.input_price": "price",
    "reranking.max_retries": "repetitions",
    "reranking.input_price": "price",
    "reranking.search_price": "price",
    "reranking.candidates": "passages",
    "retrieval.rerank_candidates": "passages",
    "reranking.top_k": "passages",
    "answer.max_retries": "repetitions",
    "answer.input_price": "price",
    "answer.output_price": "price",
    "answer.temperature": "temperature",
    "storage.max_connections": "connections",
    "storage.index_threshold": "chunks",
    "ingest.readers": "files",
    "retrieval.top_k": "passages",
    "retrieval.rrf_k": "ranks",
    "retrieval.candidates": "chunks",
    "retrieval.similarity_threshold": "cosine",
    "retrieval.min_score": "score",
    "retrieval.lexical_budget": "chunks",
    "retrieval.cache_entries": "replies",
    "retrieval.query_cache_entries": "questions",
    "retrieval.enhance.multi_query": "wordings",
    "context.token_budget": "tokens",
    "context.max_context_length": "characters",
    "answer.passages": "passages",
    "answer.top_k": "passages",
    "memory.min_retrievals": "searches",
    "temporal.default_ttl": "duration or seconds",
    "temporal.scrub_after_erased": "documents and turns",
    "session.ttl": "duration or seconds",
    "jobs.max_attempts": "attempts",
    "server.port": "port",
    "server.limits.search": "requests a minute",
    "server.limits.answer": "requests a minute",
    "server.limits.ingest": "requests a minute",
    "server.limits.tenant_search": "requests a minute",
    "server.limits.tenant_answer": "requests a minute",
    "server.limits.tenant_ingest": "requests a minute",
    "server.limits.concurrent_answers": "answers",
    "server.limits.concurrent_answers_per_credential": "answers",
    "server.limits.failed_credentials": "credentials a minute",
    "server.limits.upload_bytes_per_day": "bytes",
    "server.concurrent_searches": "searches",
    "server.max_streams": "answers",
    "server.worker_concurrency": "jobs",
    "session.max_documents": "documents",
    "access.department_boost": "factor",
    "access.other_departments": "factor",
    "access.role_preferences.<name>.factor": "factor",
    "retrieval.resident_memory_mb": "megabytes",
}
SUFFIXES = ("seconds", "bytes", "hours", "days", "characters", "tokens")


def reference() -> str:
    parts = [HEAD, _table(["Variable", "Key"], [[f"`{name}`", f"`{'.'.join(('rag', *at))}`"] for name, at in _short()])]
    for above, model in _models(RAGConfig):
        title = f"`[{'.'.join(('rag', *above))}]`"
        about = "" if model is RAGConfig else _about(model)
        rows = [_row((*above, key), known) for key, known in model.model_fields.items() if not _inner(known)]
        if rows:
            parts.append(f"## {title}\n\n{about}" + _table(["Key", "Default", "Unit", "What it is"], rows))
        if model is ChunkingConfig:
            parts.append(_strategies())
    return "\n".join(parts)


def _strategies() -> str:
    """What stands in ``[rag.chunking]`` beside the strategy's name."""
    rows = []
    for name in strategy_names():
        described = describe_chunker(make_chunker(name))
        values = {key: described[key] for key in parameter_names(name)}
        shown = (f"`{key}` ({'none' if value is None else json.dumps(value)})" for key, value in values.items())
        rows.append([f"`{name}`", ", ".join(shown)])
    return "In the environment, `RECOLLECT_CHUNKING__SIZE=400` and so on:\n\n" + _table(
        ["Strategy", "Parameters (defaults)"], rows
    )


def _short() -> list[tuple[str, tuple[str, ...]]]:
    return sorted(SHORT_NAMES.items())


def _models(model: type[BaseModel], above: tuple[str, ...] = ()):
    yield above, model
    for key, known in model.model_fields.items():
        for inner, name in _inner(known):
            yield from _models(inner, (*above, key, *name))


def _inner(known: FieldInfo) -> list[tuple[type[BaseModel], tuple[str, ...]]]:
    """The tables within: of settings, or of one entry for each name."""
    if isinstance(known.annotation, type) and issubclass(known.annotation, BaseModel):
        return [(known.annotation, ())]
    if get_origin(known.annotation) is dict:
        value = get_args(known.annotation)[1]
        if isinstance(value, type) and issubclass(value, BaseModel):
            return [(value, ("<name>",))]
    return []


def _about(model: type[BaseModel]) -> str:
    text = " ".join((model.__doc__ or "").split("\n\n")[0].split())
    sentence = re.sub(r"^``\[[^`]+\]``: ", "", text).replace("``", "`")
    return sentence[:1].upper() + sentence[1:] + "\n\n"


def _row(place: tuple[str, ...], known: FieldInfo) -> list[str]:
    limits = _limits(known)
    meaning = (known.description or "").replace("``", "`")
    return [
        f"`{place[-1]}`<br>`{variable(place).replace('<NAME>', '<name>')}`",
        _default(known),
        unit(place, known) or "",
        f"{meaning} {limits}".strip(),
    ]


def _limits(known: FieldInfo) -> str:
    choices = [value for kind in _kinds(known.annotation) if get_origin(kind) is Literal for value in get_args(kind)]
    if choices:
        return "One of " + ", ".join(f"`{choice}`" for choice in choices) + "."
    bounds = {name: getattr(one, name) for one in known.metadata for name in ("ge", "gt", "le") if hasattr(one, name)}
    low, high = bounds.get("ge", bounds.get("gt")), bounds.get("le")
    if low is None:
        return ""
    if "gt" in bounds:
        return f"(above {low:,}" + (")" if high is None else f", at most {high:,})")
    return f"(at least {low:,})" if high is None else f"({low:,} to {high:,})"


def _kinds(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        return _kinds(get_args(annotation)[0])
    if get_origin(annotation) in {Union, UnionType}:
        return [kind for one in get_args(annotation) for kind in _kinds(one)]
    return [annotation]


def _default(known: FieldInfo) -> str:
    if known.is_required():
        return "*required*"
    if Path in _kinds(known.annotation):
        return "by platform"
    value = known.get_default(call_default_factory=True)
    if value is None:
        return "none"
    return f"`{json.dumps(value, ensure_ascii=False, default=dict)}`"


def unit(place: tuple[str, ...], known: FieldInfo) -> str | None:
    """The unit of a number; None where it is no number."""
    if not {int, float} & set(_kinds(known.annotation)):
        return None
    name = ".".join(place)
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(f"_{suffix}")), None)
    share = any(getattr(one, "le", None) in {1, 0.5} for one in known.metadata)
    return UNITS.get(name, suffix or ("share" if share else None))


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), ""])


def test_the_reference_is_what_the_settings_say():
    assert PAGE.read_text(encoding="utf-8") == reference(), f"run: python tests/conventions/{Path(__file__).name}"


def test_every_setting_is_explained_and_every_number_has_its_unit():
    for above, model in _models(RAGConfig):
        for key, known in model.model_fields.items():
            if _inner(known):
                continue
            place = (*above, key)
            assert known.description, f"{'.'.join(place)} needs a description"
            number = {int, float} & set(_kinds(known.annotation))
            assert bool(number) == bool(unit(place, known)), f"{'.'.join(place)} needs its unit in UNITS, above"


def test_every_setting_and_short_name_stands_in_the_reference():
    text = PAGE.read_text(encoding="utf-8")
    for name in SHORT_NAMES:
        assert f"`{name}`" in text
    for above, model in _models(RAGConfig):
        for key, known in model.model_fields.items():
            if not _inner(known) and SecretStr not in _kinds(known.annotation):
                assert variable((*above, key)).replace("<NAME>", "<name>") in text


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(reference(), encoding="utf-8")
