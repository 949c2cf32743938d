"""Groups for tests: a machine with a clock of its own, whose log stores at once, later, or never."""

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.groups.group import Group
from odradek.groups.member import JoinRequest, JoinResult, Store, SyncResult, Ticket
from odradek_protocol.errors import Error

__all__ = ["Limits", "Machine", "request"]

RANGE = (("range", b"topics"),)


@dataclass
class Limits:
    """The settings of groups."""

    group_initial_rebalance_delay_ms: int = 0
    group_max_size: int = 1000


def request(
    member_id: str = "",
    *,
    new: str = "",
    instance_id: str | None = None,
    protocols: tuple[tuple[str, bytes], ...] = RANGE,
    protocol_type: str = "consumer",
    session_s: float = 10,
    rebalance_s: float = 60,
    known_id: bool = False,
    can_skip: bool = False,
) -> JoinRequest:
    """A join request; by default of an old client, which is added at once."""
    return JoinRequest(
        member_id=member_id,
        new_member_id=new,
        instance_id=instance_id,
        client_id="client",
        client_host="/127.0.0.1",
        session_timeout_ms=int(session_s * 1000),
        rebalance_timeout_ms=int(rebalance_s * 1000),
        protocol_type=protocol_type,
        protocols=protocols,
        requires_known_member_id=known_id,
        can_skip_assignment=can_skip,
    )


class Machine:
    """A group, the time, and the log. With `stores` true everything is stored as soon as it is asked for."""

    def __init__(self, *, delay_s: float = 0, max_size: int = 1000) -> None:
        self.limits = Limits(int(delay_s * 1000), max_size)
        self.group = Group("g", self.limits)
        self.now = 100.0
        self.stores = True
        self.log: list[Store] = []

    def settle(self, error: Error = Error.NONE) -> None:
        """Store what is to be stored, if that is wanted, and do what is due."""
        while self.stores and self.group.unstored:
            store = self.group.unstored.pop(0)
            self.log.append(store)
            self.group.stored(store, error, self.now)

    def join(self, member_id: str = "", **fields: object) -> Ticket[JoinResult]:
        ticket = self.group.join(request(member_id, **fields), self.now)  # type: ignore[arg-type]
        self.settle()
        return ticket

    def sync(
        self,
        member_id: str,
        assignments: Mapping[str, bytes] | None = None,
        *,
        generation: int | None = None,
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Ticket[SyncResult]:
        ticket = self.group.sync(
            member_id,
            instance_id,
            self.group.generation if generation is None else generation,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=assignments or {},
        )
        self.settle()
        return ticket

    def heartbeat(self, member_id: str, *, generation: int | None = None, instance_id: str | None = None) -> None:
        wanted = self.group.generation if generation is None else generation
        self.group.heartbeat(member_id, instance_id, wanted, self.now)

    def leave(self, *members: str | tuple[str, str | None]) -> list[Error]:
        errors = self.group.leave([(each, None) if isinstance(each, str) else each for each in members], self.now)
        self.settle()
        return errors

    def advance(self, seconds: float) -> None:
        """Let time pass; what is due on the way is done when it is due."""
        target = self.now + seconds
        while self.group.deadline <= target:
            self.now = max(self.now, self.group.deadline)
            self.group.expire(self.now)
            self.settle()
        self.now = target

    def stable(self, *member_ids: str, **fields: object) -> int:
        """Bring these new members, each with an assignment of its name, to a stable generation; give its number."""
        tickets = [self.join(new=member_id, **fields) for member_id in member_ids]
        for member_id in member_ids:
            if self.group.members[member_id].join_ticket is None and self.group.state.value == "PreparingRebalance":
                self.join(member_id, **fields)
        leader = self.group.leader
        assert leader is not None
        for member_id in member_ids:
            self.sync(member_id, {each: each.encode() for each in member_ids} if member_id == leader else None)
        assert len(tickets) == len(member_ids)
        assert self.group.state.value == "Stable"
        return self.group.generation
