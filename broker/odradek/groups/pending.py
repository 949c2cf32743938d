"""Offsets that open transactions have committed: in the log, and of no effect until the marker of their producer.

The log decides: a marker makes visible, or drops, all that its producer has committed in the partition before it.
"""

from collections.abc import Collection, Iterable, Iterator

from odradek.groups.offsets import Row

__all__ = ["PendingOffsets"]

NONE: Collection[tuple[str, int]] = frozenset()


class PendingOffsets:
    """The offsets of open transactions in one partition of __consumer_offsets."""

    __slots__ = ("_by_producer", "_partitions")

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[str, dict[tuple[str, int], Row]]] = {}
        self._partitions: dict[str, dict[tuple[str, int], set[int]]] = {}
        """By group and partition, the producers that have a commit there."""

    def put(self, producer_id: int, group_id: str, topic: str, rows: Iterable[tuple[int, Row]]) -> None:
        """Remember what a transaction commits of a topic, by partition: the last one for each."""
        offsets = self._by_producer.setdefault(producer_id, {}).setdefault(group_id, {})
        partitions = self._partitions.setdefault(group_id, {})
        for index, row in rows:
            offsets[topic, index] = row
            partitions.setdefault((topic, index), set()).add(producer_id)

    def end(self, producer_id: int) -> Iterator[tuple[str, dict[tuple[str, int], Row]]]:
        """Forget a producer's offsets; give them by group, and each by topic and partition."""
        for group_id, offsets in self._by_producer.pop(producer_id, {}).items():
            partitions = self._partitions[group_id]
            for key in offsets:
                partitions[key].discard(producer_id)
                if not partitions[key]:
                    del partitions[key]
            if not partitions:
                del self._partitions[group_id]
            yield group_id, offsets

    def of_group(self, group_id: str) -> Collection[tuple[str, int]]:
        """The (topic, partition)s of a group whose offset may change at any moment."""
        return self._partitions.get(group_id, NONE)
