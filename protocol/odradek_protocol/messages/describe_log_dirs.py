"""Describe log dirs (key 35): sizes of partitions and space in each data folder.

Null topics asks for all. KIP-113; KIP-784 (3, top-level error), KIP-827 (4, space of the volume), KIP-1066 (5, cordoned
folders).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int16, int32, int64, message, string, struct


@struct
class DescribeLogDirsPartition:
    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


@struct
class DescribeLogDirsTopic:
    name: str = string()
    partitions: Sequence[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


@struct
class DescribeLogDirsResult:
    error_code: int = int16()
    log_dir: str = string()
    topics: Sequence[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(since=4, default=-1)
    usable_bytes: int = int64(since=4, default=-1)
    is_cordoned: bool = boolean(since=5, default=False)


@struct
class DescribeLogDirsResponse:
    throttle_time_ms: int = int32(default=0)
    error_code: int = int16(since=3, default=0)
    results: Sequence[DescribeLogDirsResult] = array(DescribeLogDirsResult)


@struct
class DescribableLogDirTopic:
    topic: str = string()
    partitions: Sequence[int] = array(int32())


@message(key=35, versions=(0, 5), flexible=2, response=DescribeLogDirsResponse)
class DescribeLogDirsRequest:
    topics: Sequence[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable_since=0)
