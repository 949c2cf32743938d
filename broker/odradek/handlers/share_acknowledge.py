"""ShareAcknowledge (key 79), v1-2: acknowledge records of a share group.

Goes on in the session that a ShareFetch has begun; the last request of it gives back what the member has and did not
acknowledge. Order of the checks: group id and member id, INVALID_REQUEST; the session, which stands in the reply's
head; then for each partition those of `acknowledgements`.

KIP-932, KIP-1222 (v2, renewed locks).
"""

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from odradek.cluster.advertised import endpoint_of
from odradek.handlers.registry import answer_for, handles
from odradek.share import acknowledgements
from odradek.share.acknowledgements import Acknowledged
from odradek.share.manager import Unfinished
from odradek.share.sessions import FINAL_EPOCH
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.share_acknowledge import (
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from odradek_protocol.messages.share_fetch import UNNAMED_LEADER, LeaderIdAndEpoch, NodeEndpoint

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_RENEWAL = 2
LEADER_ERRORS = frozenset({Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH})


@handles(ShareAcknowledgeRequest)
def share_acknowledge(
    node: "Node", connection: "Connection", request: Request[ShareAcknowledgeRequest]
) -> ShareAcknowledgeResponse | Coroutine[Any, Any, ShareAcknowledgeResponse]:
    """Answer a ShareAcknowledge request."""
    body = request.body
    shared = node.share_partitions
    try:
        node.features.check_share_groups()
        group_id, member_id = acknowledgements.check_member(body.group_id, body.member_id)
        session = shared.sessions.advance(group_id, member_id, body.share_session_epoch)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, _ = answer_for(error, request)
        return ShareAcknowledgeResponse(error_code=code)
    acknowledged = acknowledgements.acknowledge(
        shared,
        node.view,
        group_id,
        member_id,
        body.topics,
        renews=body.is_renew_ack,
        may_renew=request.version >= FIRST_WITH_RENEWAL,
    )
    released = shared.release_session(session) if body.share_session_epoch == FINAL_EPOCH else ()
    lock_ms = shared.settings(group_id).record_lock_duration_ms
    if released or not acknowledged.finished:
        return _finish(released, node, connection, acknowledged, lock_ms)
    return _response(node, connection, acknowledged, lock_ms)


async def _finish(
    released: Sequence[Unfinished],
    node: "Node",
    connection: "Connection",
    acknowledged: Acknowledged,
    lock_ms: int,
) -> ShareAcknowledgeResponse:
    """Answer when what was acknowledged, and what is given back, is replicated."""
    await acknowledged.finish()
    for each in released:
        await each.wait()
    return _response(node, connection, acknowledged, lock_ms)


def _response(
    node: "Node", connection: "Connection", acknowledged: Acknowledged, lock_ms: int
) -> ShareAcknowledgeResponse:
    topics: dict[bytes, list[PartitionData]] = {}
    endpoints: dict[int, NodeEndpoint] = {}
    for (topic_id, index), (code, message) in acknowledged.results.items():
        leader = UNNAMED_LEADER
        topic = node.view.topics_by_id.get(topic_id)
        if code in LEADER_ERRORS and topic is not None:
            state = topic.partitions[index]
            leader = LeaderIdAndEpoch(leader_id=state.leader, leader_epoch=state.leader_epoch)
            endpoint = endpoint_of(node, connection, state.leader)
            if endpoint is not None:
                endpoints[state.leader] = NodeEndpoint(node_id=state.leader, host=endpoint.host, port=endpoint.port)
        topics.setdefault(topic_id, []).append(
            PartitionData(partition_index=index, error_code=code, error_message=message, current_leader=leader)
        )
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_ms,
        responses=[
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
        node_endpoints=list(endpoints.values()),
    )
