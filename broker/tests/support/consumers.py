"""A member of a group over the wire: what it asks and what it takes are apart, so that one thread can play many."""

from odradek_protocol.errors import Error
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek_protocol.messages.heartbeat import HeartbeatRequest
from odradek_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek_protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from support.wire import WireClient

__all__ = ["Member"]


class Member:
    """A consumer in a group."""

    def __init__(self, client: WireClient, group: str) -> None:
        self.client = client
        self.group = group
        self.member_id = ""
        self.generation = -1
        self.joined: JoinGroupResponse | None = None

    def ask_to_join(self) -> None:
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"t")
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[protocol],
            reason=None,
        )
        self.client.send(request, 9)

    def find_coordinator(self) -> None:
        reply = self.client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group]), 4)
        assert reply.coordinators[0].error_code == 0

    def take_id(self) -> None:
        """Join without an id, as soon as the group is loaded: the broker gives one, and wants to be asked with it."""
        self.ask_to_join()
        while (reply := self.client.receive()).error_code == Error.COORDINATOR_LOAD_IN_PROGRESS:
            self.ask_to_join()
        assert reply.error_code == Error.MEMBER_ID_REQUIRED
        self.member_id = reply.member_id

    def join_alone(self) -> None:
        """Join a group that has no other member, with the id of an earlier connection if the group still knows it."""
        while True:
            if not self.member_id:
                self.take_id()
            self.ask_to_join()
            reply = self.client.receive()
            if reply.error_code == Error.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            elif reply.error_code != Error.COORDINATOR_LOAD_IN_PROGRESS:
                break
        assert reply.error_code == 0
        self._joined(reply)

    def take_join(self) -> None:
        reply = self.client.receive()
        assert reply.error_code == 0
        self._joined(reply)

    def _joined(self, reply: JoinGroupResponse) -> None:
        self.joined = reply
        self.generation = reply.generation_id

    @property
    def is_leader(self) -> bool:
        return self.joined is not None and self.joined.leader == self.member_id

    def ask_to_sync(self) -> None:
        assert self.joined is not None
        assignments = [
            SyncGroupRequestAssignment(member_id=one.member_id, assignment=one.member_id.encode())
            for one in self.joined.members
        ]
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        self.client.send(request, 5)

    def take_sync(self) -> None:
        reply = self.client.receive()
        assert (reply.error_code, reply.assignment) == (0, self.member_id.encode())

    def ask_heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id, group_instance_id=None
        )
        self.client.send(request, 4)

    def ask_to_commit(self, topic: str, offset: int) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        self.client.send(request, 8)

    def leave(self) -> None:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=None, reason=None)
        reply = self.client.call(LeaveGroupRequest(group_id=self.group, members=[identity]), 5)
        assert reply.error_code == 0
        assert reply.members[0].error_code == 0
