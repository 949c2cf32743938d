"""What a streams group consists of, as it is stored: each kind of thing is a `StreamsPart`, kept in one record."""

import enum
from types import MappingProxyType
from typing import NamedTuple, cast

from odradek.groups.consumer_state import MemberState
from odradek.groups.streams_tasks import Held, Task, Tasks
from odradek.groups.streams_topology import Topology
from odradek.groups.tables import Change, Tables, TargetEpoch

__all__ = [
    "NEW_MEMBER",
    "NOT_VALIDATED",
    "Endpoint",
    "StreamsChange",
    "StreamsCurrent",
    "StreamsEpoch",
    "StreamsMember",
    "StreamsPart",
    "StreamsPartValue",
    "StreamsTables",
]

NOT_VALIDATED = -1
"""The validated topology of a group whose topics are not as its topology needs them."""

Endpoint = tuple[str, int]
"""The host and the port at which a process answers queries for its stores."""


class StreamsPart(enum.Enum):
    """What a record of a streams group tells of."""

    EPOCH = enum.auto()
    TOPOLOGY = enum.auto()
    MEMBER = enum.auto()
    TARGET_EPOCH = enum.auto()
    TARGET = enum.auto()
    CURRENT = enum.auto()


class StreamsEpoch(NamedTuple):
    """The epoch of a group, and what it was made for.

    `validated_topology` is the epoch of the topology whose topics are as it needs them; `configs` are the settings that
    assignments are made with.
    """

    epoch: int = 1
    metadata_hash: int = 0
    validated_topology: int = NOT_VALIDATED
    configs: tuple[tuple[str, str], ...] = ()


class StreamsMember(NamedTuple):
    """What a member says about itself; `instance_id` is always None so far, but stored."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()


class StreamsCurrent(NamedTuple):
    """What a member has: tasks, and those that it was asked to give up.

    A heartbeat with `previous_epoch` is taken as well as one with `epoch`: the reply that told the newer may be lost.
    """

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Held = MappingProxyType({})
    revoking: Held = MappingProxyType({})

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether there is nothing to do for this target."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def assignment_epoch(self, task: Task) -> int | None:
        """The epoch in which an active task was assigned to the member; None when the member does not have it."""
        return self.assigned.get(task, self.revoking.get(task))


NEW_MEMBER = StreamsCurrent()
"""What a member has that has just come."""

INITIAL_TARGET = TargetEpoch(1)
"""A group begins with a target for nobody."""

StreamsPartValue = StreamsEpoch | Topology | StreamsMember | TargetEpoch | Tasks | StreamsCurrent


StreamsChange = Change[StreamsPart, StreamsPartValue]


class StreamsTables(Tables[StreamsPart, StreamsPartValue]):
    """What is stored of one group."""

    def __init__(self) -> None:
        self.members: dict[str, StreamsMember] = {}
        self.currents: dict[str, StreamsCurrent] = {}
        self.targets: dict[str, Tasks] = {}
        self._holders: dict[Task, list[str]] = {}
        """The members that have a task; one stands there twice that gives up what it gets again."""
        super().__init__(
            StreamsPart,
            {StreamsPart.MEMBER: self.members, StreamsPart.CURRENT: self.currents, StreamsPart.TARGET: self.targets},
        )

    @property
    def epoch(self) -> StreamsEpoch:
        """The epoch of the group."""
        return self.one(StreamsPart.EPOCH, StreamsEpoch())

    @property
    def target_epoch(self) -> TargetEpoch:
        """The epoch of the target assignment."""
        return self.one(StreamsPart.TARGET_EPOCH, INITIAL_TARGET)

    @property
    def topology(self) -> Topology | None:
        """What the application is made of; None before a member has told."""
        return self.one(StreamsPart.TOPOLOGY, None)

    def current(self, member_id: str) -> StreamsCurrent:
        """What a member has."""
        return self.currents.get(member_id, NEW_MEMBER)

    def processes(self, task: Task) -> frozenset[str]:
        """The processes that have a task in its role, also while giving it up."""
        return frozenset(
            self.members[member_id].process_id for member_id in self._holders.get(task, ()) if member_id in self.members
        )

    def _replaced(
        self, part: StreamsPart, name: str, before: StreamsPartValue | None, value: StreamsPartValue | None, /
    ) -> None:
        if part is StreamsPart.CURRENT:
            self._release(name, cast(StreamsCurrent | None, before))
            self._hold(name, cast(StreamsCurrent | None, value))

    def _hold(self, member_id: str, current: StreamsCurrent | None) -> None:
        for task in () if current is None else (*current.assigned, *current.revoking):
            self._holders.setdefault(task, []).append(member_id)

    def _release(self, member_id: str, current: StreamsCurrent | None) -> None:
        for task in () if current is None else (*current.assigned, *current.revoking):
            holders = self._holders[task]
            holders.remove(member_id)
            if not holders:
                del self._holders[task]
