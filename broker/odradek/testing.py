"""A broker for tests: as a context manager, and as a pytest fixture.

    with Broker() as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

It runs in a thread of the calling process, on a free port of the loopback interface, with its data in a temporary
folder that goes with it. `overrides` are broker settings by Kafka's names; `folder` keeps the data. The fixture
`odradek_broker` gives one to all tests of a session (`pytest_plugins = ["odradek.testing"]`).
"""

import contextlib
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import trio

from odradek.config import BrokerConfig
from odradek.config.load import development_profile
from odradek.node import Node

__all__ = ["Broker"]

START_S = 30.0
"""How long to wait for the broker to serve: far more than it needs, so that a slow machine fails no test."""


class Broker:
    """A broker in a thread of its own, ready to serve from `__enter__` on."""

    def __init__(self, overrides: Mapping[str, str] | None = None, *, folder: Path | None = None) -> None:
        self._given = dict(overrides or {})
        self._folder = folder
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self.node: Node | None = None
        self.bootstrap_servers = ""

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return int(self.bootstrap_servers.split(",")[0].rpartition(":")[2])

    def __enter__(self) -> Self:
        folder = self._folder
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="odradek-")
            folder = Path(self._temporary.name)
        given = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder)}
        config = BrokerConfig(development_profile() | given | self._given)
        self._thread = threading.Thread(target=self._run, args=(config,), name="odradek", daemon=True)
        self._thread.start()
        if not self._ready.wait(START_S):
            raise TimeoutError(f"the broker did not start within {START_S} s")
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def _run(self, config: BrokerConfig) -> None:
        try:
            trio.run(self._serve, config)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self, config: BrokerConfig) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self.node = node = Node(config)
        await node.serve(self._started)

    def _started(self, addresses: Sequence[str]) -> None:
        self.bootstrap_servers = ",".join(addresses)
        self._ready.set()

    def stop(self) -> None:
        """Stop the broker cleanly and wait for it; raises what it failed with."""
        if self._thread is None or self._token is None or self.node is None:
            return
        with contextlib.suppress(trio.RunFinishedError):
            trio.from_thread.run_sync(self.node.stop, trio_token=self._token)
        self._thread.join(START_S)
        self._thread = None
        if self._failure is not None:
            raise self._failure

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            if self._temporary is not None:
                self._temporary.cleanup()
