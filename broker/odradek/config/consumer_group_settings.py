"""Settings of consumer groups of KIP-848: the broker's, and how a group's own lie between the broker's bounds."""

from collections.abc import Callable

from odradek.config.config_types import INT, LIST, STRING
from odradek.config.errors import ConfigError
from odradek.config.setting import CLUSTER_WIDE, Settings, Values, setting
from odradek.config.validators import at_least, each_one_of, one_of_ignoring_case

__all__ = ["ConsumerGroupSettings"]

INT_MAX = (1 << 31) - 1
MIGRATION_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")


def within(keys: str) -> Callable[[Values], int]:
    """A number that has to lie between the bounds whose names have "min." and "max." in the place of {}."""

    def resolve(values: Values) -> int:
        key, low, high = (keys.format(bound) for bound in ("", "min.", "max."))
        value = int(values[key])
        if value < values[low]:
            raise ConfigError(key, value, f"{key} must be greater than or equal to {low}")
        if value > values[high]:
            raise ConfigError(key, value, f"{key} must be less than or equal to {high}")
        return value

    return resolve


class ConsumerGroupSettings(Settings):
    group_consumer_assignors: list[str] = setting(
        "group.consumer.assignors",
        LIST,
        default=["uniform", "range"],
        valid=each_one_of("uniform", "range"),
        doc="The assignors that members of consumer groups may ask for; the first is used where nobody asks.",
    )
    group_consumer_assignment_interval_ms: int = setting(
        "group.consumer.assignment.interval.ms",
        INT,
        default=1000,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        resolve=within("group.consumer.{}assignment.interval.ms"),
        doc="How long an assignment of a consumer group stands at least.",
    )
    group_consumer_min_assignment_interval_ms: int = setting(
        "group.consumer.min.assignment.interval.ms",
        INT,
        default=0,
        valid=at_least(0),
        doc="The least that a group may be given for consumer.assignment.interval.ms.",
    )
    group_consumer_max_assignment_interval_ms: int = setting(
        "group.consumer.max.assignment.interval.ms",
        INT,
        default=15_000,
        valid=at_least(0),
        doc="The most that a group may be given for consumer.assignment.interval.ms.",
    )
    group_consumer_heartbeat_interval_ms: int = setting(
        "group.consumer.heartbeat.interval.ms",
        INT,
        default=5000,
        valid=at_least(1),
        resolve=within("group.consumer.{}heartbeat.interval.ms"),
        doc="How often members of consumer groups send heartbeats.",
    )
    group_consumer_min_heartbeat_interval_ms: int = setting(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        default=5000,
        valid=at_least(1),
        doc="The least that a group may be given for consumer.heartbeat.interval.ms.",
    )
    group_consumer_max_heartbeat_interval_ms: int = setting(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        default=15_000,
        valid=at_least(1),
        doc="The most that a group may be given for consumer.heartbeat.interval.ms.",
    )
    group_consumer_session_timeout_ms: int = setting(
        "group.consumer.session.timeout.ms",
        INT,
        default=45_000,
        valid=at_least(1),
        resolve=within("group.consumer.{}session.timeout.ms"),
        doc="How long a member of a consumer group may be silent.",
    )
    group_consumer_min_session_timeout_ms: int = setting(
        "group.consumer.min.session.timeout.ms",
        INT,
        default=45_000,
        valid=at_least(1),
        doc="The least that a group may be given for consumer.session.timeout.ms.",
    )
    group_consumer_max_session_timeout_ms: int = setting(
        "group.consumer.max.session.timeout.ms",
        INT,
        default=60_000,
        valid=at_least(1),
        doc="The most that a group may be given for consumer.session.timeout.ms.",
    )
    group_consumer_max_size: int = setting(
        "group.consumer.max.size",
        INT,
        default=INT_MAX,
        valid=at_least(1),
        doc="The most members of one consumer group.",
    )
    group_consumer_migration_policy: str = setting(
        "group.consumer.migration.policy",
        STRING,
        default="bidirectional",
        valid=one_of_ignoring_case(*MIGRATION_POLICIES),
        doc="Which way groups with members may move between the classic and the consumer protocol.",
    )
    group_consumer_regex_refresh_interval_ms: int = setting(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        default=600_000,
        valid=at_least(10_000),
        hidden=True,
        doc="How old the topics may be that a pattern of a consumer group stands for.",
    )
