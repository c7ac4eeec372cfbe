"""``recollect providers`` and ``models``: whose models are configured, and those on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import platformdirs
import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._terminal import one_line, size
from recollect.embedding.models import DEFAULT_MODEL, ModelCache
from recollect.errors import RecollectError
from recollect.installation import install_command
from recollect.llm.base import ChatMessage, complete
from recollect.pipeline.models import embedding_model, language_model, reranking_model

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.embedding.models import CachedModel
    from recollect.providers.catalogue import FoundKey, FoundServer


providers_app = typer.Typer(
    help="Whose models are configured and installed, whether they answer, and what else there is.",
    no_args_is_help=True,
)


_SECTIONS = ("embedding", "reranking", "answer")


class _Section(StrEnum):
    EMBEDDING = "embedding"
    RERANKING = "reranking"
    ANSWER = "answer"


def _list_providers(ctx: CommandContext) -> int:
    """List the providers: what each can do, whether its package and its key are there, and what is configured."""
    from recollect.providers.catalogue import PROVIDERS, detect_keys
    from recollect.providers.registry import installed

    keys = {key.provider: key.variable for key in reversed(detect_keys())}
    found = [
        {
            "name": row.name,
            "title": row.title,
            "capabilities": sorted(row.capabilities),
            "extra": row.extra,
            "installed": installed(row),
            "key": keys.get(row.name),
            "configured": _configured(ctx.config, row.name),
        }
        for row in PROVIDERS.values()
    ]
    if ctx.json:
        ctx.emit({"providers": found})
        return 0
    for one in found:
        ctx.out.print(one_line(_described(one)), soft_wrap=True)
    return 0


def _configured(config: RAGConfig, provider: str) -> dict[str, str | None]:
    """By section, the model of a provider that is configured there."""
    return {
        section: getattr(config, section).model
        for section in _SECTIONS
        if getattr(config, section).provider == provider
    }


def _described(one: dict[str, Any]) -> str:
    state = "installed" if one["installed"] else install_command(one["extra"])
    key = f", key in {one['key']}" if one["key"] else ""
    used = "".join(f", [rag.{section}] {model or 'its default'}" for section, model in one["configured"].items())
    return f"{one['name']}  {one['title']}: {', '.join(one['capabilities'])}  ({state}{key}{used})"


def _test(
    ctx: CommandContext,
    *,
    section: Annotated[
        _Section | None, typer.Argument(help="Only this one; by default all that are configured.")
    ] = None,
) -> int:
    """Try what is configured, each with one request. Exit status 1 if one of them does not answer."""
    tries = {"embedding": _try_embedding, "reranking": _try_reranking, "answer": _try_answer}
    wanted = [section.value] if section is not None else list(_SECTIONS)
    outcomes = [one for name in wanted if (one := _tried(ctx.config, name, tries[name])) is not None]
    if ctx.json:
        ctx.emit({"tests": outcomes})
    for one in [] if ctx.json else outcomes:
        where = f"[rag.{one['section']}] {one['provider']}/{one['model'] or 'its default'}"
        verdict = f"ok, {one['milliseconds']:,.0f} ms: {one['detail']}" if one["ok"] else f"failed: {one['detail']}"
        ctx.out.print(one_line(f"{where}  {verdict}"), soft_wrap=True)
    if not outcomes and not ctx.json:
        ctx.out.print("No model is configured there.")
    return 0 if all(one["ok"] for one in outcomes) else 1


def _tried(config: RAGConfig, section: str, attempt: Callable[[RAGConfig], str]) -> dict[str, Any] | None:
    settings = getattr(config, section)
    if settings.provider in {"none", "extractive"}:
        return None
    started = time.perf_counter()
    try:
        detail, works = attempt(config), True
    except RecollectError as exc:
        detail, works = str(exc), False
    return {
        "section": section,
        "provider": settings.provider,
        "model": settings.model,
        "ok": works,
        "milliseconds": round((time.perf_counter() - started) * 1000, 1),
        "detail": detail,
    }


def _try_embedding(config: RAGConfig) -> str:
    embedder = embedding_model(config.embedding)
    with _closing(embedder):
        embedder.embed_query("How many days of leave are there?")
    return f"{embedder.model_name}, {embedder.dimension} dimensions"


def _try_reranking(config: RAGConfig) -> str:
    scorer = reranking_model(config)
    if scorer is None:
        raise AssertionError("a reranker is configured")
    texts = ["There are 30 days of leave.", "Blue paint."]
    with _closing(scorer):
        right, wrong = scorer.scores("How many days of leave are there?", texts)
    return f"the answer scores {right:.3f}, another text {wrong:.3f}"


@contextmanager
def _closing(model: object) -> Iterator[None]:
    try:
        yield
    finally:
        close = getattr(model, "close", None)  # a model of this machine has none
        if close is not None:
            close()


def _try_answer(config: RAGConfig) -> str:
    model = language_model(config.answer)
    if model is None:
        raise AssertionError("a language model is configured")
    message = ChatMessage("user", "Answer with the one word: ready")
    said = complete(model, [message], timeout_seconds=config.answer.timeout_seconds, max_characters=200)
    return f"{model.model_name} says {said.strip()!r}"


def _detect(ctx: CommandContext) -> int:
    """Look for model servers on this machine and keys in the environment, and print the settings that use them."""
    from recollect.providers.catalogue import detect_keys, detect_servers

    servers, keys = detect_servers(), detect_keys()
    if ctx.json:
        ctx.emit({"servers": [_server_as_json(one) for one in servers], "keys": [_key_as_json(one) for one in keys]})
        return 0
    blocks = [*map(_server_lines, servers), *map(_key_lines, keys)]
    for block in blocks:
        for line in block:
            ctx.out.print(one_line(line), soft_wrap=True, markup=False, highlight=False)
        ctx.out.print()
    if not blocks:
        ctx.out.print(
            "No model server answers on this machine (Ollama, LM Studio, llama.cpp, vLLM), and no provider's key is in "
            "the environment.",
            soft_wrap=True,
        )
    return 0


def _server_as_json(one: FoundServer) -> dict[str, Any]:
    return {"name": one.name, "provider": one.provider, "base_url": one.base_url, "models": list(one.models)}


def _key_as_json(one: FoundKey) -> dict[str, Any]:
    return {"provider": one.provider, "variable": one.variable}


def _server_lines(one: FoundServer) -> list[str]:
    lines = [f"# {one.name} at {one.base_url}: {', '.join(one.models) or 'no model yet'}"]
    own = one.provider == "ollama"
    for section, model in (("answer", one.language_model), ("embedding", one.embedding_model)):
        if model is None:
            continue
        lines += [f"[rag.{section}]", f"provider = {_toml(one.provider)}", f"model = {_toml(model)}"]
        lines += [] if own else [f"base_url = {_toml(one.base_url)}"]
        lines += _dimension_lines(one.provider, model) if section == "embedding" else []
    return lines


def _dimension_lines(provider: str, model: str) -> list[str]:
    from recollect.providers.catalogue import PROVIDERS

    known = PROVIDERS[provider].known_dimension(model) is not None
    return [] if known else ["# dimensions = …  # how long its vectors are, which the model's page says"]


def _key_lines(one: FoundKey) -> list[str]:
    from recollect.providers.catalogue import PROVIDERS

    row = PROVIDERS[one.provider]
    lines = [f"# {row.title}: {one.variable} is set"]
    for section, capability in (("answer", "chat"), ("embedding", "embedding"), ("reranking", "reranking")):
        model = row.default_models.get(capability)  # type: ignore[call-overload]
        if capability in row.capabilities:
            named = f"model = {_toml(model)}" if model else "# model = …"
            lines += [f"[rag.{section}]", f"provider = {_toml(row.name)}", named]
    return lines


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def mention_models_once(ctx: CommandContext) -> None:
    """Say to a person who asks without a language model, the first time, that there may be one."""
    if ctx.server is not None or ctx.config.answer.provider != "extractive" or ctx.json or not ctx.err.is_terminal:
        return

    said = platformdirs.user_state_path("recollect") / "told-of-providers"
    if said.exists():
        return
    # Where it cannot be remembered it is not said: every time would be too often.
    with suppress(OSError):
        said.parent.mkdir(parents=True, exist_ok=True)
        said.touch()
        ctx.note("Answers are quotes. To have a language model write them: recollect providers detect")


command(providers_app, "list", local="it is about the providers that this machine is configured with")(_list_providers)


command(providers_app, "test", local="it is about the providers that this machine is configured with")(_test)


command(providers_app, "detect", local="it is about the providers that this machine is configured with")(_detect)


models_app = typer.Typer(help="Fetch and list the embedding models on this machine.", no_args_is_help=True)


def _pull(
    ctx: CommandContext,
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A known model, or a directory; by default the configured one."),
    ] = None,
) -> int:
    """Fetch a model, verify it, and build what searching needs; afterwards no connection is needed."""
    config = ctx.config
    configured = config.embedding.model if config.embedding.provider == "local" else None
    wanted = name or configured or DEFAULT_MODEL
    settings = config.embedding.model_copy(update={"provider": "local", "model": wanted})
    with ctx.pipeline(config.model_copy(update={"embedding": settings})) as rag:
        files = rag.models.find(wanted)
        fetched = files is None
        # The first text builds the graph, which is kept beside the weights.
        rag.embedder.embed_query("ready")
        assembly = rag.standpoint.assembly
        for reader in filter(None, (assembly.reader_for(rag.embedder), assembly.checker_for(rag.embedder))):
            reader.read("Is it ready?", ["It is ready."])
        files = rag.models.pull(wanted)
        entry = next((model for model in rag.models.list() if model.path == files.directory), None)
    if ctx.json:
        ctx.emit({"name": files.name, "path": str(files.directory), "fetched": fetched})
        return 0
    detail = f" ({size(entry.size_bytes)}, {', '.join(entry.precisions)})" if entry else ""
    ctx.out.print(f"{files.name} is ready{detail} in {files.directory}", soft_wrap=True)
    return 0


def _list_models(ctx: CommandContext) -> int:
    """List the models in the cache."""
    cache = ModelCache(ctx.config.embedding.model_dir)
    found = cache.list()
    if ctx.json:
        ctx.emit({"directory": str(cache.directory), "models": [_model_as_json(model) for model in found]})
        return 0
    for model in found:
        ctx.out.print(f"{model.name}  {size(model.size_bytes)}  {', '.join(model.precisions) or 'not built yet'}")
    if not found:
        ctx.out.print("There is none yet. `recollect models pull` fetches the configured one.")
    ctx.out.print(f"in {cache.directory}", style="dim", soft_wrap=True)
    return 0


def _model_as_json(model: CachedModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "precisions": list(model.precisions),
        "size_bytes": model.size_bytes,
        "path": str(model.path),
    }


command(models_app, "pull", local="it is about the models in this machine's cache")(_pull)


command(models_app, "list", local="it is about the models in this machine's cache")(_list_models)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(providers_app, name="providers")
    app.add_typer(models_app, name="models")
