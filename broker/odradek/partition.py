"""One partition on this broker: its log, how far it is committed, and who waits for it.

Rules:

- Everything that changes a partition is synchronous: trio switches tasks only at an `await`, so nothing comes between
  a check and the change that follows it. What was read before an `await` is read again behind it.
- The high watermark is the first offset that not all in-sync replicas have; consumers read below it. It never moves
  back while this broker leads. With one replica in sync it is the log end offset.
- Where the topic asks for a flush (`flush.messages`), a replica has what is on its disk: what has to be flushed is not
  committed before. The append itself starts the flush.
- The last stable offset is the first offset of the oldest transaction that is open, or the high watermark; who reads
  committed records only reads below it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from odradek.group_commit import FlushRounds, FlushWaiter, GroupCommit
from odradek.log.log import AppendResult, Log, Origin
from odradek.waiting import Waiter, wait_on
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.records.batch import RecordBatch

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.config import TopicConfig

__all__ = ["NO_EPOCH", "Partition"]

NO_EPOCH = -1
"""A leader epoch that a client does not know, and that is not checked."""


class Partition:
    """A partition that this broker holds a replica of."""

    __slots__ = (
        "_clock",
        "_commits",
        "_unannounced_bytes",
        "config",
        "flushed_ms",
        "high_watermark",
        "index",
        "is_leader",
        "isr",
        "leader_epoch",
        "log",
        "node_id",
        "replicas",
        "topic",
        "topic_id",
        "waiters",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: bytes,
        log: Log,
        config: "TopicConfig",
        node_id: int,
        clock: "Clock",
        flush_rounds: FlushRounds,
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.config = config
        self.node_id = node_id
        self.is_leader = False
        self.leader_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.high_watermark = log.log_start_offset
        self.waiters: set[Waiter] = set()
        self._clock = clock
        self._commits = GroupCommit(log, flush_rounds, self._flushed)
        self._unannounced_bytes = 0
        self.flushed_ms = clock.now_ms()

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.index}, epoch {self.leader_epoch})"

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def last_stable_offset(self) -> int:
        return self.log.last_stable_offset(self.high_watermark)

    def become_leader(self, leader_epoch: int, replicas: tuple[int, ...], isr: tuple[int, ...]) -> None:
        """Lead from `leader_epoch` on, with these brokers in sync."""
        self.replicas, self.isr = replicas, isr
        if self.is_leader and leader_epoch == self.leader_epoch:
            return
        self.leader_epoch = leader_epoch
        self.is_leader = True
        if leader_epoch > self.log.latest_epoch:
            self.log.assign_epoch(leader_epoch, self.log.log_end_offset)
        self._advance_high_watermark()
        self.wake()

    def configure(self, config: "TopicConfig") -> None:
        """Go by these settings from now on."""
        self.config = self.log.config = config

    def resign(self) -> None:
        """Lead no longer; whoever waits looks again."""
        self.is_leader = False
        self.wake()

    def wake(self) -> None:
        """End every wait on this partition."""
        for waiter in tuple(self.waiters):
            waiter.wake()

    def check_leader(self) -> None:
        """Raise NOT_LEADER_OR_FOLLOWER unless this broker leads, KAFKA_STORAGE_ERROR when its log has failed."""
        if self.log.failed is not None:
            raise BrokerError(Error.KAFKA_STORAGE_ERROR, f"{self.log.directory}: {self.log.failed}")
        if not self.is_leader:
            raise BrokerError(Error.NOT_LEADER_OR_FOLLOWER, f"broker {self.node_id} does not lead {self!r}")

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Compare the epoch that a client knows with this leader's (KIP-320); -1 is not compared.

        Raises FENCED_LEADER_EPOCH when the client's is older, UNKNOWN_LEADER_EPOCH when it is newer.
        """
        if current_leader_epoch in (NO_EPOCH, self.leader_epoch):
            return
        known = f"the leader epoch of {self.topic}-{self.index} is {self.leader_epoch}, not {current_leader_epoch}"
        if current_leader_epoch < self.leader_epoch:
            raise BrokerError(Error.FENCED_LEADER_EPOCH, known)
        raise BrokerError(Error.UNKNOWN_LEADER_EPOCH, known)

    def append(
        self,
        records: memoryview,
        batch: RecordBatch | None = None,
        origin: Origin = Origin.CLIENT,
        now_ms: int | None = None,
    ) -> AppendResult:
        """Append one batch as the leader, and wake who waits for it.

        `batch` is its header, and `now_ms` the time, where that is read already.

        Raises BrokerError: NOT_LEADER_OR_FOLLOWER, and what `Log.append_as_leader` raises.
        """
        if not self.is_leader:
            self.check_leader()
        log = self.log
        if now_ms is None:
            now_ms = self._clock.now_ms()
        result = log.append_as_leader(records, self.leader_epoch, now_ms, origin, batch)
        if not result.duplicate:
            if log.log_end_offset - log.recovery_point >= self.config.flush_messages:
                self._unannounced_bytes += len(records)
                self._commits.want(log.log_end_offset)
            else:
                self._advance_high_watermark()
                if self.waiters:
                    self._announce(len(records))
        return result

    def _announce(self, size_bytes: int) -> None:
        """Tell those who wait that there is more to read."""
        for waiter in self.waiters:
            waiter.notify(size_bytes)

    def _advance_high_watermark(self) -> None:
        """Move the high watermark to what every in-sync replica has; the leader alone has all of it.

        The end of a leader's log never goes back.
        """
        self.high_watermark = self.log.log_end_offset

    def _flushed(self) -> None:
        """Commit what a flush has brought to the disk, and what has come since where that need not be flushed yet."""
        self.flushed_ms = self._clock.now_ms()
        if not self.is_leader:
            return
        log = self.log
        end_offset = log.log_end_offset if self.is_flushed(log.log_end_offset - 1) else log.recovery_point
        if end_offset > self.high_watermark:
            self.high_watermark = end_offset
            self._announce(self._unannounced_bytes)
            self._unannounced_bytes = 0

    def check_enough_replicas(self) -> None:
        """Raise NOT_ENOUGH_REPLICAS when acks=all could not be kept: fewer in sync than `min.insync.replicas`.

        A topic cannot ask for more than it has replicas (Kafka's effective minimum, KIP-966).
        """
        in_sync, wanted = len(self.isr), self.config.min_insync_replicas
        if in_sync < wanted and in_sync < len(self.replicas):
            raise BrokerError(
                Error.NOT_ENOUGH_REPLICAS,
                f"{in_sync} replicas of {self.topic}-{self.index} are in sync, "
                f"{min(wanted, len(self.replicas))} are needed",
            )

    @property
    def commits_at_once(self) -> bool:
        """Whether an append is all that it takes: no replica and no disk is to be waited for."""
        return self.is_leader and len(self.isr) == 1 and self.log.unflushed_messages + 1 < self.config.flush_messages

    async def wait_committed(self, last_offset: int, timeout_s: float) -> None:
        """Wait until the record at `last_offset` is on every in-sync replica.

        Raises REQUEST_TIMED_OUT after `timeout_s` seconds, NOT_LEADER_OR_FOLLOWER when the lead is lost meanwhile.
        """
        deadline = trio.current_time() + timeout_s
        while self.high_watermark <= last_offset:
            self.check_leader()
            left = deadline - trio.current_time()
            if left <= 0:
                raise BrokerError(Error.REQUEST_TIMED_OUT, f"offset {last_offset} is not committed yet")
            await wait_on([self], 1, left)

    def is_flushed(self, last_offset: int) -> bool:
        """Whether the record at `last_offset` is on the disk, or the topic does not ask for that yet."""
        log = self.log
        flushed = log.recovery_point
        return flushed > last_offset or log.log_end_offset - flushed < self.config.flush_messages

    async def wait_flushed(self, last_offset: int) -> None:
        """Wait until the record at `last_offset` is on the disk, where the topic asks for that.

        Raises KAFKA_STORAGE_ERROR when the disk refuses.
        """
        if not self.is_flushed(last_offset):
            await self._commits.wait(last_offset + 1)

    def enter_flush(self, last_offset: int, woken: Callable[[], object]) -> FlushWaiter:
        """Have `woken` called when the record at `last_offset` is on the disk, or cannot be brought there."""
        return self._commits.enter(last_offset + 1, woken)

    def leave_flush(self, waiter: FlushWaiter) -> None:
        """Wait no longer."""
        self._commits.leave(waiter)

    async def flush(self, end_offset: int | None = None) -> None:
        """Bring everything below `end_offset` (None: all there is) to the disk. Raises KAFKA_STORAGE_ERROR."""
        await self._commits.wait(self.log.log_end_offset if end_offset is None else end_offset)

    def delete_records(self, offset: int) -> int:
        """Let the log start at `offset` (-1: the high watermark), and give where it starts then.

        Raises OFFSET_OUT_OF_RANGE above the high watermark or below -1.
        """
        self.check_leader()
        wanted = self.high_watermark if offset == -1 else offset
        if not 0 <= wanted <= self.high_watermark:
            raise BrokerError(
                Error.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.topic}-{self.index} is not between 0 and {self.high_watermark}",
            )
        self.log.increment_log_start_offset(wanted)
        return self.log.log_start_offset
