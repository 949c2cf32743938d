"""Waiting for what becomes true a moment after the broker has answered.

A Kafka in KRaft mode answers a change when its controller has it; each broker learns of it after that.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_TIMEOUT_S = 15
_PAUSE_S = 0.05


def eventually(ask: Callable[[], T], is_right: Callable[[T], bool]) -> T:
    """Ask until the answer is right and return it; after 15 s return what it is then, for the test to judge."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not is_right(answer := ask()) and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
    return answer
