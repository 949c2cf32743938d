"""What ShareFetch and ShareAcknowledge have in common: who asks, and the acknowledgements of partitions.

Order of the checks, for each partition: UNKNOWN_TOPIC_ID, INVALID_REQUEST (see `_check`), UNKNOWN_TOPIC_OR_PARTITION,
also where the share partition is not at work, then those of `SharePartitions.acknowledge`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from odradek.share.share_partition import RENEW, Acknowledgement
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.cluster.view import ClusterView
    from odradek.share.manager import SharePartitions, Unfinished

__all__ = ["Acknowledged", "acknowledge", "check_member"]

LONGEST_MEMBER_ID = 36
"""As long as a uuid in text."""

TopicIdPartition = tuple[bytes, int]
Result = tuple[Error, str | None]

DONE: Result = (Error.NONE, None)


class Batch(Protocol):
    """An acknowledgement as requests have it."""

    first_offset: int
    last_offset: int
    acknowledge_types: Sequence[int]


class PartitionBatches(Protocol):
    """The acknowledgements of one partition."""

    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[Batch]: ...


class TopicBatches(Protocol):
    """The acknowledgements of one topic."""

    topic_id: bytes

    @property
    def partitions(self) -> Sequence[PartitionBatches]: ...


class Acknowledged:
    """How acknowledgements went, by partition; where it is not `finished`, that is to be waited for first."""

    __slots__ = ("_unfinished", "results")

    def __init__(self) -> None:
        self.results: dict[TopicIdPartition, Result] = {}
        self._unfinished: list[tuple[TopicIdPartition, Unfinished]] = []

    def add(self, key: TopicIdPartition, unfinished: "Unfinished | None") -> None:
        """A partition's acknowledgements were taken, and are done where there is nothing to wait for."""
        self.results[key] = DONE
        if unfinished is not None:
            self._unfinished.append((key, unfinished))

    @property
    def finished(self) -> bool:
        """Whether `results` says how all went."""
        return not self._unfinished

    async def finish(self) -> None:
        """Wait for all of them, and keep how they went."""
        for key, unfinished in self._unfinished:
            error = await unfinished.wait()
            if error is not None:
                self.results[key] = error.error, error.message


def check_member(group_id: str | None, member_id: str | None) -> tuple[str, str]:
    """The group and the member of a request. INVALID_REQUEST where they cannot be."""
    if group_id is None:
        raise BrokerError(Error.INVALID_REQUEST, "Invalid group id in the request.")
    if not member_id or len(member_id) > LONGEST_MEMBER_ID:
        raise BrokerError(Error.INVALID_REQUEST, "Invalid member id in the request.")
    return group_id, member_id


def acknowledge(
    shared: "SharePartitions",
    view: "ClusterView",
    group_id: str,
    member_id: str,
    topics: Sequence[TopicBatches],
    *,
    renews: bool,
    may_renew: bool,
) -> Acknowledged:
    """Acknowledge what a request names; partitions without acknowledgements are passed over."""
    acknowledged = Acknowledged()
    for topic in topics:
        for asked in topic.partitions:
            if not asked.acknowledgement_batches:
                continue
            key = bytes(topic.topic_id), asked.partition_index
            try:
                unfinished = _acknowledge(
                    shared, view, (group_id, *key), member_id, asked.acknowledgement_batches, renews, may_renew
                )
            except BrokerError as error:
                acknowledged.results[key] = error.error, error.message or None
            else:
                acknowledged.add(key, unfinished)
    return acknowledged


def _acknowledge(
    shared: "SharePartitions",
    view: "ClusterView",
    key: tuple[str, bytes, int],
    member_id: str,
    batches: Sequence[Batch],
    renews: bool,
    may_renew: bool,
) -> "Unfinished | None":
    topic = view.topics_by_id.get(key[1])
    if topic is None:
        raise BrokerError(Error.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    _check(batches, renews, may_renew)
    if not 0 <= key[2] < len(topic.partitions):
        raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    asked = [Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types) for each in batches]
    return shared.acknowledge(shared.find(*key), member_id, asked)


def _check(batches: Sequence[Batch], renews: bool, may_renew: bool) -> None:
    """INVALID_REQUEST for offsets that are not in order, types that do not exist or are not as many as they may be, and
    renewals in a request that does not say that it renews.
    """
    previous_last = -1
    for batch in batches:
        types = batch.acknowledge_types
        size = batch.last_offset - batch.first_offset + 1
        highest = RENEW if may_renew else RENEW - 1
        if (
            size < 1
            or batch.first_offset < previous_last
            or len(types) not in (1, size)
            or not all(0 <= each <= highest for each in types)
            or (RENEW in types and not renews)
        ):
            raise BrokerError(Error.INVALID_REQUEST)
        previous_last = batch.last_offset
