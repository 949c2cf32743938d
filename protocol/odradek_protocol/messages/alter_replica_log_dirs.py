"""Alter replica log dirs (key 34): in which of its folders a broker is to keep partitions.

KIP-113.
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, int16, int32, message, string, struct


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: str = string()
    partitions: Sequence[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


@struct
class AlterReplicaLogDirsResponse:
    throttle_time_ms: int = int32(default=0)
    results: Sequence[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)


@struct
class AlterReplicaLogDirTopic:
    name: str = string()
    partitions: Sequence[int] = array(int32())


@struct
class AlterReplicaLogDir:
    path: str = string()
    topics: Sequence[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


@message(key=34, versions=(0, 2), flexible=2, response=AlterReplicaLogDirsResponse)
class AlterReplicaLogDirsRequest:
    dirs: Sequence[AlterReplicaLogDir] = array(AlterReplicaLogDir)
