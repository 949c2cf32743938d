"""The cleaning process: reads requests from its standard input and answers on its standard output, see `requests`.

It runs at a lower priority than the broker, and ends when the broker does, in the middle of its work too.
"""

import os
import signal
import sys
import time
from contextlib import closing
from typing import BinaryIO

from odradek.log.compaction.cleaner import Cleaner
from odradek.log.compaction.requests import GO_ON, Cleaned, CleanRequest, Failed, Message, Progress, decode, encode
from odradek.log.files import Files
from odradek_protocol.errors import BrokerError, ProtocolError

__all__ = ["serve"]

PROGRESS_S = 2.0
NICENESS = 10
"""Clients wait for the broker, nobody waits for this: where both want a core, the broker gets nine times as much."""


class Pace:
    """Holds the work to `bytes_per_s`, and tells the broker now and then that there is some."""

    def __init__(self, bytes_per_s: float, answers: BinaryIO, broker: int) -> None:
        self._bytes_per_s = bytes_per_s
        self._answers = answers
        self._broker = broker
        self._free_at = self._told_at = time.monotonic()

    def __call__(self, size: int) -> None:
        now = time.monotonic()
        while True:
            if os.getppid() != self._broker:
                raise SystemExit(0)
            if now - self._told_at >= PROGRESS_S:
                self._told_at = now
                _answer(self._answers, Progress())
            if now >= self._free_at:
                break
            time.sleep(min(self._free_at - now, PROGRESS_S))
            now = time.monotonic()
        self._free_at = max(self._free_at, now) + size / self._bytes_per_s


def serve(requests: BinaryIO, answers: BinaryIO, broker: int) -> None:
    """Clean what is asked for until there are no more requests. `broker` is the number of the process that asks."""
    for line in requests:
        request = decode(line)
        assert isinstance(request, CleanRequest)
        try:
            with closing(Cleaner(request, Files(), Pace(request.bytes_per_s, answers, broker)).run()) as found:
                for answer in found:
                    _answer(answers, answer)
                    if not isinstance(answer, Cleaned) and requests.readline() != GO_ON:
                        break
        except (ProtocolError, BrokerError) as error:
            _answer(answers, Failed(str(error), damaged=True))
        except OSError as error:
            _answer(answers, Failed(str(error), damaged=False))


def _answer(answers: BinaryIO, message: Message) -> None:
    answers.write(encode(message))
    answers.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    serve(sys.stdin.buffer, sys.stdout.buffer, os.getppid())
