"""Settings of streams groups (KIP-1071): the broker's, and how a group's own lie between the broker's bounds."""

from odradek.config.config_types import INT
from odradek.config.consumer_group_settings import INT_MAX, within
from odradek.config.errors import ConfigError
from odradek.config.setting import CLUSTER_WIDE, Settings, Values, setting
from odradek.config.validators import at_least

__all__ = ["StreamsGroupSettings"]


def resolve_num_standby_replicas(values: Values) -> int:
    """group.streams.num.standby.replicas, which is at most group.streams.max.standby.replicas."""
    key, high = "group.streams.num.standby.replicas", "group.streams.max.standby.replicas"
    value = int(values[key])
    if value > values[high]:
        raise ConfigError(key, value, f"{key} must be less than or equal to {high}")
    return value


class StreamsGroupSettings(Settings):
    group_streams_assignment_interval_ms: int = setting(
        "group.streams.assignment.interval.ms",
        INT,
        default=1000,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        resolve=within("group.streams.{}assignment.interval.ms"),
        doc="How long an assignment of a streams group stands at least.",
    )
    group_streams_min_assignment_interval_ms: int = setting(
        "group.streams.min.assignment.interval.ms",
        INT,
        default=0,
        valid=at_least(0),
        doc="The least that a group may be given for streams.assignment.interval.ms.",
    )
    group_streams_max_assignment_interval_ms: int = setting(
        "group.streams.max.assignment.interval.ms",
        INT,
        default=15_000,
        valid=at_least(0),
        doc="The most that a group may be given for streams.assignment.interval.ms.",
    )
    group_streams_heartbeat_interval_ms: int = setting(
        "group.streams.heartbeat.interval.ms",
        INT,
        default=5000,
        valid=at_least(1),
        resolve=within("group.streams.{}heartbeat.interval.ms"),
        doc="How often members of streams groups send heartbeats.",
    )
    group_streams_min_heartbeat_interval_ms: int = setting(
        "group.streams.min.heartbeat.interval.ms",
        INT,
        default=5000,
        valid=at_least(1),
        doc="The least that a group may be given for streams.heartbeat.interval.ms.",
    )
    group_streams_max_heartbeat_interval_ms: int = setting(
        "group.streams.max.heartbeat.interval.ms",
        INT,
        default=15_000,
        valid=at_least(1),
        doc="The most that a group may be given for streams.heartbeat.interval.ms.",
    )
    group_streams_session_timeout_ms: int = setting(
        "group.streams.session.timeout.ms",
        INT,
        default=45_000,
        valid=at_least(1),
        resolve=within("group.streams.{}session.timeout.ms"),
        doc="How long a member of a streams group may be silent.",
    )
    group_streams_min_session_timeout_ms: int = setting(
        "group.streams.min.session.timeout.ms",
        INT,
        default=45_000,
        valid=at_least(1),
        doc="The least that a group may be given for streams.session.timeout.ms.",
    )
    group_streams_max_session_timeout_ms: int = setting(
        "group.streams.max.session.timeout.ms",
        INT,
        default=60_000,
        valid=at_least(1),
        doc="The most that a group may be given for streams.session.timeout.ms.",
    )
    group_streams_max_size: int = setting(
        "group.streams.max.size",
        INT,
        default=INT_MAX,
        valid=at_least(1),
        doc="The most members of one streams group.",
    )
    group_streams_num_standby_replicas: int = setting(
        "group.streams.num.standby.replicas",
        INT,
        default=0,
        valid=at_least(0),
        resolve=resolve_num_standby_replicas,
        doc="How many copies of the stores of a task are kept.",
    )
    group_streams_max_standby_replicas: int = setting(
        "group.streams.max.standby.replicas",
        INT,
        default=2,
        valid=at_least(0),
        doc="The most that a group may be given for streams.num.standby.replicas.",
    )
    group_streams_initial_rebalance_delay_ms: int = setting(
        "group.streams.initial.rebalance.delay.ms",
        INT,
        default=3000,
        valid=at_least(0),
        doc="How long a streams group that begins waits for more members before tasks are given out.",
    )
