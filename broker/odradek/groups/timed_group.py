"""What groups to whose members the broker assigns have in common: a name, offsets, the members' timers, and an end."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from odradek.groups.offsets import GroupOffsets
from odradek.groups.timers import MemberTimers, Now
from odradek_protocol.errors import BrokerError, Error

__all__ = ["FIRST_COMMIT_WITH_MEMBER_EPOCH", "CommittingGroup", "TimedGroup"]

FIRST_COMMIT_WITH_MEMBER_EPOCH = 9
"""The first version of OffsetCommit that has a member epoch."""

M = TypeVar("M")


class TimedGroup(ABC, Generic[M]):
    """One group. What time brings its members is asked for when `deadline` has come."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.offsets = GroupOffsets()
        self.timers = MemberTimers()
        self.is_dead = False

    @property
    @abstractmethod
    def members(self) -> Mapping[str, M]:
        """The members by id."""

    @property
    def deadline(self) -> float:
        """When to ask what is due; nothing is before."""
        return self.timers.deadline

    def member(self, member_id: str) -> M:
        """The member of that id. UNKNOWN_MEMBER_ID when there is none."""
        found = self.members.get(member_id)
        if found is None:
            raise BrokerError(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return found

    def due(self, now: Now) -> list[str]:
        """The members whose time is up. Makes `deadline` exact, as if they were gone."""
        return self.timers.due(self.members, now)

    def kill(self) -> None:
        """The group is deleted or moves away."""
        self.is_dead = True
        self.timers.clear()


class CommittingGroup(TimedGroup[M]):
    """A group whose members commit the offsets of what they were assigned."""

    @property
    def is_idle(self) -> bool:
        """Whether nobody is in the group."""
        return not self.members

    @abstractmethod
    def check_commit(self, member_id: str, epoch: int, version: int, partitions: Iterable[tuple[str, int]], /) -> None:
        """Decide whether a member may commit the offsets of these (topic, partition)s, all or none."""

    def check_transactional_commit(
        self, member_id: str, instance_id: str | None, epoch: int, partitions: Iterable[tuple[str, int]]
    ) -> None:
        """Decide whether a transaction may commit offsets; its producer need not be a member.

        Only who says to be a member has to be one (KIP-447). Raises as `check_commit` does.
        """
        if epoch < 0 and not member_id and instance_id is None:
            return
        self.check_commit(member_id, epoch, FIRST_COMMIT_WITH_MEMBER_EPOCH, partitions)
