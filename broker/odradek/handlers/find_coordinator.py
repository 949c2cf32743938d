"""FindCoordinator (key 10), v0-6: which broker keeps a group, a transactional id or a share partition.

The coordinator is the leader of the partition that the key hashes to, of __consumer_offsets for a group, of
__transaction_state for a transactional id, of __share_group_state for a share partition. The first look-up makes that
topic; the reply waits for it, so that the coordinator that it names serves already. The address is that of the listener
through which the client came.

Order of the checks, for each key: a key type that does not exist, share partitions before v6, or by another key than
"group:topic id:partition" (INVALID_REQUEST); a partition without a live leader (COORDINATOR_NOT_AVAILABLE).

KIP-98 (v1, key types), KIP-699 (v4, many keys), KIP-932 (v6, share groups).
"""

import re
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from odradek.cluster.advertised import endpoint_of
from odradek.cluster.topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_MANY_KEYS = 4

GROUP = 0
TRANSACTION = 1
SHARE = 2

FIRST_WITH_SHARE_KEYS = 6
SHARE_KEY = re.compile(r"[^:].*:[A-Za-z0-9_-]{22}:\d+", re.DOTALL)
"""A group, a topic id and a partition: what share coordinators are looked up by."""

TOPICS = {GROUP: CONSUMER_OFFSETS, TRANSACTION: TRANSACTION_STATE, SHARE: SHARE_GROUP_STATE}
"""The topic whose partitions decide who coordinates what."""


@handles(FindCoordinatorRequest)
def find_coordinator(
    node: "Node", connection: "Connection", request: Request[FindCoordinatorRequest]
) -> FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]:
    """Answer a FindCoordinator request."""
    topic = TOPICS.get(request.body.key_type)
    if topic is not None and topic not in node.view.topics:
        return _after_creation(node, connection, request, topic)
    return _response(node, connection, request)


async def _after_creation(
    node: "Node", connection: "Connection", request: Request[FindCoordinatorRequest], topic: str
) -> FindCoordinatorResponse:
    """Answer when the topic is there; where it cannot be made, `_find` says so."""
    with suppress(BrokerError):
        await node.controller.create_internal_topic(topic)
    return _response(node, connection, request)


def _response(
    node: "Node", connection: "Connection", request: Request[FindCoordinatorRequest]
) -> FindCoordinatorResponse:
    body = request.body
    if request.version >= FIRST_WITH_MANY_KEYS:
        return FindCoordinatorResponse(
            coordinators=[_answer(node, connection, request, key) for key in body.coordinator_keys]
        )
    found = _answer(node, connection, request, body.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        # Kafka fills the single-key reply of a success with the name of its error code.
        error_message=found.error_message or Error(found.error_code).name,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _answer(node: "Node", connection: "Connection", request: Request[FindCoordinatorRequest], key: str) -> Coordinator:
    try:
        if request.body.key_type == SHARE:
            _check_share_key(request.version, key)
        return _find(node, connection, request.body.key_type, key)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)


def _partition_for(node: "Node", key_type: int, key: str) -> int:
    if key_type == GROUP:
        return node.groups.partition_for(key)
    return (
        node.transactions.partition_for(key) if key_type == TRANSACTION else node.share_coordinator.partition_for(key)
    )


def _check_share_key(version: int, key: str) -> None:
    if version < FIRST_WITH_SHARE_KEYS:
        raise BrokerError(Error.INVALID_REQUEST, "Share coordinators are looked up from version 6 on.")
    if not SHARE_KEY.fullmatch(key):
        raise BrokerError(Error.INVALID_REQUEST, f"{key} is not a group, a topic id and a partition.")


def _find(node: "Node", connection: "Connection", key_type: int, key: str) -> Coordinator:
    if key_type not in TOPICS:
        raise BrokerError(Error.INVALID_REQUEST, f"There are no coordinators of type {key_type} here.")
    topic = node.view.topics.get(TOPICS[key_type])
    if topic is None:
        raise BrokerError(Error.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    leader = topic.partitions[_partition_for(node, key_type, key)].leader
    endpoint = endpoint_of(node, connection, leader)
    if endpoint is None:
        raise BrokerError(Error.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    return Coordinator(
        key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_code=Error.NONE, error_message=""
    )
