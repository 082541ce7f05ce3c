"""Records of the standard logging module as JSON, one object a line."""

import json
import logging
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from onecommit.telemetry.event import Event

_OF_A_HANDLER = ("job_id", "kind", "attempt")
"""What the records of `ctx.log` carry; nothing else that somebody attached to a record is written."""


class JsonFormatter(logging.Formatter):
    """Formats an event as its name and fields, and any other record as its message.

    Every object has `at` (UTC), `level` and `logger`; an exception that was logged is in `exception`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        event = getattr(record, "event", None)
        written = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            **(_event(event) if isinstance(event, Event) else _message(record)),
        }
        if record.exc_info:
            written["exception"] = self.formatException(record.exc_info)
        return json.dumps(written, default=str)


def _event(event: Event) -> dict[str, Any]:
    return {"name": event.name, **{each.name: getattr(event, each.name) for each in fields(event)}}


def _message(record: logging.LogRecord) -> dict[str, Any]:
    named = {name: getattr(record, name) for name in _OF_A_HANDLER if hasattr(record, name)}
    return {"message": record.getMessage(), **named}
