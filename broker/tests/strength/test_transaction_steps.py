"""A kill at each write of a transaction, one after the other: all of it is there behind the next start, or nothing.

The writes are those to the logs, by the coordinator and the partitions. A transaction writes to two partitions and
commits an offset:

    the first protocol                     that of KIP-890
    partition added, records               partition added, records
    partition added, records               partition added, records
    offsets' partition added, offset       offsets' partition added, offset
    prepare, three markers, complete       prepare, three markers, complete

It is decided by the write of prepare and by nothing else.
"""

import itertools
from pathlib import Path

import pytest
from support.process import broker_process
from support.records import read_committed
from support.steps import arm, killed_at, program
from support.transactions import TransactionalProducer
from support.wire import WireClient

from odradek.cluster.topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from odradek_protocol.errors import Error
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

pytestmark = pytest.mark.timeout(600)

SETTINGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}

STATES = f"{TRANSACTION_STATE}-0"
MARKED = {"t-0", "t-1", f"{CONSUMER_OFFSETS}-0"}
"""The logs that get a marker, in any order: each process has another one."""

TORN_BYTES = 40
"""Less than the header of a batch has."""


class Transactions:
    """One transaction after the other under one transactional id, and what is to be read of them."""

    def __init__(self, *, raises_epoch: bool, committed: bool) -> None:
        self._raises_epoch = raises_epoch
        self._committed = committed
        self._offset = -1
        self._values: list[bytes] = []

    def initialize(self, client: WireClient) -> TransactionalProducer:
        """A producer that has ended what was open; it may be asked before there are coordinators."""
        for kind, key in enumerate(("g", "x")):
            client.call(FindCoordinatorRequest(coordinator_keys=[key], key_type=kind), 4)
        producer = TransactionalProducer(client, "x", raises_epoch=self._raises_epoch)
        assert producer.initialize() == 0
        return producer

    def run(self, producer: TransactionalProducer, number: int) -> None:
        """Records in two partitions, and an offset: all named `number`."""
        for index in (0, 1):
            if not self._raises_epoch:
                assert producer.add("t", index) == 0
            assert producer.send("t", b"%d" % number, index=index).error_code == 0
        if not self._raises_epoch:
            assert producer.add_offsets("g") == 0
        assert producer.commit_offset("g", "source", number) == 0
        assert producer.end(committed=self._committed).error_code == 0

    def check(self, client: WireClient, number: int) -> bool:
        """Whether the transaction `number` is committed; those before it must be as they were found."""
        offset = stable_offset(client)
        assert offset in (self._offset, number)
        if offset == number:
            self._offset = offset
            self._values.append(b"%d" % number)
        for index in (0, 1):
            assert read_committed(client, "t", index=index) == self._values
        return offset == number


def stable_offset(client: WireClient) -> int:
    """The committed offset of the group, -1 for none."""
    topic = OffsetFetchRequestTopics(name="source", partition_indexes=[0])
    wanted = OffsetFetchRequestGroup(group_id="g", topics=[topic])
    code: int = Error.COORDINATOR_LOAD_IN_PROGRESS
    while code == Error.COORDINATOR_LOAD_IN_PROGRESS:
        group = client.call(OffsetFetchRequest(groups=[wanted], require_stable=True), 8).groups[0]
        code = group.error_code
    assert code == group.topics[0].partitions[0].error_code == 0
    offset: int = group.topics[0].partitions[0].committed_offset
    return offset


@pytest.mark.parametrize(("committed", "written_bytes"), [(True, TORN_BYTES), (False, 0)])
@pytest.mark.parametrize("raises_epoch", [False, True])
def test_a_kill_at_each_write_leaves_all_or_nothing(
    tmp_path: Path, raises_epoch: bool, committed: bool, written_bytes: int
) -> None:
    transactions = Transactions(raises_epoch=raises_epoch, committed=committed)
    logs: list[str] = []
    outcomes: list[bool] = []
    for number in itertools.count(1):
        dying = program("pwrite", number, written_bytes)
        with broker_process(tmp_path, SETTINGS, program=dying) as broker, WireClient(broker.port) as client:
            if number == 1:
                client.create_topic("t", partitions=2)
                client.create_topic("source")
            producer = transactions.initialize(client)
            if number > 1:
                outcomes.append(transactions.check(client, number - 1))
            arm(broker)
            try:
                transactions.run(producer, number)
            except (EOFError, OSError):
                logs.append(killed_at(broker))
            else:
                assert transactions.check(client, number) == committed
                assert broker.stop() == 0
                break
            finally:
                assert "Traceback" not in broker.errors()
    prepared = len(logs) - len(MARKED) - 2
    assert [logs[prepared], logs[-1]] == [STATES] * 2
    assert MARKED.issuperset(logs[prepared + 1 : -1])
    assert MARKED.issubset(logs[:prepared])
    assert outcomes == [committed and step > prepared for step in range(len(logs))]
