"""What a new topic, or a topic with more partitions, would look like: the checks of a request and the picture it asks
for. Nothing here writes anything.

Codes and texts are those of Kafka's KRaft controller (`ReplicationControlManager`), which the clients of all versions
know.
"""

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from odradek.cluster.election import assign_replicas, choose_leader
from odradek.cluster.topics import CLUSTER_METADATA, INTERNAL_TOPICS, check_name
from odradek.cluster.view import ClusterView, PartitionView, TopicView
from odradek.cluster.znodes import encode_uuid
from odradek_protocol.errors import BrokerError, Error

__all__ = [
    "DEFAULT",
    "MAX_NEW_PARTITIONS",
    "NewTopic",
    "check_reassignment",
    "plan_offline",
    "plan_partitions",
    "plan_topic",
    "random_uuid",
]

DEFAULT = -1
"""A number of partitions or a replication factor that is the broker's to choose (KIP-464)."""

MAX_NEW_PARTITIONS = 10_000
"""How many partitions one request may add to a topic: Kafka's bound on the records of one metadata change."""

Random = Callable[[int], int]
"""`random(n)` is one of 0..n-1."""


class NewTopic(NamedTuple):
    """A topic that is asked for: numbers (or `DEFAULT`) or else replicas for each partition, and config overrides."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = MappingProxyType({})


def random_uuid() -> bytes:
    """A new uuid. Version 4 is never one of Kafka's reserved ones, 0 and 1; none starts with a dash when written."""
    while True:
        new = uuid.uuid4().bytes
        if not encode_uuid(new).startswith("-"):
            return new


def plan_topic(
    view: ClusterView, new: NewTopic, *, partitions: int, replication_factor: int, random: Random
) -> TopicView:
    """The picture of a new topic; `partitions` and `replication_factor` are what `DEFAULT` stands for.

    Checked in this order: whether it exists, its name, collisions, null configs, its partitions. Raises BrokerError.
    What the configs mean is checked elsewhere.
    """
    if new.name in view.topics:
        raise BrokerError(Error.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' already exists.")
    if new.name == CLUSTER_METADATA:
        raise BrokerError(Error.INVALID_REQUEST, f"Creation of internal topic {CLUSTER_METADATA} is prohibited.")
    check_name(new.name)
    colliding = view.colliding(new.name)
    if colliding is not None:
        raise BrokerError(
            Error.INVALID_TOPIC_EXCEPTION, f"Topic '{new.name}' collides with existing topic: {colliding}"
        )
    configs = {name: value for name, value in new.configs.items() if value is not None}
    if len(configs) < len(new.configs):
        null = ",".join(name for name, value in new.configs.items() if value is None)
        raise BrokerError(Error.INVALID_CONFIG, f"Null value not supported for topic configs: {null}")
    planned = _manual(view, new) if new.assignments else _automatic(view, new, partitions, replication_factor, random)
    return TopicView(new.name, random_uuid(), planned, configs, internal=new.name in INTERNAL_TOPICS)


def plan_partitions(
    view: ClusterView, name: str, count: int, assignments: Sequence[Sequence[int]] | None, random: Random
) -> TopicView:
    """The picture of topic `name` with `count` partitions. Raises BrokerError.

    The new ones have as many replicas as partition 0, and the brokers of `assignments` unless that is None.
    """
    topic = view.topics.get(name)
    if topic is None:
        raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    old = len(topic.partitions)
    if count == old:
        raise BrokerError(Error.INVALID_PARTITIONS, f"Topic already has {old} partition(s).")
    if count < old:
        raise BrokerError(
            Error.INVALID_PARTITIONS,
            f"The topic {name} currently has {old} partition(s); {count} would not be an increase.",
        )
    additional = count - old
    if assignments is not None and len(assignments) != additional:
        raise BrokerError(
            Error.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only {len(assignments)} assignment(s) were "
            "specified.",
        )
    _check_size(additional)
    factor = len(topic.partitions[0].replicas)
    if assignments is None:
        chosen = _assign(view, additional, factor, random, first_partition=old)
    else:
        for replicas in assignments:
            _check_replicas(view, replicas, factor)
        chosen = [tuple(replicas) for replicas in assignments]
    added = [_new_partition(view, replicas) for replicas in chosen]
    return TopicView(name, topic.topic_id, [*topic.partitions, *added], topic.configs, topic.internal)


def plan_offline(topic: TopicView, node_id: int, offline: Collection[int], live: Collection[int]) -> TopicView:
    """The picture of a topic when of its replicas on broker `node_id` those with an index in `offline` have no log.

    They lead no longer; another replica that is in sync and `live` does, if there is one. A partition without a leader
    gets one where it can. Each change of a leader is a new epoch.
    """
    partitions = []
    for index, old in enumerate(topic.partitions):
        without = tuple(broker for broker in old.offline if broker != node_id)
        if index in offline and node_id in old.replicas:
            without += (node_id,)
        able = [broker for broker in live if broker not in without]
        leader = old.leader if old.leader in able else choose_leader(old.replicas, old.isr, able)
        epoch = old.leader_epoch + (leader != old.leader)
        partitions.append(PartitionView(leader, epoch, old.replicas, old.isr, without))
    return topic._replace(partitions=partitions)


def _manual(view: ClusterView, new: NewTopic) -> list[PartitionView]:
    for value, meaning in ((new.replication_factor, "replication factor"), (new.partitions, "numPartitions")):
        if value != DEFAULT:
            raise BrokerError(
                Error.INVALID_REQUEST, f"A manual partition assignment was specified, but {meaning} was not set to -1."
            )
    _check_size(len(new.assignments))
    replicas_of: dict[int, Sequence[int]] = {}
    factor = None
    for index, replicas in new.assignments:
        if index in replicas_of:
            raise BrokerError(
                Error.INVALID_REPLICA_ASSIGNMENT, f"Found multiple manual partition assignments for partition {index}"
            )
        _check_replicas(view, replicas, factor)
        factor = len(replicas)
        replicas_of[index] = replicas
    if set(replicas_of) != set(range(len(replicas_of))):
        raise BrokerError(
            Error.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    return [_new_partition(view, tuple(replicas_of[index])) for index in range(len(replicas_of))]


def _automatic(
    view: ClusterView, new: NewTopic, partitions: int, replication_factor: int, random: Random
) -> list[PartitionView]:
    if new.replication_factor < DEFAULT or new.replication_factor == 0:
        raise BrokerError(
            Error.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if new.partitions < DEFAULT or new.partitions == 0:
        raise BrokerError(Error.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    count = partitions if new.partitions == DEFAULT else new.partitions
    factor = replication_factor if new.replication_factor == DEFAULT else new.replication_factor
    _check_size(count)
    try:
        assignment = _assign(view, count, factor, random, first_partition=0)
    except BrokerError as error:
        text = f"Unable to replicate the partition {factor} time(s): {error.message}"
        raise BrokerError(error.error, text) from error
    return [_new_partition(view, replicas) for replicas in assignment]


def check_reassignment(view: ClusterView, name: str, index: int, replicas: Sequence[int] | None) -> None:
    """Whether a partition may get these replicas, or with None, whether it is on its way to others.

    In a cluster of one broker that partition has them already, and there is nothing to be done. Raises
    UNKNOWN_TOPIC_OR_PARTITION, NO_REASSIGNMENT_IN_PROGRESS, INVALID_REPLICA_ASSIGNMENT.
    """
    topic = view.topics.get(name)
    if topic is None:
        raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= index < len(topic.partitions):
        raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if replicas is None:
        raise BrokerError(Error.NO_REASSIGNMENT_IN_PROGRESS)
    _check_replicas(view, replicas, None)


def _assign(
    view: ClusterView, count: int, factor: int, random: Random, *, first_partition: int
) -> list[tuple[int, ...]]:
    racks = {broker.node_id: broker.rack for broker in view.brokers.values()}
    places = max(1, len(racks))
    start, shift = random(places), random(places)
    return assign_replicas(racks, count, factor, start=start, shift=shift, first_partition=first_partition)


def _new_partition(view: ClusterView, replicas: tuple[int, ...]) -> PartitionView:
    isr = tuple(broker for broker in replicas if broker in view.brokers)
    return PartitionView(choose_leader(replicas, isr, view.brokers), 0, replicas, isr)


def _check_size(partitions: int) -> None:
    if partitions > MAX_NEW_PARTITIONS:
        raise BrokerError(Error.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _check_replicas(view: ClusterView, replicas: Sequence[int], factor: int | None) -> None:
    """Whether a partition may have these replicas; `factor` is how many the others have, None when it is the first."""
    seen: set[int] = set()
    for broker in sorted(replicas):
        if broker not in view.brokers:
            raise _bad_replicas(f"includes broker {broker}, but no such broker is registered.")
        if broker in seen:
            raise _bad_replicas(f"includes the broker {broker} more than once.")
        seen.add(broker)
    if not replicas:
        raise _bad_replicas("includes an empty replica list.")
    if factor not in (None, len(replicas)):
        raise _bad_replicas(
            f"includes a partition with {len(replicas)} replica(s), but this is not consistent with previous "
            f"partitions, which have {factor} replica(s)."
        )


def _bad_replicas(text: str) -> BrokerError:
    return BrokerError(Error.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {text}")
