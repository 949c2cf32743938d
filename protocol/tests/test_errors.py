"""Error codes, against the table that kafka-python has."""

import pytest

from odradek_protocol.errors import BrokerError, Error

from .kafka_python import error_classes

NEWEST_CODE = 136
"""CONTROLLER_ID_NOT_REGISTERED, the last code of Kafka 4.4.0."""

OTHER_NAMES = {
    -1: "UNKNOWN",
    0: "NO_ERROR",
    6: "NOT_LEADER_FOR_PARTITION",
    10: "MESSAGE_SIZE_TOO_LARGE",
    17: "INVALID_TOPIC",
    39: "INVALID_REPLICATION_ASSIGNMENT",
}
"""What kafka-python calls the errors that it names otherwise than Kafka does."""

CORRUPT_MESSAGE = 2
"""Retriable in Kafka (CorruptRecordException), not in kafka-python, which checks batches before it sends them."""


THEIR_ERRORS = error_classes()


def test_every_code_is_there_once() -> None:
    assert sorted(Error) == list(range(-1, NEWEST_CODE + 1))


@pytest.mark.parametrize("code", sorted(THEIR_ERRORS))
def test_name_and_retriability(code: int) -> None:
    theirs = THEIR_ERRORS[code]
    assert OTHER_NAMES.get(code, Error(code).name) == theirs.message
    assert Error(code).retriable is (bool(theirs.retriable) or code == CORRUPT_MESSAGE)


def test_codes_that_kafka_python_lacks() -> None:
    """Only one code above 127 may be retried."""
    assert max(THEIR_ERRORS) == 127
    assert [error for error in Error if error > 127 and error.retriable] == [Error.SHARE_SESSION_LIMIT_REACHED]


def test_an_error_is_its_code() -> None:
    assert Error(3) is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert Error.UNKNOWN_TOPIC_OR_PARTITION == 3


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (BrokerError(Error.INVALID_CONFIG, "'x' is no number"), "INVALID_CONFIG: 'x' is no number"),
        (BrokerError(Error.INVALID_CONFIG), "INVALID_CONFIG"),
    ],
)
def test_a_broker_error_tells_code_and_message(error: BrokerError, text: str) -> None:
    assert error.error is Error.INVALID_CONFIG
    assert str(error) == text
