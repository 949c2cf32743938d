"""The next step of a member from what it owns to what it is to own (KIP-848).

    STABLE ----> UNREVOKED_PARTITIONS ----> UNRELEASED_PARTITIONS ----> STABLE
       new target    the member has given up     all that it waited for
                     what it was asked to         is free

A member first gives up what it is not to have, in its old epoch; then it goes to the epoch of the target with what is
free, and gets the rest as others give it up. So a partition has one owner at any time.
"""

from collections.abc import Callable, Collection, Mapping

from odradek.groups.assignors import Assignment
from odradek.groups.consumer_state import CurrentAssignment, MemberState, Owned
from odradek_protocol.errors import BrokerError, Error

__all__ = ["reconcile"]

S = MemberState


def reconcile(
    current: CurrentAssignment,
    target_epoch: int,
    target: Assignment,
    *,
    subscribed: Collection[bytes],
    is_free: Callable[[bytes, int], bool],
    owned: Assignment | None,
    subscription_changed: bool,
) -> CurrentAssignment:
    """The member's next assignment; `current` itself when nothing can be done yet.

    `subscribed` are the ids of the topics that it subscribes to: it may consume no other, whatever the target says.
    `owned` is what it says it has, None when it does not say. `is_free` tells whether nobody else has a partition.
    Raises FENCED_MEMBER_EPOCH for a member in a state of a newer broker that still has partitions.
    """
    if current.state is S.UNKNOWN and (owned is None or owned):
        raise BrokerError(
            Error.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
        )
    waits = current.state is S.UNREVOKED_PARTITIONS and _still_has(current.revoking, owned)
    if waits or current.is_reconciled_to(target_epoch):
        return _without_unsubscribed(current, subscribed, owned) if subscription_changed else current
    return _next(current, target_epoch, target, subscribed, is_free, owned)


def _still_has(revoking: Owned, owned: Assignment | None) -> bool:
    """Whether the member has, or does not say that it has not, what it was asked to give up."""
    if owned is None:
        return True
    return any(not partitions.isdisjoint(revoking.get(topic_id, ())) for topic_id, partitions in owned.items())


def _without_unsubscribed(
    current: CurrentAssignment, subscribed: Collection[bytes], owned: Assignment | None
) -> CurrentAssignment:
    """Take from a member the topics that it subscribes to no longer, without waiting for a new target."""
    dropped = [topic_id for topic_id in current.assigned if topic_id not in subscribed]
    if not dropped:
        return current
    assigned = {topic_id: held for topic_id, held in current.assigned.items() if topic_id not in dropped}
    revoking: dict[bytes, Mapping[int, int]] = dict(current.revoking)
    for topic_id in dropped:
        revoking[topic_id] = {**revoking.get(topic_id, {}), **current.assigned[topic_id]}
    if _still_has(revoking, owned):
        return CurrentAssignment(current.epoch, current.epoch, S.UNREVOKED_PARTITIONS, assigned, revoking)
    return CurrentAssignment(current.epoch, current.epoch, current.state, assigned, {})


def _next(
    current: CurrentAssignment,
    target_epoch: int,
    target: Assignment,
    subscribed: Collection[bytes],
    is_free: Callable[[bytes, int], bool],
    owned: Assignment | None,
) -> CurrentAssignment:
    kept: dict[bytes, dict[int, int]] = {}
    revoking: dict[bytes, dict[int, int]] = {}
    gained: dict[bytes, dict[int, int]] = {}
    unreleased = False
    for topic_id in {**target, **current.assigned}:
        wanted = target.get(topic_id, frozenset()) if topic_id in subscribed else frozenset()
        held = current.assigned.get(topic_id, {})
        given_up = current.revoking.get(topic_id, ())
        _put(kept, topic_id, {partition: epoch for partition, epoch in held.items() if partition in wanted})
        _put(revoking, topic_id, {partition: epoch for partition, epoch in held.items() if partition not in wanted})
        missing = [partition for partition in wanted if partition not in held]
        free = [partition for partition in missing if partition in given_up or is_free(topic_id, partition)]
        unreleased = unreleased or len(free) < len(missing)
        _put(gained, topic_id, dict.fromkeys(free, target_epoch))
    if revoking and _still_has(revoking, owned):
        return CurrentAssignment(current.epoch, current.epoch, S.UNREVOKED_PARTITIONS, kept, revoking)
    assigned: Owned = {
        topic_id: {**kept.get(topic_id, {}), **gained.get(topic_id, {})} for topic_id in {**kept, **gained}
    }
    state = S.UNRELEASED_PARTITIONS if unreleased else S.STABLE
    following = CurrentAssignment(target_epoch, current.epoch, state, assigned, {})
    return current if following == current else following


def _put(table: dict[bytes, dict[int, int]], topic_id: bytes, partitions: dict[int, int]) -> None:
    if partitions:
        table[topic_id] = partitions
