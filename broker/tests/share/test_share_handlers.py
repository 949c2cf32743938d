"""ShareFetch and ShareAcknowledge as a broker answers them: sessions, waiting, locks, and what a member leaves."""

from pathlib import Path

import pytest
import trio
import trio.testing
from support.logs import marker
from support.sharing import ShareNode, sharing

from odradek.log.log import Origin
from odradek.share.sessions import HIGHEST_EPOCH, ShareSessions
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.records.batch import TRANSACTIONAL
from odradek_protocol.records.control import ControlType

pytestmark = pytest.mark.usefixtures("without_threads")

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
FINAL = -1
LOCK_S = 30


async def test_records_are_acquired_and_acknowledged(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        node.produce("t", b"0", b"1", b"2")
        fetched = await group.fetch("m")
        assert (fetched.acquired, fetched.values) == ([(0, 2, 1)], [b"0", b"1", b"2"])
        assert (await group.fetch("n")).acquired == []
        assert await group.acknowledge("m", (0, 1, ACCEPT, RELEASE), (2, 2, REJECT)) == 0
        assert (await group.fetch("n")).values == [b"1"]
        assert (await group.fetch("m")).acquired == []


@pytest.mark.parametrize(
    ("member_id", "options", "error"),
    [
        ("", {}, Error.INVALID_REQUEST),
        ("m" * 37, {}, Error.INVALID_REQUEST),
        ("m", {"group_id": None}, Error.INVALID_REQUEST),
        ("m", {"epoch": 4}, Error.SHARE_SESSION_NOT_FOUND),
        ("m", {"epoch": FINAL}, Error.SHARE_SESSION_NOT_FOUND),
        ("m", {"is_renew_ack": True}, Error.INVALID_REQUEST),
    ],
)
async def test_fetches_that_are_refused(
    tmp_path: Path, member_id: str, options: dict[str, object], error: Error
) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        assert (await group.fetch_all(member_id, {0: []}, **options)).error_code == error  # type: ignore[arg-type]  # one dict for all fields


async def test_a_session_cannot_begin_with_acknowledgements(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        assert (await group.fetch("m", (0, 0, ACCEPT))).error == Error.INVALID_REQUEST
        assert await group.acknowledge("m", (0, 0, ACCEPT), epoch=0) == Error.INVALID_SHARE_SESSION_EPOCH


async def test_a_session_goes_on_epoch_by_epoch(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        await group.fetch("m")
        assert await group.acknowledge("m", epoch=1) == 0
        assert (await group.fetch("m", epoch=1)).error == Error.INVALID_SHARE_SESSION_EPOCH
        assert (await group.fetch("m", epoch=2)).error == 0
        assert await group.acknowledge("m", epoch=FINAL) == 0
        assert (await group.fetch("m", epoch=3)).error == Error.SHARE_SESSION_NOT_FOUND


def test_epochs_begin_again_behind_the_highest() -> None:
    sessions = ShareSessions(1)
    session = sessions.create("g", "m", [])
    session.epoch = HIGHEST_EPOCH
    assert sessions.advance("g", "m", HIGHEST_EPOCH).epoch == 1


async def test_a_session_names_partitions_once(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t", partitions=3)
        for index in range(3):
            node.produce("t", b"v", index=index)
        first = await group.fetch_all("m", {0: [], 1: []})
        assert sorted(each.partition_index for topic in first.responses for each in topic.partitions) == [0, 1]
        assert (await group.fetch_all("m", {})).responses == []
        third = await group.fetch_all("m", {2: []}, forgotten=[0, 1])
        assert [each.partition_index for topic in third.responses for each in topic.partitions] == [2]
        node.produce("t", b"v", index=0)
        assert (await group.fetch_all("m", {})).responses == []


async def test_there_are_so_many_sessions(tmp_path: Path) -> None:
    """Who gets none is told late, as it would ask again at once."""
    async with sharing(tmp_path, group_share_max_share_sessions=1) as node:
        group = await node.begin("g", "t")
        await group.fetch("m")
        begun = trio.current_time()
        assert (await group.fetch("n", max_wait_ms=5_000)).error == Error.SHARE_SESSION_LIMIT_REACHED
        assert trio.current_time() >= begun + 5
        assert (await group.fetch("m", epoch=0)).error == 0
        group.disconnect("m")
        assert (await group.fetch("n", epoch=0)).error == 0


async def test_partitions_and_topics_that_do_not_exist(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        assert (await group.fetch("m", index=7)).error == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert await group.acknowledge("m", (0, 0, ACCEPT), index=7) == Error.UNKNOWN_TOPIC_OR_PARTITION
        group.topic_id = bytes(15) + b"\x07"
        assert (await group.fetch("n")).error == Error.UNKNOWN_TOPIC_ID
        assert await group.acknowledge("n", (0, 0, ACCEPT)) == Error.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    "batches",
    [
        [(1, 0, ACCEPT)],
        [(1, 1, ACCEPT), (0, 0, ACCEPT)],
        [(0, 2, ACCEPT, ACCEPT)],
        [(0, 0, 9)],
        [(0, 0, RENEW)],
        [(0, 9, ACCEPT)],
    ],
)
async def test_acknowledgements_that_are_no_good(tmp_path: Path, batches: list[tuple[int, ...]]) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        node.produce("t", b"0", b"1", b"2")
        await group.fetch("m")
        assert await group.acknowledge("m", *batches) == Error.INVALID_REQUEST
        assert (await group.fetch("m", *batches)).acknowledge_error == Error.INVALID_REQUEST
        assert await group.acknowledge("m", (0, 2, ACCEPT)) == 0


async def test_nobody_acknowledges_anothers_records(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        node.produce("t", b"0")
        await group.fetch("m")
        await group.fetch("n")
        assert await group.acknowledge("n", (0, 0, ACCEPT)) == Error.INVALID_RECORD_STATE
        assert await group.acknowledge("m", (0, 0, ACCEPT)) == 0


async def test_a_fetch_waits_for_records(tmp_path: Path) -> None:
    """For those that are produced, for those that are given back, and for the end of its time."""
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        begun = trio.current_time()
        assert (await group.fetch("m", max_wait_ms=9_000)).acquired == []
        assert trio.current_time() == begun + 9

        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def _() -> None:
                assert (await group.fetch("m", max_wait_ms=9_000)).values == [b"0"]

            await trio.testing.wait_all_tasks_blocked()
            node.produce("t", b"0")
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def _() -> None:
                assert (await group.fetch("n", max_wait_ms=9_000)).acquired == [(0, 0, 2)]

            await trio.testing.wait_all_tasks_blocked()
            assert await group.acknowledge("m", (0, 0, RELEASE)) == 0
        assert trio.current_time() == begun + 9


async def test_locks_end_by_themselves(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t", share_record_lock_duration_ms="20000")
        node.produce("t", b"0", b"1")
        await group.fetch("m")
        begun = trio.current_time()
        assert (await group.fetch("n", max_wait_ms=60_000)).acquired == [(0, 1, 2)]
        assert trio.current_time() == begun + 20
        assert await group.acknowledge("m", (0, 1, ACCEPT)) == Error.INVALID_RECORD_STATE
        assert await group.acknowledge("n", (0, 1, ACCEPT)) == 0


async def test_renewed_locks_last(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        node.produce("t", b"0")
        await group.fetch("m")
        for _ in range(3):
            await trio.sleep(LOCK_S - 1)
            assert await group.acknowledge("m", (0, 0, RENEW), is_renew_ack=True) == 0
        begun = trio.current_time()
        assert (await group.fetch("n", max_wait_ms=60_000)).acquired == [(0, 0, 2)]
        assert trio.current_time() == begun + LOCK_S


async def test_a_renewal_in_a_fetch_asks_for_no_records(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        node.produce("t", b"0")
        await group.fetch("m")
        node.produce("t", b"1")
        nothing = {"min_bytes": 0, "max_bytes": 0, "max_records": 0}
        fetched = await group.fetch("m", (0, 0, RENEW), is_renew_ack=True, **nothing)
        assert (fetched.error, fetched.acknowledge_error, fetched.acquired) == (0, 0, [])


@pytest.mark.parametrize("how", ["last fetch", "last acknowledgement", "end of the connection"])
async def test_a_member_that_goes_gives_back_what_it_has(tmp_path: Path, how: str) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        node.produce("t", b"0", b"1", b"2")
        await group.fetch("m")
        await group.fetch("n")
        if how == "last fetch":
            assert (await group.fetch("m", (0, 0, ACCEPT), epoch=FINAL)).acquired == []
        elif how == "last acknowledgement":
            assert await group.acknowledge("m", (0, 0, ACCEPT), epoch=FINAL) == 0
        else:
            assert await group.acknowledge("m", (0, 0, ACCEPT)) == 0
            group.disconnect("m")
        assert (await group.fetch("n")).acquired == [(1, 2, 2)]


async def test_what_the_last_member_leaves_is_taken_up_again(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        node.produce("t", b"0", b"1", b"2")
        await group.fetch("m")
        await group.acknowledge("m", (0, 0, ACCEPT), (1, 1, REJECT))
        group.disconnect("m")
        assert (await group.fetch("n")).acquired == [(2, 2, 2)]


@pytest.mark.parametrize(("mode", "acquired"), [(0, [(0, 3, 1)]), (1, [(0, 1, 1)])])
async def test_how_many_records_are_acquired(tmp_path: Path, mode: int, acquired: list[tuple[int, int, int]]) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        node.produce("t", b"0", b"1", b"2", b"3")
        node.produce("t", b"4")
        assert (await group.fetch("m", max_records=2, share_acquire_mode=mode)).acquired == acquired


@pytest.mark.parametrize(
    ("level", "expected"),
    [("read_committed", [b"kept", b"after"]), ("read_uncommitted", [b"dropped", b"kept", b"open"])],
)
async def test_records_of_transactions(tmp_path: Path, level: str, expected: list[bytes]) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t", share_isolation_level=level)
        partition = node.partition("t")
        for number, (value, end) in enumerate([(b"dropped", ControlType.ABORT), (b"kept", ControlType.COMMIT)]):
            produce_in_transaction(node, value, number)
            partition.append(marker(end, number, 0), origin=Origin.COORDINATOR)
        produce_in_transaction(node, b"open", 2)
        fetched = await group.fetch("m")
        if level == "read_uncommitted":
            assert fetched.values == expected
            return
        assert fetched.values == [b"kept"]
        assert await group.acknowledge("m", *((first, last, ACCEPT) for first, last, _ in fetched.acquired)) == 0
        partition.append(marker(ControlType.ABORT, 2, 0), origin=Origin.COORDINATOR)
        node.produce("t", b"after")
        assert (await group.fetch("m")).values == [b"after"]


def produce_in_transaction(node: ShareNode, value: bytes, producer_id: int) -> None:
    node.produce("t", value, producer=(producer_id, 0, 0), attributes=TRANSACTIONAL)


@pytest.mark.parametrize(
    ("reset", "expected"), [("earliest", [b"old", b"new"]), ("by_duration:PT1H", [b"new"]), ("latest", [])]
)
async def test_where_a_group_begins(tmp_path: Path, reset: str, expected: list[bytes]) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t", -1, share_auto_offset_reset=reset)
        now_ms = node.clock.now_ms()
        node.produce("t", b"old", timestamps=[now_ms - 2 * 3_600_000])
        node.produce("t", b"new", timestamps=[now_ms])
        assert (await group.fetch("m")).values == expected
        node.produce("t", b"later", timestamps=[now_ms])
        assert (await group.fetch("m")).values == [b"later"]


async def test_a_fetch_waits_while_the_share_coordinator_loads(tmp_path: Path) -> None:
    """Java's consumer fails for good with the error that would be told otherwise."""
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t", 1)
        node.produce("t", b"0", b"1")
        state = node.share_coordinator.partition_for("any")
        shard = node.partitions.get("__share_group_state", state)
        assert shard is not None
        node.share_coordinator.on_resign(shard)
        assert (await group.fetch("m")).error == Error.COORDINATOR_NOT_AVAILABLE
        node.share_coordinator.on_leader(shard)
        assert (await group.fetch("m", epoch=0)).error == 0
        fetched = await group.fetch("m", max_wait_ms=10_000)
        assert (fetched.error, fetched.values) == (0, [b"1"])


async def test_what_cannot_be_written_is_still_the_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        node.produce("t", b"0")
        await group.fetch("m")
        await group.fetch("n")

        def refuse(*_: object, **__: object) -> None:
            raise BrokerError(Error.NOT_COORDINATOR)

        with monkeypatch.context() as patched:
            patched.setattr(node.share_coordinator, "write", refuse)
            assert await group.acknowledge("m", (0, 0, RELEASE)) == Error.COORDINATOR_NOT_AVAILABLE
            assert (await group.fetch("n")).acquired == []
        assert await group.acknowledge("m", (0, 0, ACCEPT)) == 0


async def test_a_new_leader_reads_the_state_anew(tmp_path: Path) -> None:
    """What somebody else has changed meanwhile is not overwritten."""
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        node.produce("t", b"0", b"1")
        await group.fetch("m")
        node.share_coordinator.read("g", group.topic_id, 0, 5)
        assert await group.acknowledge("m", (0, 0, ACCEPT)) == Error.NOT_LEADER_OR_FOLLOWER
        await node.share_coordinator.initialize("g", group.topic_id, 0, state_epoch=2, start_offset=1)
        assert (await group.fetch("m")).values == [b"1"]


async def test_records_that_are_deleted_are_not_waited_for(tmp_path: Path) -> None:
    async with sharing(tmp_path) as node:
        group = await node.begin("g", "t")
        node.produce("t", b"0", b"1")
        node.produce("t", b"2")
        await group.fetch("m", max_records=1)
        node.partition("t").delete_records(2)
        assert (await group.fetch("n")).values == [b"2"]
        assert await group.acknowledge("m", (0, 1, ACCEPT)) == 0
