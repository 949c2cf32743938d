"""What goes into a group and what comes out of it: join requests, members, replies, and tickets for late replies.

Everything here is plain data without a clock: times are seconds of the caller's monotonic clock, timeouts are the
protocol's milliseconds.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from odradek_protocol.errors import Error

__all__ = ["JoinRequest", "JoinResult", "Member", "Store", "SyncResult", "Ticket"]

T = TypeVar("T")


class Ticket(Generic[T]):
    """A reply that may come later.

    `result` is None until the group resolves the ticket, once. Several waiters may share a ticket: a member that
    repeats a request waits for the same reply as its first try.
    """

    __slots__ = ("_waiters", "result")

    def __init__(self, result: T | None = None) -> None:
        self.result = result
        self._waiters: list[Callable[[], object]] = []

    def on_resolved(self, waiter: Callable[[], object]) -> None:
        """Have `waiter` called when the result is there; at once when it is there already."""
        if self.result is None:
            self._waiters.append(waiter)
        else:
            waiter()

    def forget(self, waiter: Callable[[], object]) -> None:
        """Do not call `waiter`, if it has not been called."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)

    def resolve(self, result: T) -> None:
        """Give the result to all who wait."""
        assert self.result is None, "a ticket is resolved once"
        self.result = result
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter()

    def forward(self, ticket: "Ticket[T]") -> None:
        """Have another ticket get the same result."""

        def resolve() -> None:
            assert self.result is not None
            ticket.resolve(self.result)

        self.on_resolved(resolve)


class JoinRequest(NamedTuple):
    """A JoinGroup request, as far as it concerns the group.

    `member_id` is empty when the client has none yet, and then `new_member_id` is the one it is to get.
    `requires_known_member_id` (KIP-394) has the group refuse to add a dynamic member that does not know its id;
    `can_skip_assignment` (KIP-814) tells that the client understands `JoinResult.skip_assignment`.
    """

    member_id: str
    new_member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    requires_known_member_id: bool
    can_skip_assignment: bool


class JoinResult(NamedTuple):
    """The reply to a join. `members`, (member id, instance id, metadata), is what the leader makes assignments from."""

    error: Error
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    members: Sequence[tuple[str, str | None, bytes]] = ()
    skip_assignment: bool = False


class SyncResult(NamedTuple):
    """The reply to a sync: the member's assignment, as the leader sent it."""

    error: Error
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None


@dataclass(slots=True, eq=False)
class Member:
    """One member of a group.

    `deadline` is when the session ends unless a heartbeat moves it; infinite while the group owes the member a reply,
    because a member that waits cannot send heartbeats. A member is `new` until its first join is answered; it may
    time out even while it waits, so that clients that gave up during a long rebalance do not stay.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes = b""
    new: bool = False
    deadline: float = math.inf
    join_ticket: Ticket[JoinResult] | None = field(default=None, repr=False)
    sync_ticket: Ticket[SyncResult] | None = field(default=None, repr=False)

    @classmethod
    def joining(cls, request: JoinRequest, member_id: str) -> "Member":
        """A new member, as it asks to join."""
        return cls(
            member_id=member_id,
            instance_id=request.instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocols=request.protocols,
            new=True,
        )

    def successor(self, request: JoinRequest) -> "Member":
        """The member that takes this static member's place, with its assignment."""
        return Member(
            member_id=request.new_member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocols=request.protocols,
            assignment=self.assignment,
        )

    @property
    def waits(self) -> bool:
        """Whether the group owes the member a reply."""
        return self.join_ticket is not None or self.sync_ticket is not None

    def metadata(self, protocol_name: str | None) -> bytes:
        """What the member said about itself for a protocol; empty for one that it does not support."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""

    def resolve_sync(self, result: SyncResult) -> bool:
        """Answer the member's sync; False when it does not wait for one."""
        ticket, self.sync_ticket = self.sync_ticket, None
        if ticket is None:
            return False
        ticket.resolve(result)
        return True


@dataclass(slots=True, frozen=True, eq=False)
class Store:
    """A group as it has to be in the log before it may go on.

    `members` are (member, metadata, assignment). A static member that takes its predecessor's place has its
    `replacement` and `ticket` here: it takes effect when it is stored.
    """

    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str | None
    members: Sequence[tuple[Member, bytes, bytes]] = ()
    replacement: JoinRequest | None = None
    ticket: Ticket[JoinResult] | None = field(default=None, repr=False)
