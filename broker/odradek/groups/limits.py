"""The settings of groups: the broker's, and what a group has of its own (IncrementalAlterConfigs of a GROUP)."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from odradek.config import BrokerConfig
from odradek.config.group import DEFAULT_ISOLATION_LEVEL, DEFAULT_OFFSET_RESET
from odradek.groups.migration import MigrationPolicy

__all__ = ["GroupSettings", "ShareSettings"]


class GroupConfigs(Protocol):
    """Where the settings of single groups are found, by group."""

    @property
    def group_configs(self) -> Mapping[str, Mapping[str, str]]: ...


class GroupSettings:
    """What holds for a group at this moment; its own settings come before the broker's."""

    def __init__(self, config: BrokerConfig, own: GroupConfigs) -> None:
        self._config = config
        self._own = own

    @property
    def assignors(self) -> Sequence[str]:
        """The assignors that members may ask for; the first is taken where none asks."""
        return self._config.group_consumer_assignors

    @property
    def max_size(self) -> int:
        """The most members of one consumer group."""
        return self._config.group_consumer_max_size

    @property
    def pattern_refresh_interval_ms(self) -> int:
        """How old the topics of a pattern may be."""
        return self._config.group_consumer_regex_refresh_interval_ms

    @property
    def migration_policy(self) -> MigrationPolicy:
        """Which way groups with members may go."""
        return MigrationPolicy(self._config.group_consumer_migration_policy.lower())

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a member may be silent."""
        return self._setting(group_id, "consumer.session.timeout.ms", self._config.group_consumer_session_timeout_ms)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members are told to send a heartbeat."""
        return self._setting(
            group_id, "consumer.heartbeat.interval.ms", self._config.group_consumer_heartbeat_interval_ms
        )

    def assignment_interval_ms(self, group_id: str) -> int:
        """How long an assignment stands at least before the next one is made."""
        return self._setting(
            group_id, "consumer.assignment.interval.ms", self._config.group_consumer_assignment_interval_ms
        )

    @property
    def share_max_size(self) -> int:
        """The most members of one share group."""
        return self._config.group_share_max_size

    @property
    def share_initialize_retry_interval_ms(self) -> int:
        """How long the share coordinator has to begin with a partition before it is asked again."""
        return self._config.group_share_initialize_retry_interval_ms

    def share_session_timeout_ms(self, group_id: str) -> int:
        """How long a member of a share group may be silent."""
        return self._setting(group_id, "share.session.timeout.ms", self._config.group_share_session_timeout_ms)

    def share_heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members of a share group are told to send a heartbeat."""
        return self._setting(group_id, "share.heartbeat.interval.ms", self._config.group_share_heartbeat_interval_ms)

    def share_assignment_interval_ms(self, group_id: str) -> int:
        """How long an assignment of a share group stands at least before the next one is made."""
        return self._setting(group_id, "share.assignment.interval.ms", self._config.group_share_assignment_interval_ms)

    @property
    def streams_max_size(self) -> int:
        """The most members of one streams group."""
        return self._config.group_streams_max_size

    def streams_session_timeout_ms(self, group_id: str) -> int:
        """How long a member of a streams group may be silent."""
        return self._setting(group_id, "streams.session.timeout.ms", self._config.group_streams_session_timeout_ms)

    def streams_heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members of a streams group are told to send a heartbeat."""
        return self._setting(
            group_id, "streams.heartbeat.interval.ms", self._config.group_streams_heartbeat_interval_ms
        )

    def streams_assignment_interval_ms(self, group_id: str) -> int:
        """How long an assignment of a streams group stands at least before the next one is made."""
        return self._setting(
            group_id, "streams.assignment.interval.ms", self._config.group_streams_assignment_interval_ms
        )

    def streams_initial_rebalance_delay_ms(self, group_id: str) -> int:
        """How long a streams group that begins waits for more members."""
        return self._setting(
            group_id, "streams.initial.rebalance.delay.ms", self._config.group_streams_initial_rebalance_delay_ms
        )

    def streams_num_standby_replicas(self, group_id: str) -> int:
        """How many copies of the stores of a task are kept."""
        return self._setting(group_id, "streams.num.standby.replicas", self._config.group_streams_num_standby_replicas)

    def of_share_group(self, group_id: str) -> "ShareSettings":
        """What a share group does with records."""
        return ShareSettings(self._config, self._own, group_id)

    def _setting(self, group_id: str, key: str, default: int) -> int:
        own = self._own.group_configs.get(group_id)
        return default if own is None or key not in own else int(own[key])


class ShareSettings:
    """What holds for the records of one share group at this moment."""

    def __init__(self, config: BrokerConfig, own: GroupConfigs, group_id: str) -> None:
        self._config = config
        self._own = own
        self._group_id = group_id

    @property
    def delivery_count_limit(self) -> int:
        """How often a record is delivered at most."""
        return int(self._text("share.delivery.count.limit", self._config.group_share_delivery_count_limit))

    @property
    def max_record_locks(self) -> int:
        """How many records of a partition may be in flight."""
        return int(self._text("share.partition.max.record.locks", self._config.group_share_partition_max_record_locks))

    @property
    def record_lock_duration_ms(self) -> int:
        """How long a member has for a record."""
        return int(self._text("share.record.lock.duration.ms", self._config.group_share_record_lock_duration_ms))

    @property
    def renew_acknowledge_enable(self) -> bool:
        """Whether members may take longer if they say so."""
        return self._text("share.renew.acknowledge.enable", "true").lower() == "true"

    @property
    def auto_offset_reset(self) -> str:
        """Where a group begins to read: "latest", "earliest", or "by_duration:" and an ISO 8601 duration."""
        return self._text("share.auto.offset.reset", DEFAULT_OFFSET_RESET)

    @property
    def reads_committed(self) -> bool:
        """Whether records of aborted and open transactions are not delivered."""
        return self._text("share.isolation.level", DEFAULT_ISOLATION_LEVEL).lower() == "read_committed"

    def _text(self, key: str, default: int | str) -> str:
        return self._own.group_configs.get(self._group_id, {}).get(key, str(default))
