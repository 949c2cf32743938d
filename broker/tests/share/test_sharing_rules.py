"""Any order of records, fetches, acknowledgements, time, members that vanish and crashes, with everything that a broker
does for share groups: sessions, share partitions, the share coordinator and real logs.

No record is two members' at once, each is delivered as often as its count says and the limit allows, what was accepted
is not delivered again, and in the end everything was.
"""

import shutil
import tempfile
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from support.mocked_time import run_in_place, run_on_mocked_time
from support.sharing import ShareNode, SharingGroup, sharing

LOCK_S = 20
LIMIT = 5
GAP, ACCEPT, RELEASE, REJECT = range(4)
DONE = (GAP, ACCEPT, REJECT)
CONFIGS = {"share_record_lock_duration_ms": f"{LOCK_S * 1000}", "share_delivery_count_limit": f"{LIMIT}"}


class Step(NamedTuple):
    """What happens; who and how much, where that matters."""

    what: str
    member: str
    first: int
    count: int
    kind: int


STEPS = st.builds(
    Step,
    st.sampled_from(["produce", "fetch", "fetch", "acknowledge", "acknowledge", "sleep", "disconnect", "crash"]),
    st.sampled_from(["a", "b", "c"]),
    st.integers(0, 12),
    st.integers(1, 6),
    st.sampled_from([GAP, ACCEPT, RELEASE, RELEASE, REJECT]),
)


@dataclass
class Model:
    """What must be true of each offset: whose it is until when, how often it was delivered, whether it is done with."""

    group: SharingGroup
    size: int = 0
    owners: dict[int, tuple[str, float]] = field(default_factory=dict)
    deliveries: dict[int, int] = field(default_factory=dict)
    """As the group counts them: a crash forgets those of which nothing was written."""
    written: dict[int, int] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)

    def expire(self) -> None:
        """Give back what is locked no longer; that is written, too."""
        now = trio.current_time()
        self.give_back([offset for offset, (_, until) in self.owners.items() if until <= now])

    def give_back(self, offsets: list[int]) -> None:
        for offset in offsets:
            del self.owners[offset]
            self.written[offset] = self.deliveries[offset]

    def of(self, member: str) -> list[int]:
        return [offset for offset, (owner, _) in self.owners.items() if owner == member]

    async def fetch(self, member: str, max_records: int, mode: int) -> None:
        options = {"max_records": max_records, "share_acquire_mode": mode}
        fetched = await self.group.fetch(member, **options)
        self.expire()
        taken = [(offset, count) for first, last, count in fetched.acquired for offset in range(first, last + 1)]
        assert fetched.values == [f"{offset}".encode() for offset, _ in taken]
        assert mode == 0 or len(taken) <= max_records
        for offset, count in taken:
            assert offset not in self.owners, "two members' at once"
            assert offset not in self.done, "delivered again"
            self.deliveries[offset] = self.deliveries.get(offset, 0) + 1
            assert count == self.deliveries[offset] <= LIMIT
            self.owners[offset] = member, trio.current_time() + LOCK_S

    async def acknowledge(self, member: str, first: int, size: int, kind: int) -> None:
        self.expire()
        offsets = range(first, first + size)
        code = await self.group.acknowledge(member, (first, first + size - 1, kind))
        if code:
            assert not all(self.owners.get(offset, ("",))[0] == member for offset in offsets), "its own records"
            return
        for offset in offsets:
            if offset in self.owners:
                assert self.owners[offset][0] == member, "somebody else's records"
                self.give_back([offset])
                if kind in DONE:
                    self.done.add(offset)
            else:
                assert offset in self.done or self.deliveries.get(offset) == LIMIT, "nobody's records"

    def disconnect(self, member: str) -> None:
        self.expire()
        self.group.disconnect(member)
        self.give_back(self.of(member))

    def crash(self) -> None:
        self.owners.clear()
        self.deliveries = dict(self.written)


@settings(max_examples=30)
@given(st.lists(STEPS, max_size=40))
def test_any_order_of_steps(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(trio.to_thread, "run_sync", run_in_place)
        run_on_mocked_time(follow, folder=Path(folder), steps=steps)


async def follow(folder: Path, steps: list[Step]) -> None:
    """Take the steps with one broker, and those behind each crash with another, on what the one before had written."""
    model: Model | None = None
    lives = [list(life) for is_crash, life in groupby(steps, lambda step: step.what == "crash") if not is_crash]
    for number, life in enumerate([*lives, []]):
        async with sharing(folder / f"{number}") as node:
            model = await _begun(node, model)
            for step in life:
                await _take(node, model, step)
            if number == len(lives):
                await _empty(model)
            else:
                shutil.copytree(folder / f"{number}", folder / f"{number + 1}")


async def _begun(node: ShareNode, model: Model | None) -> Model:
    if model is None:
        return Model(await node.begin("g", "t", **CONFIGS))
    model.group = await node.resume("g", "t", **CONFIGS)
    model.crash()
    return model


async def _take(node: ShareNode, model: Model, step: Step) -> None:
    if step.what == "produce":
        node.produce("t", *(f"{model.size + each}".encode() for each in range(step.count)))
        model.size += step.count
    elif step.what == "fetch":
        await model.fetch(step.member, step.count, step.first % 2)
    elif step.what == "acknowledge":
        await model.acknowledge(step.member, step.first, step.count, step.kind)
    elif step.what == "sleep":
        await trio.sleep(LOCK_S / step.count)
        await trio.testing.wait_all_tasks_blocked()
        model.expire()  # the broker has written it, should it crash next
    else:
        model.disconnect(step.member)


async def _empty(model: Model) -> None:
    """Accept all that is left: nothing is lost."""
    await trio.sleep(LOCK_S)
    await trio.testing.wait_all_tasks_blocked()
    before = -1
    while before != len(model.owners):
        before = len(model.owners)
        await model.fetch("last", 100, 0)
    for offset in model.of("last"):
        await model.acknowledge("last", offset, 1, ACCEPT)
    assert all(offset in model.done or model.deliveries[offset] == LIMIT for offset in range(model.size))
