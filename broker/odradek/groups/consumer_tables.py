"""The tables of a consumer group, with the counts and indexes that are made from them."""

from typing import cast

from odradek.groups.assignors import Assignment
from odradek.groups.consumer_state import (
    NEW_MEMBER,
    CurrentAssignment,
    MemberInfo,
    Owned,
    Part,
    PartValue,
    ResolvedPattern,
)
from odradek.groups.tables import FIRST_EPOCH, NO_TARGET, GroupEpoch, Tables, TargetEpoch, count

__all__ = ["ConsumerTables"]


class ConsumerTables(Tables[Part, PartValue]):
    """What is stored of one group."""

    def __init__(self) -> None:
        self.epoch = FIRST_EPOCH
        self.target_epoch = NO_TARGET
        self.members: dict[str, MemberInfo] = {}
        self.currents: dict[str, CurrentAssignment] = {}
        self.targets: dict[str, Assignment] = {}
        self.patterns: dict[str, ResolvedPattern] = {}
        self.static_ids: dict[str, str] = {}
        """The member id of each instance id."""
        self.subscribers: dict[str, int] = {}
        """How many members subscribe to each topic by its name, and how many patterns stand for it."""
        self.pattern_members: dict[str, int] = {}
        """How many members subscribe with each pattern."""
        self.assignors: dict[str, int] = {}
        """How many members ask for each assignor."""
        self.classic_members = 0
        self.classic_protocols: dict[str, int] = {}
        """How many members of the classic protocol support each of its assignors."""
        self._owners: dict[bytes, dict[int, str]] = {}
        super().__init__(
            Part,
            {
                Part.MEMBER: self.members,
                Part.CURRENT: self.currents,
                Part.TARGET: self.targets,
                Part.PATTERN: self.patterns,
            },
        )

    def current(self, member_id: str) -> CurrentAssignment:
        """What a member owns."""
        return self.currents.get(member_id, NEW_MEMBER)

    def owner(self, topic_id: bytes, partition: int) -> str | None:
        """Who has a partition, also while giving it up."""
        owners = self._owners.get(topic_id)
        return None if owners is None else owners.get(partition)

    # Counts and indexes

    def _replaced(self, part: Part, name: str, before: PartValue | None, value: PartValue | None, /) -> None:
        if part is Part.MEMBER:
            self._index_member(cast(MemberInfo | None, before), -1)
            self._index_member(cast(MemberInfo | None, value), 1)
        elif part is Part.CURRENT:
            self._index_current(name, cast(CurrentAssignment | None, before), cast(CurrentAssignment | None, value))
        elif part is Part.EPOCH:
            self.epoch = cast(GroupEpoch | None, value) or FIRST_EPOCH
        elif part is Part.TARGET_EPOCH:
            self.target_epoch = cast(TargetEpoch | None, value) or NO_TARGET
        elif part is Part.PATTERN:
            for resolved, by in ((before, -1), (value, 1)):
                for topic in () if resolved is None else cast(ResolvedPattern, resolved).topics:
                    count(self.subscribers, topic, by)

    def _index_member(self, member: MemberInfo | None, by: int) -> None:
        if member is None:
            return
        for topic in member.topic_names:
            count(self.subscribers, topic, by)
        if member.topic_pattern:
            count(self.pattern_members, member.topic_pattern, by)
        if member.server_assignor is not None:
            count(self.assignors, member.server_assignor, by)
        if member.classic is not None:
            self.classic_members += by
            for protocol, _ in member.classic.protocols:
                count(self.classic_protocols, protocol, by)
        if member.instance_id is not None:
            if by > 0:
                self.static_ids[member.instance_id] = member.member_id
            elif self.static_ids.get(member.instance_id) == member.member_id:
                del self.static_ids[member.instance_id]

    def _index_current(self, member_id: str, before: CurrentAssignment | None, value: CurrentAssignment | None) -> None:
        if before is not None:
            self._disown(member_id, before.assigned)
            self._disown(member_id, before.revoking)
        if value is not None:
            self._own(member_id, value.assigned)
            self._own(member_id, value.revoking)

    def _own(self, member_id: str, owned: Owned) -> None:
        for topic_id, partitions in owned.items():
            owners = self._owners.setdefault(topic_id, {})
            for partition in partitions:
                owners[partition] = member_id

    def _disown(self, member_id: str, owned: Owned) -> None:
        for topic_id, partitions in owned.items():
            owners = self._owners.get(topic_id, {})
            for partition in partitions:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                self._owners.pop(topic_id, None)
