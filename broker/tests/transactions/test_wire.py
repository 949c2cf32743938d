"""Transactions over the wire, in both protocols: what is visible when, and who is refused with which code."""

import uuid

import pytest
from support.batches import batch
from support.records import read_committed
from support.transactions import TransactionalProducer
from support.wire import WireClient

from odradek.testing import Broker
from odradek_protocol.errors import Error
from odradek_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek_protocol.messages.api_versions import ApiVersionsRequest
from odradek_protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from odradek_protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek_protocol.messages.end_txn import EndTxnRequest
from odradek_protocol.messages.fetch import PartitionData
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek_protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek_protocol.messages.list_transactions import ListTransactionsRequest
from odradek_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek_protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from odradek_protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from odradek_protocol.records.batch import CONTROL, TRANSACTIONAL, iter_batches
from odradek_protocol.records.read import read_records

READ_COMMITTED = 1

FIND_GROUP = FindCoordinatorRequest(coordinator_keys=["g"])
"""The first one makes __consumer_offsets."""

protocols = pytest.mark.parametrize("raises_epoch", [False, True], ids=["v1", "v2"])


@pytest.fixture
def made(client: WireClient, topic: str) -> str:
    """The name of a topic of two partitions."""
    client.create_topic(topic, 2)
    return topic


@pytest.fixture
def transactional_id() -> str:
    return f"x-{uuid.uuid4().hex[:12]}"


def begun(client: WireClient, transactional_id: str, *, raises_epoch: bool = True) -> TransactionalProducer:
    """A producer that may begin."""
    producer = TransactionalProducer(client, transactional_id, raises_epoch=raises_epoch)
    assert producer.initialize() == 0
    return producer


def committed(client: WireClient, topic: str, index: int = 0) -> PartitionData:
    """What a reader of committed records gets from the start on."""
    return client.fetch(topic, 0, index=index, isolation_level=READ_COMMITTED)


def latest(client: WireClient, topic: str, isolation_level: int = 0) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=[partition])],
    )
    offset: int = client.call(request, 5).topics[0].partitions[0].offset
    return offset


def offset_of(client: WireClient, group_id: str, topic: str, *, stable: bool) -> tuple[int, int]:
    """The error code and the committed offset of partition 0."""
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=[wanted])], require_stable=stable
    )
    found = client.call(request, 8).groups[0]
    assert found.error_code == 0
    partition = found.topics[0].partitions[0]
    return partition.error_code, partition.committed_offset


def described(client: WireClient, transactional_id: str) -> tuple[int, str]:
    state = client.call(DescribeTransactionsRequest(transactional_ids=[transactional_id]), 0).transaction_states[0]
    return state.error_code, state.transaction_state


@protocols
def test_committed_records_are_seen_together(
    client: WireClient, made: str, transactional_id: str, raises_epoch: bool
) -> None:
    producer = begun(client, transactional_id, raises_epoch=raises_epoch)
    for index in (0, 1):
        assert producer.send(made, b"a", b"b", index=index).error_code == 0
    assert [read_committed(client, made, index=index) for index in (0, 1)] == [[], []]
    assert latest(client, made, READ_COMMITTED) == 0
    assert latest(client, made) == 2
    assert producer.end().error_code == 0
    assert [read_committed(client, made, index=index) for index in (0, 1)] == [[b"a", b"b"]] * 2
    assert latest(client, made, READ_COMMITTED) == 3


@protocols
def test_t41_aborted_records_are_told(client: WireClient, made: str, transactional_id: str, raises_epoch: bool) -> None:
    producer = begun(client, transactional_id, raises_epoch=raises_epoch)
    producer.send(made, b"a")
    producer.end(committed=False)
    producer.send(made, b"b")
    producer.end()
    data = committed(client, made)
    assert read_committed(client, made) == [b"b"]
    assert [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()] == [
        (producer.producer_id, 0)
    ]
    assert client.fetch(made, 0).aborted_transactions is None


@protocols
@pytest.mark.parametrize("commits", [False, True])
def test_t43_markers_are_control_batches(
    client: WireClient, made: str, transactional_id: str, raises_epoch: bool, commits: bool
) -> None:
    producer = begun(client, transactional_id, raises_epoch=raises_epoch)
    producer.send(made, b"a")
    producer.end(committed=commits)
    records = memoryview(bytes(client.fetch(made, 0).records))
    position, header = list(iter_batches(records))[-1]
    assert header.attributes == TRANSACTIONAL | CONTROL
    assert (header.base_sequence, header.producer_epoch) == (-1, 1 if raises_epoch else 0)
    marker = next(iter(read_records(records[position:])))
    assert bytes(marker.key or b"") == bytes.fromhex("0000 0001" if commits else "0000 0000")
    assert bytes(marker.value or b"") == bytes.fromhex("0000 00000000")


@pytest.mark.parametrize(("version", "code"), [(9, 48), (10, 48), (11, 120)])
def test_t61_a_partition_that_was_not_added_is_refused(
    client: WireClient, made: str, transactional_id: str, version: int, code: int
) -> None:
    producer = begun(client, transactional_id)
    reply = producer.send(made, b"a", version=version)
    assert (reply.error_code, reply.base_offset) == (code, -1)
    assert latest(client, made, READ_COMMITTED) == latest(client, made) == 0


def test_t61_records_outside_the_open_transaction_of_their_producer_are_refused(
    client: WireClient, made: str, transactional_id: str
) -> None:
    producer = begun(client, transactional_id)
    producer.send(made, b"a")
    outside = batch(b"b", producer=(producer.producer_id, producer.epoch, 1))
    assert client.produce(made, outside).error_code == Error.INVALID_TXN_STATE


def test_t62_an_end_raises_the_epoch_and_may_be_repeated(client: WireClient, made: str, transactional_id: str) -> None:
    producer = begun(client, transactional_id)
    producer.send(made, b"a")
    first = producer.end(committed=False)
    assert (first.error_code, first.producer_id, first.producer_epoch) == (0, producer.producer_id, 1)
    again = producer.end(committed=False, epoch=0)
    assert (again.error_code, again.producer_id, again.producer_epoch) == (0, producer.producer_id, 1)
    assert producer.end(committed=True, epoch=0).error_code == Error.INVALID_TXN_STATE


def test_t62_a_transaction_without_partitions_is_aborted_but_not_committed(
    client: WireClient, transactional_id: str
) -> None:
    producer = begun(client, transactional_id)
    refused = producer.end()
    assert (refused.error_code, refused.producer_id, refused.producer_epoch) == (48, -1, -1)
    aborted = producer.end(committed=False)
    assert (aborted.error_code, aborted.producer_epoch) == (0, 1)


def test_t62_the_producer_id_changes_when_its_epochs_are_used_up(broker: Broker, client: WireClient) -> None:
    """KAFKA-18660, KAFKA-19367: the id that follows begins with epoch 0."""
    transactional_id = f"x-{uuid.uuid4().hex[:12]}"
    producer = begun(client, transactional_id)
    old_id = producer.producer_id
    node = broker.node
    assert node is not None
    txn = node.transactions.find(transactional_id)
    assert txn is not None
    txn.metadata = txn.metadata._replace(producer_epoch=32766)
    reply = producer.end(committed=False, epoch=32766)
    assert (reply.error_code, reply.producer_epoch) == (0, 0)
    assert reply.producer_id != old_id
    producer.producer_id = old_id
    repeated = producer.end(committed=False, epoch=32766)
    assert (repeated.error_code, repeated.producer_id, repeated.producer_epoch) == (0, reply.producer_id, 0)


@pytest.mark.parametrize(("version", "code"), [(0, 47), (1, 47), (2, 90), (4, 90), (5, 90)])
def test_t63_the_coordinator_fences_the_older_producer(
    client: WireClient, made: str, transactional_id: str, version: int, code: int
) -> None:
    old = begun(client, transactional_id, raises_epoch=False)
    old.send(made, b"a")
    begun(client, transactional_id)
    assert old.end(version=version).error_code == code
    assert old.add(made, 0, version=min(version, 3)) == code
    assert old.add_offsets("g", version=min(version, 4)) == code


@pytest.mark.parametrize(("version", "code"), [(3, 47), (4, 90), (5, 90)])
def test_t63_a_producer_that_was_replaced_does_not_resume(
    client: WireClient, transactional_id: str, version: int, code: int
) -> None:
    old = begun(client, transactional_id)
    begun(client, transactional_id)
    assert old.ask_for_id(version=version, resume=True).error_code == code


@protocols
def test_t63_produce_fences_with_a_code_of_its_own(
    client: WireClient, made: str, transactional_id: str, raises_epoch: bool
) -> None:
    old = begun(client, transactional_id, raises_epoch=raises_epoch)
    old.send(made, b"a")
    begun(client, transactional_id)
    assert old.send(made, b"b", add=False).error_code == Error.INVALID_PRODUCER_EPOCH
    assert read_committed(client, made) == []
    assert latest(client, made, READ_COMMITTED) == 2


def test_a_producer_resumes_with_the_next_epoch(client: WireClient, transactional_id: str) -> None:
    """KIP-360; the request may be repeated."""
    producer = begun(client, transactional_id)
    for _ in range(2):
        reply = producer.ask_for_id(resume=True)
        assert (reply.error_code, reply.producer_id, reply.producer_epoch) == (0, producer.producer_id, 1)


def test_a_new_producer_aborts_what_is_open(client: WireClient, made: str, transactional_id: str) -> None:
    old = begun(client, transactional_id)
    old.send(made, b"a")
    new = TransactionalProducer(client, transactional_id)
    assert new.ask_for_id().error_code == Error.CONCURRENT_TRANSACTIONS
    assert new.initialize() == 0
    assert new.epoch == 2
    assert read_committed(client, made) == []


def test_t64_an_id_that_nobody_has_used(client: WireClient, transactional_id: str) -> None:
    begun(client, transactional_id)
    unknown = EndTxnRequest(transactional_id="never used", producer_id=1, producer_epoch=0, committed=True)
    assert client.call(unknown, 5).error_code == Error.INVALID_PRODUCER_ID_MAPPING
    assert described(client, "never used") == (Error.TRANSACTIONAL_ID_NOT_FOUND, "")
    assert described(client, "") == (Error.INVALID_REQUEST, "")


def test_t64_the_id_of_another_producer(client: WireClient, made: str, transactional_id: str) -> None:
    producer = begun(client, transactional_id)
    producer.producer_id += 1000
    assert producer.end().error_code == Error.INVALID_PRODUCER_ID_MAPPING
    assert producer.send(made, b"a").error_code == Error.INVALID_PRODUCER_ID_MAPPING


@protocols
@pytest.mark.parametrize("commits", [False, True])
def test_t65_offsets_are_invisible_until_the_marker(
    client: WireClient, made: str, transactional_id: str, raises_epoch: bool, commits: bool
) -> None:
    group_id = f"g-{transactional_id}"
    client.call(FIND_GROUP, 4)
    producer = begun(client, transactional_id, raises_epoch=raises_epoch)
    if not raises_epoch:
        assert producer.commit_offset(group_id, made, 5, version=3) == Error.INVALID_TXN_STATE
        assert producer.commit_offset(group_id, made, 5, version=4) == Error.TRANSACTION_ABORTABLE
        assert producer.add_offsets(group_id) == 0
    assert producer.commit_offset(group_id, made, 5) == 0
    assert offset_of(client, group_id, made, stable=True) == (Error.UNSTABLE_OFFSET_COMMIT, -1)
    assert offset_of(client, group_id, made, stable=False) == (0, -1)
    assert producer.end(committed=commits).error_code == 0
    assert offset_of(client, group_id, made, stable=True) == (0, 5 if commits else -1)


def test_t65_offsets_of_members_only_in_their_generation(client: WireClient, made: str, transactional_id: str) -> None:
    client.call(FIND_GROUP, 4)
    producer = begun(client, transactional_id)
    assert producer.commit_offset("nobody's", made, 5, generation=3, member_id="m") == Error.ILLEGAL_GENERATION
    assert producer.commit_offset("", made, 5) == Error.INVALID_GROUP_ID
    assert producer.commit_offset("g", "no such topic", 5) == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_t65_a_deleted_topic_does_not_stall_the_markers(client: WireClient, made: str, transactional_id: str) -> None:
    producer = begun(client, transactional_id)
    client.create_topic(f"{made}-gone")
    producer.send(made, b"a")
    producer.send(f"{made}-gone", b"a")
    client.delete_topic(f"{made}-gone")
    assert producer.end().error_code == 0
    assert described(client, transactional_id) == (0, "CompleteCommit")
    assert read_committed(client, made) == [b"a"]


def test_t66_a_transaction_whose_time_is_over_is_aborted(transactional_id: str) -> None:
    overrides = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "20"}
    with Broker(overrides) as broker, WireClient(broker.port) as client:
        client.create_topic("t")
        producer = TransactionalProducer(client, transactional_id)
        assert producer.initialize(timeout_ms=1) == 0
        assert producer.send("t", b"a").error_code == 0
        while latest(client, "t", READ_COMMITTED) != 2:
            assert client.fetch("t", 1, isolation_level=READ_COMMITTED, max_wait_ms=100).error_code == 0
        assert read_committed(client, "t") == []
        assert producer.end(version=4).error_code == Error.PRODUCER_FENCED
        assert producer.end().error_code == Error.INVALID_TXN_STATE
        assert producer.send("t", b"b").error_code == Error.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(("timeout_ms", "code"), [(0, 50), (1, 0), (900_000, 0), (900_001, 50)])
def test_bounds_of_the_timeout(client: WireClient, transactional_id: str, timeout_ms: int, code: int) -> None:
    assert TransactionalProducer(client, transactional_id).initialize(timeout_ms=timeout_ms) == code


def test_an_empty_id_is_none(client: WireClient) -> None:
    assert TransactionalProducer(client, "").ask_for_id().error_code == Error.INVALID_REQUEST


def test_brokers_ask_for_many_transactions(client: WireClient, made: str, transactional_id: str) -> None:
    producer = begun(client, transactional_id)
    producer.send(made, b"a")

    def ask(*indexes: int, verify_only: bool, epoch: int = 0, version: int = 5) -> list[int]:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=made, partitions=indexes)],
        )
        reply = client.call(AddPartitionsToTxnRequest(transactions=[transaction]), version)
        found = reply.results_by_transaction[0].topic_results[0].results_by_partition
        return [each.partition_error_code for each in found]

    assert ask(0, 1, verify_only=True) == [0, Error.TRANSACTION_ABORTABLE]
    assert ask(0, 1, verify_only=True, version=4) == [0, Error.INVALID_TXN_STATE]
    assert ask(0, verify_only=True, epoch=7) == [Error.PRODUCER_FENCED]
    assert ask(0, 9, verify_only=False) == [Error.OPERATION_NOT_ATTEMPTED, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert ask(0, 1, verify_only=False) == [0, 0]
    assert ask(0, 1, verify_only=True) == [0, 0]


def test_a_hanging_transaction_is_found_and_ended(client: WireClient, made: str, transactional_id: str) -> None:
    """KIP-664: what `kafka-transactions` asks and sends."""
    producer = begun(client, transactional_id)
    producer.send(made, b"a")
    asked = DescribeProducersRequest(topics=[TopicRequest(name=made, partition_indexes=[0, 9])])
    found, missing = client.call(asked, 0).topics[0].partitions
    assert missing.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    (state,) = found.active_producers
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (producer.producer_id, 0, 0)
    assert (state.coordinator_epoch, state.current_txn_start_offset) == (-1, 0)

    def mark(version: int, transaction_version: int = 0, epoch: int = 0) -> list[int]:
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=made, partition_indexes=[0, 9])],
            coordinator_epoch=0,
            transaction_version=transaction_version,
        )
        reply = client.call(WriteTxnMarkersRequest(markers=[marker]), version)
        return [each.error_code for each in reply.markers[0].topics[0].partitions]

    missing_code = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert mark(2, transaction_version=2) == [Error.INVALID_PRODUCER_EPOCH, missing_code]
    assert mark(1) == [0, missing_code]
    assert latest(client, made, READ_COMMITTED) == 2
    assert mark(2, transaction_version=2) == [0, missing_code]
    assert mark(0, epoch=1) == [0, missing_code]
    assert mark(0) == [Error.INVALID_PRODUCER_EPOCH, missing_code]


def test_transactions_are_listed_by_filters(client: WireClient, made: str, transactional_id: str) -> None:
    producer = begun(client, transactional_id)
    producer.send(made, b"a")
    other = begun(client, f"{transactional_id}-other")

    def listed(version: int = 2, **filters: object) -> set[str]:
        request = ListTransactionsRequest(**{"state_filters": (), "producer_id_filters": (), **filters})  # type: ignore[arg-type]
        reply = client.call(request, version)
        assert reply.error_code == 0
        mine = {each.transactional_id for each in reply.transaction_states}
        return {each for each in mine if each.startswith(transactional_id)}

    both = {transactional_id, f"{transactional_id}-other"}
    assert listed() == both
    assert listed(state_filters=["Ongoing"]) == {transactional_id}
    assert listed(producer_id_filters=[other.producer_id]) == both - {transactional_id}
    assert listed(transactional_id_pattern=f"{transactional_id}-.*") == both - {transactional_id}
    assert listed(duration_filter=3_600_000) & {transactional_id} == set()
    unknown = client.call(ListTransactionsRequest(state_filters=["Lost"], producer_id_filters=()), 0)
    assert (unknown.unknown_state_filters, unknown.transaction_states) == (["Lost"], [])
    bad = ListTransactionsRequest(state_filters=(), producer_id_filters=(), transactional_id_pattern="(")
    assert client.call(bad, 2).error_code == Error.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("version", [3, 4, 5])
def test_the_level_of_the_protocol_is_told(client: WireClient, version: int) -> None:
    asked = ApiVersionsRequest(client_software_name="probe", client_software_version="1")
    reply = client.call(asked, version)
    finalized = {each.name: each.max_version_level for each in reply.finalized_features}
    supported = {each.name: (each.min_version, each.max_version) for each in reply.supported_features}
    assert finalized["transaction.version"] == 2
    assert supported.get("transaction.version") == ((0, 2) if version >= 4 else None)
    assert reply.finalized_features_epoch >= 0


def test_the_level_is_brought_down_and_up() -> None:
    def change(client: WireClient, level: int, kind: int, version: int = 1, *, only_check: bool = False) -> int:
        update = FeatureUpdateKey(feature="transaction.version", max_version_level=level, upgrade_type=kind)
        request = UpdateFeaturesRequest(feature_updates=[update], validate_only=only_check)
        reply = client.call(request, version)
        code: int = reply.error_code or (reply.results[0].error_code if reply.results else 0)
        return code

    def level_of(client: WireClient) -> int | None:
        asked = ApiVersionsRequest(client_software_name="probe", client_software_version="1")
        levels = {each.name: each.max_version_level for each in client.call(asked, 4).finalized_features}
        return levels.get("transaction.version")

    upgrade, safe_downgrade = 1, 2
    with Broker() as broker, WireClient(broker.port) as client:
        client.create_topic("t")
        for version in (1, 2):
            assert change(client, 1, upgrade, version) == Error.INVALID_UPDATE_VERSION
            assert change(client, 3, upgrade, version) == Error.INVALID_UPDATE_VERSION
            assert change(client, -1, safe_downgrade, version) == Error.INVALID_UPDATE_VERSION
            assert change(client, 1, safe_downgrade, version, only_check=True) == 0
        assert level_of(client) == 2
        assert change(client, 0, safe_downgrade) == 0
        assert level_of(client) is None
        producer = begun(client, "x", raises_epoch=False)
        producer.send("t", b"a")
        assert producer.end().error_code == 0
        assert read_committed(client, "t") == [b"a"]
        assert change(client, 2, safe_downgrade) == Error.INVALID_UPDATE_VERSION
        assert change(client, 2, upgrade, 2) == 0
        assert level_of(client) == 2
