"""DescribeLogDirs (key 35), v0-5: what lies in each folder of `log.dirs`, and how large it is.

Null topics ask for every partition. The lag of a partition is how far its log is behind the high watermark: nothing, on
the leader. KIP-113; KIP-827 (v4: size and free space of the volume, -1 where the system does not tell).
"""

import os
import shutil
from typing import TYPE_CHECKING

from odradek.handlers.registry import handles
from odradek.partition import Partition
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


@handles(DescribeLogDirsRequest)
async def describe_log_dirs(
    node: "Node", connection: "Connection", request: Request[DescribeLogDirsRequest]
) -> DescribeLogDirsResponse:
    """Answer a DescribeLogDirs."""
    wanted = None
    if request.body.topics is not None:
        wanted = {(topic.topic, index) for topic in request.body.topics for index in topic.partitions}
    folders: dict[str, dict[str, list[Partition]]] = {path: {} for path in node.logs.folders}
    for partition in node.partitions.all():
        if wanted is None or (partition.topic, partition.index) in wanted:
            folder = os.path.dirname(partition.log.directory)
            folders[folder].setdefault(partition.topic, []).append(partition)
    return DescribeLogDirsResponse(results=[_folder(path, topics) for path, topics in folders.items()])


def _folder(path: str, topics: dict[str, list[Partition]]) -> DescribeLogDirsResult:
    try:
        volume = shutil.disk_usage(path)
        total, usable = volume.total, volume.free
    except OSError:
        total = usable = -1
    return DescribeLogDirsResult(
        error_code=Error.NONE,
        log_dir=path,
        topics=[
            DescribeLogDirsTopic(
                name=name,
                partitions=[
                    DescribeLogDirsPartition(
                        partition_index=partition.index,
                        partition_size=partition.log.size,
                        offset_lag=max(partition.high_watermark - partition.log.log_end_offset, 0),
                        is_future_key=False,
                    )
                    for partition in partitions
                ],
            )
            for name, partitions in topics.items()
        ],
        total_bytes=total,
        usable_bytes=usable,
    )
