"""CreatePartitions (key 37), v0-3: raise the number of partitions of topics; one row for each topic.

When the reply comes, the new partitions serve. With `validate_only` all is checked and nothing made.

Order of the checks: a topic that is named twice has one row, INVALID_REQUEST; UNKNOWN_TOPIC_OR_PARTITION; the same
number or fewer INVALID_PARTITIONS; assignments that are not as many as the new partitions, name a broker that is not
there or twice, or have another number of replicas INVALID_REPLICA_ASSIGNMENT.

KIP-195.
"""

from collections import Counter
from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(CreatePartitionsRequest)
async def create_partitions(
    node: "Node",
    connection: "Connection",
    request: Request[CreatePartitionsRequest],
) -> CreatePartitionsResponse:
    """Answer a CreatePartitions request."""
    times = Counter(topic.name for topic in request.body.topics)
    results = [await _grow(node, request, topic) for topic in request.body.topics if times[topic.name] == 1]
    results.extend(
        CreatePartitionsTopicResult(name=name, error_code=Error.INVALID_REQUEST, error_message="Duplicate topic name.")
        for name, count in times.items()
        if count > 1
    )
    return CreatePartitionsResponse(results=results)


async def _grow(
    node: "Node", request: Request[CreatePartitionsRequest], topic: CreatePartitionsTopic
) -> CreatePartitionsTopicResult:
    assignments = None
    if topic.assignments is not None:
        assignments = [assignment.broker_ids for assignment in topic.assignments]
    try:
        await node.controller.create_partitions(
            topic.name,
            topic.count,
            assignments,
            validate_only=request.body.validate_only,
            timeout_ms=request.body.timeout_ms,
        )
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message or None)
    return CreatePartitionsTopicResult(name=topic.name, error_code=Error.NONE)
