"""Who holds and who leads a partition: pure functions of the brokers and the numbers given.

The aims, in order: no broker holds a partition twice; every broker leads and holds as many as the others, give or take
one; a broker's followers are spread over all the others; replicas are on as many racks as there are (KIP-36).
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from odradek_protocol.errors import BrokerError, Error

__all__ = ["NO_LEADER", "assign_replicas", "choose_leader", "rack_alternated"]

NO_LEADER = -1
"""The leader of a partition that has none."""


def assign_replicas(
    racks: Mapping[int, str | None],
    partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """The replicas of `partitions` new partitions, the preferred leader first.

    `racks` names the live brokers and the rack of each. Leaders go round the brokers from number `start`; followers
    stand `shift` further, one more each time round. A caller that wants an even cluster passes random numbers.
    `first_partition` is the number of the first new partition, above 0 when a topic grows. As Kafka's `AdminUtils`.

    Raises INVALID_PARTITIONS or INVALID_REPLICATION_FACTOR when it cannot be done.
    """
    if partitions <= 0:
        raise BrokerError(Error.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise BrokerError(Error.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    if replication_factor > len(racks):
        raise BrokerError(
            Error.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(racks)} broker(s) are registered.",
        )
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    # Racks count only when every broker names one: with some unknown, spreading over the rest would be lopsided.
    rack_aware = len(known) == len(racks)
    brokers = rack_alternated(known) if rack_aware else sorted(racks)
    place = _rack_aware(brokers, known) if rack_aware else _round_robin(brokers)
    assignment = []
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(brokers) == 0:
            shift += 1
        assignment.append(place((partition + start) % len(brokers), shift, replication_factor))
    return assignment


def rack_alternated(racks: Mapping[int, str]) -> list[int]:
    """The brokers, one of each rack in turn, racks and brokers in their order."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    longest = max(map(len, by_rack.values()), default=0)
    return [by_rack[rack][turn] for turn in range(longest) for rack in sorted(by_rack) if turn < len(by_rack[rack])]


def choose_leader(replicas: Sequence[int], isr: Collection[int], live: Collection[int]) -> int:
    """The first replica that is alive and in sync, `NO_LEADER` when there is none."""
    return next((broker for broker in replicas if broker in live and broker in isr), NO_LEADER)


_Place = Callable[[int, int, int], tuple[int, ...]]


def _follower(leader: int, shift: int, number: int, brokers: int) -> int:
    """The place of follower `number` of the leader at place `leader`: never the leader's own."""
    return (leader + 1 + (shift + number) % (brokers - 1)) % brokers


def _round_robin(brokers: Sequence[int]) -> _Place:
    def place(leader: int, shift: int, replication_factor: int) -> tuple[int, ...]:
        followers = (_follower(leader, shift, number, len(brokers)) for number in range(replication_factor - 1))
        return (brokers[leader], *(brokers[follower] for follower in followers))

    return place


def _rack_aware(brokers: Sequence[int], racks: Mapping[int, str]) -> _Place:
    rack_count = len(set(racks.values()))

    def place(leader: int, shift: int, replication_factor: int) -> tuple[int, ...]:
        chosen = [brokers[leader]]
        used = {racks[brokers[leader]]}
        number = 0
        while len(chosen) < replication_factor:
            broker = brokers[_follower(leader, shift * rack_count, number, len(brokers))]
            if broker not in chosen and (racks[broker] not in used or len(used) == rack_count):
                chosen.append(broker)
                used.add(racks[broker])
            number += 1
        return tuple(chosen)

    return place
