"""A producer that works while the test does something else: numbered values, few at a time, until told to stop."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any

from serving import operation

IN_FLIGHT = 20
ACKNOWLEDGE_TIMEOUT_S = 90


class Background(threading.Thread, ABC):
    """Keeps [partition, offset, value] of what was acknowledged, and the first error."""

    def __init__(self, topic: str) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.stopping = False
        self._acknowledged: list[list[Any]] = []
        self._error: Exception | None = None
        self._changed = threading.Condition()

    @abstractmethod
    def produce(self) -> None:
        """Produce with an idempotent producer until `stopping`, then return when nothing is in flight."""

    def run(self) -> None:
        try:
            self.produce()
        except Exception as error:  # noqa: BLE001 - told by the operation that waits
            self.fail(error)

    def acknowledge(self, partition: int, offset: int, value: str) -> None:
        """Note that a record is where the broker says it is."""
        with self._changed:
            self._acknowledged.append([partition, offset, value])
            self._changed.notify_all()

    def fail(self, error: Exception) -> None:
        """Note that a record was not acknowledged."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def wait_for(self, more: int) -> int:
        """Wait until so many further records are acknowledged; return how many are in all."""
        with self._changed:
            wanted = len(self._acknowledged) + more
            self._changed.wait_for(lambda: len(self._acknowledged) >= wanted or self._error, ACKNOWLEDGE_TIMEOUT_S)
            if self._error is not None:
                raise self._error
            if len(self._acknowledged) < wanted:
                raise TimeoutError(f"{len(self._acknowledged)} of {wanted} acknowledged")
            return len(self._acknowledged)

    def finish(self) -> list[list[Any]]:
        """Stop, and return what was acknowledged."""
        self.stopping = True
        self.join(ACKNOWLEDGE_TIMEOUT_S)
        if self._error is not None:
            raise self._error
        return self._acknowledged


_running: list[Background] = []


def begin(background: Background) -> None:
    """Start to produce; the operations below are of the last that was started."""
    _running.append(background)
    background.start()


@operation
def wait_acknowledged(more: int) -> int:
    """Wait until `more` further records are acknowledged; return how many are in all."""
    return _running[-1].wait_for(more)


@operation
def finish_producing() -> list[list[Any]]:
    """Stop, wait for what is in flight and return [partition, offset, value] of all acknowledged records."""
    return _running.pop().finish()


def stop_all() -> None:
    """Let go of what a test left running."""
    for background in _running:
        background.stopping = True
    _running.clear()
