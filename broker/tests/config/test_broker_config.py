"""The broker's static settings: defaults, checks on both sides, precedence, unknown and unused keys, loading."""

import logging
from pathlib import Path

import pytest

from odradek.config import BrokerConfig, ConfigError, Listener, load
from odradek.config.known import KNOWN
from odradek.config.setting import READ_ONLY

LOG = logging.getLogger("odradek.config.load").name


def refusal(settings: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig(settings)
    return str(caught.value)


def test_defaults_are_kafkas() -> None:
    config = BrokerConfig()
    assert config.listeners == [Listener("PLAINTEXT", "", 9092, "PLAINTEXT")]
    assert config.num_partitions == 1
    assert config.log_segment_bytes == 1 << 30
    assert config.log_retention_ms == 7 * 24 * 3600 * 1000
    assert config.log_roll_ms == 7 * 24 * 3600 * 1000
    assert config.log_roll_jitter_ms == 0
    assert config.log_flush_interval_ms == (1 << 63) - 1
    assert config.log_dirs == ["/tmp/kafka-logs"]
    assert config.offsets_topic_num_partitions == 50
    assert config.group_initial_rebalance_delay_ms == 3000
    assert config.message_max_bytes == 1048588
    assert config.log_cleanup_policy == ["delete"]


def test_t68_kafka_describes_350_settings_of_which_246_are_read_only() -> None:
    described = [entry for entry in [*BrokerConfig.SETTINGS.values(), *KNOWN.values()] if not entry.hidden]
    assert len(described) == 350
    assert sum(entry.update is READ_ONLY for entry in described) == 246
    assert not BrokerConfig.SETTINGS.keys() & KNOWN.keys()


@pytest.mark.parametrize(
    ("key", "right", "wrong"),
    [
        ("num.partitions", "1", "0"),
        ("node.id", "0", "-1"),
        ("fetch.max.bytes", "1024", "1023"),
        ("log.segment.bytes", "1048576", "1048575"),
        ("log.index.size.max.bytes", "4", "3"),
        ("log.cleaner.min.cleanable.ratio", "1", "1.1"),
        ("log.cleaner.min.cleanable.ratio", "0", "-0.1"),
        ("compression.gzip.level", "-1", "0"),
        ("compression.gzip.level", "9", "10"),
        ("compression.lz4.level", "1", "0"),
        ("compression.lz4.level", "17", "18"),
        ("compression.zstd.level", "-131072", "-131073"),
        ("compression.zstd.level", "22", "23"),
        ("compression.type", "producer", "brotli"),
        ("log.cleanup.policy", "compact,delete", "drop"),
        ("log.message.timestamp.type", "LogAppendTime", "logappendtime"),
        ("max.decompressed.message.bytes", "2147483639", "2147483640"),
        ("offsets.topic.replication.factor", "32767", "32768"),
        ("offsets.topic.compression.codec", "4", "5"),
        ("queued.max.request.bytes", "104857600", "104857599"),
        ("socket.send.buffer.bytes", "-1", "-2"),
        ("group.max.session.timeout.ms", "6000", "5999"),
        ("log.cleaner.max.compaction.lag.ms", "1", "0"),
        ("log.cleaner.dedupe.buffer.size", "1048577", "1048576"),
        ("auto.create.topics.enable", "False", "no"),
        ("log.retention.ms", "-1", "0"),
        ("log.retention.minutes", "1", "0"),
        ("ssl.allow.dn.changes", "true", "yes"),
    ],
)
def test_each_limit_on_both_sides(key: str, right: str, wrong: str) -> None:
    BrokerConfig({key: right})
    message = refusal({key: wrong})
    assert f"Invalid value {wrong} for configuration {key}: " in message


def test_settings_that_contradict_each_other() -> None:
    lags = {"log.cleaner.min.compaction.lag.ms": "10", "log.cleaner.max.compaction.lag.ms": "10"}
    BrokerConfig(lags)
    assert "which is 11" in refusal(lags | {"log.cleaner.min.compaction.lag.ms": "11"})
    assert "At least one log directory" in refusal({"log.dirs": ""})


def test_the_finer_unit_wins() -> None:
    hours = {"log.retention.hours": "1", "log.roll.hours": "2", "log.roll.jitter.hours": "3"}
    config = BrokerConfig(hours)
    assert (config.log_retention_ms, config.log_roll_ms, config.log_roll_jitter_ms) == (3600000, 7200000, 10800000)
    minutes = hours | {"log.retention.minutes": "5"}
    assert BrokerConfig(minutes).log_retention_ms == 300000
    ms = minutes | {"log.retention.ms": "6", "log.roll.ms": "7", "log.roll.jitter.ms": "8"}
    config = BrokerConfig(ms)
    assert (config.log_retention_ms, config.log_roll_ms, config.log_roll_jitter_ms) == (6, 7, 8)
    assert BrokerConfig({"log.retention.hours": "-5"}).log_retention_ms == -1


def test_other_fallbacks() -> None:
    assert BrokerConfig({"log.dir": "/a", "log.dirs": "/b,/c"}).log_dirs == ["/b", "/c"]
    assert BrokerConfig({"log.dir": "/a"}).log_dirs == ["/a"]
    assert BrokerConfig({"log.flush.scheduler.interval.ms": "5"}).log_flush_interval_ms == 5
    both = BrokerConfig({"log.flush.scheduler.interval.ms": "5", "log.flush.interval.ms": "6"})
    assert both.log_flush_interval_ms == 6


def test_node_id_and_broker_id_are_one() -> None:
    assert (BrokerConfig().node_id, BrokerConfig().broker_id) == (1, 1)
    for settings in ({"node.id": "7"}, {"broker.id": "7"}, {"node.id": "7", "broker.id": "7"}):
        config = BrokerConfig(settings)
        assert (config.node_id, config.broker_id) == (7, 7)
    assert BrokerConfig({"broker.id": "-1"}).node_id == 1
    assert BrokerConfig({"broker.id": "-1", "node.id": "7"}).node_id == 7
    conflict = refusal({"node.id": "7", "broker.id": "8"})
    assert "Invalid value 7 for configuration node.id" in conflict
    assert "broker.id, which is 8" in conflict


def test_an_unknown_key_is_told_with_the_nearest_one() -> None:
    message = refusal({"nmu.partitions": "3"})
    assert "nmu.partitions" in message
    assert "the nearest known one is num.partitions" in message
    assert "nearest known one is zookeeper.connect" in refusal({"zookeper.connect": "h"})


def test_keys_of_listeners_and_plugins_are_known() -> None:
    config = BrokerConfig(
        {
            "listener.name.external.ssl.keystore.location": "/k",
            "listener.name.external.plain.sasl.jaas.config": "x",
            "config.providers.file.class": "FileConfigProvider",
        }
    )
    assert len(config.unused) == 3
    assert "Unknown configuration listener.name.external.nope" in refusal({"listener.name.external.nope": "1"})
    typed = refusal({"listener.name.external.max.connections": "many"})
    assert "Not a number of type INT" in typed


def test_settings_of_kafka_3_and_4_that_have_no_effect_are_named_in_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=0\nzookeeper.connect=localhost:2181\nnum.io.threads=8\nlog.retention.hours=168\n")
    with caplog.at_level(logging.WARNING, LOG):
        config = load(str(file))
    assert config.node_id == 0
    (record,) = caplog.records
    assert record.getMessage().endswith(": num.io.threads, zookeeper.connect")


def test_a_file_that_is_all_used_warns_of_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=3\nlog.dirs=/x\n")
    assert load(str(file)).log_dirs == ["/x"]
    assert not caplog.records


def test_overrides_win_and_the_last_one_most(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\n")
    assert load(str(file)).num_partitions == 2
    assert load(str(file), ["num.partitions=3", "num.partitions = 4"]).num_partitions == 4
    assert load(str(file), ["log.dirs=/a=b"]).log_dirs == ["/a=b"]
    for malformed in ("num.partitions", "=3", " = 3"):
        with pytest.raises(ConfigError, match="Expected key=value"):
            load(str(file), [malformed])


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.properties: No such file"):
        load(str(tmp_path / "nowhere.properties"))


def test_without_a_file_there_is_a_profile_for_development(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    config = load(None)
    assert config.listeners == [Listener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT")]
    assert config.log_dirs == [str(tmp_path / "odradek")]
    assert config.node_id == 1
    assert config.offsets_topic_replication_factor == 1
    assert config.transaction_state_log_min_isr == 1
    assert config.group_initial_rebalance_delay_ms == 0
    assert not caplog.records
    assert load(None, ["listeners=PLAINTEXT://127.0.0.1:0"]).listeners[0].port == 0


@pytest.mark.parametrize("folder", ["", "relative"])
def test_the_profile_keeps_its_data_under_the_home(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", folder)
    monkeypatch.setenv("HOME", "/home/someone")
    assert load(None).log_dirs == ["/home/someone/.local/share/odradek"]
