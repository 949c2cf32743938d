"""Which member of a consumer group is to own which partition: the assignors `uniform` and `range` (KIP-848).

    uniform   balanced: two members of the same subscription differ by one partition at most; sticky: a member keeps
              what it has as far as balance allows
    range     each topic is cut into as many ranges as it has subscribers, in the order of instance and member ids, so
              that members own the same partitions of topics that have equally many; not sticky

Both are functions of the members and of how many partitions each topic has. Every partition of a topic that somebody
subscribes to has one owner, who subscribes to it. Racks are not looked at, as in Kafka since 4.0 (KIP-1101).
"""

import heapq
from collections.abc import Callable, Mapping
from typing import NamedTuple

__all__ = ["ASSIGNORS", "Assignment", "AssignorMember"]

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id."""

MOST_ROUNDS = 16
"""How often all topics are gone through to even out members of unlike subscriptions; each round halves what is left."""


class AssignorMember(NamedTuple):
    """A member as an assignor sees it: the ids of its topics, all of which exist, and what it is assigned so far."""

    instance_id: str | None
    topics: frozenset[bytes]
    current: Assignment


Members = Mapping[str, AssignorMember]
Sizes = Mapping[bytes, int]


def assign_range(members: Members, sizes: Sizes) -> dict[str, Assignment]:
    """The assignment of each member by `range`. `sizes` has the number of partitions of each topic."""
    ordered = sorted(members, key=lambda each: _range_order(each, members[each]))
    subscribers: dict[bytes, list[str]] = {}
    for member_id in ordered:
        for topic in members[member_id].topics:
            subscribers.setdefault(topic, []).append(member_id)
    assigned: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in members}
    for topic, member_ids in subscribers.items():
        fewest, extra = divmod(sizes[topic], len(member_ids))
        start = 0
        for position, member_id in enumerate(member_ids):
            end = start + fewest + (position < extra)
            if start < end:
                assigned[member_id][topic] = frozenset(range(start, end))
            start = end
    return dict(assigned)


def _range_order(member_id: str, member: AssignorMember) -> tuple[bool, str]:
    """Static members first, by their instance ids, so that a restart changes nothing."""
    return member.instance_id is None, member.instance_id or member_id


def assign_uniform(members: Members, sizes: Sizes) -> dict[str, Assignment]:
    """The assignment of each member by `uniform`. `sizes` has the number of partitions of each topic."""
    board = _Board(members, sizes)
    subscriptions = {member.topics for member in members.values()}
    if len(subscriptions) == 1:
        board.trim_to_quota(sum(sizes[topic] for topic in subscriptions.pop()))
        board.hand_out()
    else:
        board.hand_out()
        board.even_out()
    return board.result()


class _Board:
    """Who owns what while an assignment is made; at first what each member keeps."""

    def __init__(self, members: Members, sizes: Sizes) -> None:
        self._members = members
        self._owned: dict[str, dict[bytes, set[int]]] = {}
        self._load: dict[str, int] = {}
        self._subscribers: dict[bytes, list[str]] = {}
        self._free: dict[bytes, set[int]] = {}
        for member_id, member in members.items():
            for topic in member.topics:
                self._subscribers.setdefault(topic, []).append(member_id)
        for topic in self._subscribers:
            self._free[topic] = set(range(sizes[topic]))
        for member_id, member in members.items():
            kept = {
                topic: partitions & self._free[topic]
                for topic, partitions in member.current.items()
                if topic in member.topics
            }
            self._owned[member_id] = {topic: set(partitions) for topic, partitions in kept.items() if partitions}
            self._load[member_id] = sum(map(len, kept.values()))
            for topic, partitions in kept.items():
                self._free[topic] -= partitions

    def trim_to_quota(self, total: int) -> None:
        """Take from members that all have the same topics what is above an equal share."""
        fewest, extra = divmod(total, len(self._members))
        for member_id, owned in self._owned.items():
            quota = fewest
            if extra > 0 and self._load[member_id] > fewest:
                quota += 1
                extra -= 1
            while self._load[member_id] > quota:
                topic = max(owned, key=lambda each: (len(owned[each]), each))
                self._give_up(member_id, topic)

    def hand_out(self) -> None:
        """Give each free partition to the subscriber that has least; first those that fewest may have."""
        by_subscribers: dict[tuple[str, ...], list[bytes]] = {}
        for topic in sorted(self._free, key=lambda each: (len(self._subscribers[each]), each)):
            if self._free[topic]:
                by_subscribers.setdefault(tuple(self._subscribers[topic]), []).append(topic)
        for subscribers, topics in by_subscribers.items():
            heap = [(self._load[member_id], position) for position, member_id in enumerate(subscribers)]
            heapq.heapify(heap)
            for topic in topics:
                for partition in sorted(self._free[topic]):
                    load, position = heap[0]
                    heapq.heapreplace(heap, (load + 1, position))
                    self._take(subscribers[position], topic, partition)
                self._free[topic].clear()

    def even_out(self) -> None:
        """Move partitions from members that have more to members that have at least two fewer."""
        topics = sorted(self._subscribers, key=lambda each: (len(self._subscribers[each]), each))
        for _ in range(MOST_ROUNDS):
            if not sum(self._even_out_topic(topic) for topic in topics):
                return

    def _even_out_topic(self, topic: bytes) -> int:
        subscribers = self._subscribers[topic]
        least = [(self._load[member_id], position) for position, member_id in enumerate(subscribers)]
        most = [
            (-self._load[member_id], position)
            for position, member_id in enumerate(subscribers)
            if topic in self._owned[member_id]
        ]
        heapq.heapify(least)
        heapq.heapify(most)
        moved = 0
        while most and -most[0][0] - least[0][0] > 1:
            (_, giver), (_, taker) = most[0], least[0]
            partition = self._give_up(subscribers[giver], topic)
            self._free[topic].discard(partition)
            self._take(subscribers[taker], topic, partition)
            moved += 1
            heapq.heapreplace(least, (self._load[subscribers[taker]], taker))
            if topic in self._owned[subscribers[giver]]:
                heapq.heapreplace(most, (-self._load[subscribers[giver]], giver))
            else:
                heapq.heappop(most)
        return moved

    def _take(self, member_id: str, topic: bytes, partition: int) -> None:
        self._owned[member_id].setdefault(topic, set()).add(partition)
        self._load[member_id] += 1

    def _give_up(self, member_id: str, topic: bytes) -> int:
        partitions = self._owned[member_id][topic]
        partition = max(partitions)
        partitions.discard(partition)
        if not partitions:
            del self._owned[member_id][topic]
        self._load[member_id] -= 1
        self._free[topic].add(partition)
        return partition

    def result(self) -> dict[str, Assignment]:
        """The assignment of each member; the very one that it has where nothing changes."""
        assigned: dict[str, Assignment] = {}
        for member_id, member in self._members.items():
            new = {topic: frozenset(partitions) for topic, partitions in self._owned[member_id].items()}
            assigned[member_id] = member.current if new == member.current else new
        return assigned


ASSIGNORS: Mapping[str, Callable[[Members, Sizes], dict[str, Assignment]]] = {
    "uniform": assign_uniform,
    "range": assign_range,
}
"""The assignors that there are, by the name that members ask for them with."""
