"""DescribeProducers (key 61), v0: who writes to partitions, and since when a transaction is open there.

Order of the checks: for each topic its name (INVALID_TOPIC_EXCEPTION) and whether it exists
(UNKNOWN_TOPIC_OR_PARTITION); for each partition whether it exists and is led here (NOT_LEADER_OR_FOLLOWER). Producers
that have been silent for `producer.id.expiration.ms` are not there any more. KIP-664.
"""

from typing import TYPE_CHECKING

from odradek.cluster.topics import check_name
from odradek.handlers.registry import answer_for, handles
from odradek.log.producers import Producer
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

NO_SEQUENCE = -1


@handles(DescribeProducersRequest)
async def describe_producers(
    node: "Node", connection: "Connection", request: Request[DescribeProducersRequest]
) -> DescribeProducersResponse:
    """Answer a DescribeProducers request."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_describe(node, request, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.body.topics
        ]
    )


def _describe(node: "Node", request: Request[DescribeProducersRequest], topic: str, index: int) -> PartitionResponse:
    try:
        check_name(topic)
        partition = node.partitions.get(topic, index)
        if partition is None:
            raise BrokerError(Error.UNKNOWN_TOPIC_OR_PARTITION)  # noqa: TRY301 - answered with the others
        partition.check_leader()
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return PartitionResponse(
            partition_index=index, error_code=code, error_message=message or None, active_producers=[]
        )
    producers = [_state(producer) for producer in partition.log.producers.by_id.values()]
    return PartitionResponse(partition_index=index, error_code=Error.NONE, active_producers=producers)


def _state(producer: Producer) -> ProducerState:
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.batches[-1].last_sequence if producer.batches else NO_SEQUENCE,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.txn_first_offset,
    )
