"""DescribeLogDirs (key 35), v0-5: what lies in each folder of `log.dirs`, and how large it is.

Null topics ask for every partition. The lag of a partition is how far its log is behind the high watermark: nothing, on
the leader. A log that moves to another folder is told of in both: the copy is the future one, and its lag is how far it
is behind the log. A folder that is offline is a KAFKA_STORAGE_ERROR.

KIP-113; KIP-827 (v4: size and free space of the volume, -1 where the system does not tell); KIP-1066 (v5: cordoned
folders).
"""

from typing import TYPE_CHECKING

from odradek.handlers.registry import handles
from odradek.log.store import Folder
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

_Topics = dict[str, list[DescribeLogDirsPartition]]


@handles(DescribeLogDirsRequest)
async def describe_log_dirs(
    node: "Node", connection: "Connection", request: Request[DescribeLogDirsRequest]
) -> DescribeLogDirsResponse:
    """Answer a DescribeLogDirs."""
    wanted = None
    if request.body.topics is not None:
        wanted = {(topic.topic, index) for topic in request.body.topics for index in topic.partitions}
    found: dict[Folder, _Topics] = {folder: {} for folder in node.logs.folders}
    for partition in node.partitions.all():
        if wanted is None or (partition.topic, partition.index) in wanted:
            behind = max(partition.high_watermark - partition.log.log_end_offset, 0)
            row = _row(partition.index, partition.log.size, behind)
            found[node.logs.folder_of(partition.log)].setdefault(partition.topic, []).append(row)
    for key, move in node.logs.moves.items():
        if wanted is None or key in wanted:
            row = _row(move.log.partition, move.size, move.lag, future=True)
            found[move.folder].setdefault(move.log.topic, []).append(row)
    return DescribeLogDirsResponse(results=[_folder(node, folder, topics) for folder, topics in found.items()])


def _row(index: int, size: int, lag: int, *, future: bool = False) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(partition_index=index, partition_size=size, offset_lag=lag, is_future_key=future)


def _folder(node: "Node", folder: Folder, topics: _Topics) -> DescribeLogDirsResult:
    if not folder.online:
        return DescribeLogDirsResult(error_code=Error.KAFKA_STORAGE_ERROR, log_dir=folder.path, topics=())
    total, usable = folder.space()
    return DescribeLogDirsResult(
        error_code=Error.NONE,
        log_dir=folder.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=rows) for name, rows in topics.items()],
        total_bytes=total,
        usable_bytes=usable,
        is_cordoned=node.logs.is_cordoned(folder),
    )
