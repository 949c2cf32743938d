"""A streams group as a state machine: the members of a Kafka Streams application are given their tasks (KIP-1071).

    group epoch      grows when members, topics or settings change, and asks for a new target
    target epoch     the group epoch that the target assignment was made for
    member epoch     the target that a member has come to; see `streams_reconciliation`

             nobody is in it
    EMPTY <------------------- any
             topics are missing or unfit      group epoch > target epoch      some member is not there      all are
    NOT_READY                        ASSIGNING                      RECONCILING                      STABLE

Rules:

- It has no clock, no files and no I/O: `Now` comes in, and `deadline` says when to ask what is due.
- What is stored is in `tables`; a request changes them, and the caller takes the changes, writes them, or undoes them.
  Deadlines, endpoints and who asked the application to shut down are not stored.
- The first member's topology is the group's. Members with an older one are told so, others with another are refused.
- While topics are missing or unfit nobody has tasks. Internal topics that are missing are the caller's to make.
- A group that begins waits for more members before it makes its first target; then one is made at most once in
  `group.streams.assignment.interval.ms` (KIP-1263). Who has to wait for it is told.

Static members are refused, as Kafka 4.3 does.
"""

import enum
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from odradek.groups.consumer_state import MemberState
from odradek.groups.streams_assignor import NAME, Work, assign
from odradek.groups.streams_reconciliation import reconcile
from odradek.groups.streams_state import (
    NOT_VALIDATED,
    Endpoint,
    StreamsChange,
    StreamsCurrent,
    StreamsEpoch,
    StreamsMember,
    StreamsPart,
    StreamsTables,
)
from odradek.groups.streams_tasks import Held, Role, Task, Tasks, by_subtopology
from odradek.groups.streams_topics import ConfiguredTopology, Status, StatusCode, configure
from odradek.groups.streams_topology import InternalTopic, Topology
from odradek.groups.subscriptions import SubscribedTopics, Topics
from odradek.groups.tables import TargetEpoch
from odradek.groups.timed_group import FIRST_COMMIT_WITH_MEMBER_EPOCH, CommittingGroup
from odradek.groups.timers import Now, Timer
from odradek_protocol.errors import BrokerError, Error

__all__ = [
    "EndpointPartitions",
    "StreamsGroup",
    "StreamsGroupLimits",
    "StreamsGroupState",
    "StreamsHeartbeat",
    "StreamsHeartbeatResult",
]

STANDBY_REPLICAS = "num.standby.replicas"
"""The name under which the setting is stored that assignments are made with."""


class StreamsGroupState(enum.Enum):
    """Where a group is; the value is the name that StreamsGroupDescribe tells."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class StreamsGroupLimits(Protocol):
    """The settings that a group obeys; read when needed, because they may change. Some may be a group's own."""

    @property
    def streams_max_size(self) -> int: ...
    def streams_session_timeout_ms(self, group_id: str, /) -> int: ...
    def streams_assignment_interval_ms(self, group_id: str, /) -> int: ...
    def streams_initial_rebalance_delay_ms(self, group_id: str, /) -> int: ...
    def streams_num_standby_replicas(self, group_id: str, /) -> int: ...


class StreamsHeartbeat(NamedTuple):
    """A StreamsGroupHeartbeat request. What is None, or -1 for the timeout, is as it was told before."""

    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    owned: Tasks | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] | None = None
    shuts_down: bool = False
    """Whether the whole application is to shut down."""
    endpoint_epoch: int = 0
    """The epoch of the endpoints that the member knows."""

    @property
    def is_full(self) -> bool:
        """Whether the member says all there is to say, as it does after an error, and wants its tasks told."""
        return self.rebalance_timeout_ms != -1 and self.owned is not None


class EndpointPartitions(NamedTuple):
    """Where queries are answered for the stores of which partitions, by topic."""

    endpoint: Endpoint
    active: Mapping[str, Sequence[int]]
    standby: Mapping[str, Sequence[int]]


class StreamsHeartbeatResult(NamedTuple):
    """The reply; `assigned` and `endpoints` are None where the member knows already.

    `missing_topics` are internal topics to be made.
    """

    member_id: str
    member_epoch: int
    assigned: Held | None = None
    statuses: Sequence[Status] = ()
    endpoint_epoch: int = 0
    endpoints: Sequence[EndpointPartitions] | None = None
    missing_topics: Sequence[InternalTopic] = ()


class StreamsGroup(CommittingGroup[StreamsMember]):
    """One group. Methods are transitions; attributes are for reading."""

    type = "streams"
    """What ListGroups calls such groups."""
    protocol_type = "streams"
    assignor = NAME

    def __init__(self, group_id: str, limits: StreamsGroupLimits, topics: Topics) -> None:
        super().__init__(group_id)
        self.tables = StreamsTables()
        self._limits = limits
        self._topics = topics
        self._configured: tuple[Topology, int, ConfiguredTopology] | None = None
        """The topology that was configured last, with which revision of the topics, and what came of it."""
        self._metadata_hash = 0
        """A number for the topics of that topology."""
        self._delayed_until: float | None = None
        """Until when a group that begins waits for members."""
        self._shut_down_by: str | None = None
        self._endpoint_epoch = 0

    # What may be asked

    @property
    def members(self) -> Mapping[str, StreamsMember]:
        """The members by id."""
        return self.tables.members

    @property
    def state(self) -> StreamsGroupState:
        """Where the group is; looks at every member."""
        tables = self.tables
        if self.is_dead:
            return StreamsGroupState.DEAD
        if not tables.members:
            return StreamsGroupState.EMPTY
        if not self.is_validated:
            return StreamsGroupState.NOT_READY
        target_epoch = tables.target_epoch.epoch
        if tables.epoch.epoch > target_epoch:
            return StreamsGroupState.ASSIGNING
        if all(tables.current(member_id).is_reconciled_to(target_epoch) for member_id in tables.members):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    @property
    def is_validated(self) -> bool:
        """Whether the topics were as the topology needs them when a member asked last."""
        topology = self.tables.topology
        return topology is not None and topology.epoch == self.tables.epoch.validated_topology

    @property
    def deadline(self) -> float:
        """When to ask what is due, or a group that begins waits no longer; nothing is before."""
        return min(super().deadline, math.inf if self._delayed_until is None else self._delayed_until)

    def consumes(self, topic: str) -> bool:
        """Whether members read a topic."""
        topology = self.tables.topology
        return bool(self.tables.members) and topology is not None and topic in topology.readers

    def configured(self, topology: Topology) -> ConfiguredTopology:
        """A topology with the topics there are. STREAMS_INVALID_TOPOLOGY for one that can never work."""
        revision = self._topics.revision
        if self._configured is None or self._configured[:2] != (topology, revision):
            self._configured = topology, revision, configure(topology, self._topics)
            self._metadata_hash = SubscribedTopics(topology.required_topics, self._topics).metadata_hash()
        return self._configured[2]

    # Requests

    def heartbeat(self, request: StreamsHeartbeat, now: Now) -> StreamsHeartbeatResult:
        """StreamsGroupHeartbeat of a member that joins or stays.

        Raises GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, STREAMS_INVALID_TOPOLOGY, and
        INVALID_REQUEST for another topology than the group's and for tasks that it does not have; the group is then as
        it was.
        """
        try:
            return self._stay(request, now)
        except BrokerError:
            self.undo(self.tables.take_changes())
            raise

    def undo(self, changes: list[StreamsChange]) -> None:
        """These changes are not to be: have everything as it was."""
        self.tables.undo(changes)

    def leave(self, member_id: str, *, shuts_down: bool = False) -> StreamsHeartbeatResult:
        """The last StreamsGroupHeartbeat of a member. UNKNOWN_MEMBER_ID."""
        self.member(member_id)
        if shuts_down:
            self._shut_down(member_id)
        self.fence([member_id])
        return StreamsHeartbeatResult(member_id, -1)

    def fence(self, member_ids: Collection[str]) -> None:
        """Take members out, and have the others share what they had."""
        for member_id in member_ids:
            for part in (StreamsPart.CURRENT, StreamsPart.TARGET, StreamsPart.MEMBER):
                self.tables.change(part, member_id, None)
        if member_ids:
            epoch = self.tables.epoch
            self.tables.change(StreamsPart.EPOCH, "", epoch._replace(epoch=epoch.epoch + 1))

    def _stay(self, request: StreamsHeartbeat, now: Now) -> StreamsHeartbeatResult:
        tables, member_id = self.tables, request.member_id
        former = self._admit(request)
        begins = not tables.members
        before = tables.current(member_id)
        member = _told(former or StreamsMember(member_id), request)
        if member != former:
            tables.change(StreamsPart.MEMBER, member_id, member)
        topology = self._adopt(request.topology)
        configured = self.configured(topology)
        if configured.is_ready:
            _check_tasks(request.owned or (), configured)
        self._refresh(topology, configured, bump=member != former)
        if begins:
            self._begin(now)
        delay = self._maybe_assign(configured, now)
        target = frozenset[Task]() if self._delayed_until is not None else tables.targets.get(member_id, frozenset())
        following = reconcile(
            before,
            tables.target_epoch.epoch,
            target,
            process_id=member.process_id,
            processes=tables.processes,
            owned=request.owned,
        )
        if following is not before or former is None:
            tables.change(StreamsPart.CURRENT, member_id, following)
            self._await_revocation(member, following, now)
        self._extend_session(member_id, now)
        if request.shuts_down:
            self._shut_down(member_id)
        told = request.member_epoch == 0 or request.is_full or before.assigned != following.assigned
        if told and member.user_endpoint is not None:
            self._endpoint_epoch += 1
        return StreamsHeartbeatResult(
            member_id,
            following.epoch,
            assigned=following.assigned if told else None,
            statuses=self._statuses(member, topology, delay, configured),
            endpoint_epoch=self._endpoint_epoch,
            endpoints=None if request.endpoint_epoch == self._endpoint_epoch else self._endpoints(member_id, topology),
            missing_topics=configured.missing,
        )

    def _admit(self, request: StreamsHeartbeat) -> StreamsMember | None:
        """The member that sends a heartbeat; None for one that joins and is not known.

        One that joins again has its place already. Kafka 4.3 counts it twice, and refuses it where the group is full.
        """
        told = request.member_epoch
        if told == 0:
            if len(self.members) >= self._limits.streams_max_size and request.member_id not in self.members:
                text = f"The streams group has reached its maximum capacity of {self._limits.streams_max_size} members."
                raise BrokerError(Error.GROUP_MAX_SIZE_REACHED, text)
            return self.members.get(request.member_id)
        member, current = self.member(request.member_id), self.tables.current(request.member_id)
        if told > current.epoch:
            relation = "greater"
        elif told < current.epoch and not (
            told == current.previous_epoch and request.owned is not None and request.owned <= current.assigned.keys()
        ):
            relation = "smaller"
        else:
            return member
        raise BrokerError(
            Error.FENCED_MEMBER_EPOCH,
            f"The streams group member has a {relation} member epoch ({told}) than the one known by the group "
            f"coordinator ({current.epoch}). The member must abandon all its partitions and rejoin.",
        )

    def _adopt(self, told: Topology | None) -> Topology:
        """The group's topology: the first that a member tells. Members may have an older one, but no other one."""
        topology = self.tables.topology
        if topology is None:
            assert told is not None, "who joins tells its topology"
            self.tables.change(StreamsPart.TOPOLOGY, "", told)
            return told
        if told is not None and told.epoch >= topology.epoch and told != topology:
            raise BrokerError(Error.INVALID_REQUEST, "Topology updates are not supported yet.")
        return topology

    def _refresh(self, topology: Topology, configured: ConfiguredTopology, *, bump: bool) -> None:
        """Raise the epoch where members, topics or settings are not what they were."""
        epoch = self.tables.epoch
        wanted = StreamsEpoch(
            epoch.epoch,
            self._metadata_hash,
            topology.epoch if configured.is_ready else NOT_VALIDATED,
            ((STANDBY_REPLICAS, str(self._limits.streams_num_standby_replicas(self.group_id))),),
        )
        if bump or wanted != epoch:
            self.tables.change(StreamsPart.EPOCH, "", wanted._replace(epoch=epoch.epoch + 1))

    def _begin(self, now: Now) -> None:
        """The first member is there: give others time to come."""
        self._shut_down_by = None
        delay_ms = self._limits.streams_initial_rebalance_delay_ms(self.group_id)
        if delay_ms and self._delayed_until is None:
            self._delayed_until = now.at + delay_ms / 1000

    # Assignment

    def _maybe_assign(self, configured: ConfiguredTopology, now: Now) -> Status | None:
        """Make a new target where one is due; what to tell a member that has to wait for it."""
        tables = self.tables
        if self._delayed_until is not None:
            if now.at < self._delayed_until:
                text = "Assignment delayed due to the configured initial rebalance delay."
                return Status(StatusCode.ASSIGNMENT_DELAYED, text)
            self._delayed_until = None
        if tables.target_epoch.epoch >= tables.epoch.epoch:
            return None
        interval_ms = self._limits.streams_assignment_interval_ms(self.group_id)
        if tables.target_epoch.was_made_within(interval_ms, now.wall_ms):
            text = "Assignment delayed due to the configured assignment interval."
            return Status(StatusCode.ASSIGNMENT_DELAYED, text)
        work = {}
        if configured.is_ready:
            work = {name: Work(each.tasks, each.is_stateful) for name, each in configured.subtopologies.items()}
        processes = {member_id: member.process_id for member_id, member in tables.members.items()}
        replicas = int(dict(tables.epoch.configs).get(STANDBY_REPLICAS, "0"))
        for member_id, target in assign(processes, tables.targets, work, replicas).items():
            if target != tables.targets.get(member_id):
                tables.change(StreamsPart.TARGET, member_id, target)
        tables.change(StreamsPart.TARGET_EPOCH, "", TargetEpoch(tables.epoch.epoch, now.wall_ms))
        return None

    def maybe_assign_delayed(self, now: Now) -> None:
        """Make the first target of a group that has waited long enough for members."""
        topology = self.tables.topology
        if self._delayed_until is None or now.at < self._delayed_until:
            return
        self._delayed_until = None
        if topology is not None and self.members:
            self._maybe_assign(self.configured(topology), now)

    def _statuses(
        self, member: StreamsMember, topology: Topology, delay: Status | None, configured: ConfiguredTopology
    ) -> list[Status]:
        """What a member is told of its group."""
        statuses = [each for each in (delay, configured.fault) if each is not None]
        if member.topology_epoch < topology.epoch:
            text = (
                f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch "
                f"{topology.epoch}."
            )
            statuses.insert(0, Status(StatusCode.STALE_TOPOLOGY, text))
        if self._shut_down_by is not None:
            text = (
                f"Streams group member {self._shut_down_by} encountered a fatal error and requested a shutdown for the "
                "entire application."
            )
            statuses.append(Status(StatusCode.SHUTDOWN_APPLICATION, text))
        return statuses

    def _shut_down(self, member_id: str) -> None:
        if self._shut_down_by is None:
            self._shut_down_by = member_id

    def _endpoints(self, member_id: str, topology: Topology) -> list[EndpointPartitions]:
        """Where each process answers queries, that of `member_id` last."""
        return [
            EndpointPartitions(
                self.members[each].user_endpoint or ("", 0),
                self._partitions(each, Role.ACTIVE, topology),
                self._partitions(each, Role.STANDBY, topology),
            )
            for each in [*(other for other in self.members if other != member_id), member_id]
            if self.members[each].user_endpoint is not None
        ]

    def _partitions(self, member_id: str, role: Role, topology: Topology) -> dict[str, list[int]]:
        """The partitions, by topic, that the tasks of a member in a role read."""
        found = {}
        for name, partitions in by_subtopology(self.tables.current(member_id).assigned, role).items():
            subtopology = topology.subtopologies.get(name)
            for topic_name in sorted(set(subtopology.read_topics)) if subtopology is not None else ():
                topic = self._topics.topics.get(topic_name)
                count = 0 if topic is None else len(topic.partitions)
                found[topic_name] = [each for each in partitions if each < count]
        return found

    # Offsets

    def check_commit(self, member_id: str, epoch: int, version: int, partitions: Iterable[tuple[str, int]]) -> None:
        """Decide whether the offsets of these (topic, partition)s may be committed, all or none.

        Without an epoch (-1) an empty group takes commits from anybody. In an epoch that is over a member may still
        commit what it has had since then (KIP-1251). Raises UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION where a member
        cannot tell its epoch, STALE_MEMBER_EPOCH.
        """
        if epoch < 0 and not self.members:
            return
        self.member(member_id)
        if version < FIRST_COMMIT_WITH_MEMBER_EPOCH:
            text = "OffsetCommit version 9 or above must be used by members using the streams group protocol"
            raise BrokerError(Error.UNSUPPORTED_VERSION, text)
        current, topology = self.tables.current(member_id), self.tables.topology
        if epoch == current.epoch:
            return
        if epoch > current.epoch:
            text = f"Received member epoch {epoch} is newer than current member epoch {current.epoch}."
            raise BrokerError(Error.STALE_MEMBER_EPOCH, text)
        for topic, partition in partitions:
            reader = None if topology is None else topology.readers.get(topic)
            since = None
            if reader is not None:
                since = current.assignment_epoch(Task(Role.ACTIVE, reader.subtopology_id, partition))
            if since is None or epoch < since:
                text = f"Member {member_id} does not have partition {partition} of {topic} since epoch {epoch}."
                raise BrokerError(Error.STALE_MEMBER_EPOCH, text)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Decide whether a member may be told offsets: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.

        Who says nothing of itself is told.
        """
        if member_id is None and epoch < 0:
            return
        member = self.member(member_id or "")
        expected = self.tables.current(member.member_id).epoch
        if epoch != expected:
            text = f"The received member epoch {epoch} does not match the expected member epoch {expected}."
            raise BrokerError(Error.STALE_MEMBER_EPOCH, text)

    # Time

    def resume(self, now: Now) -> None:
        """Start the deadlines of a group that was loaded."""
        for member_id, member in self.members.items():
            self._extend_session(member_id, now)
            self._await_revocation(member, self.tables.current(member_id), now)

    def kill(self) -> None:
        """The group is deleted or moves away."""
        super().kill()
        self._delayed_until = None

    def _extend_session(self, member_id: str, now: Now) -> None:
        self.timers.start(Timer.SESSION, member_id, self._limits.streams_session_timeout_ms(self.group_id), now)

    def _await_revocation(self, member: StreamsMember, current: StreamsCurrent, now: Now) -> None:
        """Have a member fenced that does not give up in time what it was asked to."""
        if current.state is MemberState.UNREVOKED_PARTITIONS:
            self.timers.start(Timer.REVOCATION, member.member_id, member.rebalance_timeout_ms, now)
        else:
            self.timers.end(Timer.REVOCATION, member.member_id)


def _told(member: StreamsMember, request: StreamsHeartbeat) -> StreamsMember:
    """The member with what it says of itself."""
    told: dict[str, object] = {"client_id": request.client_id, "client_host": request.client_host}
    if request.rebalance_timeout_ms != -1:
        told["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.topology is not None:
        told["topology_epoch"] = request.topology.epoch
    for name in ("rack_id", "process_id", "user_endpoint", "client_tags"):
        value = getattr(request, name)
        if value is not None:
            told[name] = value
    return member._replace(**told)  # type: ignore[arg-type]  # each name with its own type


def _check_tasks(owned: Iterable[Task], configured: ConfiguredTopology) -> None:
    """INVALID_REQUEST where a member says that it has tasks that there are not."""
    for _, name, partition in owned:
        subtopology = configured.subtopologies.get(name)
        if subtopology is None:
            raise BrokerError(Error.INVALID_REQUEST, f"Subtopology {name} does not exist in the topology.")
        if not 0 <= partition < subtopology.tasks:
            raise BrokerError(
                Error.INVALID_REQUEST,
                f"Task {partition} for subtopology {name} is invalid. Number of tasks for this subtopology: "
                f"{subtopology.tasks}",
            )
