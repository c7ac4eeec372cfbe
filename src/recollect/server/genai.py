"""The names that OpenTelemetry gives to what generative models do; they still move, so they stand here alone.

Of the semantic conventions 1.36 and later: https://opentelemetry.io/docs/specs/semconv/gen-ai/
"""

from __future__ import annotations

from collections.abc import Mapping

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
ERROR_TYPE = "error.type"

#: What a request is called, by the kind that the log of requests gives it. The conventions know no reranking.
OPERATIONS: Mapping[str, str] = {"embed": "embeddings", "answer": "chat", "rerank": "rerank"}

#: Providers whose name in the conventions is not the one in settings.
PROVIDERS: Mapping[str, str] = {"bedrock": "aws.bedrock", "google": "gcp.gen_ai"}
