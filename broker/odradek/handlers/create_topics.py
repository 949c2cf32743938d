"""CreateTopics (key 19), v0-7; one row for each topic.

When the reply comes, the leaders of the new topics serve. With `validate_only` (v1) all is checked and nothing made.
A number of partitions or a replication factor of -1 is the broker's default. From v5 on a row tells the settings that
result, all of them.

Order of the checks: a name that comes twice has one row, INVALID_REQUEST; TOPIC_ALREADY_EXISTS; the name, and whether
it collides with another's (INVALID_TOPIC_EXCEPTION); null settings; INVALID_REQUEST for numbers beside an assignment,
INVALID_REPLICA_ASSIGNMENT; INVALID_REPLICATION_FACTOR, INVALID_PARTITIONS; INVALID_CONFIG.

KIP-4, KIP-464 (defaults), KIP-525 (v5), KIP-516 (v7).
"""

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING

from odradek.cluster.plans import NewTopic
from odradek.config.describe import describe_topic
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from odradek.cluster.view import TopicView
    from odradek.config import BrokerConfig
    from odradek.node import Node
    from odradek.server import Connection


@handles(CreateTopicsRequest)
async def create_topics(
    node: "Node",
    connection: "Connection",
    request: Request[CreateTopicsRequest],
) -> CreateTopicsResponse:
    """Answer a CreateTopics request."""
    times = Counter(topic.name for topic in request.body.topics)
    results = [await _create(node, request, topic) for topic in request.body.topics if times[topic.name] == 1]
    results.extend(
        CreatableTopicResult(name=name, error_code=Error.INVALID_REQUEST, error_message="Duplicate topic name.")
        for name, count in times.items()
        if count > 1
    )
    return CreateTopicsResponse(topics=results)


async def _create(node: "Node", request: Request[CreateTopicsRequest], asked: CreatableTopic) -> CreatableTopicResult:
    new = NewTopic(
        asked.name,
        asked.num_partitions,
        asked.replication_factor,
        [(assignment.partition_index, assignment.broker_ids) for assignment in asked.assignments],
        {config.name: config.value for config in asked.configs},
    )
    try:
        topic = await node.controller.create_topic(
            new, validate_only=request.body.validate_only, timeout_ms=request.body.timeout_ms
        )
    except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
        code, message = answer_for(error, request)
        return CreatableTopicResult(name=asked.name, error_code=code, error_message=message or None)
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=Error.NONE,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=_settings(node.config, topic),
    )


def _settings(config: "BrokerConfig", topic: "TopicView") -> list[CreatableTopicConfigs]:
    """What the settings of a topic come to, by name."""
    entries = describe_topic(config, config.topic_config(topic.configs))
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in sorted(entries, key=attrgetter("name"))
    ]
