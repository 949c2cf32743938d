"""Brokers that are killed at a certain call to the system; `dying` is what they run."""

import os
import signal

from support import dying
from support.meters import wait_until
from support.process import BrokerProcess


def program(call: str, number: int, written_bytes: int = 0) -> tuple[str, ...]:
    """What a `BrokerProcess` is to run; see `dying`."""
    return dying.__file__, call, f"{number}", f"{written_bytes}"


def arm(broker: BrokerProcess) -> None:
    """Have the broker count its calls from here on."""
    os.kill(broker.pid, signal.SIGUSR1)
    wait_until(lambda: "armed\n" in broker.errors(), "the broker counts")


def killed_at(broker: BrokerProcess) -> str:
    """The file or folder at which the broker died."""
    return broker.errors().rpartition("killed: ")[2].strip()
