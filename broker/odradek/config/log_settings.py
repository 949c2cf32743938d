"""Settings of topics and of the logs that hold them."""

import sys
from typing import Any

from odradek.config.config_types import BOOLEAN, DOUBLE, INT, LIST, LONG, STRING
from odradek.config.errors import ConfigError
from odradek.config.setting import CLUSTER_WIDE, PER_BROKER, Settings, Values, setting
from odradek.config.validators import at_least, between, each_one_of, gzip_level, non_empty, one_of

__all__ = ["COMPRESSION_TYPES", "INT_MAX", "LONG_MAX", "MAX_DECOMPRESSED_BYTES", "LogSettings"]

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1
MAX_DECOMPRESSED_BYTES = INT_MAX - 8
"""The longest array that a JVM makes; Kafka's limit."""
COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
KIB = 1024
MIB = 1024 * KIB
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


def resolve_log_dirs(values: Values) -> list[str]:
    """log.dirs, else log.dir. ConfigError when there is none."""
    dirs: list[str] = values["log.dir"] if values["log.dirs"] is None else values["log.dirs"]
    if not dirs:
        raise ConfigError("log.dirs", "", "At least one log directory must be defined via log.dirs or log.dir")
    return dirs


def resolve_cordoned_log_dirs(values: Values) -> list[str]:
    """cordoned.log.dirs, which are among log.dirs; `*` is all of them (KIP-1066)."""
    cordoned: list[str] = values["cordoned.log.dirs"]
    dirs = resolve_log_dirs(values)
    if cordoned == ["*"]:
        return dirs
    if not set(cordoned) <= set(dirs):
        raise ConfigError("cordoned.log.dirs", ",".join(cordoned), f"Value must be * or among log.dirs: {dirs}")
    return cordoned


def resolve_log_retention_ms(values: Values) -> int:
    """log.retention.ms, else .minutes, else .hours; any negative value is -1, for ever."""
    key, unit = "log.retention.ms", 1
    if values[key] is None:
        key, unit = "log.retention.minutes", MINUTE_MS
    if values[key] is None:
        key, unit = "log.retention.hours", HOUR_MS
    if values[key] == 0:
        raise ConfigError(key, 0, "Value must be unlimited (-1) or at least 1")
    return -1 if values[key] < 0 else int(values[key]) * unit


def resolve_log_roll_ms(values: Values) -> int:
    """log.roll.ms, else log.roll.hours."""
    return _ms_or_hours(values, "log.roll.ms", "log.roll.hours")


def resolve_log_roll_jitter_ms(values: Values) -> int:
    """log.roll.jitter.ms, else log.roll.jitter.hours."""
    return _ms_or_hours(values, "log.roll.jitter.ms", "log.roll.jitter.hours")


def _ms_or_hours(values: Values, ms: str, hours: str) -> int:
    return int(values[ms]) if values[ms] is not None else int(values[hours]) * HOUR_MS


def resolve_log_flush_interval_ms(values: Values) -> int:
    """log.flush.interval.ms, else log.flush.scheduler.interval.ms."""
    value = values["log.flush.interval.ms"]
    return int(values["log.flush.scheduler.interval.ms"] if value is None else value)


def resolve_log_cleaner_dedupe_buffer_size(values: Values) -> int:
    """log.cleaner.dedupe.buffer.size, of which each process needs a part that is worth while."""
    key = "log.cleaner.dedupe.buffer.size"
    value, threads = values[key], values["log.cleaner.threads"]
    if value // max(threads, 1) <= MIB:
        raise ConfigError(key, value, "Value must be at least 1MB per cleaner thread")
    return int(value)


def resolve_log_cleaner_max_compaction_lag_ms(values: Values) -> int:
    """log.cleaner.max.compaction.lag.ms, which is no less than the least lag."""
    value, least = values["log.cleaner.max.compaction.lag.ms"], values["log.cleaner.min.compaction.lag.ms"]
    if value < least:
        expected = f"Value must be at least log.cleaner.min.compaction.lag.ms, which is {least}"
        raise ConfigError("log.cleaner.max.compaction.lag.ms", value, expected)
    return int(value)


class LogSettings(Settings):
    num_partitions: int = setting(
        "num.partitions", INT, default=1, valid=at_least(1), doc="The partitions of a topic that names no number."
    )
    default_replication_factor: int = setting(
        "default.replication.factor",
        INT,
        default=1,
        valid=at_least(1),
        doc="The replication factor of a topic that names none.",
    )
    min_insync_replicas: int = setting(
        "min.insync.replicas",
        INT,
        default=1,
        valid=at_least(1),
        update=CLUSTER_WIDE,
        doc="How many replicas must be in sync for a write with acks=all.",
    )
    unclean_leader_election_enable: bool = setting(
        "unclean.leader.election.enable",
        BOOLEAN,
        default=False,
        update=CLUSTER_WIDE,
        doc="Whether a replica that is not in sync may become leader, though records are lost by it.",
    )
    log_dir: Any = setting("log.dir", LIST, default=["/tmp/kafka-logs"], valid=non_empty, doc="See log.dirs.")  # noqa: S108 - Kafka's default
    log_dirs: list[str] = setting(
        "log.dirs",
        LIST,
        default=None,
        valid=non_empty,
        resolve=resolve_log_dirs,
        doc="The folders that hold the logs; without it the one of log.dir.",
    )
    cordoned_log_dirs: list[str] = setting(
        "cordoned.log.dirs",
        LIST,
        default=[],
        update=PER_BROKER,
        resolve=resolve_cordoned_log_dirs,
        doc="The folders among log.dirs in which no new partition is put; * is all of them.",
    )
    num_recovery_threads_per_data_dir: int = setting(
        "num.recovery.threads.per.data.dir",
        INT,
        default=2,
        valid=at_least(1),
        update=CLUSTER_WIDE,
        doc="How many logs of one folder are recovered at a time after a crash, and flushed at a time at shutdown.",
    )
    message_max_bytes: int = setting(
        "message.max.bytes",
        INT,
        default=1_048_588,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        doc="The largest record batch that is taken.",
    )
    max_decompressed_message_bytes: int = setting(
        "max.decompressed.message.bytes",
        INT,
        default=MAX_DECOMPRESSED_BYTES,
        valid=between(1, MAX_DECOMPRESSED_BYTES),
        update=CLUSTER_WIDE,
        doc="The most bytes that a compressed batch may expand to where the broker has to open it.",
    )
    compression_type: str = setting(
        "compression.type",
        STRING,
        default="producer",
        valid=one_of(*COMPRESSION_TYPES),
        update=CLUSTER_WIDE,
        doc="How batches are stored: with this codec, or as the producer sent them.",
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level",
        INT,
        default=-1,
        valid=gzip_level,
        update=CLUSTER_WIDE,
        doc="The level of gzip where compression.type is gzip.",
    )
    compression_lz4_level: int = setting(
        "compression.lz4.level",
        INT,
        default=9,
        valid=between(1, 17),
        update=CLUSTER_WIDE,
        doc="The level of lz4 where compression.type is lz4.",
    )
    compression_zstd_level: int = setting(
        "compression.zstd.level",
        INT,
        default=3,
        valid=between(-131072, 22),
        update=CLUSTER_WIDE,
        doc="The level of zstd where compression.type is zstd.",
    )
    log_segment_bytes: int = setting(
        "log.segment.bytes",
        INT,
        default=1 << 30,
        valid=at_least(1 << 20),
        update=CLUSTER_WIDE,
        doc="The size at which a segment is closed and the next one begun.",
    )
    log_roll_ms: int = setting(
        "log.roll.ms",
        LONG,
        default=None,
        valid=at_least(1),
        update=CLUSTER_WIDE,
        resolve=resolve_log_roll_ms,
        doc="The age at which a segment is closed; without it log.roll.hours.",
    )
    log_roll_hours: int = setting(
        "log.roll.hours", INT, default=168, valid=at_least(1), doc="The age at which a segment is closed, in hours."
    )
    log_roll_jitter_ms: int = setting(
        "log.roll.jitter.ms",
        LONG,
        default=None,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        resolve=resolve_log_roll_jitter_ms,
        doc="The most that a segment's age limit is shortened by, at random; without it log.roll.jitter.hours.",
    )
    log_roll_jitter_hours: int = setting(
        "log.roll.jitter.hours", INT, default=0, valid=at_least(0), doc="log.roll.jitter.ms in hours."
    )
    log_retention_ms: int = setting(
        "log.retention.ms",
        LONG,
        default=None,
        update=CLUSTER_WIDE,
        resolve=resolve_log_retention_ms,
        doc="How long records are kept, -1 for ever; without it log.retention.minutes, then log.retention.hours.",
    )
    log_retention_minutes: int | None = setting(
        "log.retention.minutes", INT, default=None, doc="log.retention.ms in minutes."
    )
    log_retention_hours: int = setting("log.retention.hours", INT, default=168, doc="log.retention.ms in hours.")
    log_retention_bytes: int = setting(
        "log.retention.bytes",
        LONG,
        default=-1,
        update=CLUSTER_WIDE,
        doc="The size at which a partition's oldest segments are deleted; -1 is no limit.",
    )
    log_retention_check_interval_ms: int = setting(
        "log.retention.check.interval.ms",
        LONG,
        default=300_000,
        valid=at_least(1),
        doc="How often logs are looked through for segments to delete.",
    )
    log_initial_task_delay_ms: int = setting(
        "log.initial.task.delay.ms",
        LONG,
        default=30_000,
        valid=at_least(0),
        hidden=True,
        doc="How long after the start the logs' background work begins.",
    )
    log_segment_delete_delay_ms: int = setting(
        "log.segment.delete.delay.ms",
        LONG,
        default=60_000,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        doc="How long a deleted segment's files stay, renamed, for readers that are still at them.",
    )
    log_cleanup_policy: list[str] = setting(
        "log.cleanup.policy",
        LIST,
        default=["delete"],
        valid=each_one_of("compact", "delete"),
        update=CLUSTER_WIDE,
        doc="What becomes of old records: delete by age and size, compact to the last one of each key.",
    )
    log_cleaner_enable: bool = setting(
        "log.cleaner.enable", BOOLEAN, default=True, doc="Whether compacted topics are compacted at all."
    )
    log_cleaner_threads: int = setting(
        "log.cleaner.threads",
        INT,
        default=1,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        doc="How many logs are compacted at once, each by a process of its own.",
    )
    log_cleaner_backoff_ms: int = setting(
        "log.cleaner.backoff.ms",
        LONG,
        default=15_000,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        doc="How long to wait when there was nothing to compact.",
    )
    log_cleaner_dedupe_buffer_size: int = setting(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        default=128 * MIB,
        update=CLUSTER_WIDE,
        resolve=resolve_log_cleaner_dedupe_buffer_size,
        doc="The memory for the keys of what is being compacted, of all processes together.",
    )
    log_cleaner_io_buffer_load_factor: float = setting(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        default=0.9,
        update=CLUSTER_WIDE,
        doc="How full the table of keys may be.",
    )
    log_cleaner_io_buffer_size: int = setting(
        "log.cleaner.io.buffer.size",
        INT,
        default=512 * KIB,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        doc="The memory to read and write with while compacting, of all processes together.",
    )
    log_cleaner_io_max_bytes_per_second: float = setting(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        default=sys.float_info.max,
        update=CLUSTER_WIDE,
        doc="How many bytes compaction reads and writes in a second, of all processes together.",
    )
    log_cleaner_delete_retention_ms: int = setting(
        "log.cleaner.delete.retention.ms",
        LONG,
        default=86_400_000,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        doc="How long tombstones of a compacted topic are kept.",
    )
    log_cleaner_min_compaction_lag_ms: int = setting(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        default=0,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        doc="The least age at which a record is compacted.",
    )
    log_cleaner_max_compaction_lag_ms: int = setting(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        default=LONG_MAX,
        valid=at_least(1),
        update=CLUSTER_WIDE,
        resolve=resolve_log_cleaner_max_compaction_lag_ms,
        doc="The most that compaction of a record is put off.",
    )
    log_cleaner_min_cleanable_ratio: float = setting(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        default=0.5,
        valid=between(0, 1),
        update=CLUSTER_WIDE,
        doc="The share of a log that must be dirty before it is compacted.",
    )
    log_index_interval_bytes: int = setting(
        "log.index.interval.bytes",
        INT,
        default=4096,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        doc="How many bytes lie between two entries of an offset index.",
    )
    log_index_size_max_bytes: int = setting(
        "log.index.size.max.bytes",
        INT,
        default=10 * 1024 * 1024,
        valid=at_least(4),
        update=CLUSTER_WIDE,
        doc="The largest index; a segment whose index is full is closed.",
    )
    log_flush_interval_messages: int = setting(
        "log.flush.interval.messages",
        LONG,
        default=LONG_MAX,
        valid=at_least(1),
        update=CLUSTER_WIDE,
        doc="How many records are written before they are forced to disk.",
    )
    log_flush_interval_ms: int = setting(
        "log.flush.interval.ms",
        LONG,
        default=None,
        update=CLUSTER_WIDE,
        resolve=resolve_log_flush_interval_ms,
        doc="How long records wait to be forced to disk; without it log.flush.scheduler.interval.ms.",
    )
    log_flush_scheduler_interval_ms: int = setting(
        "log.flush.scheduler.interval.ms",
        LONG,
        default=LONG_MAX,
        doc="How often logs are looked through for records to force to disk.",
    )
    log_flush_offset_checkpoint_interval_ms: int = setting(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        default=60_000,
        valid=at_least(0),
        doc="How often recovery points are written down.",
    )
    log_flush_start_offset_checkpoint_interval_ms: int = setting(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        default=60_000,
        valid=at_least(0),
        doc="How often log start offsets are written down.",
    )
    replica_high_watermark_checkpoint_interval_ms: int = setting(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        default=5000,
        doc="How often high watermarks are written down.",
    )
    log_preallocate: bool = setting(
        "log.preallocate",
        BOOLEAN,
        default=False,
        update=CLUSTER_WIDE,
        doc="Whether a segment's file gets its whole size at once.",
    )
    log_message_timestamp_type: str = setting(
        "log.message.timestamp.type",
        STRING,
        default="CreateTime",
        valid=one_of("CreateTime", "LogAppendTime"),
        update=CLUSTER_WIDE,
        doc="Whether records keep the producer's time or get the broker's.",
    )
    log_message_timestamp_before_max_ms: int = setting(
        "log.message.timestamp.before.max.ms",
        LONG,
        default=LONG_MAX,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        doc="How far a record's time may lie before the broker's.",
    )
    log_message_timestamp_after_max_ms: int = setting(
        "log.message.timestamp.after.max.ms",
        LONG,
        default=3_600_000,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        doc="How far a record's time may lie after the broker's.",
    )
    log_message_timestamp_difference_max_ms: int = setting(
        "log.message.timestamp.difference.max.ms",
        LONG,
        default=LONG_MAX,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        hidden=True,
        doc="Kafka 3's older form of log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms.",
    )
