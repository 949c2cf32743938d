"""FindCoordinator (key 10), v0-6: which broker keeps a group or a transactional id.

The coordinator of a group is the leader of its partition of __consumer_offsets, that of a transactional id the leader
of its partition of __transaction_state. The first look-up makes that topic; the
reply waits for it, so that the coordinator that it names serves already. The address is that of the listener through
which the client came.

Order of the checks, for each key: a key type that does not exist, and share groups before v6 or at all
(INVALID_REQUEST); a partition without a live leader (COORDINATOR_NOT_AVAILABLE).

KIP-98 (v1, key types), KIP-699 (v4, many keys), KIP-932 (v6, share groups).
"""

from typing import TYPE_CHECKING

from odradek.cluster.advertised import endpoint_of
from odradek.cluster.topics import CONSUMER_OFFSETS, TRANSACTION_STATE
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


@handles(FindCoordinatorRequest)
async def find_coordinator(
    node: "Node", connection: "Connection", request: Request[FindCoordinatorRequest]
) -> FindCoordinatorResponse:
    """Answer a FindCoordinator request."""
    body = request.body
    if request.version >= FIRST_WITH_MANY_KEYS:
        return FindCoordinatorResponse(
            coordinators=[await _answer(node, connection, request, key) for key in body.coordinator_keys]
        )
    found = await _answer(node, connection, request, body.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        # Kafka fills the single-key reply of a success with the name of its error code.
        error_message=found.error_message or Error(found.error_code).name,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


async def _answer(
    node: "Node", connection: "Connection", request: Request[FindCoordinatorRequest], key: str
) -> Coordinator:
    try:
        return await _find(node, connection, request.body.key_type, key)
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)


async def _find(node: "Node", connection: "Connection", key_type: int, key: str) -> Coordinator:
    if key_type not in (GROUP, TRANSACTION):
        raise BrokerError(Error.INVALID_REQUEST, f"There are no coordinators of type {key_type} here.")
    name = CONSUMER_OFFSETS if key_type == GROUP else TRANSACTION_STATE
    topic = node.view.topics.get(name)
    if topic is None:
        try:
            topic = await node.controller.create_internal_topic(name)
        except BrokerError as error:
            raise BrokerError(Error.COORDINATOR_NOT_AVAILABLE, error.message) from error
    index = node.groups.partition_for(key) if key_type == GROUP else node.transactions.partition_for(key)
    leader = topic.partitions[index].leader
    endpoint = endpoint_of(node, connection, leader)
    if endpoint is None:
        raise BrokerError(Error.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")
    return Coordinator(
        key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_code=Error.NONE, error_message=""
    )
