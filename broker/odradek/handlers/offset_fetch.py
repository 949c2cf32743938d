"""OffsetFetch (key 9), v0-10: how far groups have read.

A partition without an offset, known or not, is answered with offset -1, epoch -1, metadata "" and no error; so are
those of a group that is not there. A null list of topics asks for every partition with an offset. Who requires stable
offsets is told UNSTABLE_OFFSET_COMMIT of those that an open transaction has committed, and no offset.

Order of the checks for a group: coordinator; for who says to be a member of a consumer group of KIP-848 (v9)
UNKNOWN_MEMBER_ID, and STALE_MEMBER_EPOCH or, for a member of the classic protocol, ILLEGAL_GENERATION.
Errors of a group stand in each partition up to v1, at the top up to v7, and in the group from v8 on; an unknown topic
id (v10) is UNKNOWN_TOPIC_ID in each of its partitions. Offsets of topics that are gone have no id and are left out of
a v10 answer to a null list.

KIP-88 (v2), KIP-320 (v5), KIP-447 (v7, stable offsets), KIP-709 (v8, many groups), KIP-848 (v9, v10).
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from odradek.groups.offsets import CommittedOffset, GroupOffsets
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from odradek_protocol.schema import NULL_UUID

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_TOP_LEVEL_ERROR = 2
FIRST_WITH_MANY_GROUPS = 8
FIRST_WITH_TOPIC_IDS = 10

NOTHING = CommittedOffset(
    offset=-1, leader_epoch=-1, metadata="", commit_timestamp_ms=-1, expire_timestamp_ms=-1, record_offset=-1
)
"""What is told of a partition for which nothing was committed."""

NO_OFFSETS = GroupOffsets()

Unstable = Collection[tuple[str, int]]

ALL_STABLE: Unstable = ()


@handles(OffsetFetchRequest)
def offset_fetch(
    node: "Node",
    connection: "Connection",
    request: Request[OffsetFetchRequest],
) -> OffsetFetchResponse:
    """Answer an OffsetFetch request."""
    body = request.body
    if request.version < FIRST_WITH_MANY_GROUPS:
        return _one_group(node, request)
    groups = []
    for wanted in body.groups:
        offsets, unstable, error = _offsets(node, request, wanted.group_id, wanted.member_id, wanted.member_epoch)
        topics = [] if error else _topics(node, request.version, offsets, unstable, wanted.topics)
        groups.append(OffsetFetchResponseGroup(group_id=wanted.group_id, topics=topics, error_code=error))
    return OffsetFetchResponse(groups=groups)


def _offsets(
    node: "Node",
    request: Request[OffsetFetchRequest],
    group_id: str,
    member_id: str | None = None,
    member_epoch: int = -1,
) -> tuple[GroupOffsets, Unstable, Error]:
    """A group's offsets, and which of them are not to be told."""
    try:
        node.groups.check_fetch(group_id, member_id, member_epoch)
        group = node.groups.find(group_id)
        unstable = node.groups.unstable_offsets(group_id) if request.body.require_stable else ALL_STABLE
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        return NO_OFFSETS, ALL_STABLE, answer_for(error, request)[0]
    return NO_OFFSETS if group is None else group.offsets, unstable, Error.NONE


def _told(offsets: GroupOffsets, unstable: Unstable, topic: str, index: int) -> tuple[CommittedOffset, Error]:
    """What is told of a partition."""
    if unstable and (topic, index) in unstable:
        return NOTHING, Error.UNSTABLE_OFFSET_COMMIT
    return offsets.get(topic, index) or NOTHING, Error.NONE


def _one_group(node: "Node", request: Request[OffsetFetchRequest]) -> OffsetFetchResponse:
    offsets, unstable, error = _offsets(node, request, request.body.group_id)
    wanted = request.body.topics
    if error and request.version >= FIRST_WITH_TOP_LEVEL_ERROR:
        return OffsetFetchResponse(error_code=error)
    if wanted is None:
        wanted = [
            OffsetFetchRequestTopic(name=name, partition_indexes=list(found)) for name, found in offsets.topics.items()
        ]
    topics = []
    for topic in wanted:
        partitions = []
        for index in topic.partition_indexes:
            committed, refusal = _told(offsets, unstable, topic.name, index)
            partitions.append(
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                    error_code=error or refusal,
                )
            )
        topics.append(OffsetFetchResponseTopic(name=topic.name, partitions=partitions))
    return OffsetFetchResponse(topics=topics)


def _topics(
    node: "Node",
    version: int,
    offsets: GroupOffsets,
    unstable: Unstable,
    wanted: Sequence[OffsetFetchRequestTopics] | None,
) -> list[OffsetFetchResponseTopics]:
    by_id = version >= FIRST_WITH_TOPIC_IDS
    if wanted is None:
        wanted = _all_topics(node, offsets, by_id=by_id)
    topics = []
    for topic in wanted:
        name, error = topic.name, Error.NONE
        if by_id:
            known = node.view.topics_by_id.get(topic.topic_id)
            name, error = ("", Error.UNKNOWN_TOPIC_ID) if known is None else (known.name, Error.NONE)
        partitions = []
        for index in topic.partition_indexes:
            committed, refusal = _told(offsets, unstable, name, index)
            partitions.append(
                OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                    error_code=error or refusal,
                )
            )
        topics.append(OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
    return topics


def _all_topics(node: "Node", offsets: GroupOffsets, *, by_id: bool) -> list[OffsetFetchRequestTopics]:
    """Everything that has an offset, as if it had been asked for by name, or by id where the topic still exists."""
    wanted = []
    for name, found in offsets.topics.items():
        known = node.view.topics.get(name)
        if known is not None or not by_id:
            topic_id = NULL_UUID if known is None else known.topic_id
            wanted.append(OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=list(found)))
    return wanted
