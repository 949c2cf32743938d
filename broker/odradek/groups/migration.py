"""Turning a group with members from one protocol to the other, without a stop (`group.consumer.migration.policy`).

A classic group of consumers becomes a consumer group when the first member of the new protocol joins; a consumer group
becomes a classic one when its last member of the new protocol leaves. What members own they keep. An empty group takes
whatever kind the next member is of. KIP-848.
"""

import enum
from collections.abc import Collection

from odradek.groups.classic_members import owned_partitions
from odradek.groups.consumer_group import ConsumerGroup, ConsumerLimits
from odradek.groups.consumer_state import (
    ClassicMember,
    CurrentAssignment,
    MemberInfo,
    MemberState,
    Owned,
    Part,
)
from odradek.groups.group import Group, GroupLimits
from odradek.groups.member import Member, Store
from odradek.groups.subscriptions import Topics
from odradek.groups.tables import GroupEpoch, TargetEpoch
from odradek_protocol.errors import BrokerError, Error, ProtocolError
from odradek_protocol.internal.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from odradek_protocol.internal.versioned import decode_newest, encode_versioned, read_version

__all__ = ["MigrationPolicy", "downgraded", "may_downgrade", "upgraded"]

CUSTOM_ASSIGNOR = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor "
    "before re-attempting the upgrade"
)
"""Why a group does not move whose assignor gives its members data of its own, which would be lost; Kafka's words."""


class MigrationPolicy(enum.Enum):
    """Which way groups with members may go."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        """Whether classic groups may become consumer groups."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        """Whether consumer groups may become classic groups."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


def upgraded(classic: Group, policy: MigrationPolicy, limits: ConsumerLimits, topics: Topics) -> ConsumerGroup:
    """A consumer group with the members of a classic one. All that it is made of is among its changes.

    Raises GROUP_ID_NOT_FOUND, as Kafka does, where the group has members that cannot move.
    """
    group = ConsumerGroup(classic.group_id, limits, topics)
    group.offsets = classic.offsets
    if not classic.members:
        return group
    reason = None
    if not policy.allows_upgrade:
        reason = "online upgrade is disabled"
    elif classic.protocol_type != CONSUMER_PROTOCOL_TYPE:
        reason = "the group does not use the consumer embedded protocol"
    elif len(classic.members) > limits.max_size:
        reason = "the group size exceeds the consumer group maximum size"
    if reason is None:
        try:
            reason = _take_over(group, classic, topics)
        except ProtocolError:
            reason = "the embedded consumer protocol is malformed"
    if reason is not None:
        text = f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}."
        raise BrokerError(Error.GROUP_ID_NOT_FOUND, text)
    return group


def _take_over(group: ConsumerGroup, classic: Group, topics: Topics) -> str | None:
    """Have the group consist of a classic one's members; why it cannot. ProtocolError for what does not decode."""
    epoch = classic.generation
    held: dict[str, Owned] = {}
    for member in classic.members.values():
        subscription = decode_newest(ConsumerProtocolSubscription, member.metadata(classic.protocol_name))
        assignment = ConsumerProtocolAssignment(assigned_partitions=())
        if member.assignment:
            assignment = decode_newest(ConsumerProtocolAssignment, member.assignment)
        if assignment.user_data:
            return CUSTOM_ASSIGNOR
        owned = owned_partitions(assignment.assigned_partitions, topics)
        held[member.member_id] = {topic_id: dict.fromkeys(found, epoch) for topic_id, found in owned.items()}
        info = MemberInfo(
            member.member_id,
            client_id=member.client_id,
            client_host=member.client_host,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id,
            topic_names=frozenset(subscription.topics),
            topic_pattern="",
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=ClassicMember(member.session_timeout_ms, member.protocols),
        )
        group.tables.change(Part.MEMBER, member.member_id, info)
    group.tables.change(Part.EPOCH, "", GroupEpoch(epoch))
    for member_id, partitions in held.items():
        target = {topic_id: frozenset(found) for topic_id, found in partitions.items()}
        group.tables.change(Part.TARGET, member_id, target)
    group.tables.change(Part.TARGET_EPOCH, "", TargetEpoch(epoch))
    for member_id, partitions in held.items():
        current = CurrentAssignment(epoch, epoch, MemberState.STABLE, partitions, {})
        group.tables.change(Part.CURRENT, member_id, current)
    return None


def may_downgrade(group: ConsumerGroup, leaving: Collection[str], policy: MigrationPolicy, limits: GroupLimits) -> bool:
    """Whether those who stay when `leaving` are gone, if any, all speak the classic protocol, and may go back to it."""
    staying = len(group.members) - len(leaving)
    classic = group.tables.classic_members - sum(group.members[each].classic is not None for each in leaving)
    return 0 < staying <= limits.group_max_size and staying == classic and policy.allows_downgrade


def downgraded(
    group: ConsumerGroup, leaving: Collection[str], limits: GroupLimits, topics: Topics
) -> tuple[Group, Store]:
    """A classic group with those members of a consumer group that do not leave, and how it is to be stored.

    Its protocol is the first that all members support, its leader the first member.
    """
    rows, members = [], []
    staying = [member for member_id, member in group.members.items() if member_id not in leaving]
    for info in staying:
        classic = info.classic
        assert classic is not None, "`may_downgrade` was asked"
        members.append(classic)
    common = set.intersection(*({name for name, _ in classic.protocols} for classic in members))
    protocol = next(name for name, _ in members[0].protocols if name in common)
    for info, classic in zip(staying, members, strict=True):
        metadata = dict(classic.protocols)[protocol]
        member = Member(
            member_id=info.member_id,
            instance_id=info.instance_id,
            client_id=info.client_id,
            client_host=info.client_host,
            session_timeout_ms=classic.session_timeout_ms,
            rebalance_timeout_ms=info.rebalance_timeout_ms,
            protocols=classic.protocols,
        )
        assigned = [
            TopicPartition(topic=topics.topics_by_id[topic_id].name, partitions=sorted(held))
            for topic_id, held in group.tables.current(info.member_id).assigned.items()
            if topic_id in topics.topics_by_id
        ]
        assignment = encode_versioned(
            ConsumerProtocolAssignment(assigned_partitions=assigned), min(read_version(metadata), 3)
        )
        rows.append((member, metadata, assignment))
    store = Store(group.tables.epoch.epoch, CONSUMER_PROTOCOL_TYPE, protocol, staying[0].member_id, rows)
    classic_group = Group.restored(group.group_id, limits, store)
    classic_group.offsets = group.offsets
    return classic_group, store
