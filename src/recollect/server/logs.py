"""What a server writes to its log: a line for each event, with the id of the request it belongs to, and no secret."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal

from recollect.privacy.credentials import without_secrets
from recollect.server.request_context import QUIET, REQUESTS, current_request_id

LogFormat = Literal["text", "json"]

#: What a line says of a request, beside what all lines say.
REQUEST_FIELDS = ("method", "route", "status", "duration_ms", "credential", "tenant")

_TEXT = "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"

# A line of the log is one line, whatever was put into a name or an error.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}


class RequestIdFilter(logging.Filter):
    """Gives each record the id of the request that is answered where it was made; ``-`` outside of one."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        if not hasattr(record, "request_id"):
            record.request_id = current_request_id()
        return True


class TextFormatter(logging.Formatter):
    """For people: the time, the level, who says it, the request's id, and what."""

    def __init__(self) -> None:
        super().__init__(_TEXT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """The line before a traceback."""
        return super().formatMessage(record).translate(_CONTROLS)

    def format(self, record: logging.LogRecord) -> str:
        """The line, without secrets."""
        return without_secrets(super().format(record))


class JsonFormatter(logging.Formatter):
    """For programs: an object on a line, with ``time``, ``level``, ``logger``, ``request_id``, ``message``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without secrets."""
        told: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "request_id": getattr(record, "request_id", "-"),
            "message": without_secrets(record.getMessage()),
        }
        told.update({name: getattr(record, name) for name in REQUEST_FIELDS if hasattr(record, name)})
        if record.exc_info:
            told["exception"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(told, ensure_ascii=True, default=str)


@contextmanager
def logging_as(log_format: LogFormat) -> Iterator[None]:
    """For the time of a block, everything that is logged goes to standard error like this, requests included."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(RequestIdFilter())
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root, told = logging.getLogger(), [logging.getLogger(name) for name in (REQUESTS, "recollect.server")]
    handlers, levels = root.handlers[:], [logger.level for logger in told]
    root.handlers[:] = [handler]
    for logger in told:
        logger.setLevel(QUIET if root.isEnabledFor(QUIET) else logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        for logger, level in zip(told, levels, strict=True):
            logger.setLevel(level)
