"""Who is in a group: members by id, static members by instance id, the leader, and the protocols all have in common.

A roster keeps its parts in step and knows nothing of states or time. The first member of an empty roster leads; when
the leader goes, the member that has been there longest does.
"""

from collections.abc import Iterable

from odradek.groups.member import JoinResult, Member, Ticket
from odradek_protocol.errors import Error

__all__ = ["Roster"]

Protocols = tuple[tuple[str, bytes], ...]


class Roster:
    """The members of a group."""

    __slots__ = ("_supported", "joining", "leader", "members", "static_ids")

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.static_ids: dict[str, str] = {}
        """The member id of each instance id."""
        self.leader: str | None = None
        self.joining = 0
        """How many members wait for the reply to a join."""
        self._supported: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.members)

    def add(self, member: Member) -> None:
        """Take a member in; its instance id must be free."""
        assert member.instance_id not in self.static_ids, "an instance id has one member"
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self._count(member.protocols, 1)

    def remove(self, member_id: str) -> Member | None:
        """Take a member out; None when it is not there. What it waits for is the caller's to answer."""
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._count(member.protocols, -1)
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def update(self, member: Member, protocols: Protocols) -> None:
        """A member has said anew which protocols it supports."""
        self._count(member.protocols, -1)
        self._count(protocols, 1)
        member.protocols = protocols

    def static_member(self, instance_id: str | None) -> Member | None:
        """The member that has this instance id now."""
        member_id = None if instance_id is None else self.static_ids.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def identity_error(self, member_id: str, instance_id: str | None) -> Error:
        """NONE when the member is who it says it is, FENCED_INSTANCE_ID when another took its instance id."""
        if instance_id is not None:
            current = self.static_ids.get(instance_id)
            if current is not None and current != member_id:
                return Error.FENCED_INSTANCE_ID
            if current is None:
                return Error.UNKNOWN_MEMBER_ID
        return Error.NONE if member_id in self.members else Error.UNKNOWN_MEMBER_ID

    def await_join(self, member: Member) -> Ticket[JoinResult]:
        """Owe the member a reply to its join; a repeated join waits for the same one."""
        if member.join_ticket is None:
            member.join_ticket = Ticket()
            self.joining += 1
        return member.join_ticket

    def resolve_join(self, member: Member, result: JoinResult) -> bool:
        """Answer the member's join; False when it does not wait for one."""
        ticket, member.join_ticket = member.join_ticket, None
        if ticket is None:
            return False
        self.joining -= 1
        ticket.resolve(result)
        return True

    def elect_leader(self) -> bool:
        """Keep the leader if it joined, else take the first member that did. False when none did."""
        current = self.members.get(self.leader or "")
        if current is not None and current.join_ticket is not None:
            return True
        joined = (member.member_id for member in self.members.values() if member.join_ticket is not None)
        elected = next(joined, None)
        if elected is None:
            return False
        self.leader = elected
        return True

    def supports(self, names: Iterable[str]) -> bool:
        """Whether all members support one of the named protocols."""
        return any(self._supported.get(name, 0) == len(self.members) for name in names)

    def vote(self, *, instead: tuple[Member, Protocols] | None = None) -> str:
        """The protocol that most members put first among those that all support.

        With `instead`, as if that member supported these protocols. Raises ValueError without a common protocol,
        which `supports`, asked before each change, rules out.
        """
        ballots = [
            [name for name, _ in (instead[1] if instead is not None and member is instead[0] else member.protocols)]
            for member in self.members.values()
        ]
        candidates = set.intersection(*map(set, ballots)) if ballots else set()
        votes: dict[str, int] = {}
        for ballot in ballots:
            choice = next((name for name in ballot if name in candidates), None)
            if choice is not None:
                votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def rebalance_timeout(self) -> float:
        """The longest time in seconds that a member asks to be given for joining again."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0) / 1000

    def _count(self, protocols: Protocols, by: int) -> None:
        for name, _ in protocols:
            self._supported[name] = self._supported.get(name, 0) + by
