"""The coordinator on a real partition: what is kept, what comes back after a restart, and what time brings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
from support.coordinator import GroupNode, coordinator, result_of
from trio.testing import wait_all_tasks_blocked

from odradek.cluster.topics import CONSUMER_OFFSETS
from odradek.groups.commits import NewOffsets
from odradek.groups.coordinator import GroupCoordinator
from odradek.groups.group import Group
from odradek.groups.member import JoinResult, SyncResult
from odradek.groups.states import GroupState
from odradek.partition import Partition
from odradek.sharding import java_hash
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.internal.consumer_protocol import ConsumerProtocolSubscription
from odradek_protocol.internal.versioned import encode_versioned

TOPIC = encode_versioned(ConsumerProtocolSubscription(topics=["t"]), 0)


async def join(groups: GroupCoordinator, member_id: str = "", group_id: str = "g", **changes: Any) -> JoinResult:
    fields: dict[str, Any] = {
        "member_id": member_id,
        "instance_id": None,
        "client_id": "client",
        "client_host": "/127.0.0.1",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [("range", TOPIC)],
        "requires_known_member_id": False,
        "can_skip_assignment": False,
        **changes,
    }
    return await result_of(groups.join(group_id, **fields))


async def sync(groups: GroupCoordinator, joined: JoinResult, **assignments: bytes) -> SyncResult:
    named = {joined.member_id if name == "me" else name: value for name, value in assignments.items()}
    return await result_of(
        groups.sync(
            "g",
            member_id=joined.member_id,
            instance_id=None,
            generation=joined.generation,
            protocol_type=None,
            protocol_name=None,
            assignments=named,
        )
    )


async def commit_offsets(
    groups: GroupCoordinator,
    group_id: str,
    member_id: str,
    instance_id: str | None,
    generation: int,
    offsets: Sequence[tuple[str, int, int, int, int, str]],
    **more: Any,
) -> None:
    new = [NewOffsets(topic, *([value] for value in values)) for topic, *values in offsets]
    unfinished = groups.commit_offsets(group_id, member_id, instance_id, generation, new, **more)
    if unfinished is not None:
        await unfinished


async def commit(
    groups: GroupCoordinator, offset: int, *, group_id: str = "g", partition: int = 0, **more: Any
) -> None:
    await commit_offsets(groups, group_id, "", None, -1, [("t", partition, offset, -1, -1, "")], **more)


def offset_of(groups: GroupCoordinator, *, group_id: str = "g", partition: int = 0) -> int | None:
    group = groups.find(group_id)
    found = None if group is None else group.offsets.get("t", partition)
    return None if found is None else found.offset


def records(node: GroupNode) -> int:
    return sum(partition.log.log_end_offset for partition in node.partitions.all())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("hello", 99162322),
        ("𝄞", 1772394),
        ("polygenelubricants", -(1 << 31)),
    ],
)
def test_java_hash(text: str, expected: int) -> None:
    assert java_hash(text) == expected


async def test_every_group_has_a_partition(tmp_path: Path) -> None:
    async with coordinator(tmp_path, offsets_topic_num_partitions=50) as node:
        assert node.groups.partition_for("polygenelubricants") == 0
        assert node.groups.partition_for("hello") == 22
        await node.make_offsets_topic()
        assert node.groups.partition_for("hello") == 22


async def test_groups_and_offsets_are_there_again_after_a_restart(tmp_path: Path) -> None:
    async with coordinator(tmp_path) as node:
        await node.make_offsets_topic()
        first = await join(node.groups)
        assert (await sync(node.groups, first, me=b"all")).assignment == b"all"
        member = (first.member_id, None, first.generation)
        await commit_offsets(node.groups, "g", *member, [("t", 0, 7, 3, -1, "note"), ("t", 1, 8, -1, -1, "")])
        await commit_offsets(node.groups, "g", *member, [("t", 0, 9, 4, -1, "later")])
        await commit(node.groups, 5, group_id="simple")
    async with coordinator(tmp_path) as node:
        await node.until_loaded()
        group = node.groups.find("g")
        assert group is not None
        assert (group.state, group.generation, group.leader) == (GroupState.STABLE, 1, first.member_id)
        assert (group.protocol_type, group.protocol_name) == ("consumer", "range")
        member = group.members[first.member_id]
        assert (member.assignment, member.client_id, member.session_timeout_ms) == (b"all", "client", 10_000)
        found = group.offsets.get("t", 0)
        assert found is not None
        assert (found.offset, found.leader_epoch, found.metadata) == (9, 4, "later")
        assert offset_of(node.groups, partition=1) == 8
        assert offset_of(node.groups, group_id="simple") == 5
        node.groups.heartbeat("g", first.member_id, None, 1)
        await trio.sleep(11)
        assert group.state is GroupState.EMPTY, "its session began again when it was loaded"


async def test_t50_a_group_that_is_loaded_is_not_unknown(tmp_path: Path) -> None:
    async with coordinator(tmp_path) as node:
        await node.make_offsets_topic()
        first = await join(node.groups)
        await sync(node.groups, first, me=b"all")
    async with coordinator(tmp_path) as node:
        partition = node.partitions.get(CONSUMER_OFFSETS, node.groups.partition_for("g"))
        assert partition is not None
        node.groups.on_leader(partition)
        node.groups.heartbeat("g", first.member_id, None, first.generation)
        for call in (join(node.groups), sync(node.groups, first), commit(node.groups, 1)):
            with pytest.raises(BrokerError) as told:
                await call
            assert told.value.error is Error.COORDINATOR_LOAD_IN_PROGRESS
        with pytest.raises(BrokerError):
            node.groups.all_groups()
        await node.until_loaded()
        node.groups.heartbeat("g", first.member_id, None, first.generation)


async def test_a_partition_that_cannot_be_read_is_nobodys(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with coordinator(tmp_path) as node:
        await node.make_offsets_topic()
        await commit(node.groups, 1)
        partition = node.partitions.get(CONSUMER_OFFSETS, node.groups.partition_for("g"))
        assert partition is not None
        partition.log.failed = "the disk is gone"
        node.groups.on_leader(partition)
        await node.until_loaded()
        with pytest.raises(BrokerError) as told:
            node.groups.find("g")
        assert told.value.error is Error.NOT_COORDINATOR
    assert "cannot be loaded" in caplog.text


async def test_without_the_lead_nothing_is_answered_and_who_waits_is_told(tmp_path: Path) -> None:
    async with coordinator(tmp_path) as node:
        with pytest.raises(BrokerError) as told:
            await join(node.groups)
        assert told.value.error is Error.NOT_COORDINATOR
        await node.make_offsets_topic()
        first = await join(node.groups)
        await sync(node.groups, first, me=b"")
        results: list[JoinResult] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep, results, node.groups)
            await wait_all_tasks_blocked()
            partition = node.partitions.get(CONSUMER_OFFSETS, node.groups.partition_for("g"))
            assert partition is not None
            partition.resign()
            node.groups.on_resign(partition)
        assert results[0].error is Error.NOT_COORDINATOR
        with pytest.raises(BrokerError) as told:
            node.groups.heartbeat("g", first.member_id, None, 1)
        assert told.value.error is Error.NOT_COORDINATOR


async def keep(results: list[JoinResult], groups: GroupCoordinator, *member_ids: str) -> None:
    results.append(await join(groups, *member_ids))


async def test_t55_concurrent_joins_are_one_generation(tmp_path: Path) -> None:
    async with coordinator(tmp_path, group_initial_rebalance_delay_ms=3000) as node:
        await node.make_offsets_topic()
        ids = [(await join(node.groups, requires_known_member_id=True)).member_id for _ in range(20)]
        results: list[JoinResult] = []
        async with trio.open_nursery() as nursery:
            for member_id in ids:
                nursery.start_soon(keep, results, node.groups, member_id)
        assert {result.error for result in results} == {Error.NONE}
        assert {result.generation for result in results} == {1}
        assert len({result.leader for result in results}) == 1
        assert [len(result.members) for result in results if result.leader == result.member_id] == [20]


@pytest.mark.parametrize("kept_by", ["heartbeats", "commits"])
async def test_sessions_end_by_themselves(tmp_path: Path, kept_by: str) -> None:
    async with coordinator(tmp_path) as node:
        await node.make_offsets_topic()
        first = await join(node.groups)
        await sync(node.groups, first, me=b"")
        member = (first.member_id, None, first.generation)
        for offset in range(4):
            await trio.sleep(9)
            if kept_by == "commits":
                await commit_offsets(node.groups, "g", *member, [("t", 0, offset, -1, -1, "")])
            else:
                node.groups.heartbeat("g", *member)
        group = node.groups.find("g")
        assert isinstance(group, Group)
        assert group.state is GroupState.STABLE
        await trio.sleep(10.1)
        assert group.state is GroupState.EMPTY
        assert node.groups.find("g") is group
        assert await join(node.groups, group_id="g")


async def test_an_append_that_fails_is_answered_and_nothing_is_visible(tmp_path: Path) -> None:
    async with coordinator(tmp_path, offset_metadata_max_bytes=10_000_000) as node:
        await node.make_offsets_topic()
        await commit(node.groups, 1)
        big = [("t", partition, 2, -1, -1, "m" * 30_000) for partition in range(40)]
        with pytest.raises(BrokerError) as told:
            await commit_offsets(node.groups, "g", "", None, -1, big)
        assert told.value.error is Error.INVALID_COMMIT_OFFSET_SIZE
        first = await join(node.groups, group_id="g2")
        partition = node.partitions.get(CONSUMER_OFFSETS, node.groups.partition_for("g"))
        assert partition is not None
        partition.resign()
        with pytest.raises(BrokerError) as told:
            await commit(node.groups, 3)
        assert told.value.error is Error.NOT_COORDINATOR
        assert offset_of(node.groups) == 1
        assert first.error is Error.NONE


async def test_what_is_not_replicated_is_not_visible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with coordinator(tmp_path) as node:
        await node.make_offsets_topic()
        first = await join(node.groups, instance_id="i")
        partition = node.partitions.get(CONSUMER_OFFSETS, node.groups.partition_for("g"))
        assert partition is not None
        monkeypatch.setattr(Partition, "_advance_high_watermark", lambda _: None)
        group = node.groups.find("g")
        assert group is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sync_static, node.groups, first)
            await wait_all_tasks_blocked()
            assert group.state is GroupState.COMPLETING_REBALANCE
            partition.high_watermark = partition.log.log_end_offset
            partition.wake()
        assert group.state is GroupState.STABLE
        with pytest.raises(BrokerError) as told:
            await commit_offsets(node.groups, "g", first.member_id, "i", 1, [("t", 0, 1, -1, -1, "")])
        assert told.value.error is Error.COORDINATOR_NOT_AVAILABLE
        assert offset_of(node.groups) is None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(commit_offsets, node.groups, "g", first.member_id, "i", 1, [("t", 0, 2, -1, -1, "")])
            await wait_all_tasks_blocked()
            assert offset_of(node.groups) is None
            partition.high_watermark = partition.log.log_end_offset
            partition.wake()
        assert offset_of(node.groups) == 2


async def sync_static(groups: GroupCoordinator, joined: JoinResult) -> None:
    result = await result_of(
        groups.sync(
            "g",
            member_id=joined.member_id,
            instance_id="i",
            generation=joined.generation,
            protocol_type=None,
            protocol_name=None,
            assignments={joined.member_id: b"all"},
        )
    )
    assert result.assignment == b"all"


async def test_names_that_no_record_can_hold_are_refused(tmp_path: Path) -> None:
    async with coordinator(tmp_path) as node:
        await node.make_offsets_topic()
        for call in (join(node.groups, group_id="g" * 40_000), commit(node.groups, 1, group_id="g" * 40_000)):
            with pytest.raises(BrokerError) as told:
                await call
            assert told.value.error is Error.INVALID_REQUEST
        assert node.groups.all_groups() == []
        first = await join(node.groups, instance_id="i" * 40_000)
        stored = await result_of(
            node.groups.sync(
                "g",
                member_id=first.member_id,
                instance_id="i" * 40_000,
                generation=1,
                protocol_type=None,
                protocol_name=None,
                assignments={},
            )
        )
        assert stored.error is Error.INVALID_REQUEST


async def test_an_assignment_that_cannot_be_stored_is_told_to_the_leader(tmp_path: Path) -> None:
    async with coordinator(tmp_path) as node:
        await node.make_offsets_topic()
        first = await join(node.groups)
        assert (await sync(node.groups, first, me=b"x" * 2_000_000)).error is Error.UNKNOWN_SERVER_ERROR
        group = node.groups.find("g")
        assert group is not None
        assert group.state is GroupState.PREPARING_REBALANCE
        again = await join(node.groups, first.member_id)
        assert (await sync(node.groups, again, me=b"x")).assignment == b"x"


async def test_t65_a_commit_of_nothing_writes_nothing(tmp_path: Path) -> None:
    async with coordinator(tmp_path) as node:
        await node.make_offsets_topic()
        await commit_offsets(node.groups, "g", "", None, -1, [])
        assert records(node) == 0


async def test_the_offsets_of_a_deleted_topic_are_forgotten(tmp_path: Path) -> None:
    async with coordinator(tmp_path) as node:
        await node.make_offsets_topic()
        await commit(node.groups, 1)
        await commit_offsets(node.groups, "g", "", None, -1, [("u", 0, 2, -1, -1, "")])
        await node.groups.forget_topic("t")
        assert offset_of(node.groups) is None
    async with coordinator(tmp_path) as node:
        await node.until_loaded()
        group = node.groups.find("g")
        assert group is not None
        assert group.offsets.partitions() == [("u", 0)]


# -- expiry (KIP-211) --


async def test_the_offsets_of_a_group_age_from_when_it_became_empty(tmp_path: Path) -> None:
    async with coordinator(tmp_path, offsets_retention_minutes=60) as node:
        await node.make_offsets_topic()
        first = await join(node.groups, session_timeout_ms=1_800_000)
        await sync(node.groups, first, me=b"")
        await commit_offsets(node.groups, "g", first.member_id, None, 1, [("t", 0, 1, -1, -1, "")])
        for _ in range(6):
            await trio.sleep(1200)
            node.groups.heartbeat("g", first.member_id, None, 1)
        assert offset_of(node.groups) == 1, "it is consumed"
        assert node.groups.leave("g", [(first.member_id, None)]) == [Error.NONE]
        await trio.sleep(3000)
        assert offset_of(node.groups) == 1
        await trio.sleep(1300)
        assert node.groups.find("g") is None
    async with coordinator(tmp_path) as node:
        await node.until_loaded()
        assert node.groups.all_groups() == []


async def test_offsets_of_topics_that_nobody_consumes_any_more_expire_in_a_stable_group(tmp_path: Path) -> None:
    async with coordinator(tmp_path, offsets_retention_minutes=10) as node:
        await node.make_offsets_topic()
        first = await join(node.groups, session_timeout_ms=1_800_000)
        await sync(node.groups, first, me=b"")
        both = [("t", 0, 1, -1, -1, ""), ("u", 0, 1, -1, -1, "")]
        await commit_offsets(node.groups, "g", first.member_id, None, 1, both)
        await trio.sleep(1300)
        group = node.groups.find("g")
        assert group is not None
        assert group.offsets.partitions() == [("t", 0)]


async def test_offsets_without_a_group_age_from_their_commit(tmp_path: Path) -> None:
    async with coordinator(tmp_path, offsets_retention_minutes=60) as node:
        await node.make_offsets_topic()
        await commit(node.groups, 1)
        await commit(node.groups, 1, partition=1)
        await trio.sleep(2400)
        await commit(node.groups, 2)
        await trio.sleep(2400)
        assert offset_of(node.groups) == 2
        assert offset_of(node.groups, partition=1) is None


async def test_a_retention_time_of_its_own_counts_for_an_old_commit(tmp_path: Path) -> None:
    async with coordinator(tmp_path) as node:
        await node.make_offsets_topic()
        await commit(node.groups, 1, retention_time_ms=3_600_000)
        await commit(node.groups, 1, partition=1)
    async with coordinator(tmp_path) as node:
        await node.until_loaded()
        await trio.sleep(2 * 3600)
        assert offset_of(node.groups) is None
        assert offset_of(node.groups, partition=1) == 1


async def test_a_group_that_nobody_joined_in_the_end_is_forgotten(tmp_path: Path) -> None:
    async with coordinator(tmp_path) as node:
        await node.make_offsets_topic()
        await join(node.groups, requires_known_member_id=True)
        assert node.groups.find("g") is not None
        await trio.sleep(1201)
        assert node.groups.find("g") is None


async def test_a_commit_is_visible_whose_client_goes_away_before_it_is_replicated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with coordinator(tmp_path) as node:
        await node.make_offsets_topic()
        await commit(node.groups, 1)
        partition = node.partitions.get(CONSUMER_OFFSETS, node.groups.partition_for("g"))
        assert partition is not None
        monkeypatch.setattr(Partition, "_advance_high_watermark", lambda _: None)
        async with trio.open_nursery() as client:
            client.start_soon(commit, node.groups, 2)
            await wait_all_tasks_blocked()
            client.cancel_scope.cancel()
        assert offset_of(node.groups) == 1
        partition.high_watermark = partition.log.log_end_offset
        partition.wake()
        await wait_all_tasks_blocked()
        assert offset_of(node.groups) == 2
