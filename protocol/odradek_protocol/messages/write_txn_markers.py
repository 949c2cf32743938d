"""Write transaction markers (key 27): end transactions in partitions that the receiver leads. Sent by coordinators.

KIP-98; KIP-664 (aborting hanging transactions), KIP-1228 (2, which protocol the transaction follows).
"""

from collections.abc import Sequence

from odradek_protocol.schema import array, boolean, int8, int16, int32, int64, message, string, struct


@struct
class WritableTxnMarkerPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class WritableTxnMarkerTopicResult:
    name: str = string()
    partitions: Sequence[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


@struct
class WritableTxnMarkerResult:
    producer_id: int = int64()
    topics: Sequence[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


@struct
class WriteTxnMarkersResponse:
    markers: Sequence[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)


@struct
class WritableTxnMarkerTopic:
    name: str = string()
    partition_indexes: Sequence[int] = array(int32())


@struct
class WritableTxnMarker:
    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: Sequence[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8(since=2, default=0)


@message(key=27, versions=(0, 2), flexible=1, response=WriteTxnMarkersResponse)
class WriteTxnMarkersRequest:
    markers: Sequence[WritableTxnMarker] = array(WritableTxnMarker)
