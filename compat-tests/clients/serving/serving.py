"""The loop of a driver: JSON requests on stdin, one reply a line on stdout (see `harness/agent.py`).

All drivers name their operations and shape their answers alike, so that one test serves every client.
A record is {"topic", "partition", "offset", "timestamp", "key", "value", "headers"}; keys, values and header values
are Latin-1 text or null, headers are [name, value] pairs. What is not given when producing is left to the client.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_operations: dict[str, Callable[..., Any]] = {}


def to_bytes(text: str | None) -> bytes | None:
    """Return the bytes that a JSON text stands for."""
    return None if text is None else text.encode("latin-1")


def to_text(data: bytes | None) -> str | None:
    """Return the JSON text that stands for bytes."""
    return None if data is None else bytes(data).decode("latin-1")


def to_record(record: Any) -> dict[str, Any]:
    """Return the JSON object that stands for a record of kafka-python or aiokafka."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": to_text(record.key),
        "value": to_text(record.value),
        "headers": [[name, to_text(value)] for name, value in record.headers],
    }


class Deadline:
    """The end of a wait; loops ask it so that nothing waits for ever."""

    def __init__(self, timeout_s: float) -> None:
        self._end = time.monotonic() + timeout_s

    def check(self, what: object) -> None:
        """Raise TimeoutError, naming what was seen so far, when the time is over."""
        if time.monotonic() > self._end:
            raise TimeoutError(f"not within the time; so far: {what}")


def error_of(error: BaseException) -> dict[str, Any]:
    """Describe an exception of a client library; Kafka's error code is where each library keeps it."""
    code = getattr(error, "errno", None)
    inner = error.args[0] if error.args else None
    if code is None and callable(getattr(inner, "code", None)):
        code = inner.code()
    return {"kind": type(error).__name__, "code": code if isinstance(code, int) else None, "message": str(error)}


def operation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of the driver callable by its name."""
    _operations[function.__name__] = function
    return function


def serve(finish: Callable[[Any], Any] = lambda answer: answer) -> None:
    """Answer requests until stdin ends. What the client library prints goes to stderr.

    `finish` makes the result of what an operation returned: a driver of coroutines runs them there.
    """
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        reply: dict[str, Any] = {"id": request["id"]}
        try:
            reply["result"] = finish(_operations[request["operation"]](**request["arguments"]))
        except Exception as error:  # noqa: BLE001 - whatever a client raises is the answer
            traceback.print_exc()
            reply["error"] = error_of(error)
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
