"""StreamsGroupHeartbeat (key 88), v0-1: join a streams group, stay in it, learn tasks and endpoints, leave.

Order of the checks: UNSUPPORTED_VERSION below level 1 of the feature streams.version; STREAMS_INVALID_TOPOLOGY for
topics that an application may not have; the request alone, INVALID_REQUEST: nothing that is not served yet (static
members, offsets of tasks, warm-up tasks, patterns), nothing that is told is empty, a first heartbeat has a rebalance
timeout, a topology and no tasks, a later one no topology, tasks of all roles or of none; STREAMS_INVALID_TOPOLOGY for
numbers that cannot be. Then coordinator, GROUP_ID_NOT_FOUND, and those of `StreamsGroup.heartbeat`. The tasks are told
to who joins, and when they are others; endpoints when the member knows older ones. Who says all there is to say, as
after a reply that was lost, is told its tasks too, where Kafka 4.3 leaves it without them.

A topology with a negative epoch or number of partitions, or with two subtopologies of one name, is told to be invalid,
where Kafka says UNKNOWN_SERVER_ERROR. KIP-1071; topology descriptions (v1, KIP-1331) are not asked for.
"""

from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from odradek.cluster.topics import INTERNAL_TOPICS, is_legal
from odradek.groups.streams_group import StreamsHeartbeat, StreamsHeartbeatResult
from odradek.groups.streams_records import decode_topology
from odradek.groups.streams_tasks import Held, Role, Task, Tasks, by_subtopology
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages import streams_group_heartbeat as messages
from odradek_protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
UNCHANGED = -1


@handles(StreamsGroupHeartbeatRequest)
def streams_group_heartbeat(
    node: "Node", connection: "Connection", request: Request[StreamsGroupHeartbeatRequest]
) -> StreamsGroupHeartbeatResponse | Coroutine[Any, Any, StreamsGroupHeartbeatResponse]:
    """Answer a StreamsGroupHeartbeat request."""
    body = request.body
    try:
        node.features.check_streams_groups()
        _check(body)
        endpoint, tags = body.user_endpoint, body.client_tags
        heartbeat = StreamsHeartbeat(
            member_id=body.member_id,
            member_epoch=body.member_epoch,
            client_id=request.client_id or "",
            client_host=connection.peer,
            rack_id=body.rack_id,
            rebalance_timeout_ms=body.rebalance_timeout_ms,
            topology=None if body.topology is None else decode_topology(body.topology),
            owned=_owned(body),
            process_id=body.process_id,
            user_endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
            client_tags=None if tags is None else tuple(sorted((tag.key, tag.value) for tag in tags)),
            shuts_down=body.shutdown_application,
            endpoint_epoch=body.endpoint_information_epoch,
        )
        result, unwritten = node.groups.streams_heartbeat(body.group_id, heartbeat)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        return _refusal(request, error)
    response = _response(node, body, result)
    return response if unwritten is None else unwritten.answer(response, partial(_refusal, request))


def _check(body: StreamsGroupHeartbeatRequest) -> None:
    if body.topology is not None:
        _check_names(body.topology)
    fault = _unsupported(body) or _empty(body) or _misplaced(body)
    if fault is not None:
        raise BrokerError(Error.INVALID_REQUEST, fault)
    if body.topology is not None:
        _check_numbers(body.topology)


def _unsupported(body: StreamsGroupHeartbeatRequest) -> str | None:
    """What the request has that Kafka 4.3 does not serve yet, in Kafka's words."""
    if body.instance_id is not None:
        return "Static membership is not yet supported."
    if body.task_offsets is not None:
        return "TaskOffsets are not supported yet."
    if body.task_end_offsets is not None:
        return "TaskEndOffsets are not supported yet."
    if body.warmup_tasks:
        return "WarmupTasks are not supported yet."
    if body.topology is not None and any(each.source_topic_regex for each in body.topology.subtopologies):
        return "Regular expressions for source topics are not supported yet."
    return None


def _empty(body: StreamsGroupHeartbeatRequest) -> str | None:
    for name, value in (("MemberId", body.member_id), ("GroupId", body.group_id), ("RackId", body.rack_id)):
        if value is not None and not value.strip():
            return f"{name} can't be empty."
    return None


def _misplaced(body: StreamsGroupHeartbeatRequest) -> str | None:
    """What is wrong with the request for its epoch, in Kafka's words."""
    tasks = {"ActiveTasks": body.active_tasks, "StandbyTasks": body.standby_tasks, "WarmupTasks": body.warmup_tasks}
    if body.member_epoch == JOIN_EPOCH:
        if body.rebalance_timeout_ms == UNCHANGED:
            return "RebalanceTimeoutMs must be provided in first request."
        for name, told in tasks.items():
            if told is None or told:
                return f"{name} must be empty when (re-)joining."
        if body.topology is None:
            return "Topology must be non-null when (re-)joining."
    elif body.member_epoch == LEAVE_STATIC_EPOCH:
        return "InstanceId can't be null."
    elif body.member_epoch < LEAVE_STATIC_EPOCH:
        return f"MemberEpoch is {body.member_epoch}, but must be greater than or equal to -2."
    if len({told is None for told in tasks.values()}) > 1:
        return "If one task-type is non-null, all must be non-null."
    if body.member_epoch != JOIN_EPOCH and body.topology is not None:
        return "Topology can only be provided when (re-)joining."
    return None


def _topics(topology: messages.Topology) -> Iterator[str]:
    """Every topic that a topology names, once."""
    names: dict[str, None] = {}
    for each in topology.subtopologies:
        names.update(dict.fromkeys((*each.source_topics, *each.repartition_sink_topics)))
        names.update((topic.name, None) for topic in (*each.repartition_source_topics, *each.state_changelog_topics))
    return iter(names)


def _check_names(topology: messages.Topology) -> None:
    """STREAMS_INVALID_TOPOLOGY for topics of the broker's, and for names that no topic has."""
    internal = [name for name in _topics(topology) if name in INTERNAL_TOPICS]
    if internal:
        text = f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        raise BrokerError(Error.STREAMS_INVALID_TOPOLOGY, text)
    illegal = [name for name in _topics(topology) if not is_legal(name)]
    if illegal:
        text = f"Topic names {','.join(illegal)} are not valid topic names."
        raise BrokerError(Error.STREAMS_INVALID_TOPOLOGY, text)


def _check_numbers(topology: messages.Topology) -> None:
    """STREAMS_INVALID_TOPOLOGY, or STREAMS_INVALID_TOPOLOGY_EPOCH, for numbers that cannot be."""
    for each in topology.subtopologies:
        for topic in each.state_changelog_topics:
            if topic.partitions:
                raise BrokerError(
                    Error.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}.",
                )
        for topic in each.repartition_source_topics:
            if topic.partitions < 0:
                text = f"Repartition topic {topic.name} cannot have {topic.partitions} partitions."
                raise BrokerError(Error.STREAMS_INVALID_TOPOLOGY, text)
    if topology.epoch < 0:
        raise BrokerError(Error.STREAMS_INVALID_TOPOLOGY_EPOCH, "Topology epoch must be non-negative.")
    names = Counter(each.subtopology_id for each in topology.subtopologies)
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        text = f"There is more than one subtopology with the name {', '.join(twice)}."
        raise BrokerError(Error.STREAMS_INVALID_TOPOLOGY, text)


def _owned(body: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """The tasks that a member says it has; None when it does not say."""
    lists = (body.active_tasks, body.standby_tasks, body.warmup_tasks)
    if any(told is None for told in lists):
        return None
    return frozenset(
        Task(role, each.subtopology_id, partition)
        for role, told in zip(Role, lists, strict=True)
        for each in told or ()
        for partition in each.partitions
    )


def _response(
    node: "Node", body: StreamsGroupHeartbeatRequest, result: StreamsHeartbeatResult
) -> StreamsGroupHeartbeatResponse:
    assigned, endpoints = result.assigned, result.endpoints
    leaves = body.member_epoch == LEAVE_EPOCH
    active, standby, warmup = (None if assigned is None else _task_ids(assigned, role) for role in Role)
    return StreamsGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=0 if leaves else node.groups.streams_heartbeat_interval_ms(body.group_id),
        status=[messages.Status(status_code=each.code, status_detail=each.detail) for each in result.statuses],
        active_tasks=active,
        standby_tasks=standby,
        warmup_tasks=warmup,
        endpoint_information_epoch=result.endpoint_epoch,
        partitions_by_user_endpoint=None
        if endpoints is None
        else [
            messages.EndpointToPartitions(
                user_endpoint=messages.Endpoint(host=each.endpoint[0], port=each.endpoint[1]),
                active_partitions=_partitions(each.active),
                standby_partitions=_partitions(each.standby),
            )
            for each in endpoints
        ],
    )


def _task_ids(assigned: Held, role: Role) -> list[messages.TaskIds]:
    return [
        messages.TaskIds(subtopology_id=name, partitions=partitions)
        for name, partitions in by_subtopology(assigned, role).items()
    ]


def _partitions(topics: Mapping[str, Sequence[int]]) -> list[messages.TopicPartition]:
    return [messages.TopicPartition(topic=name, partitions=partitions) for name, partitions in topics.items()]


def _refusal(request: Request[StreamsGroupHeartbeatRequest], error: Exception) -> StreamsGroupHeartbeatResponse:
    code, message = answer_for(error, request)
    return StreamsGroupHeartbeatResponse(error_code=code, error_message=message or None)
