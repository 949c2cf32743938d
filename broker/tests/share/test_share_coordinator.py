"""The share coordinator on a real log: who is refused, what a restart finds, and what is deleted of the log."""

from pathlib import Path

import pytest
import trio
from support.sharing import ShareNode, sharing

from odradek.cluster.topics import SHARE_GROUP_STATE
from odradek.share.in_flight import StateBatch
from odradek.share.stored_state import SharePartitionKey
from odradek_protocol.errors import BrokerError, Error

pytestmark = pytest.mark.usefixtures("without_threads")

ACKNOWLEDGED = 2


def write(node: ShareNode, key: SharePartitionKey, *batches: tuple[int, int, int, int], **told: int) -> None:
    asked = {"state_epoch": 1, "leader_epoch": 0, "start_offset": -1, "delivery_complete_count": 0, **told}
    node.share_coordinator.write(*key, batches=[StateBatch(*each) for each in batches], **asked)


async def begun(node: ShareNode, start_offset: int = 0) -> SharePartitionKey:
    group = await node.begin("g", "t", start_offset)
    return SharePartitionKey("g", group.topic_id, 0)


async def test_a_restart_finds_what_was_written(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        key = await begun(node, 5)
        write(node, key, (5, 9, ACKNOWLEDGED, 1), delivery_complete_count=5)
        write(node, key, (12, 12, 0, 2), start_offset=7, delivery_complete_count=3)
        before = node.share_coordinator.summary(*key)
    async with sharing(tmp_path) as node:
        await node.until_loaded("g", key.topic_id)
        found = node.share_coordinator.summary(*key)
    assert found == before
    assert found is not None
    assert (found.state_epoch, found.start_offset, found.delivery_complete_count) == (1, 7, 3)
    assert found.batches == [StateBatch(7, 9, ACKNOWLEDGED, 1), StateBatch(12, 12, 0, 2)]


async def test_a_restart_does_not_find_what_was_forgotten(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        key = await begun(node)
        other = SharePartitionKey("other", (await node.begin("other", "t")).topic_id, 0)
        await node.share_coordinator.delete(*key)
        await node.share_coordinator.delete(*key)
    async with sharing(tmp_path) as node:
        await node.until_loaded("g", key.topic_id)
        assert node.share_coordinator.summary(*key) is None
        assert node.share_coordinator.summary(*other) is not None


async def test_who_is_out_of_date_is_fenced(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        key = await begun(node)
        node.share_coordinator.read(*key, 3)
        for wrong in ({"leader_epoch": 2}, {"leader_epoch": 3, "state_epoch": 0}):
            with pytest.raises(BrokerError) as refused:
                write(node, key, **wrong)
            assert refused.value.error is (
                Error.FENCED_LEADER_EPOCH if "state_epoch" not in wrong else Error.FENCED_STATE_EPOCH
            )
        with pytest.raises(BrokerError) as refused:
            node.share_coordinator.read(*key, 2)
        assert refused.value.error is Error.FENCED_LEADER_EPOCH
        with pytest.raises(BrokerError) as refused:
            await node.share_coordinator.initialize(*key, state_epoch=0, start_offset=0)
        assert refused.value.error is Error.FENCED_STATE_EPOCH
        write(node, key, (0, 0, ACKNOWLEDGED, 1), leader_epoch=3)


async def test_the_leaders_epoch_is_remembered(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        key = await begun(node)
        node.share_coordinator.read(*key, 3)
    async with sharing(tmp_path) as node:
        await node.until_loaded("g", key.topic_id)
        with pytest.raises(BrokerError):
            node.share_coordinator.read(*key, 2)


@pytest.mark.parametrize(
    ("group_id", "partition", "error"),
    [
        ("", 0, Error.INVALID_REQUEST),
        ("g", -1, Error.INVALID_REQUEST),
        ("other", 0, Error.INVALID_REQUEST),
    ],
)
async def test_what_was_not_begun_with_is_not_read(tmp_path: Path, group_id: str, partition: int, error: Error) -> None:
    async with sharing(tmp_path) as node:
        key = SharePartitionKey(group_id, (await begun(node)).topic_id, partition)
        with pytest.raises(BrokerError) as refused:
            node.share_coordinator.read(*key, 0)
        assert refused.value.error is error
        with pytest.raises(BrokerError) as refused:
            write(node, key)
        assert refused.value.error is error


async def test_partitions_that_do_not_exist(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        key = await begun(node)
        for unknown in (key._replace(partition=1), key._replace(topic_id=bytes(15) + b"\x07")):
            for begin in (
                node.share_coordinator.initialize(*unknown, state_epoch=0, start_offset=0),
                node.share_coordinator.delete(*unknown),
            ):
                with pytest.raises(BrokerError) as refused:
                    await begin
                assert refused.value.error is Error.UNKNOWN_TOPIC_OR_PARTITION


async def test_only_the_leader_answers(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        key = await begun(node)
        node.share_coordinator.on_resign(node.partition("t"))
        assert node.share_coordinator.summary(*key) is not None
        node.share_coordinator.on_resign(node.partition(SHARE_GROUP_STATE))
        with pytest.raises(BrokerError) as refused:
            node.share_coordinator.summary(*key)
        assert refused.value.error is Error.NOT_COORDINATOR
        node.share_coordinator.on_leader(node.partition(SHARE_GROUP_STATE))
        with pytest.raises(BrokerError) as refused:
            node.share_coordinator.summary(*key)
        assert refused.value.error is Error.COORDINATOR_LOAD_IN_PROGRESS
        await node.until_loaded("g", key.topic_id)
        assert node.share_coordinator.summary(*key) is not None


async def test_a_deleted_topic_is_forgotten(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        key = await begun(node)
        other = SharePartitionKey("g", (await node.begin("g", "kept")).topic_id, 0)
        await node.controller.delete_topic("t")
    async with sharing(tmp_path) as node:
        await node.until_loaded("g", other.topic_id)
        with pytest.raises(BrokerError):
            node.share_coordinator.summary(*key)
        assert node.share_coordinator.summary(*other) is not None


async def test_what_newer_snapshots_make_superfluous_is_deleted(tmp_path: Path) -> None:
    """As long as another share partition has an older snapshot, that one and all behind it stay."""
    settings = {"share_coordinator_snapshot_update_records_per_snapshot": 3}
    async with sharing(tmp_path, **settings) as node:
        busy = await begun(node)
        quiet = SharePartitionKey("quiet", busy.topic_id, 0)
        await node.begin("quiet", "t")
        for offset in range(20):
            write(node, busy, (offset, offset, ACKNOWLEDGED, 1), start_offset=offset)
        log = node.partition(SHARE_GROUP_STATE)
        await trio.sleep(node.config.share_coordinator_state_topic_prune_interval_ms / 1000 + 1)
        assert log.log_start_offset == 1
        write(node, quiet, (0, 0, ACKNOWLEDGED, 1))
        await trio.sleep(2 * node.config.share_coordinator_cold_partition_snapshot_interval_ms / 1000 + 1)
        assert log.log_start_offset > 1
        before = [node.share_coordinator.summary(*key) for key in (busy, quiet)]
    async with sharing(tmp_path, **settings) as node:
        await node.until_loaded("g", busy.topic_id)
        assert [node.share_coordinator.summary(*key) for key in (busy, quiet)] == before


async def test_a_snapshot_comes_after_so_many_updates(tmp_path: Path) -> None:
    async with sharing(tmp_path, share_coordinator_snapshot_update_records_per_snapshot=2) as node:
        key = await begun(node)
        counts = []
        for offset in range(7):
            write(node, key, (offset, offset, ACKNOWLEDGED, 1))
            state = node.share_coordinator.summary(*key)
            assert state is not None
            counts.append((state.snapshot_epoch, state.updates))
    assert counts == [(0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]
