"""Acknowledgements that are in the log, and on the disk only when a thread has flushed it. Time goes as it should."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing
from support.logs import HeldFiles
from support.sharing import sharing

from odradek.share.share_partition import ACCEPT, RELEASE

DEADLINE_S = 60
"""Longer than anything takes."""


@pytest.mark.parametrize(
    ("said", "left"), [(ACCEPT, [(1, 1, 1)]), (RELEASE, [(0, 0, 2), (1, 1, 1)])], ids=["accept", "release"]
)
def test_they_count_also_when_their_client_goes_away_before(
    tmp_path: Path, said: int, left: list[tuple[int, int, int]]
) -> None:
    files = HeldFiles()
    files.let.set()

    async def main() -> None:
        async with sharing(tmp_path, files=files, log_flush_interval_messages=1) as node:
            group = await node.begin("g", "t")
            node.produce("t", b"0")
            node.produce("t", b"1")
            await node.partition("t").flush()
            await group.fetch("m", max_records=1)
            files.let.clear()
            async with trio.open_nursery() as client:
                client.start_soon(partial(group.acknowledge, "m", (0, 0, said)))
                await trio.testing.wait_all_tasks_blocked()
                client.cancel_scope.cancel()
            files.let.set()
            acquired: list[tuple[int, int, int]] = []
            while len(acquired) < len(left):
                acquired += (await group.fetch("n", max_wait_ms=1000)).acquired
            assert sorted(acquired) == left

    trio.run(within_deadline, main)


async def within_deadline(part: Callable[[], Awaitable[None]]) -> None:
    with trio.fail_after(DEADLINE_S):
        await part()
