"""A component for Haystack: `pip install 'recollect-rag[haystack]'`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from recollect.config import RAGConfig
from recollect.errors import UsageError
from recollect.integrations._passages import Filter, condition, in_thread, joined, metadata, missing, passages
from recollect.model import Principal, RetrievalOptions, RetrievedContext
from recollect.pipeline.view import RAGPipeline, View

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError as exc:
    raise ImportError(missing("haystack-ai", "haystack")) from exc


@component
class RecollectRetriever:
    """Finds passages of a view for Haystack's pipelines: takes ``query``, gives ``documents``.

    Each document's ``id`` is its chunk's; its ``meta`` is the metadata that LangChain's retriever gives
    (`recollect.integrations.langchain`), without the score.

    It is made of a view, or of what a view is made of: then it opens a pipeline of its own when it is first used or
    warmed up, which `close` closes, and can be written down in YAML. Settings with secrets belong into the
    configuration file or the environment; none is ever written down.

    Args:
        view: Whose knowledge, who asks, when and where; a `recollect.RAGPipeline` is one. None: what follows.
        config_file: A TOML file with settings; None: those of the environment.
        tenant: As of `recollect.View.view`, like the four behind it.
        principal: A `recollect.Principal`, or its fields.
        collections: Where.
        as_of: When, as text.
        session: A session.
        options: How to search; it is not written down. None: the configured defaults.
        top_k: How many passages; None: as the options say.
        filters: Haystack's filters, or one in recollect's language (`recollect.model.filter`).

    Raises:
        UsageError: Both a view and what one is made of are given, or a filter is none.

    Example:
        >>> from recollect.integrations.haystack import RecollectRetriever
        >>> retriever = RecollectRetriever(config_file="recollect.toml", collections="*", top_k=3)
        >>> retriever.run(query="How long is annual leave?")["documents"]  # doctest: +SKIP
    """

    def __init__(
        self,
        view: View | None = None,
        *,
        config_file: str | None = None,
        tenant: int | str | None = None,
        principal: Principal | Mapping[str, Any] | None = None,
        collections: Sequence[str] | str | None = None,
        as_of: str | None = None,
        session: str | None = None,
        options: RetrievalOptions | None = None,
        top_k: int | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> None:
        asks = Principal(**principal) if isinstance(principal, Mapping) else principal
        self._settings: dict[str, Any] = {
            "config_file": config_file,
            "tenant": tenant,
            "principal": None if asks is None else {name: value for name, value in asdict(asks).items() if value},
            "collections": collections if collections is None or isinstance(collections, str) else list(collections),
            "as_of": as_of,
            "session": session,
        }
        if view is not None and any(value is not None for value in self._settings.values()):
            raise UsageError("Give a view, or what one is made of, and not both: view.view(...) refines a view.")
        self._given, self._principal = view, asks
        self._lock = Lock()
        self._pipeline: RAGPipeline | None = None
        self._options, self._top_k, self._filters = options, top_k, filters
        _own(filters)

    def warm_up(self) -> None:
        """Open the store; the first run does otherwise."""
        _ = self._view.scope

    def close(self) -> None:
        """Close the pipeline that it has opened, if any; the next run opens another."""
        with self._lock:
            opened, self._pipeline = self._pipeline, None
        if opened is not None:
            opened.close()

    def to_dict(self) -> dict[str, Any]:
        """What it is made of, as Haystack writes it down.

        Raises:
            UsageError: It was made of a view or of options, which cannot be written down.
        """
        if self._given is not None or self._options is not None:
            raise UsageError(
                "A retriever made of a view or with options cannot be written down: make it of config_file, tenant, "
                "principal, collections, as_of and session, top_k and filters."
            )
        written: dict[str, Any] = default_to_dict(
            self, **self._settings, top_k=self._top_k, filters=None if self._filters is None else dict(self._filters)
        )
        return written

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RecollectRetriever:
        """The component that was written down."""
        made: RecollectRetriever = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Find passages.

        Args:
            query: In plain words.
            filters: In place of the component's; None: those.
            top_k: In place of the component's; None: that one.
        """
        return {"documents": _documents(self._find(query, filters, top_k))}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """As `run`, without blocking the event loop."""
        return {"documents": _documents(await in_thread(partial(self._find, query, filters, top_k)))}

    def _find(self, query: str, filters: Mapping[str, Any] | None, top_k: int | None) -> Sequence[RetrievedContext]:
        return passages(
            self._view,
            query,
            options=self._options,
            top_k=self._top_k if top_k is None else top_k,
            filters=_own(self._filters if filters is None else filters),
        )

    @property
    def _view(self) -> View:
        if self._given is not None:
            return self._given
        with self._lock:
            if self._pipeline is None:
                named = self._settings["config_file"]
                self._pipeline = RAGPipeline(RAGConfig.load(Path(named) if named else None))
            opened = self._pipeline
        where = {name: self._settings[name] for name in ("tenant", "collections", "as_of", "session")}
        return opened.view(principal=self._principal, **where)


def _documents(found: Sequence[RetrievedContext]) -> list[Document]:
    return [Document(id=str(one.chunk_id), content=one.content, meta=metadata(one), score=one.score) for one in found]


def _own(filters: Mapping[str, Any] | None) -> Filter | None:
    """Haystack's filters in recollect's language, which is left as it is."""
    if not filters or "operator" not in filters:
        return filters
    operator = str(filters["operator"])
    if "conditions" in filters:
        return joined(operator, [_own(one) or {} for one in filters["conditions"]])
    if "field" not in filters:
        raise UsageError(f"The filter {dict(filters)!r} has neither conditions nor a field.")
    return condition(str(filters["field"]), operator, filters.get("value"), prefix="meta.")
