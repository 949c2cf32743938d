"""One flush for all who wait: what a round takes, who is woken by it, and what is told when the disk refuses."""

import errno
from pathlib import Path

import pytest
import trio
import trio.testing
from support.logs import NOW_MS, HeldFiles, Opener, records

from odradek.group_commit import FlushRounds, GroupCommit
from odradek.log.log import Log, Origin
from odradek_protocol.errors import BrokerError, Error

DEADLINE_S = 30


class Bench:
    """Logs with a group commit each, all in one folder."""

    def __init__(self, folder: Path) -> None:
        self.files = HeldFiles()
        self.opener = Opener(folder, self.files)
        self.rounds = FlushRounds()
        self.flushed: list[int] = []

    def log(self, number: int = 0) -> tuple[Log, GroupCommit]:
        log = self.opener(f"t-{number}")
        return log, GroupCommit(log, self.rounds, lambda: self.flushed.append(log.recovery_point))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def append(log: Log) -> int:
    """Append a record; the offset behind it."""
    return log.append_as_leader(records(b"v"), 0, NOW_MS, Origin.CLIENT).last_offset + 1


def test_what_comes_during_a_flush_shares_the_next_one(bench: Bench) -> None:
    async def main() -> None:
        log, commit = bench.log()
        with trio.fail_after(DEADLINE_S):
            async with trio.open_nursery() as nursery:
                for _ in range(20):
                    nursery.start_soon(commit.wait, append(log))
                    await trio.lowlevel.checkpoint()
                bench.files.let.set()
        assert log.recovery_point == 20
        assert len(bench.flushed) == bench.files.count == 2

    trio.run(main)


def test_what_is_appended_before_trio_comes_round_shares_the_first_flush(bench: Bench) -> None:
    async def main() -> None:
        log, commit = bench.log()
        bench.files.let.set()
        with trio.fail_after(DEADLINE_S):
            async with trio.open_nursery() as nursery:
                for _ in range(20):
                    end_offset = append(log)
                    commit.want(end_offset)
                    nursery.start_soon(commit.wait, end_offset)

    trio.run(main)
    assert bench.files.count == 1
    assert bench.flushed == [20]


def test_whoever_is_covered_does_not_wait_for_the_next(bench: Bench) -> None:
    async def main() -> None:
        log, commit = bench.log()
        bench.files.let.set()
        with trio.fail_after(DEADLINE_S):
            await commit.wait(append(log))
            bench.files.let.clear()
            await commit.wait(1)

    trio.run(main)
    assert bench.flushed == [1]


def test_all_who_wait_are_told_of_a_failure_and_the_log_is_not_trusted_again(bench: Bench) -> None:
    told = []

    async def main() -> None:
        log, commit = bench.log()
        bench.files.error = errno.EIO

        async def wait(end_offset: int) -> None:
            with pytest.raises(BrokerError) as caught:
                await commit.wait(end_offset)
            told.append(caught.value.error)

        with trio.fail_after(DEADLINE_S):
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(wait, append(log))
                await trio.testing.wait_all_tasks_blocked()
                bench.files.let.set()
            bench.files.error = None
            await wait(log.log_end_offset)
        assert log.recovery_point == 0

    trio.run(main)
    assert told == [Error.KAFKA_STORAGE_ERROR] * 4
    assert bench.flushed == []


def test_a_truncation_ends_the_wait_for_what_is_gone(bench: Bench) -> None:
    async def main() -> None:
        log, commit = bench.log()
        with trio.fail_after(DEADLINE_S):
            async with trio.open_nursery() as nursery:
                for _ in range(2):
                    nursery.start_soon(commit.wait, append(log))
                await trio.testing.wait_all_tasks_blocked()
                log.truncate_to(1)
                bench.files.let.set()
        assert log.recovery_point == 1

    trio.run(main)


def test_whoever_gives_up_is_forgotten(bench: Bench) -> None:
    async def main() -> None:
        log, commit = bench.log()
        end_offset = append(log)
        with trio.move_on_after(0):
            await commit.wait(end_offset)
        bench.files.let.set()
        with trio.fail_after(DEADLINE_S):
            await commit.wait(end_offset)
        assert log.recovery_point == 1

    trio.run(main)
