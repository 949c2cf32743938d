"""FindCoordinator (key 10), v0-6: which broker keeps a group.

The coordinator of a group is the leader of its partition of __consumer_offsets. The first look-up makes that topic; the
reply waits for it, so that the coordinator that it names serves already. The address is that of the listener through
which the client came.

Order of the checks, for each key: a key type that does not exist, and share groups before v6 or at all
(INVALID_REQUEST); transactional ids, and a partition without a live leader (COORDINATOR_NOT_AVAILABLE).

KIP-98 (v1, key types), KIP-699 (v4, many keys), KIP-932 (v6, share groups).
"""

from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from odradek.cluster.advertised import endpoint_of
from odradek.cluster.topics import CONSUMER_OFFSETS
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
SHARE_KEY = re.compile(r"(?P<group>.+):(?P<topic_id>[^:]+):(?P<partition>\d+)", re.DOTALL)


@handles(FindCoordinatorRequest)
def find_coordinator(
    node: "Node", connection: "Connection", request: Request[FindCoordinatorRequest]
) -> FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]:
    """Answer a FindCoordinator request."""
    if request.body.key_type == GROUP and CONSUMER_OFFSETS not in node.view.topics:
        return _after_creation(node, connection, request)
    return _response(node, connection, request)


async def _after_creation(
    node: "Node", connection: "Connection", request: Request[FindCoordinatorRequest]
) -> FindCoordinatorResponse:
    """Answer when the topic is there; where it cannot be made, `_find` says so."""
    with suppress(BrokerError):
        await node.controller.create_internal_topic(CONSUMER_OFFSETS)
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
        return _find(node, connection, request.body.key_type, key)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)


def _find(node: "Node", connection: "Connection", key_type: int, key: str) -> Coordinator:
    if key_type == TRANSACTION:
        raise BrokerError(Error.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    if key_type != GROUP:
        raise BrokerError(Error.INVALID_REQUEST, f"There are no coordinators of type {key_type} here.")
    topic = node.view.topics.get(CONSUMER_OFFSETS)
    if topic is None:
        raise BrokerError(Error.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    leader = topic.partitions[node.groups.partition_for(key)].leader
    endpoint = endpoint_of(node, connection, leader)
    if endpoint is None:
        raise BrokerError(Error.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    return Coordinator(
        key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_code=Error.NONE, error_message=""
    )
