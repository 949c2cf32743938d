"""A topic's settings, resolved: the topic's own override, else what the broker has.

Kafka's names are kept: retention.ms is the topic's setting, log.retention.ms the broker's that it comes from.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from odradek.config.config_types import BOOLEAN, INT, LIST, STRING
from odradek.config.errors import ConfigError
from odradek.config.known import KNOWN
from odradek.config.log_settings import LONG_MAX, LogSettings
from odradek.config.setting import Setting, Settings, Values, setting
from odradek.config.validators import Validator, at_least, throttled_replicas

if TYPE_CHECKING:
    from odradek.config.broker import BrokerConfig

__all__ = ["TopicConfig"]


def from_broker(
    key: str,
    server: str,
    *,
    valid: Validator | None = None,
    doc: str = "",
    resolve: Callable[[Values], Any] | None = None,
    hidden: bool = False,
) -> Any:
    """A topic's setting that is the broker's `server` unless overridden; type, check and text are those of `server`."""
    origin = LogSettings.SETTINGS.get(server) or KNOWN[server]
    return Setting(
        key,
        origin.type,
        default=origin.default,
        valid=valid or origin.valid,
        doc=doc or origin.doc,
        resolve=resolve,
        hidden=hidden,
        server=server,
    )


def segment_bytes(values: Values) -> int:
    """segment.bytes, or internal.segment.bytes, which may be as small as a test needs."""
    internal = values["internal.segment.bytes"]
    return int(values["segment.bytes"] if internal is None else internal)


def unless_older_form(key: str) -> Callable[[Values], int]:
    """A bound of timestamps, or message.timestamp.difference.max.ms where that is given and the bound is not."""
    server = LogSettings.SETTINGS[f"log.{key}"]

    def resolve(values: Values) -> int:
        bound, older = int(values[key]), int(values["message.timestamp.difference.max.ms"])
        return older if bound == server.default and older != LONG_MAX else bound

    return resolve


def no_remote_storage(key: str, value: Any) -> None:
    """Tiered storage is not there to be switched on."""
    if value:
        text = (
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
        raise ConfigError(key, "true", "false: Odradek has no tiered storage", text=text)


class TopicConfig(Settings):
    """The settings in force for one topic. They change in place when the topic or the broker is altered."""

    cleanup_policy: list[str] = from_broker("cleanup.policy", "log.cleanup.policy")
    compression_gzip_level: int = from_broker("compression.gzip.level", "compression.gzip.level")
    compression_lz4_level: int = from_broker("compression.lz4.level", "compression.lz4.level")
    compression_type: str = from_broker("compression.type", "compression.type")
    compression_zstd_level: int = from_broker("compression.zstd.level", "compression.zstd.level")
    delete_retention_ms: int = from_broker("delete.retention.ms", "log.cleaner.delete.retention.ms")
    errors_deadletterqueue_group_enable: bool = setting(
        "errors.deadletterqueue.group.enable",
        BOOLEAN,
        default=False,
        doc="Whether share groups may write what they cannot process to this topic; Odradek has no share groups.",
    )
    file_delete_delay_ms: int = from_broker("file.delete.delay.ms", "log.segment.delete.delay.ms")
    flush_messages: int = from_broker("flush.messages", "log.flush.interval.messages")
    flush_ms: int = from_broker(
        "flush.ms",
        "log.flush.interval.ms",
        valid=at_least(0),
        doc="How long records wait to be forced to disk.",
    )
    follower_replication_throttled_replicas: list[str] = setting(
        "follower.replication.throttled.replicas",
        LIST,
        default=[],
        valid=throttled_replicas,
        doc="The followers whose replication is throttled: partition:broker, parted by commas, or * for all.",
    )
    index_interval_bytes: int = from_broker("index.interval.bytes", "log.index.interval.bytes")
    internal_segment_bytes: int | None = setting(
        "internal.segment.bytes",
        INT,
        default=None,
        valid=at_least(1),
        hidden=True,
        doc="segment.bytes without its lower bound.",
    )
    leader_replication_throttled_replicas: list[str] = setting(
        "leader.replication.throttled.replicas",
        LIST,
        default=[],
        valid=throttled_replicas,
        doc="The leaders whose replication is throttled: partition:broker, parted by commas, or * for all.",
    )
    local_retention_bytes: int = from_broker(
        "local.retention.bytes",
        "log.local.retention.bytes",
        valid=at_least(-2),
        doc="Of tiered storage, which Odradek has none of.",
    )
    local_retention_ms: int = from_broker(
        "local.retention.ms",
        "log.local.retention.ms",
        valid=at_least(-2),
        doc="Of tiered storage, which Odradek has none of.",
    )
    max_compaction_lag_ms: int = from_broker("max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms")
    max_decompressed_message_bytes: int = from_broker(
        "max.decompressed.message.bytes", "max.decompressed.message.bytes"
    )
    max_message_bytes: int = from_broker("max.message.bytes", "message.max.bytes")
    message_downconversion_enable: bool = setting(
        "message.downconversion.enable",
        BOOLEAN,
        default=True,
        hidden=True,
        doc="Whether batches are converted for consumers that know only older formats.",
    )
    message_format_version: str = setting(
        "message.format.version",
        STRING,
        default="3.0-IV1",
        hidden=True,
        doc="Kafka 3's name of the record format; Odradek writes the newest.",
    )
    message_timestamp_after_max_ms: int = from_broker(
        "message.timestamp.after.max.ms",
        "log.message.timestamp.after.max.ms",
        resolve=unless_older_form("message.timestamp.after.max.ms"),
    )
    message_timestamp_before_max_ms: int = from_broker(
        "message.timestamp.before.max.ms",
        "log.message.timestamp.before.max.ms",
        resolve=unless_older_form("message.timestamp.before.max.ms"),
    )
    message_timestamp_difference_max_ms: int = from_broker(
        "message.timestamp.difference.max.ms",
        "log.message.timestamp.difference.max.ms",
        doc="Kafka 3's older form of message.timestamp.before.max.ms and message.timestamp.after.max.ms.",
        hidden=True,
    )
    message_timestamp_type: str = from_broker("message.timestamp.type", "log.message.timestamp.type")
    min_cleanable_dirty_ratio: float = from_broker("min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio")
    min_compaction_lag_ms: int = from_broker("min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms")
    min_insync_replicas: int = from_broker("min.insync.replicas", "min.insync.replicas")
    preallocate: bool = from_broker("preallocate", "log.preallocate")
    remote_copy_lag_bytes: int = from_broker(
        "remote.copy.lag.bytes",
        "log.remote.copy.lag.bytes",
        valid=at_least(-1),
        doc="Of tiered storage, which Odradek has none of.",
    )
    remote_copy_lag_ms: int = from_broker(
        "remote.copy.lag.ms",
        "log.remote.copy.lag.ms",
        valid=at_least(-1),
        doc="Of tiered storage, which Odradek has none of.",
    )
    remote_log_copy_disable: bool = setting(
        "remote.log.copy.disable", BOOLEAN, default=False, doc="Of tiered storage, which Odradek has none of."
    )
    remote_log_delete_on_disable: bool = setting(
        "remote.log.delete.on.disable", BOOLEAN, default=False, doc="Of tiered storage, which Odradek has none of."
    )
    remote_storage_enable: bool = setting(
        "remote.storage.enable",
        BOOLEAN,
        default=False,
        valid=no_remote_storage,
        doc="Tiered storage, which Odradek has none of.",
    )
    retention_bytes: int = from_broker("retention.bytes", "log.retention.bytes")
    retention_ms: int = from_broker(
        "retention.ms", "log.retention.ms", valid=at_least(-1), doc="How long records are kept; -1 is for ever."
    )
    segment_bytes: int = from_broker("segment.bytes", "log.segment.bytes", resolve=segment_bytes)
    segment_index_bytes: int = from_broker("segment.index.bytes", "log.index.size.max.bytes")
    segment_jitter_ms: int = from_broker(
        "segment.jitter.ms",
        "log.roll.jitter.ms",
        doc="The most that a segment's age limit is shortened by, at random.",
    )
    segment_ms: int = from_broker("segment.ms", "log.roll.ms", doc="The age at which a segment is closed.")
    unclean_leader_election_enable: bool = from_broker(
        "unclean.leader.election.enable", "unclean.leader.election.enable"
    )

    def __init__(self, broker: "BrokerConfig", overrides: Mapping[str, str]) -> None:
        self._broker = broker
        self.overrides: dict[str, str] = {}
        """The topic's own settings, as they were given."""
        self.values: dict[str, Any] = {}
        """The value of every setting by key."""
        self._own: dict[str, Any] = {}
        self.override(overrides)

    def override(self, overrides: Mapping[str, str]) -> None:
        """Replace the topic's own settings, in place. ConfigError, and no change, when one of them is wrong."""
        own = {}
        for key, text in overrides.items():
            if key not in self.SETTINGS:
                raise ConfigError(key, text, "a topic setting", text=f"Unknown topic config name: {key}")
            own[key] = self.SETTINGS[key].parse(text)
        values = self._values(own)
        least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
        if least > most:
            text = f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
            raise ConfigError("min.compaction.lag.ms", least, f"at most {most}", text=text)
        self.overrides = dict(overrides)
        self._own = own
        self.values = values
        self._publish(values)

    def refresh(self) -> None:
        """Take over what has been altered in the broker."""
        self.values = self._values(self._own)
        self._publish(self.values)

    def _values(self, own: Values) -> dict[str, Any]:
        values = {}
        for key, entry in self.SETTINGS.items():
            if key in own:
                values[key] = own[key]
            else:
                values[key] = self._broker.value_of(entry.server) if entry.server else entry.default
        return values
