"""What groups to whose members the broker assigns have in common: a name, offsets, the members' timers, and an end."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from odradek.groups.offsets import GroupOffsets
from odradek.groups.timers import MemberTimers, Now

__all__ = ["TimedGroup"]


class TimedGroup(ABC):
    """One group. What time brings its members is asked for when `deadline` has come."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.offsets = GroupOffsets()
        self.timers = MemberTimers()
        self.is_dead = False

    @property
    @abstractmethod
    def members(self) -> Mapping[str, object]:
        """The members by id."""

    @property
    def deadline(self) -> float:
        """When to ask what is due; nothing is before."""
        return self.timers.deadline

    def due(self, now: Now) -> list[str]:
        """The members whose time is up. Makes `deadline` exact, as if they were gone."""
        return self.timers.due(self.members, now)

    def kill(self) -> None:
        """The group is deleted or moves away."""
        self.is_dead = True
        self.timers.clear()
