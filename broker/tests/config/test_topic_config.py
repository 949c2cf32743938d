"""A topic's settings: overrides, what comes from the broker, checks."""

import pytest

from odradek.config import BrokerConfig, ConfigError, TopicConfig


def refusal(overrides: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig().topic_config(overrides)
    return str(caught.value)


def test_a_topic_without_overrides_is_as_the_broker_says() -> None:
    broker = BrokerConfig(
        {
            "log.retention.minutes": "5",
            "message.max.bytes": "2000",
            "log.cleanup.policy": "compact",
            "log.roll.hours": "2",
        }
    )
    topic = broker.topic_config({})
    assert topic.retention_ms == 300000
    assert topic.max_message_bytes == 2000
    assert topic.cleanup_policy == ["compact"]
    assert topic.segment_ms == 7200000
    assert topic.segment_bytes == 1 << 30
    assert topic.local_retention_ms == -2
    assert topic.remote_storage_enable is False


def test_an_override_wins() -> None:
    topic = BrokerConfig({"log.retention.ms": "5"}).topic_config(
        {"retention.ms": "-1", "cleanup.policy": "compact, delete"}
    )
    assert topic.retention_ms == -1
    assert topic.cleanup_policy == ["compact", "delete"]
    assert topic.overrides == {"retention.ms": "-1", "cleanup.policy": "compact, delete"}


def test_t67_the_texts_of_wrong_topic_settings_are_kafkas() -> None:
    assert refusal({"nope": "1"}) == "Unknown topic config name: nope"
    assert refusal({"retention.ms": "abc"}) == (
        "Invalid value abc for configuration retention.ms: Not a number of type LONG"
    )
    assert refusal({"cleanup.policy": "x"}) == (
        "Invalid value x for configuration cleanup.policy: String must be one of: compact, delete"
    )
    assert refusal({"cleanup.policy": "delete,,compact"}) == "Configuration 'cleanup.policy' values must not be empty."
    assert refusal({"compression.gzip.level": "0"}) == (
        "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1"
    )
    assert refusal({"min.cleanable.dirty.ratio": "1.5"}) == (
        "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: Value must be no more than 1"
    )
    assert refusal({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}) == (
        "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"
    )
    assert refusal({"remote.storage.enable": "true"}).startswith("Tiered Storage functionality is disabled")


@pytest.mark.parametrize(
    ("key", "right", "wrong"),
    [
        ("retention.ms", "-1", "-2"),
        ("segment.bytes", "1048576", "1048575"),
        ("segment.ms", "1", "0"),
        ("segment.jitter.ms", "0", "-1"),
        ("flush.ms", "0", "-1"),
        ("flush.messages", "1", "0"),
        ("min.insync.replicas", "1", "0"),
        ("max.message.bytes", "0", "-1"),
        ("local.retention.ms", "-2", "-3"),
        ("remote.copy.lag.ms", "-1", "-2"),
        ("remote.storage.enable", "false", "maybe"),
        ("leader.replication.throttled.replicas", "*", "1"),
        ("follower.replication.throttled.replicas", "1:1, 2:2", "1:x"),
    ],
)
def test_each_limit_on_both_sides(key: str, right: str, wrong: str) -> None:
    BrokerConfig().topic_config({key: right})
    assert key in refusal({key: wrong})


def test_settings_of_kafka_3_are_taken() -> None:
    BrokerConfig().topic_config({"message.format.version": "3.0-IV1", "message.downconversion.enable": "false"})


def test_the_older_form_of_the_bounds_of_timestamps() -> None:
    older = {"message.timestamp.difference.max.ms": "1000"}
    topic = BrokerConfig().topic_config(older)
    assert (topic.message_timestamp_before_max_ms, topic.message_timestamp_after_max_ms) == (1000, 1000)
    topic = BrokerConfig().topic_config(older | {"message.timestamp.after.max.ms": "5"})
    assert (topic.message_timestamp_before_max_ms, topic.message_timestamp_after_max_ms) == (1000, 5)


def test_the_older_form_may_be_the_brokers() -> None:
    broker = BrokerConfig({"log.message.timestamp.difference.max.ms": "1000"})
    topic = broker.topic_config({"message.timestamp.before.max.ms": "7"})
    assert (topic.message_timestamp_before_max_ms, topic.message_timestamp_after_max_ms) == (7, 1000)
    assert broker.unused == []


def test_a_test_may_have_small_segments() -> None:
    topic = BrokerConfig().topic_config({"internal.segment.bytes": "100"})
    assert topic.segment_bytes == 100
    assert topic.values["segment.bytes"] == 1 << 30


def test_overrides_change_in_place_or_not_at_all() -> None:
    topic = BrokerConfig().topic_config({"retention.ms": "5"})
    topic.override({"segment.ms": "6"})
    assert (topic.retention_ms, topic.segment_ms) == (604800000, 6)
    with pytest.raises(ConfigError):
        topic.override({"segment.ms": "7", "retention.ms": "x"})
    assert topic.segment_ms == 6
    assert topic.overrides == {"segment.ms": "6"}


def test_every_topic_setting_that_kafka_describes_is_there() -> None:
    assert sum(not entry.hidden for entry in TopicConfig.SETTINGS.values()) == 37
