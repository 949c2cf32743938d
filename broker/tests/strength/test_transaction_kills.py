"""kill -9 at random moments, several times in a row, while transactional loops copy one topic to another.

Invariant: behind the last restart a reader of committed records finds each record of the source once and in order, the
group's offset is the end of the source, and no transaction is open.
"""

import random
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.batches import batch
from support.meters import wait_until
from support.process import broker_process
from support.records import read_committed
from support.transactions import TransactionalProducer
from support.wire import WireClient

from odradek_protocol.errors import Error
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

KILLS = 6
RECORDS = 600
MOST_IN_A_TRANSACTION = 7
SETTINGS = {"log.segment.bytes": str(1 << 20)}
RETRIED = frozenset(
    {
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.CONCURRENT_TRANSACTIONS,
        Error.NOT_ENOUGH_REPLICAS,
        Error.UNSTABLE_OFFSET_COMMIT,
    }
)


class RefusedError(Exception):
    """The broker has answered with an error that a client begins anew for."""


class Copier:
    """Copies the records of one partition of `source` to `copy`, in a thread, until the broker goes or all is done."""

    def __init__(self, index: int, *, raises_epoch: bool, chance: random.Random) -> None:
        self.index = index
        self.name = f"copier-{index}"
        self.transactions = 0
        self.done = False
        self.failure: BaseException | None = None
        self._raises_epoch = raises_epoch
        self._chance = chance
        self._thread: threading.Thread | None = None

    def start(self, port: int) -> None:
        self._thread = threading.Thread(target=self._run, args=(port,), name=self.name, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        assert self._thread is not None
        self._thread.join(120)
        assert not self._thread.is_alive()

    def _run(self, port: int) -> None:
        while not self.done:
            try:
                with WireClient(port) as client:
                    self._copy(client)
            except RefusedError:
                continue
            except (OSError, EOFError):
                return  # the broker is gone
            except BaseException as error:  # noqa: BLE001 - raised in the thread of the test
                self.failure = error
                return

    def _copy(self, client: WireClient) -> None:
        producer = TransactionalProducer(client, self.name, raises_epoch=self._raises_epoch)
        self._check(producer.initialize())
        while not self.done:
            position = committed_offset(client, self.name, self.index)
            if position == RECORDS:
                self.done = True
                return
            count = min(RECORDS - position, self._chance.randint(1, MOST_IN_A_TRANSACTION))
            values = [b"%d" % number for number in range(position, position + count)]
            for value in values:
                self._check(producer.send("copy", value, index=self.index).error_code)
            if not self._raises_epoch:
                self._check(producer.add_offsets(self.name))
            self._check(producer.commit_offset(self.name, "source", position + count, index=self.index))
            self._check(producer.end(committed=self._chance.random() < 0.8).error_code)
            self.transactions += 1

    def _check(self, code: int) -> None:
        if code in RETRIED:
            raise RefusedError(code)
        assert code == 0


def committed_offset(client: WireClient, group_id: str, index: int) -> int:
    """The stable offset of a group in a partition of `source`; 0 for none."""
    wanted = OffsetFetchRequestTopics(name="source", partition_indexes=[index])
    group = OffsetFetchRequestGroup(group_id=group_id, topics=[wanted])
    reply = client.call(OffsetFetchRequest(groups=[group], require_stable=True), 8).groups[0]
    code = reply.error_code or reply.topics[0].partitions[0].error_code
    if code in RETRIED:
        raise RefusedError(code)
    assert code == 0
    offset: int = reply.topics[0].partitions[0].committed_offset
    return max(offset, 0)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_transactional_copy_survives_kills_exactly_once(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    copiers = [Copier(index, raises_epoch=index % 2 == 0, chance=random.Random(seed + index)) for index in range(4)]

    def progress() -> int:
        for copier in copiers:
            if copier.failure is not None:
                raise copier.failure
        return sum(copier.transactions for copier in copiers)

    with ExitStack() as stack:
        broker = stack.enter_context(broker_process(tmp_path, SETTINGS))
        with WireClient(broker.port) as client:
            client.call(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
            for name in ("source", "copy"):
                client.create_topic(name, partitions=len(copiers))
            for copier in copiers:
                client.produce("source", batch(*[b"%d" % n for n in range(RECORDS)]), index=copier.index)
        for _ in range(KILLS):
            for copier in copiers:
                copier.start(broker.port)
            wanted = progress() + chance.randrange(1, 60)
            wait_until(
                lambda wanted=wanted: progress() >= wanted or all(copier.done for copier in copiers), "copies are made"
            )
            broker.kill()
            for copier in copiers:
                copier.wait()
            broker = stack.enter_context(broker_process(tmp_path, SETTINGS))
        for copier in copiers:
            copier.start(broker.port)
        for copier in copiers:
            copier.wait()
        progress()
        assert all(copier.done for copier in copiers)
        expected = [b"%d" % number for number in range(RECORDS)]
        with WireClient(broker.port) as client:
            for copier in copiers:
                assert read_committed(client, "copy", index=copier.index) == expected
        assert "Traceback" not in broker.errors()
