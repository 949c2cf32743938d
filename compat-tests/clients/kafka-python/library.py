"""What the parts of this driver share: the broker, the library's release, and what the releases have otherwise."""

from __future__ import annotations

import sys
from typing import Any

import kafka

BOOTSTRAP = sys.argv[1]
VERSION = int(kafka.__version__.split(".")[0])


def known(client: Any, **settings: Any) -> dict[str, Any]:
    """Return those settings that this release of the client knows; it refuses others."""
    return {key: value for key, value in settings.items() if key in client.DEFAULT_CONFIG}


def partitions_of(consumer: kafka.KafkaConsumer, topic: str) -> list[kafka.TopicPartition]:
    """Return the partitions of a topic, in order."""
    return [kafka.TopicPartition(topic, index) for index in sorted(consumer.partitions_for_topic(topic))]
