"""What streams groups are tested with: limits, topologies, and members that behave."""

from dataclasses import dataclass

from odradek.groups.streams_group import StreamsGroup, StreamsHeartbeat, StreamsHeartbeatResult
from odradek.groups.streams_tasks import Tasks
from odradek.groups.streams_topology import InternalTopic, Subtopology, Topology
from odradek.groups.timers import Now

__all__ = ["Member", "StreamsLimits", "topology"]


@dataclass(slots=True)
class StreamsLimits:
    """Settings of groups as numbers."""

    streams_max_size: int = 1000
    session_ms: int = 45_000
    assignment_ms: int = 0
    delay_ms: int = 0
    standby: int = 0

    def streams_session_timeout_ms(self, _: str) -> int:
        return self.session_ms

    def streams_assignment_interval_ms(self, _: str) -> int:
        return self.assignment_ms

    def streams_initial_rebalance_delay_ms(self, _: str) -> int:
        return self.delay_ms

    def streams_num_standby_replicas(self, _: str) -> int:
        return self.standby


def topology(*subtopologies: Subtopology, epoch: int = 0) -> Topology:
    """A topology of these; else of one that reads the topic t and has a store."""
    stateful = Subtopology("0", ("t",), state_changelog_topics=(InternalTopic("changelog"),))
    return Topology(epoch, {each.subtopology_id: each for each in subtopologies or (stateful,)})


class Member:
    """A thread of a process: it has the tasks it was told, gives up at once what it is not told any more, says so."""

    def __init__(
        self, member_id: str, group: StreamsGroup, *, process_id: str = "", told: Topology | None = None
    ) -> None:
        self.member_id = member_id
        self.process_id = process_id or f"process-{member_id}"
        self.group = group
        self.topology = told or topology()
        self.epoch = 0
        self.owned: Tasks = frozenset()

    def beat(self, now: Now, **told: object) -> StreamsHeartbeatResult:
        """One heartbeat, which says what the member has and besides what is `told`."""
        fields: dict[str, object] = {"owned": self.owned, **told}
        if self.epoch == 0:
            first = {"rebalance_timeout_ms": 60_000, "topology": self.topology, "process_id": self.process_id}
            fields = {**first, **fields, "owned": frozenset()}
        request = StreamsHeartbeat(self.member_id, self.epoch, "client", "/127.0.0.1", **fields)  # type: ignore[arg-type]  # each field by its name
        result = self.group.heartbeat(request, now)
        self.epoch = result.member_epoch
        if result.assigned is not None:
            self.owned = frozenset(result.assigned)
        return result
