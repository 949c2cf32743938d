"""ShareFetch (key 78), v1-2: acknowledge records of a share group, and acquire more of them.

Acknowledgements are dealt with first. Then the partitions of the session are read, each from its first record that
nobody has acquired, in turns; the reply waits up to `max_wait_ms` while fewer than `min_bytes` can be acquired. Records
are acquired in whole log batches (v2, `share_acquire_mode` 1: exactly `max_records` at most) and stay the member's for
`acquisition_lock_timeout_ms`. The last request of a session gives back what the member has, and reads nothing.

Order of the checks: group id and member id, INVALID_REQUEST; a renewal that reads too, INVALID_REQUEST; the session;
these stand in the reply's head, without a text. Then for each partition those of its acknowledgements (see
`acknowledgements`), and UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, and what the share
coordinator says.

KIP-932, KIP-1206 (v2, record limit), KIP-1222 (v2, renewed locks).
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import trio

from odradek.cluster.advertised import endpoint_of
from odradek.handlers.registry import answer_for, handles
from odradek.partition import Partition
from odradek.share import acknowledgements
from odradek.share.acknowledgements import Acknowledged
from odradek.share.delivery import Delivered, deliver, readable
from odradek.share.manager import Shared, Unfinished
from odradek.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession, TopicIdPartition
from odradek.share.share_partition import Acquisition
from odradek.waiting import Postponed, Waiter, answer_of
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_RENEWAL = 2
RECORD_LIMIT = 1
LEADER_ERRORS = frozenset({Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH})

Answer = ShareFetchResponse | Postponed


@handles(ShareFetchRequest)
def share_fetch(
    node: "Node", connection: "Connection", request: Request[ShareFetchRequest]
) -> Answer | Coroutine[Any, Any, ShareFetchResponse]:
    """Answer a ShareFetch request."""
    body = request.body
    try:
        node.features.check_share_groups()
        group_id, member_id = acknowledgements.check_member(body.group_id, body.member_id)
        _check_renewal(body)
        session, is_first = _session(node, connection, body, group_id, member_id)
    except BrokerError as error:
        refusal = ShareFetchResponse(error_code=error.error)
        if error.error is Error.SHARE_SESSION_LIMIT_REACHED and body.max_wait_ms > 0:
            return _Delayed(refusal, body.max_wait_ms)
        return refusal
    except Exception as error:  # noqa: BLE001 - answered, and logged
        code, _ = answer_for(error, request)
        return ShareFetchResponse(error_code=code)
    acknowledged = acknowledgements.acknowledge(
        node.share_partitions,
        node.view,
        group_id,
        member_id,
        body.topics,
        renews=body.is_renew_ack,
        may_renew=request.version >= FIRST_WITH_RENEWAL,
    )
    fetch = _ShareFetch(node, connection, request, session, is_first=is_first, acknowledged=acknowledged)
    released = node.share_partitions.release_session(session) if body.share_session_epoch == FINAL_EPOCH else ()
    if released or not acknowledged.finished:
        return _finish(acknowledged, released, fetch)
    return fetch.answer()


async def _finish(
    acknowledged: Acknowledged, released: Sequence[Unfinished], fetch: "_ShareFetch"
) -> ShareFetchResponse:
    """Answer when what was acknowledged, and what is given back, is replicated."""
    await acknowledged.finish()
    for each in released:
        await each.wait()
    answer = fetch.answer()
    if isinstance(answer, Postponed):
        found: ShareFetchResponse = await answer_of(answer)
        return found
    return answer


def _check_renewal(body: ShareFetchRequest) -> None:
    """INVALID_REQUEST where locks are renewed, and records asked for too."""
    if not body.is_renew_ack:
        return
    asked = {
        "maxBytes": body.max_bytes,
        "minBytes": body.min_bytes,
        "maxRecords": body.max_records,
        "maxWaitMs": body.max_wait_ms,
    }
    wrong = "".join(f"{name} must be set to 0, " for name, value in asked.items() if value != 0)
    if wrong:
        raise BrokerError(Error.INVALID_REQUEST, f"{wrong}if isRenewAck is true.")


def _session(
    node: "Node", connection: "Connection", body: ShareFetchRequest, group_id: str, member_id: str
) -> tuple[ShareSession, bool]:
    """The session of a request, and whether it begins with it."""
    sessions = node.share_partitions.sessions
    asked = [(bytes(topic.topic_id), each.partition_index) for topic in body.topics for each in topic.partitions]
    if body.share_session_epoch != INITIAL_EPOCH:
        session = sessions.advance(group_id, member_id, body.share_session_epoch)
        if body.share_session_epoch != FINAL_EPOCH:
            forgotten = [
                (bytes(topic.topic_id), index) for topic in body.forgotten_topics_data for index in topic.partitions
            ]
            session.update(asked, forgotten)
        return session, False
    if any(each.acknowledgement_batches for topic in body.topics for each in topic.partitions):
        raise BrokerError(Error.INVALID_REQUEST, "A share session cannot begin with acknowledgements.")
    session = sessions.create(group_id, member_id, asked)
    connection.on_close[group_id, member_id] = lambda: node.share_partitions.on_disconnect(session)
    return session, True


class _Delayed(Postponed):
    """An error that is told late: a member without a session would ask again at once."""

    __slots__ = ("_response", "deadline")

    def __init__(self, response: ShareFetchResponse, wait_ms: int) -> None:
        self._response = response
        self.deadline = trio.current_time() + wait_ms / 1000

    def begin(self, woken: Callable[[], object]) -> None:
        """Nothing wakes it."""

    def look(self) -> ShareFetchResponse | None:
        return self._response if trio.current_time() >= self.deadline else None

    def end(self) -> None:
        """Nothing is to be undone."""


class _ShareFetch(Postponed):
    """One ShareFetch whose acknowledgements are dealt with: it acquires records, or waits for some."""

    __slots__ = (
        "_acknowledged",
        "_body",
        "_connection",
        "_is_first",
        "_node",
        "_request",
        "_session",
        "_turn",
        "_waiter",
        "_watched",
        "deadline",
    )

    def __init__(
        self,
        node: "Node",
        connection: "Connection",
        request: Request[ShareFetchRequest],
        session: ShareSession,
        *,
        is_first: bool,
        acknowledged: Acknowledged,
    ) -> None:
        self._node = node
        self._connection = connection
        self._request = request
        self._body = request.body
        self._session = session
        self._turn = request.body.share_session_epoch
        self._is_first = is_first
        self._acknowledged = acknowledged
        self._waiter: Waiter
        self._watched: list[Partition | Shared] = []
        self.deadline = trio.current_time() + max(request.body.max_wait_ms, 0) / 1000

    def answer(self) -> Answer:
        """The reply, or what waits for it."""
        if self._body.is_renew_ack or self._body.share_session_epoch == FINAL_EPOCH:
            return self._response({}, 0)
        response = self._look()
        return self if response is None else response

    def begin(self, woken: Callable[[], object]) -> None:
        self._waiter = Waiter(1, woken)
        self._watch()

    def look(self) -> ShareFetchResponse | None:
        self.end()
        response = self._look()
        if response is None:
            self._waiter.needed = 1
            self._watch()
        return response

    def end(self) -> None:
        for watched in self._watched:
            watched.waiters.discard(self._waiter)

    def _watch(self) -> None:
        for watched in self._watched:
            watched.waiters.add(self._waiter)

    def _look(self) -> ShareFetchResponse | None:
        """Acquire what there is; None when that is too little, and there is time."""
        found: dict[TopicIdPartition, PartitionData] = {}
        self._watched = []
        shared = []
        for key in self._in_turn():
            try:
                shared.append(self._shared(key))
            except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
                code, message = answer_for(error, self._request)
                found[key] = self._failed(key, code, message)
        acquirable = [one for one in shared if one.machine is not None and one.machine.can_acquire]
        max_bytes = min(self._body.max_bytes, self._node.config.fetch_max_bytes)
        slices = readable(acquirable, max_bytes) if acquirable else []
        size_bytes = sum(one.size_bytes for one in slices)
        if size_bytes < self._body.min_bytes and not found and not self._is_late() and shared:
            return None
        left = self._body.max_records
        for one in slices:
            wanted = Acquisition(
                self._session.member_id,
                left,
                self._body.batch_size,
                self._body.share_acquire_mode == RECORD_LIMIT,
            )
            delivered = deliver(one, wanted, trio.current_time())
            self._node.share_partitions.heed_locks(one.shared)
            left -= delivered.record_count
            _, topic_id, index = one.shared.key
            found[topic_id, index] = self._delivered(index, delivered)
        return self._response(
            found, self._node.share_partitions.settings(self._session.group_id).record_lock_duration_ms
        )

    def _is_late(self) -> bool:
        return self._node.stopping or trio.current_time() >= self.deadline

    def _in_turn(self) -> list[TopicIdPartition]:
        """The partitions of the session, with another one first each time."""
        partitions = list(self._session.partitions)
        start = self._turn % len(partitions) if partitions and self._turn > 0 else 0
        return partitions[start:] + partitions[:start]

    def _shared(self, key: TopicIdPartition) -> Shared:
        node = self._node
        topic = node.view.topics_by_id.get(key[0])
        if topic is None:
            raise BrokerError(Error.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        partition = node.partitions.get_by_id(*key)
        if partition is None or not 0 <= key[1] < len(topic.partitions):
            raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
        partition.check_leader()
        shared = node.share_partitions.take_up(self._session.group_id, partition)
        self._watched += [partition, shared]
        return shared

    def _delivered(self, index: int, delivered: Delivered) -> PartitionData:
        return PartitionData(
            partition_index=index,
            records=delivered.records,
            acquired_records=[
                AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in delivered.acquired
            ],
        )

    def _failed(self, key: TopicIdPartition, code: Error, message: str) -> PartitionData:
        data = PartitionData(partition_index=key[1], error_code=code, error_message=message or None, records=b"")
        topic = self._node.view.topics_by_id.get(key[0])
        if code in LEADER_ERRORS and topic is not None:
            leader = topic.partitions[key[1]]
            data.current_leader = LeaderIdAndEpoch(leader_id=leader.leader, leader_epoch=leader.leader_epoch)
        return data

    def _response(self, found: dict[TopicIdPartition, PartitionData], lock_ms: int) -> ShareFetchResponse:
        """What is told: in a session that goes on, of what it has to know."""
        told: dict[TopicIdPartition, PartitionData] = {}
        for key, data in found.items():
            must_tell = self._session.must_tell(
                key, has_records=len(data.records) > 0, has_error=data.error_code != Error.NONE
            )
            if must_tell or self._is_first:
                told[key] = data
        for key, (code, message) in self._acknowledged.results.items():
            data = told.setdefault(key, PartitionData(partition_index=key[1], records=b""))
            data.acknowledge_error_code, data.acknowledge_error_message = code, message
        topics: dict[bytes, list[PartitionData]] = {}
        for (topic_id, _), data in told.items():
            topics.setdefault(topic_id, []).append(data)
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=lock_ms
            or self._node.share_partitions.settings(self._session.group_id).record_lock_duration_ms,
            responses=[
                ShareFetchableTopicResponse(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
            node_endpoints=self._leaders(told.values()),
        )

    def _leaders(self, told: Any) -> list[NodeEndpoint]:
        """Where the leaders are that a reply names."""
        node_ids = {data.current_leader.leader_id for data in told if data.error_code in LEADER_ERRORS}
        found = []
        for node_id in sorted(node_ids):
            endpoint = endpoint_of(self._node, self._connection, node_id)
            if endpoint is not None:
                found.append(NodeEndpoint(node_id=node_id, host=endpoint.host, port=endpoint.port))
        return found
