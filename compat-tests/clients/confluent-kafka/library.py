"""What the parts of this driver share."""

from __future__ import annotations

import sys

import confluent_kafka

BOOTSTRAP = sys.argv[1]
TIMEOUT_S = 30


def checked(message: confluent_kafka.Message) -> confluent_kafka.Message:
    """Return the message; raise what it says where it is an error in a message's place."""
    if message.error() is not None:
        raise confluent_kafka.KafkaException(message.error())
    return message
