"""Coordinators: who keeps what, how it comes into memory from an internal topic, and how its changes get there.

What a coordinator keeps has a name, and belongs to the partition of its topic that the name hashes to. The leader of a
partition has a `Shard` of it in memory. Everybody else answers NOT_COORDINATOR; the leader answers
COORDINATOR_LOAD_IN_PROGRESS until it has read the partition.

Rules:

- Memory follows the log. Loading applies record after record; later each change is appended first and applied then, by
  the same rules, so that a restart finds what was there.
- Loading is done by threads, all else by trio's. A shard is served when it is loaded.
- A shard is looked up again behind each wait: it may be another broker's by then.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Sized
from functools import lru_cache, partial
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, TypeVarTuple

import trio

from odradek.log.log import Origin
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.records.batch import NO_PRODUCER_ID, TRANSACTIONAL, RecordBatch
from odradek_protocol.records.build import encode_keyed, wrap_keyed
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.formats import iter_any, read_any
from odradek_protocol.records.read import Record

if TYPE_CHECKING:
    from odradek.clock import Clock
    from odradek.cluster.view import ClusterView
    from odradek.config import BrokerConfig
    from odradek.partition import Partition

__all__ = [
    "APPEND_ERRORS",
    "NO_PRODUCER",
    "Chore",
    "Coordinator",
    "Shard",
    "Written",
    "answering",
    "java_hash",
    "translated",
]

log = logging.getLogger(__name__)

LOADS_AT_ONCE = 2
"""Partitions of a topic that are read at a time: reading is mostly decoding, which threads do not make faster."""

_COORDINATOR = Origin.COORDINATOR

NO_PRODUCER = (NO_PRODUCER_ID, -1)
"""The producer id and epoch of records outside a transaction."""

APPEND_ERRORS: Mapping[Error, Error] = {
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Error.COORDINATOR_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.KAFKA_STORAGE_ERROR: Error.NOT_COORDINATOR,
    Error.MESSAGE_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.RECORD_LIST_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
}
"""What clients of a coordinator are told for the error of an append: they know nothing of its topic and replicas."""

S = TypeVar("S", bound="Shard")
Arguments = TypeVarTuple("Arguments")
R = TypeVar("R")

Chore = Callable[[], Awaitable[None]]
"""What a coordinator does as time goes by, until it is cancelled."""


@lru_cache(maxsize=8192)
def java_hash(text: str) -> int:
    """Java's `String.hashCode`, which decides where a name is kept: over UTF-16 code units, in 32 bits, signed."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def translated(error: BrokerError, errors: Mapping[Error, Error]) -> BrokerError:
    """The error that `errors` has in the place of this one, with its message; this one where it has none."""
    return BrokerError(errors.get(error.error, error.error), error.message)


class answering:  # noqa: N801 - reads as a statement
    """Raise, for the error of an append, the one that clients of a coordinator expect."""

    __slots__ = ("_errors",)

    def __init__(self, errors: Mapping[Error, Error]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, BrokerError):
            raise translated(error, self._errors) from None


class Shard(ABC):
    """What one partition keeps. It is served when it is `loaded`: all that was in the log when this broker took over is
    in memory, and what was under way in it is taken up.
    """

    def __init__(
        self, partition: "Partition", clock: "Clock", *, load_bytes: int, write_timeout_ms: int, codec: Codec
    ) -> None:
        """`load_bytes` is about how much of the log is read at a time, `write_timeout_ms` how long a write may wait for
        the replicas where nothing else is said, `codec` how records are compressed.
        """
        self.partition = partition
        self._clock = clock
        self._load_bytes = load_bytes
        self._write_timeout_ms = write_timeout_ms
        self._codec = codec
        self._next_offset = partition.log.log_start_offset
        self._end_offset = partition.log.log_end_offset
        self.loaded = self.is_read

    @property
    @abstractmethod
    def kept(self) -> Sized:
        """What is in memory."""

    @abstractmethod
    def apply(self, record: Record) -> None:
        """Make so what a record of the log says; one of a kind that is not known is passed over.

        Raises BrokerError or ProtocolError for what is no record of this coordinator.
        """

    @property
    def is_read(self) -> bool:
        """Whether `load_some` has come to the end; a thread may say so before trio's thread knows."""
        return self._next_offset >= self._end_offset

    def load_some(self) -> None:
        """Read and apply some of the log; for a thread, until `is_read`.

        Raises BrokerError when the log cannot be read, and as `apply` does.
        """
        found = self.partition.log.read(self._next_offset, self._load_bytes, self._end_offset, at_least_one=True)
        if found is None:
            self._next_offset = self._end_offset
            return
        data = memoryview(found.read_bytes())
        for position, batch in iter_any(data):
            self.apply_batch(batch, data[position : position + batch.size])
            self._next_offset = batch.last_offset + 1

    def apply_batch(self, batch: RecordBatch, data: memoryview) -> None:
        """Apply the records of a batch; those of a control batch concern only who keeps something of transactions."""
        if not batch.is_control:
            for record in read_any(data):
                self.apply(record)

    def append_records(
        self, records: Sequence[tuple[bytes, bytes | None]], producer: tuple[int, int] = NO_PRODUCER
    ) -> int:
        """Append keys and values as one batch, of a transaction where there is a producer; give the last offset.

        Raises NOT_ENOUGH_REPLICAS, and as `Partition.append` does.
        """
        body = bytearray()
        encode_keyed(body, 0, records)
        return self.append_body(body, len(records), self._clock.now_ms(), producer)

    def append_body(self, body: bytearray, count: int, now_ms: int, producer: tuple[int, int] = NO_PRODUCER) -> int:
        """Append `count` records that are encoded already; the rest as `append_records`."""
        batch = wrap_keyed(
            body,
            count,
            now_ms,
            codec=self._codec,
            producer=producer,
            attributes=0 if producer is NO_PRODUCER else TRANSACTIONAL,
        )
        return self.append_batch(batch, None, now_ms)

    def append_batch(self, batch: bytearray, header: RecordBatch | None, now_ms: int) -> int:
        """Append one batch, whose header may have been read already; the rest as `append_records`."""
        self.partition.check_enough_replicas()
        return self.partition.append(memoryview(batch), header, _COORDINATOR, now_ms).last_offset

    def is_committed(self, last_offset: int) -> bool:
        """Whether nothing has to be waited for: what was appended is replicated, and flushed where that is asked."""
        return self.partition.high_watermark > last_offset and self.partition.is_flushed(last_offset)

    async def wait_committed(self, last_offset: int, timeout_ms: int | None = None) -> None:
        """Wait until a record is replicated, and flushed where that is asked; None: as long as a write may wait.

        Raises as `Partition.wait_committed` and `wait_flushed` do.
        """
        await self.partition.wait_flushed(last_offset)
        if self.partition.high_watermark <= last_offset:
            timeout_s = (self._write_timeout_ms if timeout_ms is None else timeout_ms) / 1000
            await self.partition.wait_committed(last_offset, timeout_s)

    def written(self, last_offset: int) -> "Written | None":
        """What is to be waited for until a record that was appended counts; None when it does."""
        return None if self.is_committed(last_offset) else Written(self, last_offset)


class Written:
    """Records in the log that are not replicated yet."""

    __slots__ = ("_last_offset", "_shard")

    def __init__(self, shard: Shard, last_offset: int) -> None:
        self._shard = shard
        self._last_offset = last_offset

    async def wait(self) -> None:
        """Wait until they are. Raises `APPEND_ERRORS`."""
        with answering(APPEND_ERRORS):
            await self._shard.wait_committed(self._last_offset)

    async def answer(self, reply: R, refuse: Callable[[Exception], R]) -> R:
        """The reply that tells of them, when they are; what `refuse` makes of the error where that fails."""
        try:
            await self.wait()
        except Exception as error:  # noqa: BLE001 - `refuse` answers
            return refuse(error)
        return reply


class Coordinator(ABC, Generic[S]):
    """The shards of the partitions of `TOPIC` that this broker leads.

    `run` has to run while requests are served. `on_leader` and `on_resign` follow the leadership of partitions; those
    of other topics are not looked at.
    """

    TOPIC: ClassVar[str]
    KEEPS: ClassVar[str]
    """What is kept, in words, for the broker's log."""

    def __init__(self, config: "BrokerConfig", clock: "Clock", view: "ClusterView") -> None:
        self._config = config
        self._clock = clock
        self._view = view
        self._shards: dict[int, S] = {}
        self._nursery: trio.Nursery | None = None
        self._loads = trio.CapacityLimiter(LOADS_AT_ONCE)

    async def run(self) -> None:
        """Load partitions, and do what time brings, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                for shard in self._shards.values():
                    if not shard.loaded:
                        nursery.start_soon(self._load, shard)
                for chore in self._chores():
                    nursery.start_soon(chore)
                await trio.sleep_forever()
            finally:
                self._nursery = None

    def stop(self) -> None:
        """Give up every shard: whoever asks later is told NOT_COORDINATOR."""
        for shard in list(self._shards.values()):
            self._drop(shard)

    def on_leader(self, partition: "Partition") -> None:
        """This broker leads `partition` now: what it keeps is loaded; there is nothing to do if it is empty."""
        if partition.topic != self.TOPIC:
            return
        shard = self._shards[partition.index] = self._make_shard(partition)
        if not shard.loaded and self._nursery is not None:
            self._nursery.start_soon(self._load, shard)

    def on_resign(self, partition: "Partition") -> None:
        """This broker does not lead `partition` any more: what it keeps is another's."""
        if partition.topic == self.TOPIC and partition.index in self._shards:
            self._drop(self._shards[partition.index])

    def partition_for(self, name: str) -> int:
        """The partition of `TOPIC` that keeps what is called `name`."""
        topic = self._view.topics.get(self.TOPIC)
        count = self._planned_partitions if topic is None else len(topic.partitions)
        # The mask makes Java's one number without an absolute value 0, as Kafka does.
        return (abs(java_hash(name)) & 0x7FFFFFFF) % count

    # What each coordinator has its own way of

    @property
    @abstractmethod
    def _planned_partitions(self) -> int:
        """How many partitions `TOPIC` gets when it is made."""

    @abstractmethod
    def _make_shard(self, partition: "Partition") -> S:
        """The shard of a partition, to be loaded."""

    @abstractmethod
    def _begin(self, shard: S) -> None:
        """A shard was loaded: take up what is under way in it."""

    @abstractmethod
    def _chores(self) -> Iterable[Chore]:
        """What time brings."""

    # For coordinators

    def _shard(self, name: str) -> S:
        """The shard that keeps what is called `name`. Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        shard = self._shards.get(self.partition_for(name))
        if shard is None:
            raise BrokerError(Error.NOT_COORDINATOR)
        if not shard.loaded:
            raise BrokerError(Error.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def _keeps(self, shard: S) -> bool:
        """Whether a shard that was looked up before is still this broker's."""
        return self._shards.get(shard.partition.index) is shard

    def _loaded_shards(self) -> list[S]:
        """The shards that are served: a copy, as they may change at an `await`."""
        return [shard for shard in self._shards.values() if shard.loaded]

    def _all_shards(self) -> list[S]:
        """The shards of this broker. Raises COORDINATOR_LOAD_IN_PROGRESS while they are not all loaded."""
        if not all(shard.loaded for shard in self._shards.values()):
            raise BrokerError(Error.COORDINATOR_LOAD_IN_PROGRESS)
        return list(self._shards.values())

    def _start(self, task: Callable[[*Arguments], Awaitable[object]], *arguments: *Arguments) -> None:
        """Go on with what nobody waits for, or what has to end also when nobody waits any more."""
        assert self._nursery is not None, "requests are served only while `run` does"
        self._nursery.start_soon(task, *arguments)

    async def _see_through(self, doing: str, task: Callable[[*Arguments], Awaitable[R]], *arguments: *Arguments) -> R:
        """Await what brings memory in step with the log, also when whoever asked goes away: nobody is told then.

        `task` waits first and changes something then, so that it can begin anew. `doing` says what, for the broker's
        log.
        """
        try:
            return await task(*arguments)
        except trio.Cancelled:
            if self._nursery is not None:
                self._nursery.start_soon(partial(_do_unasked, doing, task, *arguments))
            raise

    def _drop(self, shard: S) -> None:
        """Stop serving a shard."""
        if self._keeps(shard):
            del self._shards[shard.partition.index]

    async def _load(self, shard: S) -> None:
        """Read a partition; give it up, so that clients look elsewhere, when it cannot be read."""
        index = shard.partition.index
        try:
            while not shard.is_read:
                await trio.to_thread.run_sync(shard.load_some, limiter=self._loads)
                if not self._keeps(shard):
                    return
        except Exception:
            log.exception("%s-%d cannot be loaded, its %s are not served", self.TOPIC, index, self.KEEPS)
            self._drop(shard)
            return
        log.info("loaded %d %s of %s-%d", len(shard.kept), self.KEEPS, self.TOPIC, index)
        shard.loaded = True
        self._begin(shard)


async def _do_unasked(doing: str, task: Callable[[*Arguments], Awaitable[object]], *arguments: *Arguments) -> None:
    """What nobody waits for any more. A failure is logged."""
    try:
        await task(*arguments)
    except BrokerError as error:
        log.warning("%s, for a client that is gone, failed: %s", doing, error)
    except Exception:
        log.exception("%s, for a client that is gone, failed", doing)
