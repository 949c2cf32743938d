"""Settings of consumer groups, committed offsets, producer ids and transactions."""

from odradek.config.config_types import BOOLEAN, INT, LONG, SHORT
from odradek.config.errors import ConfigError
from odradek.config.setting import CLUSTER_WIDE, Settings, Values, setting
from odradek.config.validators import at_least, one_of_numbers

__all__ = ["CoordinatorSettings"]

INT_MAX = (1 << 31) - 1
CODECS = (0, 1, 2, 3, 4)


def resolve_group_max_session_timeout_ms(values: Values) -> int:
    """group.max.session.timeout.ms, which must leave room above group.min.session.timeout.ms."""
    value, lowest = int(values["group.max.session.timeout.ms"]), values["group.min.session.timeout.ms"]
    if value < lowest:
        expected = f"Value must be at least group.min.session.timeout.ms, which is {lowest}"
        raise ConfigError("group.max.session.timeout.ms", value, expected)
    return value


class CoordinatorSettings(Settings):
    group_min_session_timeout_ms: int = setting(
        "group.min.session.timeout.ms", INT, default=6000, doc="The shortest session timeout a member may ask for."
    )
    group_max_session_timeout_ms: int = setting(
        "group.max.session.timeout.ms",
        INT,
        default=1_800_000,
        resolve=resolve_group_max_session_timeout_ms,
        doc="The longest session timeout a member may ask for.",
    )
    group_initial_rebalance_delay_ms: int = setting(
        "group.initial.rebalance.delay.ms",
        INT,
        default=3000,
        valid=at_least(0),
        doc="How long an empty group waits for more members after the first one has joined.",
    )
    group_max_size: int = setting(
        "group.max.size", INT, default=INT_MAX, valid=at_least(1), doc="The most members of one group."
    )
    offset_metadata_max_bytes: int = setting(
        "offset.metadata.max.bytes", INT, default=4096, doc="The longest text that may be stored with an offset."
    )
    offsets_commit_timeout_ms: int = setting(
        "offsets.commit.timeout.ms",
        INT,
        default=5000,
        valid=at_least(1),
        doc="How long a commit waits for the replicas of the offsets topic.",
    )
    offsets_load_buffer_size: int = setting(
        "offsets.load.buffer.size",
        INT,
        default=5 * 1024 * 1024,
        valid=at_least(1),
        doc="How many bytes are read at a time when offsets are loaded.",
    )
    offsets_retention_minutes: int = setting(
        "offsets.retention.minutes",
        INT,
        default=7 * 24 * 60,
        valid=at_least(1),
        doc="How long the offsets of a group without members are kept.",
    )
    offsets_retention_check_interval_ms: int = setting(
        "offsets.retention.check.interval.ms",
        LONG,
        default=600_000,
        valid=at_least(1),
        doc="How often offsets are looked through for old ones.",
    )
    offsets_topic_compression_codec: int = setting(
        "offsets.topic.compression.codec",
        INT,
        default=0,
        valid=one_of_numbers(*CODECS),
        doc="How batches of the offsets topic are compressed: 0 not, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    offsets_topic_num_partitions: int = setting(
        "offsets.topic.num.partitions", INT, default=50, valid=at_least(1), doc="The offsets topic's partitions."
    )
    offsets_topic_replication_factor: int = setting(
        "offsets.topic.replication.factor",
        SHORT,
        default=3,
        valid=at_least(1),
        doc="The offsets topic's replication factor; it is not created while there are fewer brokers.",
    )
    offsets_topic_segment_bytes: int = setting(
        "offsets.topic.segment.bytes",
        INT,
        default=100 * 1024 * 1024,
        valid=at_least(1),
        doc="The offsets topic's segment size.",
    )
    producer_id_expiration_ms: int = setting(
        "producer.id.expiration.ms",
        INT,
        default=86_400_000,
        valid=at_least(1),
        update=CLUSTER_WIDE,
        doc="How long an idempotent producer that sends nothing is remembered.",
    )
    producer_id_expiration_check_interval_ms: int = setting(
        "producer.id.expiration.check.interval.ms",
        INT,
        default=600_000,
        valid=at_least(1),
        hidden=True,
        doc="How often producers are looked through for silent ones.",
    )
    add_partitions_to_txn_retry_backoff_ms: int = setting(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        default=20,
        valid=at_least(0),
        doc="How long a Produce waits before it asks again to take part in a transaction while the last one ends.",
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = setting(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        default=100,
        valid=at_least(0),
        doc="How long a Produce goes on asking to take part in a transaction while the last one ends.",
    )
    request_timeout_ms: int = setting(
        "request.timeout.ms",
        INT,
        default=30_000,
        doc="How long the markers of a transaction wait for their replicas before they are tried again.",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        default=10_000,
        valid=at_least(1),
        doc="How often open transactions are looked through for those whose time is over.",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        default=3_600_000,
        valid=at_least(1),
        doc="How often transactional ids are looked through for those that nobody uses.",
    )
    transactional_id_expiration_ms: int = setting(
        "transactional.id.expiration.ms",
        INT,
        default=604_800_000,
        valid=at_least(1),
        doc="How long a transactional id that nobody uses is kept.",
    )
    transaction_partition_verification_enable: bool = setting(
        "transaction.partition.verification.enable",
        BOOLEAN,
        default=True,
        update=CLUSTER_WIDE,
        doc="Whether a partition takes part in a transaction only when the coordinator knows.",
    )
    transaction_state_log_load_buffer_size: int = setting(
        "transaction.state.log.load.buffer.size",
        INT,
        default=5 * 1024 * 1024,
        valid=at_least(1),
        doc="How many bytes are read at a time when transactions are loaded.",
    )
    transaction_max_timeout_ms: int = setting(
        "transaction.max.timeout.ms",
        INT,
        default=900_000,
        valid=at_least(1),
        doc="The longest transaction timeout a producer may ask for.",
    )
    transaction_state_log_num_partitions: int = setting(
        "transaction.state.log.num.partitions",
        INT,
        default=50,
        valid=at_least(1),
        doc="The transaction topic's partitions.",
    )
    transaction_state_log_replication_factor: int = setting(
        "transaction.state.log.replication.factor",
        SHORT,
        default=3,
        valid=at_least(1),
        doc="The transaction topic's replication factor; it is not created while there are fewer brokers.",
    )
    transaction_state_log_min_isr: int = setting(
        "transaction.state.log.min.isr",
        INT,
        default=2,
        valid=at_least(1),
        doc="How many replicas of the transaction topic must be in sync for a write.",
    )
    transaction_state_log_segment_bytes: int = setting(
        "transaction.state.log.segment.bytes",
        INT,
        default=100 * 1024 * 1024,
        valid=at_least(1),
        doc="The transaction topic's segment size.",
    )
