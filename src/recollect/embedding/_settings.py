"""What a model's sentence-transformers files say about how it wants to be used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from recollect.embedding.bert_graph import BertConfig, Pooling
from recollect.embedding.models import ModelFiles
from recollect.errors import ModelUnavailableError

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
