"""Settings of share groups and of the share coordinator (KIP-932)."""

from odradek.config.config_types import INT, SHORT
from odradek.config.consumer_group_settings import within
from odradek.config.setting import CLUSTER_WIDE, Settings, setting
from odradek.config.validators import at_least, between, one_of_numbers

__all__ = ["ShareGroupSettings"]

CODECS = (0, 1, 2, 3, 4)


class ShareGroupSettings(Settings):
    group_share_assignment_interval_ms: int = setting(
        "group.share.assignment.interval.ms",
        INT,
        default=1000,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        resolve=within("group.share.{}assignment.interval.ms"),
        doc="How long an assignment of a share group stands at least.",
    )
    group_share_min_assignment_interval_ms: int = setting(
        "group.share.min.assignment.interval.ms",
        INT,
        default=0,
        valid=at_least(0),
        doc="The least that a group may be given for share.assignment.interval.ms.",
    )
    group_share_max_assignment_interval_ms: int = setting(
        "group.share.max.assignment.interval.ms",
        INT,
        default=15_000,
        valid=at_least(0),
        doc="The most that a group may be given for share.assignment.interval.ms.",
    )
    group_share_heartbeat_interval_ms: int = setting(
        "group.share.heartbeat.interval.ms",
        INT,
        default=5000,
        valid=at_least(1),
        resolve=within("group.share.{}heartbeat.interval.ms"),
        doc="How often members of share groups send heartbeats.",
    )
    group_share_min_heartbeat_interval_ms: int = setting(
        "group.share.min.heartbeat.interval.ms",
        INT,
        default=5000,
        valid=at_least(1),
        doc="The least that a group may be given for share.heartbeat.interval.ms.",
    )
    group_share_max_heartbeat_interval_ms: int = setting(
        "group.share.max.heartbeat.interval.ms",
        INT,
        default=15_000,
        valid=at_least(1),
        doc="The most that a group may be given for share.heartbeat.interval.ms.",
    )
    group_share_session_timeout_ms: int = setting(
        "group.share.session.timeout.ms",
        INT,
        default=45_000,
        valid=at_least(1),
        resolve=within("group.share.{}session.timeout.ms"),
        doc="How long a member of a share group may be silent.",
    )
    group_share_min_session_timeout_ms: int = setting(
        "group.share.min.session.timeout.ms",
        INT,
        default=45_000,
        valid=at_least(1),
        doc="The least that a group may be given for share.session.timeout.ms.",
    )
    group_share_max_session_timeout_ms: int = setting(
        "group.share.max.session.timeout.ms",
        INT,
        default=60_000,
        valid=at_least(1),
        doc="The most that a group may be given for share.session.timeout.ms.",
    )
    group_share_max_size: int = setting(
        "group.share.max.size",
        INT,
        default=200,
        valid=between(1, 1000),
        doc="The most members of one share group.",
    )
    group_share_delivery_count_limit: int = setting(
        "group.share.delivery.count.limit",
        INT,
        default=5,
        valid=between(2, 10),
        resolve=within("group.share.{}delivery.count.limit"),
        doc="How often a record is delivered to a share group at most.",
    )
    group_share_min_delivery_count_limit: int = setting(
        "group.share.min.delivery.count.limit",
        INT,
        default=2,
        valid=between(2, 5),
        doc="The least that a group may be given for share.delivery.count.limit.",
    )
    group_share_max_delivery_count_limit: int = setting(
        "group.share.max.delivery.count.limit",
        INT,
        default=10,
        valid=between(5, 25),
        doc="The most that a group may be given for share.delivery.count.limit.",
    )
    group_share_record_lock_duration_ms: int = setting(
        "group.share.record.lock.duration.ms",
        INT,
        default=30_000,
        valid=between(1000, 3_600_000),
        resolve=within("group.share.{}record.lock.duration.ms"),
        doc="How long a member of a share group has for a record.",
    )
    group_share_min_record_lock_duration_ms: int = setting(
        "group.share.min.record.lock.duration.ms",
        INT,
        default=15_000,
        valid=between(1000, 30_000),
        doc="The least that a group may be given for share.record.lock.duration.ms.",
    )
    group_share_max_record_lock_duration_ms: int = setting(
        "group.share.max.record.lock.duration.ms",
        INT,
        default=60_000,
        valid=between(30_000, 3_600_000),
        doc="The most that a group may be given for share.record.lock.duration.ms.",
    )
    group_share_partition_max_record_locks: int = setting(
        "group.share.partition.max.record.locks",
        INT,
        default=2000,
        valid=between(100, 10_000),
        resolve=within("group.share.{}partition.max.record.locks"),
        doc="How many records of a partition a share group may have in flight.",
    )
    group_share_min_partition_max_record_locks: int = setting(
        "group.share.min.partition.max.record.locks",
        INT,
        default=100,
        valid=between(100, 2000),
        doc="The least that a group may be given for share.partition.max.record.locks.",
    )
    group_share_max_partition_max_record_locks: int = setting(
        "group.share.max.partition.max.record.locks",
        INT,
        default=4000,
        valid=between(2000, 10_000),
        doc="The most that a group may be given for share.partition.max.record.locks.",
    )
    group_share_max_share_sessions: int = setting(
        "group.share.max.share.sessions",
        INT,
        default=2000,
        valid=at_least(1),
        doc="How many share sessions this broker keeps.",
    )
    group_share_initialize_retry_interval_ms: int = setting(
        "group.share.initialize.retry.interval.ms",
        INT,
        default=30_000,
        valid=at_least(1),
        hidden=True,
        doc="How long to wait for the share coordinator before it is asked again.",
    )
    share_coordinator_load_buffer_size: int = setting(
        "share.coordinator.load.buffer.size",
        INT,
        default=5 * 1024 * 1024,
        valid=at_least(1),
        doc="How many bytes are read at a time when the state of share groups is loaded.",
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = setting(
        "share.coordinator.snapshot.update.records.per.snapshot",
        INT,
        default=500,
        valid=between(0, 500),
        doc="How many updates of a share partition are written between two snapshots.",
    )
    share_coordinator_state_topic_compression_codec: int = setting(
        "share.coordinator.state.topic.compression.codec",
        INT,
        default=0,
        valid=one_of_numbers(*CODECS),
        doc="How batches of the share state topic are compressed: 0 not, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    share_coordinator_state_topic_min_isr: int = setting(
        "share.coordinator.state.topic.min.isr",
        SHORT,
        default=2,
        valid=at_least(1),
        doc="How many replicas of the share state topic must be in sync for a write.",
    )
    share_coordinator_state_topic_num_partitions: int = setting(
        "share.coordinator.state.topic.num.partitions",
        INT,
        default=50,
        valid=at_least(1),
        doc="The share state topic's partitions.",
    )
    share_coordinator_state_topic_replication_factor: int = setting(
        "share.coordinator.state.topic.replication.factor",
        SHORT,
        default=3,
        valid=at_least(1),
        doc="The share state topic's replication factor; it is not created while there are fewer brokers.",
    )
    share_coordinator_state_topic_segment_bytes: int = setting(
        "share.coordinator.state.topic.segment.bytes",
        INT,
        default=100 * 1024 * 1024,
        valid=at_least(1),
        doc="The share state topic's segment size.",
    )
    share_coordinator_write_timeout_ms: int = setting(
        "share.coordinator.write.timeout.ms",
        INT,
        default=5000,
        valid=at_least(1),
        doc="How long a write waits for the replicas of the share state topic.",
    )
    share_coordinator_cold_partition_snapshot_interval_ms: int = setting(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        INT,
        default=300_000,
        valid=at_least(1),
        hidden=True,
        doc="How old the last snapshot of a share partition may be.",
    )
    share_coordinator_state_topic_prune_interval_ms: int = setting(
        "share.coordinator.state.topic.prune.interval.ms",
        INT,
        default=300_000,
        valid=at_least(1),
        hidden=True,
        doc="How often records are deleted that newer snapshots have made superfluous.",
    )
