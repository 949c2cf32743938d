"""AlterReplicaLogDirs (key 34), v0-2: let the logs of partitions live in another folder of `log.dirs`.

The answer says that a move began; DescribeLogDirs tells how far it is. A partition that is asked for in the folder that
it is in stays there, and a move that was on its way elsewhere ends. Of a partition that this broker does not have the
folder is remembered, for when it gets one.

Order of the checks, for each partition: the length of the name (INVALID_TOPIC_EXCEPTION, where the folder of the copy
would have more than 255 bytes); the folder is one of `log.dirs` (LOG_DIR_NOT_FOUND), online (KAFKA_STORAGE_ERROR) and
not cordoned (INVALID_REPLICA_ASSIGNMENT); the partition is online (KAFKA_STORAGE_ERROR) and here
(REPLICA_NOT_AVAILABLE).

KIP-113; KIP-1066 (cordoned folders).
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import answer_for, handles
from odradek.log.moves import MAX_TOPIC
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection


@handles(AlterReplicaLogDirsRequest)
async def alter_replica_log_dirs(
    node: "Node", connection: "Connection", request: Request[AlterReplicaLogDirsRequest]
) -> AlterReplicaLogDirsResponse:
    """Answer an AlterReplicaLogDirs."""
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for folder in request.body.dirs:
        for topic in folder.topics:
            for index in topic.partitions:
                code = Error.NONE
                try:
                    _begin(node, topic.name, index, folder.path)
                except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
                    code, _ = answer_for(error, request)
                result = AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                results.setdefault(topic.name, []).append(result)
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(topic_name=name, partitions=found) for name, found in results.items()]
    )


def _begin(node: "Node", topic: str, index: int, path: str) -> None:
    if len(topic) + len(str(index)) > MAX_TOPIC:
        raise BrokerError(Error.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
    folder = next((folder for folder in node.logs.folders if folder.path == path), None)
    if folder is None:
        raise BrokerError(Error.LOG_DIR_NOT_FOUND, f"Log dir {path} is not found in the config.")
    if not folder.online:
        raise BrokerError(Error.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
    if node.logs.is_cordoned(folder):
        raise BrokerError(Error.INVALID_REPLICA_ASSIGNMENT, f"Log directory {path} is cordoned")
    partition = node.partitions.get(topic, index)
    if partition is None:
        node.logs.preferred[topic, index] = path
        raise BrokerError(Error.REPLICA_NOT_AVAILABLE, f"broker {node.node_id} has no replica of {topic}-{index}")
    node.log_moves.begin(partition, folder)
