"""Altering settings while the broker runs; the texts are those of a Kafka 4.3.1 asked the same."""

import gc

import pytest

from odradek.config import BrokerConfig, ConfigError
from odradek.config.dynamic import (
    Alteration,
    AlterationKind,
    alter_broker_layer,
    alter_topic_overrides,
    check_alterable,
)

SET, DELETE, APPEND, SUBTRACT = AlterationKind


def refusal(layer: dict[str, str], *, per_broker: bool = True, config: BrokerConfig | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        check_alterable(config or BrokerConfig(), layer, per_broker=per_broker)
    return str(caught.value)


def test_layers_win_in_order_and_change_in_place() -> None:
    config = BrokerConfig({"message.max.bytes": "100"})
    topic, overridden = config.topic_config({}), config.topic_config({"max.message.bytes": "5"})
    config.alter_dynamic(default={"message.max.bytes": "200"})
    assert config.message_max_bytes == topic.max_message_bytes == 200
    config.alter_dynamic(broker={"message.max.bytes": "300"})
    assert config.message_max_bytes == topic.max_message_bytes == 300
    assert overridden.max_message_bytes == 5
    config.alter_dynamic(broker={})
    assert topic.max_message_bytes == 200
    config.alter_dynamic(default={})
    assert topic.max_message_bytes == 100


def test_a_dynamic_retention_wins_over_static_hours() -> None:
    config = BrokerConfig({"log.retention.hours": "1"})
    config.alter_dynamic(default={"log.retention.ms": "500"})
    assert config.log_retention_ms == 500


def test_a_wrong_alteration_changes_nothing() -> None:
    config = BrokerConfig()
    topic = config.topic_config({})
    for layer in ({"message.max.bytes": "x"}, {"message.max.bytes": "5", "log.retention.ms": "0"}):
        with pytest.raises(ConfigError):
            config.check_dynamic(broker=layer)
        with pytest.raises(ConfigError):
            config.alter_dynamic(broker=layer)
    assert config.message_max_bytes == topic.max_message_bytes == 1048588
    assert config.dynamic_broker == {}


def test_a_broker_that_contradicts_a_topic_leaves_the_topic_as_it_says() -> None:
    config = BrokerConfig()
    topic = config.topic_config({"min.compaction.lag.ms": "100"})
    config.alter_dynamic(default={"log.cleaner.max.compaction.lag.ms": "50"})
    assert (topic.min_compaction_lag_ms, topic.max_compaction_lag_ms) == (100, 50)


def test_a_topic_that_nobody_holds_is_forgotten() -> None:
    config = BrokerConfig()
    topic = config.topic_config({})
    assert len(config._topics) == 1
    del topic
    gc.collect()
    assert len(config._topics) == 0


def test_read_only_settings_are_refused_together() -> None:
    text = refusal({"log.dirs": "/x", "message.max.bytes": "5", "num.partitions": "3"})
    assert text == "Cannot update these configs dynamically: [log.dirs, num.partitions]"


def test_security_settings_belong_to_a_listener() -> None:
    assert refusal({"ssl.keystore.location": "/x"}) == (
        "These security configs can be dynamically updated only per-listener using the listener prefix: "
        "[ssl.keystore.location]"
    )
    prefixed = {"listener.name.plaintext.ssl.keystore.location": "/x"}
    check_alterable(BrokerConfig(), prefixed, per_broker=True)
    assert refusal(prefixed, per_broker=False) == (
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "[listener.name.plaintext.ssl.keystore.location]"
    )
    check_alterable(BrokerConfig(), {"listener.name.plaintext.max.connections": "5"}, per_broker=False)


def test_settings_of_one_broker_are_not_for_all() -> None:
    assert refusal({"listeners": "PLAINTEXT://:1"}, per_broker=False) == (
        "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"
    )


def test_values_are_checked() -> None:
    assert refusal({"message.max.bytes": "x"}) == (
        "Invalid value x for configuration message.max.bytes: Not a number of type INT"
    )
    assert refusal({"message.max.bytes": "-5"}, per_broker=False) == (
        "Invalid value -5 for configuration message.max.bytes: Value must be at least 0"
    )
    assert "log.retention.ms" in refusal({"log.retention.ms": "0"})


def test_listeners_stay_as_they_are() -> None:
    config = BrokerConfig({"listeners": "PLAINTEXT://:9092"})
    check_alterable(config, {"listeners": "PLAINTEXT://:9092"}, per_broker=True)
    text = refusal({"listeners": "PLAINTEXT://:9093"}, config=config)
    assert text.startswith("Invalid value PLAINTEXT://:9093 for configuration listeners: ")


def test_keys_that_nobody_knows_are_kept_as_in_kafka() -> None:
    config = BrokerConfig()
    check_alterable(config, {"custom.key": "3"}, per_broker=True)
    config.alter_dynamic(broker={"custom.key": "3"})
    assert config.dynamic_broker == {"custom.key": "3"}


def test_t69_lists_are_appended_to_and_subtracted_from() -> None:
    def altered(overrides: dict[str, str], kind: AlterationKind, value: str) -> dict[str, str]:
        return alter_topic_overrides(overrides, [Alteration("cleanup.policy", kind, value)])

    assert altered({"cleanup.policy": "compact"}, APPEND, "delete") == {"cleanup.policy": "compact,delete"}
    assert altered({"cleanup.policy": "compact"}, APPEND, "compact") == {"cleanup.policy": "compact"}
    assert altered({}, APPEND, "compact") == {"cleanup.policy": "delete,compact"}
    assert altered({"cleanup.policy": "compact,delete"}, SUBTRACT, "compact") == {"cleanup.policy": "delete"}
    assert altered({"cleanup.policy": "compact"}, SUBTRACT, "delete") == {"cleanup.policy": "compact"}
    assert altered({"cleanup.policy": "compact"}, SUBTRACT, "compact") == {"cleanup.policy": ""}
    assert altered({"cleanup.policy": ""}, APPEND, "compact") == {"cleanup.policy": "compact"}


def test_t69_only_lists_are_appended_to() -> None:
    for key in ("retention.ms", "nope"):
        with pytest.raises(ConfigError) as caught:
            alter_topic_overrides({}, [Alteration(key, APPEND, "5")])
        assert str(caught.value) == f"Can't APPEND to key {key} because its type is not LIST."
    with pytest.raises(ConfigError) as caught:
        alter_broker_layer({}, [Alteration("message.max.bytes", SUBTRACT, "5")])
    assert str(caught.value) == "Config value subtract is not allowed for config key: message.max.bytes"
    with pytest.raises(ConfigError) as caught:
        alter_broker_layer({}, [Alteration("custom.list", APPEND, "5")])
    assert str(caught.value) == "Unknown config name: custom.list"


def test_what_an_alteration_does_not_name_stays() -> None:
    old = {"retention.ms": "5", "segment.ms": "6"}
    alterations = [Alteration("retention.ms", SET, "7"), Alteration("nope", DELETE, None)]
    assert alter_topic_overrides(old, alterations) == {"retention.ms": "7", "segment.ms": "6"}
    assert alter_broker_layer(old, [Alteration("segment.ms", DELETE, None)]) == {"retention.ms": "5"}
    assert old == {"retention.ms": "5", "segment.ms": "6"}
    assert alter_broker_layer({}, [Alteration("log.cleanup.policy", APPEND, "compact")]) == {
        "log.cleanup.policy": "delete,compact"
    }
