"""Requests of members to streams groups; what they change is in the log before it holds (KIP-1071).

Public methods raise BrokerError.
"""

from collections.abc import Sequence

from odradek.groups.consumer_state import LEAVE_EPOCH
from odradek.groups.group import Group
from odradek.groups.internal_topics import InternalTopics
from odradek.groups.shard import GroupShard
from odradek.groups.share_membership import ShareMembership
from odradek.groups.streams_group import StreamsGroup, StreamsHeartbeat, StreamsHeartbeatResult
from odradek.groups.streams_topics import Status, StatusCode
from odradek.sharding import APPEND_ERRORS, Written, answering
from odradek_protocol.errors import BrokerError, Error

__all__ = ["StreamsMembership"]

TOLD_FAILURES = 3
"""How many topics are named that could not be made."""

RETRY_HEARTBEATS = 2
"""After how many heartbeats a topic is tried again that could not be made."""


class StreamsMembership(ShareMembership):
    """What is asked of the coordinator of streams groups. `internal_topics` is to be set before requests are served."""

    internal_topics: InternalTopics

    def streams_heartbeat(
        self, group_id: str, request: StreamsHeartbeat
    ) -> tuple[StreamsHeartbeatResult, Written | None]:
        """StreamsGroupHeartbeat: the reply, and what has to be replicated before it may leave.

        A first heartbeat makes the group, in the place of a classic one without members. Internal topics that are
        missing are begun to be made. Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, GROUP_ID_NOT_FOUND, what
        `StreamsGroup.heartbeat` raises, and `APPEND_ERRORS`.
        """
        shard = self._shard(group_id)
        if request.member_epoch == LEAVE_EPOCH:
            group = self.find_streams_group(group_id)
            return group.leave(request.member_id, shuts_down=request.shuts_down), self._store(shard, group)
        found = shard.groups.get(group_id)
        classic = found if isinstance(found, Group) and not found.members else None
        if request.member_epoch == 0 and (found is None or classic is not None):
            result, written = self._first_streams_heartbeat(shard, group_id, classic, request)
        else:
            if found is None:
                raise BrokerError(Error.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
            group = self.find_streams_group(group_id)
            result = group.heartbeat(request, self._now())
            self._schedule(group)
            written = self._store(shard, group)
        return self._with_topics(group_id, result), written

    def streams_heartbeat_interval_ms(self, group_id: str) -> int:
        """How often the members of a streams group are told to send a heartbeat."""
        return self._limits.streams_heartbeat_interval_ms(group_id)

    def find_streams_group(self, group_id: str) -> StreamsGroup:
        """The streams group of that name. GROUP_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        group = self._shard(group_id).groups.get(group_id)
        if group is None:
            raise BrokerError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, StreamsGroup):
            raise BrokerError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
        return group

    # Inside

    def _first_streams_heartbeat(
        self, shard: GroupShard, group_id: str, classic: Group | None, request: StreamsHeartbeat
    ) -> tuple[StreamsHeartbeatResult, Written | None]:
        """A member comes to a group that is not there, or has no members and speaks the classic protocol so far."""
        group = shard.new(StreamsGroup, group_id)
        if classic is not None:
            group.offsets = classic.offsets
        result = group.heartbeat(request, self._now())
        with answering(APPEND_ERRORS):
            last_offset = shard.append_changes(group, group.tables.take_changes(), replaced=classic)
        if classic is not None:
            self._deadlines.forget(classic)
            classic.kill(Error.GROUP_ID_NOT_FOUND)
        self._schedule(group)
        return result, shard.written(last_offset)

    def _with_topics(self, group_id: str, result: StreamsHeartbeatResult) -> StreamsHeartbeatResult:
        """Begin to make what is missing, and tell what could not be made."""
        missing = result.missing_topics
        if not missing:
            return result
        wanted = self.internal_topics.to_make(missing)
        if wanted:
            retry_s = RETRY_HEARTBEATS * self.streams_heartbeat_interval_ms(group_id) / 1000
            self._start(self.internal_topics.make, wanted, retry_s)
        faults = self.internal_topics.faults(missing)
        return result._replace(statuses=[_with_faults(status, faults) for status in result.statuses])


def _with_faults(status: Status, faults: Sequence[str]) -> Status:
    if status.code is not StatusCode.MISSING_INTERNAL_TOPICS or not faults:
        return status
    more = len(faults) - TOLD_FAILURES
    listed = ", ".join(faults[:TOLD_FAILURES]) + (f" and {more} more" if more > 0 else "")
    return Status(status.code, f"{status.detail}; Creation failed: {listed}.")
