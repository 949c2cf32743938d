"""The share partitions of the partitions that this broker leads: taken up when a member reads them, written as they
change, and given up when nobody reads them any more, the lead is lost, or somebody else has changed their state.

Rules:

- What members acknowledge is written by the share coordinator, and counts when it is; see `share_partition`.
- One task sleeps until the earliest lock of all share partitions is over.
- Who waits for records of a share partition is woken when some are given back.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import trio

from odradek.config.group import duration_of
from odradek.deadlines import Alarms
from odradek.groups.limits import GroupSettings, ShareSettings
from odradek.sharding import translated
from odradek.share.in_flight import StateBatch, Transition
from odradek.share.sessions import ShareSession, ShareSessions
from odradek.share.share_partition import Acknowledgement, SharePartition
from odradek.share.stored_state import UNSET, StoredState
from odradek.waiting import Waiter
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.cluster.view import ClusterView
    from odradek.config import BrokerConfig
    from odradek.partition import Partition
    from odradek.sharding import Written
    from odradek.share.coordinator import ShareCoordinator

__all__ = ["SharePartitions", "Shared", "Unfinished"]

log = logging.getLogger(__name__)

STATE_ERRORS = {
    Error.NOT_COORDINATOR: Error.COORDINATOR_NOT_AVAILABLE,
    Error.COORDINATOR_LOAD_IN_PROGRESS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.FENCED_LEADER_EPOCH: Error.NOT_LEADER_OR_FOLLOWER,
    Error.FENCED_STATE_EPOCH: Error.NOT_LEADER_OR_FOLLOWER,
}
"""What a member is told for an error of the share coordinator."""

FENCED = frozenset({Error.NOT_LEADER_OR_FOLLOWER, Error.GROUP_ID_NOT_FOUND, Error.UNKNOWN_TOPIC_OR_PARTITION})
"""The errors after which a share partition is taken up anew."""

Key = tuple[str, bytes, int]


class Shared:
    """One share partition at work. `machine` is None until its state is read."""

    __slots__ = ("key", "leader_epoch", "machine", "partition", "settings", "state_epoch", "waiters")

    def __init__(self, key: Key, partition: "Partition", settings: ShareSettings) -> None:
        self.key = key
        self.partition = partition
        self.settings = settings
        self.leader_epoch = partition.leader_epoch
        self.state_epoch = 0
        self.machine: SharePartition | None = None
        self.waiters: set[Waiter] = set()

    @property
    def group_id(self) -> str:
        return self.key[0]

    def wake(self) -> None:
        """End every wait for records."""
        for waiter in tuple(self.waiters):
            waiter.wake()


class Unfinished:
    """A change that is written, and counts when its replicas have it. It is seen through, whoever waits for that."""

    __slots__ = ("_done", "_error")

    def __init__(self) -> None:
        self._done = trio.Event()
        self._error: BrokerError | None = None

    def end(self, error: BrokerError | None = None) -> None:
        """It counts, or with an error, it does not."""
        self._error = error
        self._done.set()

    async def wait(self) -> BrokerError | None:
        """Wait until it counts, or does not: then this gives why, as `STATE_ERRORS` has it."""
        await self._done.wait()
        return self._error


class SharePartitions:
    """The share partitions and the sessions of this broker. `run` has to run while requests are served."""

    def __init__(
        self, config: "BrokerConfig", clock: "Clock", view: "ClusterView", coordinator: "ShareCoordinator"
    ) -> None:
        self._clock = clock
        self._limits = GroupSettings(config, view)
        self._coordinator = coordinator
        self.sessions = ShareSessions(config.group_share_max_share_sessions)
        self._shared: dict[Key, Shared] = {}
        self._deadlines: Alarms[Key] = Alarms()
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """End locks, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                await self._watch_locks()
            finally:
                self._nursery = None

    def on_resign(self, partition: "Partition") -> None:
        """This broker does not lead `partition` any more: what is known of its records is out of date."""
        for shared in list(self._shared.values()):
            if shared.partition is partition:
                self._forget(shared)

    def settings(self, group_id: str) -> ShareSettings:
        """What a group does with records."""
        return self._limits.of_share_group(group_id)

    # Share partitions

    def find(self, group_id: str, topic_id: bytes, index: int) -> Shared:
        """A share partition that is at work. UNKNOWN_TOPIC_OR_PARTITION when there is none."""
        shared = self._shared.get((group_id, topic_id, index))
        if shared is None or shared.machine is None:
            raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
        return shared

    def take_up(self, group_id: str, partition: "Partition") -> Shared:
        """The share partition of a partition that this broker leads; its state is read where it is not at work.

        While the share coordinator is loading, what this gives is not at work yet: Java's consumer would fail for good
        with an error for that. Raises what else the share coordinator raises, as `STATE_ERRORS` has it.
        """
        key = group_id, partition.topic_id, partition.index
        shared = self._shared.get(key)
        if shared is not None:
            return shared
        assert self._nursery is not None, "requests are served only while `run` does"
        shared = Shared(key, partition, self.settings(group_id))
        try:
            state, unwritten = self._coordinator.read(*key, partition.leader_epoch)
        except BrokerError as error:
            if error.error is not Error.COORDINATOR_LOAD_IN_PROGRESS:
                raise _translated(error) from None
            self._nursery.start_soon(self._begin_when_loaded, shared)
        else:
            if unwritten is None:
                self._begin(shared, state)
            else:
                self._nursery.start_soon(self._begin_later, shared, state, unwritten)
        self._shared[key] = shared
        return shared

    async def _begin_when_loaded(self, shared: Shared) -> None:
        await self._coordinator.until_loaded(*shared.key)
        if self._shared.get(shared.key) is not shared:
            return
        try:
            state, unwritten = self._coordinator.read(*shared.key, shared.leader_epoch)
        except BrokerError as error:
            log.warning("the state of a share partition of %r cannot be read: %s", shared.partition, error)
            self._forget(shared)
        else:
            await self._begin_later(shared, state, unwritten)

    async def _begin_later(self, shared: Shared, state: StoredState, unwritten: "Written | None") -> None:
        try:
            if unwritten is not None:
                await unwritten.wait()
        except BrokerError as error:
            log.warning("the state of a share partition of %r cannot be read: %s", shared.partition, error)
            self._forget(shared)
        else:
            if self._shared.get(shared.key) is shared:
                self._begin(shared, state)
                shared.wake()

    def _begin(self, shared: Shared, state: StoredState) -> None:
        start_offset = state.start_offset
        if start_offset == UNSET:
            start_offset = self._first_offset(shared)
        shared.state_epoch = state.state_epoch
        shared.machine = SharePartition(start_offset, state.batches, shared.settings)

    def _first_offset(self, shared: Shared) -> int:
        """Where a group begins to read a partition."""
        partition, reset = shared.partition, shared.settings.auto_offset_reset
        if reset.lower() == "earliest":
            return partition.log_start_offset
        back = duration_of(reset)
        if back is not None:
            since_ms = self._clock.now_ms() - back // timedelta(milliseconds=1)
            found = partition.log.offset_for_timestamp(since_ms, partition.high_watermark)
            if found is not None:
                return found.offset
        return partition.high_watermark

    def _forget(self, shared: Shared) -> None:
        if self._shared.get(shared.key) is shared:
            del self._shared[shared.key]
            self._deadlines.forget(shared.key)
            shared.wake()

    # What members say

    def acknowledge(
        self, shared: Shared, member_id: str, acknowledgements: Iterable[Acknowledgement]
    ) -> Unfinished | None:
        """Acknowledge records: done where this gives None; else what it gives is to be waited for.

        Raises what `SharePartition.acknowledge` raises, and `STATE_ERRORS`.
        """
        assert shared.machine is not None
        return self._store(shared, shared.machine.acknowledge(member_id, acknowledgements, trio.current_time()))

    def release_session(self, session: ShareSession) -> list[Unfinished]:
        """End a session, and give back what its member has acquired; what this gives may be waited for."""
        unfinished = []
        if self.sessions.remove(session):
            for topic_id, index in session.partitions:
                shared = self._shared.get((session.group_id, topic_id, index))
                if shared is not None and shared.machine is not None:
                    try:
                        finish = self._store(shared, shared.machine.release(session.member_id))
                    except BrokerError as error:
                        log.warning("giving back records of %r failed: %s", shared.partition, error)
                    else:
                        unfinished += [] if finish is None else [finish]
        return unfinished

    def on_disconnect(self, session: ShareSession) -> None:
        """The connection of a session is closed: its member is gone; and with the last one the group's state here."""
        self.release_session(session)
        if not self.sessions.has_members(session.group_id):
            for shared in [one for one in self._shared.values() if one.group_id == session.group_id]:
                self._forget(shared)

    def heed_locks(self, shared: Shared) -> None:
        """Have the locks of a share partition ended in time."""
        assert shared.machine is not None
        self._deadlines.schedule(shared.key, shared.machine.deadline)

    # Inside

    def _store(self, shared: Shared, transition: Transition) -> Unfinished | None:
        machine = shared.machine
        assert machine is not None
        self.heed_locks(shared)
        if not transition.batches:
            return None
        try:
            unwritten = self._write(shared, transition.batches)
        except BrokerError as error:
            raise self._failed(shared, transition, error) from None
        if unwritten is not None:
            assert self._nursery is not None, "requests are served only while `run` does"
            unfinished = Unfinished()
            self._nursery.start_soon(self._finish, shared, transition, unwritten, unfinished)
            return unfinished
        self._succeeded(shared, transition)
        return None

    async def _finish(
        self, shared: Shared, transition: Transition, unwritten: "Written", unfinished: Unfinished
    ) -> None:
        try:
            await unwritten.wait()
        except BrokerError as error:
            log.warning("a change of %r was not written: %s", shared.partition, error)
            unfinished.end(self._failed(shared, transition, error))
        else:
            self._succeeded(shared, transition)
            unfinished.end()

    def _succeeded(self, shared: Shared, transition: Transition) -> None:
        assert shared.machine is not None
        shared.machine.complete(transition, trio.current_time(), succeeded=True)
        shared.wake()

    def _failed(self, shared: Shared, transition: Transition, error: BrokerError) -> BrokerError:
        """What the member is told; its records are its own again."""
        assert shared.machine is not None
        shared.machine.complete(transition, trio.current_time(), succeeded=False)
        self.heed_locks(shared)
        told = _translated(error)
        if told.error in FENCED:
            self._forget(shared)
        return told

    def _write(self, shared: Shared, batches: Sequence[StateBatch]) -> "Written | None":
        machine = shared.machine
        assert machine is not None
        return self._coordinator.write(
            *shared.key,
            state_epoch=shared.state_epoch,
            leader_epoch=shared.leader_epoch,
            start_offset=machine.start_offset,
            delivery_complete_count=machine.delivery_complete_count,
            batches=batches,
        )

    async def _watch_locks(self) -> None:
        while True:
            for key in await self._deadlines.due():
                shared = self._shared.get(key)
                if shared is not None:
                    self._end_locks(shared)

    def _end_locks(self, shared: Shared) -> None:
        """Take back records whose lock is over. It holds whether it can be written or not."""
        machine = shared.machine
        assert machine is not None
        batches = machine.expire(trio.current_time())
        self.heed_locks(shared)
        if batches:
            try:
                self._write(shared, batches)
            except BrokerError as error:
                log.warning("the end of locks of %r was not written: %s", shared.partition, error)
            machine.forget_done()
            shared.wake()


def _translated(error: BrokerError) -> BrokerError:
    return translated(error, STATE_ERRORS)
