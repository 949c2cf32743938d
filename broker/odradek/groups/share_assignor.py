"""Kafka's assignor for share groups, "simple": every partition has members, and members have about equally many.

Where there are more partitions than members each partition has one member; else each partition has as many members as
it takes to give every member something. What members have they keep as far as that allows. Where members subscribe to
different topics this is done topic by topic, else once for all partitions (KIP-932).
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from odradek.groups.assignors import Assignment

__all__ = ["NAME", "assign"]

NAME = "simple"

TopicPartition = tuple[bytes, int]


def assign(
    subscriptions: Mapping[str, frozenset[bytes]],
    current: Mapping[str, Assignment],
    assignable: Mapping[bytes, frozenset[int]],
) -> dict[str, Assignment]:
    """The partitions of each member, from the topic ids that each subscribes to, and what each has so far.

    `assignable` are the partitions of each topic that may be given to anybody.
    """
    topic_ids = sorted(frozenset().union(*subscriptions.values()))
    if len(set(subscriptions.values())) <= 1:
        scopes = [(topic_ids, list(subscriptions))]
    else:
        scopes = [
            ([topic_id], [member for member, topics in subscriptions.items() if topic_id in topics])
            for topic_id in topic_ids
        ]
    shared: dict[str, dict[bytes, set[int]]] = {member: defaultdict(set) for member in subscriptions}
    for topics, members in scopes:
        partitions = [(topic, index) for topic in topics for index in sorted(assignable.get(topic, ()))]
        for member, taken in _share(partitions, members, current).items():
            for topic, index in taken:
                shared[member][topic].add(index)
    return {
        member: {topic: frozenset(indexes) for topic, indexes in topics.items()} for member, topics in shared.items()
    }


def _share(
    partitions: Sequence[TopicPartition], members: Sequence[str], current: Mapping[str, Assignment]
) -> dict[str, dict[TopicPartition, None]]:
    """Share partitions out among members: ordered sets of them, by member."""
    if not partitions or not members:
        return {}
    sharing = math.ceil(len(members) / len(partitions))
    share = sharing * len(partitions) / len(members)
    wanted = {member: math.ceil(share * (index + 1)) - math.ceil(share * index) for index, member in enumerate(members)}
    having: dict[str, dict[TopicPartition, None]] = {member: {} for member in members}
    left = dict.fromkeys(partitions, sharing)
    for member in members:
        for topic, indexes in current.get(member, {}).items():
            for index in sorted(indexes):
                if left.get((topic, index), 0) > 0 and len(having[member]) < wanted[member]:
                    having[member][topic, index] = None
                    left[topic, index] -= 1
    unfilled = [member for member in members if len(having[member]) < wanted[member]]
    for partition in partitions:
        for member in [each for each in unfilled if partition not in having[each]][: left[partition]]:
            having[member][partition] = None
            # Whoever was given something comes last for the next partition.
            unfilled.remove(member)
            if len(having[member]) < wanted[member]:
                unfilled.append(member)
    return having
