"""Which of a group's committed offsets are still of use: what its members consume, and what has expired.

Metadata is opaque to a coordinator, except that of consumers: which topics they subscribe to decides whether offsets
may be deleted (KIP-496) and when they expire (KIP-211).
"""

from collections.abc import Set as AbstractSet

from odradek.groups.consumer_group import ConsumerGroup
from odradek.groups.group import Group
from odradek.groups.states import GroupState
from odradek.groups.streams_group import StreamsGroup
from odradek_protocol.errors import BrokerError, Error, ProtocolError
from odradek_protocol.internal.consumer_protocol import CONSUMER_PROTOCOL_TYPE, subscribed_topics

__all__ = ["consumed_topics", "expired_offsets", "subscription"]


def subscription(group: Group) -> frozenset[str] | None:
    """The topics that the members consume; None when that cannot be known."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    try:
        each = [subscribed_topics(member.metadata(group.protocol_name)) for member in group.members.values()]
    except ProtocolError:
        return None
    return frozenset(topic for topics in each for topic in topics)


def consumed_topics(group: Group | ConsumerGroup | StreamsGroup, topics: AbstractSet[str]) -> AbstractSet[str]:
    """Which of `topics` members consume, so that their offsets have to stay.

    Of consumers whose subscriptions cannot be read, all are. Raises BrokerError NON_EMPTY_GROUP when there are members
    whose protocol does not tell.
    """
    if isinstance(group, ConsumerGroup | StreamsGroup):
        return frozenset(filter(group.consumes, topics))
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        if group.state is not GroupState.EMPTY:
            raise BrokerError(Error.NON_EMPTY_GROUP)
        return frozenset()
    consumed = subscription(group)
    return topics if consumed is None else topics & consumed


def expired_offsets(
    group: Group | ConsumerGroup | StreamsGroup, now_ms: int, retention_ms: int
) -> list[tuple[str, int]]:
    """The (topic, partition)s whose committed offsets are to be forgotten at `now_ms`.

    An empty group's offsets age since it lost its last member. A stable consumer group's age from their commits, where
    nobody subscribes to the topic; so do all of a group that never had members, and those of a consumer
    group of KIP-848, and of a streams group, in any state. Other groups keep theirs.
    """
    if isinstance(group, ConsumerGroup | StreamsGroup):
        consumed = frozenset(filter(group.consumes, group.offsets.topics))
        return list(group.offsets.expired(now_ms, retention_ms, unused_since_ms=None, in_use=consumed))
    in_use: frozenset[str] = frozenset()
    unused_since_ms: int | None = None
    if group.protocol_type is not None:
        if group.state is GroupState.EMPTY:
            unused_since_ms = group.state_timestamp_ms if group.state_timestamp_ms >= 0 else None
        else:
            subscribed = subscription(group) if group.state is GroupState.STABLE else None
            if subscribed is None:
                return []
            in_use = subscribed
    return list(group.offsets.expired(now_ms, retention_ms, unused_since_ms=unused_since_ms, in_use=in_use))
