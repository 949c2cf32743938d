"""Members of a consumer group that speak the classic protocol, while a group moves from one protocol to the other.

Such a member is a member like the others: its subscription stands in what it sends with JoinGroup, its generation is
its member epoch, its assignment is made by the broker, and REBALANCE_IN_PROGRESS has it join again for its next step.
Nobody leads: every JoinGroup and SyncGroup is answered at once.

Only the consumers' own protocol type can do this, since the broker has to read its metadata. KIP-848.
"""

from collections.abc import Collection, Sequence

from odradek.groups.assignors import Assignment
from odradek.groups.consumer_group import ConsumerGroup
from odradek.groups.consumer_state import ClassicMember, CurrentAssignment, MemberInfo, MemberState, Owned
from odradek.groups.member import JoinRequest, JoinResult, SyncResult
from odradek.groups.subscriptions import Topics
from odradek.groups.timers import Now, Timer
from odradek_protocol.errors import BrokerError, Error, ProtocolError
from odradek_protocol.internal.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from odradek_protocol.internal.versioned import decode_newest, encode_versioned, read_version

__all__ = ["heartbeat", "join", "leaving", "owned_partitions", "sync"]

LAST_ASSIGNMENT_VERSION = 3


def join(group: ConsumerGroup, request: JoinRequest, topics: Topics, now: Now) -> JoinResult:
    """JoinGroup to a consumer group. The changes of the group are the caller's to store, or to undo.

    Raises GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID and FENCED_INSTANCE_ID, in this order.
    The result is MEMBER_ID_REQUIRED for a dynamic member that does not know its id (KIP-394).
    """
    member_id = request.member_id or request.new_member_id
    group.check_size(member_id)
    _check_protocols(group, request)
    if not request.member_id and request.instance_id is None and request.requires_known_member_id:
        return JoinResult(Error.MEMBER_ID_REQUIRED, member_id)
    subscription = _subscription(request.protocols)
    member = _admitted(group, request, member_id)._replace(
        client_id=request.client_id,
        client_host=request.client_host,
        rack_id=subscription.rack_id,
        topic_names=frozenset(subscription.topics),
        topic_pattern="",
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        server_assignor=None,
        classic=ClassicMember(request.session_timeout_ms, request.protocols),
    )
    current = group.update(member, now, owned_partitions(subscription.owned_partitions, topics))
    group.timers.end(Timer.JOIN, member_id)
    group.timers.start(Timer.SESSION, member_id, request.session_timeout_ms, now)
    group.timers.start(Timer.SYNC, member_id, request.rebalance_timeout_ms, now)
    return JoinResult(
        Error.NONE,
        member_id,
        generation=current.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=request.protocols[0][0],
    )


def _check_protocols(group: ConsumerGroup, request: JoinRequest) -> None:
    tables = group.tables
    common = any(tables.classic_protocols.get(name, 0) == tables.classic_members for name, _ in request.protocols)
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not common:
        text = f"Member {request.member_id}'s protocols are not supported."
        raise BrokerError(Error.INCONSISTENT_GROUP_PROTOCOL, text)


def _subscription(protocols: Sequence[tuple[str, bytes]]) -> ConsumerProtocolSubscription:
    try:
        return decode_newest(ConsumerProtocolSubscription, protocols[0][1])
    except ProtocolError as error:
        raise BrokerError(
            Error.INCONSISTENT_GROUP_PROTOCOL, f"Malformed embedded consumer protocol: {error}"
        ) from error


def _admitted(group: ConsumerGroup, request: JoinRequest, member_id: str) -> MemberInfo:
    if request.instance_id is None:
        return group.members.get(member_id) or MemberInfo(member_id)
    if not request.member_id:
        return group.claim(member_id, request.instance_id, only_released=False)
    return group.static_member(member_id, request.instance_id)


def owned_partitions(owned: Sequence[TopicPartition], topics: Topics) -> Assignment:
    """Partitions that are named by topic, of topics that exist."""
    found: dict[bytes, frozenset[int]] = {}
    for each in owned:
        topic = topics.topics.get(each.topic)
        if topic is not None:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()) | frozenset(each.partitions)
    return found


def sync(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    generation: int,
    *,
    protocol_type: str | None,
    protocol_name: str | None,
    topics: Topics,
    now: Now,
) -> SyncResult:
    """SyncGroup to a consumer group: the assignment of a member that has joined.

    Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL and
    REBALANCE_IN_PROGRESS, checked in this order.
    """
    member, classic, current = _member(group, member_id, instance_id, generation)
    name, metadata = classic.protocols[0]
    if protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or protocol_name not in (None, name):
        raise BrokerError(Error.INCONSISTENT_GROUP_PROTOCOL)
    if group.tables.epoch.epoch > current.epoch and current.state is not MemberState.UNREVOKED_PARTITIONS:
        _ask_to_join(group, member, now)
        raise BrokerError(Error.REBALANCE_IN_PROGRESS)
    group.timers.end(Timer.SYNC, member_id)
    group.timers.start(Timer.SESSION, member_id, classic.session_timeout_ms, now)
    version = min(read_version(metadata), LAST_ASSIGNMENT_VERSION)
    return SyncResult(Error.NONE, _encoded(current.assigned, topics, version), protocol_type, protocol_name)


def _encoded(assigned: Owned, topics: Topics, version: int) -> bytes:
    partitions = [
        TopicPartition(topic=topics.topics_by_id[topic_id].name, partitions=sorted(held))
        for topic_id, held in assigned.items()
        if topic_id in topics.topics_by_id
    ]
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=partitions), version)


def heartbeat(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int, now: Now) -> None:
    """Heartbeat to a consumer group: keep the session.

    Raises UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, or REBALANCE_IN_PROGRESS, with which the session
    is kept too, when joining again brings the member a step further.
    """
    member, classic, current = _member(group, member_id, instance_id, generation)
    group.timers.start(Timer.SESSION, member_id, classic.session_timeout_ms, now)
    behind = current.epoch < group.tables.epoch.epoch
    released = current.state is MemberState.UNRELEASED_PARTITIONS and not _waits(group, member_id, current)
    if behind or released or current.state is MemberState.UNREVOKED_PARTITIONS:
        _ask_to_join(group, member, now)
        raise BrokerError(Error.REBALANCE_IN_PROGRESS)


def _ask_to_join(group: ConsumerGroup, member: MemberInfo, now: Now) -> None:
    if not group.timers.is_running(Timer.JOIN, member.member_id):
        group.timers.start(Timer.JOIN, member.member_id, member.rebalance_timeout_ms, now)


def _waits(group: ConsumerGroup, member_id: str, current: CurrentAssignment) -> bool:
    """Whether another still has a partition that the member is to get."""
    return any(
        partition not in current.assigned.get(topic_id, {}) and group.tables.owner(topic_id, partition) is not None
        for topic_id, partitions in group.tables.targets.get(member_id, {}).items()
        for partition in partitions
    )


def leaving(group: ConsumerGroup, members: Collection[tuple[str, str | None]]) -> tuple[list[str], list[Error]]:
    """LeaveGroup: who of (member id, instance id) is to be taken out, and an error for each.

    An administrator names a static member by its instance id and an empty member id.
    """
    found: dict[str, None] = {}
    errors = []
    for given_id, instance_id in members:
        member_id = given_id
        try:
            if instance_id is None:
                group.member(member_id)
            else:
                member_id = given_id or group.tables.static_ids.get(instance_id, "")
                group.static_member(member_id, instance_id)
        except BrokerError as error:
            errors.append(error.error)
        else:
            found[member_id] = None
            errors.append(Error.NONE)
    return list(found), errors


def _member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[MemberInfo, ClassicMember, CurrentAssignment]:
    """A member of the classic protocol, in its generation."""
    member = group.identified(member_id, instance_id)
    if member.classic is None:
        raise BrokerError(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
    current = group.tables.current(member_id)
    if current.epoch != generation:
        raise BrokerError(Error.ILLEGAL_GENERATION)
    return member, member.classic, current
