"""The settings of groups: the broker's, and what a group has of its own (IncrementalAlterConfigs of a GROUP)."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from odradek.config import BrokerConfig
from odradek.groups.migration import MigrationPolicy

__all__ = ["GroupSettings"]


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

    def _setting(self, group_id: str, key: str, default: int) -> int:
        own = self._own.group_configs.get(group_id)
        return default if own is None or key not in own else int(own[key])
