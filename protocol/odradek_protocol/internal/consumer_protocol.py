"""What consumers tell each other through a classic group of protocol type "consumer".

JoinGroup carries a subscription for each member, SyncGroup an assignment, both as `versioned` writes them. A broker
passes them on unread, but for the topics that a group is subscribed to.
KIP-429 (1, owned partitions), KIP-792 (2, generation), KIP-881 (3, rack).
"""

from collections.abc import Sequence

from odradek_protocol.codec import decode
from odradek_protocol.internal.versioned import VERSION_BYTES, read_version
from odradek_protocol.schema import array, data, int32, message, string, struct

CONSUMER_PROTOCOL_TYPE = "consumer"
"""The protocol type of consumers."""


@struct
class TopicPartition:
    topic: str = string()
    partitions: Sequence[int] = array(int32())


@message(versions=(0, 3))
class ConsumerProtocolSubscription:
    topics: Sequence[str] = array(string())
    user_data: bytes | None = data(nullable_since=0, default=None)
    owned_partitions: Sequence[TopicPartition] = array(TopicPartition, since=1, default=())
    generation_id: int = int32(since=2, default=-1)
    rack_id: str | None = string(since=3, nullable_since=3, default=None)


@message(versions=(0, 3))
class ConsumerProtocolAssignment:
    assigned_partitions: Sequence[TopicPartition] = array(TopicPartition)
    user_data: bytes | None = data(nullable_since=0, default=None)


def subscribed_topics(subscription: bytes | memoryview) -> Sequence[str]:
    """The topics of a subscription of any version: each version, known or not, begins with what version 0 has.

    Raises ProtocolError when the bytes are no subscription.
    """
    read_version(subscription)
    body = memoryview(subscription)[VERSION_BYTES:]
    topics: Sequence[str] = decode(ConsumerProtocolSubscription, 0, body, flexible=False).topics
    return topics
