"""Members of classic groups, many of them played by one thread: join, rebalance until all are in, heartbeat, commit."""

import select
import time
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.client import RETRY_S, Client
from odradek_protocol.errors import Error
from odradek_protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek_protocol.messages.heartbeat import HeartbeatRequest
from odradek_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek_protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

LIMIT_S = 60.0
SESSION_TIMEOUT_MS = 45_000
REBALANCE_TIMEOUT_MS = 60_000
LOOK_S = 0.05
"""How often a member that is done asks whether others have come: some brokers begin with whoever is first."""

NOT_YET = {
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
}

JOIN_VERSION = 5
SYNC_VERSION = 3
HEARTBEAT_VERSION = 3
COMMIT_VERSION = 7


class Member:
    """One consumer; `generation` is -1 until it has its assignment in one."""

    def __init__(self, client: Client, group: str, assignment_bytes: int = 30) -> None:
        self.client = client
        self.group = group
        self._assignment = bytes(assignment_bytes)
        self.generation = -1
        self.waits = False
        """For a reply."""
        self._member_id = ""

    def prepare(self) -> None:
        """Find the coordinator, and get an id."""
        while True:
            found = self.client.call(FindCoordinatorRequest(key=self.group, key_type=0), 2)
            if found.error_code == 0:
                reply = self._ask_id()
                if reply.error_code == Error.MEMBER_ID_REQUIRED:
                    break
                _check(self.group, reply.error_code, NOT_YET)
            else:
                _check(self.group, found.error_code, NOT_YET)
            time.sleep(RETRY_S)
        self._member_id = reply.member_id
        self.waits = False

    def _ask_id(self) -> Any:
        self.join()
        return self.client.receive()

    def join(self) -> None:
        """Ask to be in the next generation."""
        self.generation = -1
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(30))],
        )
        self._send(request, JOIN_VERSION)

    def _send(self, body: object, version: int) -> None:
        self.client.send(body, version)
        self.waits = True

    def take(self) -> None:
        """Take a reply, and ask for what comes next."""
        reply = self.client.receive()
        self.waits = False
        if reply.error_code == Error.REBALANCE_IN_PROGRESS:
            self.join()
            return
        _check(self.group, reply.error_code)
        if isinstance(reply, JoinGroupResponse):
            self._joining = reply.generation_id
            self._sync(reply)
        elif isinstance(reply, SyncGroupResponse):
            self.generation = self._joining

    def _sync(self, joined: JoinGroupResponse) -> None:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=joined.generation_id,
            member_id=self._member_id,
            group_instance_id=None,
            assignments=[
                SyncGroupRequestAssignment(member_id=one.member_id, assignment=self._assignment)
                for one in joined.members
            ],
        )
        self._send(request, SYNC_VERSION)

    def heartbeat(self) -> None:
        """Say that it is there."""
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self._member_id, group_instance_id=None
        )
        self._send(request, HEARTBEAT_VERSION)

    def has_to_join(self) -> bool:
        """Send a heartbeat, and look whether others have come."""
        self.heartbeat()
        reply = self.client.receive()
        self.waits = False
        _check(self.group, reply.error_code, [Error.REBALANCE_IN_PROGRESS])
        return bool(reply.error_code)

    def commit(self, topic: str, offset: int) -> None:
        """Commit an offset, and take the reply with `take_commit`."""
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self._member_id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        self._send(request, COMMIT_VERSION)

    def take_commit(self) -> None:
        """Take the reply to `commit`."""
        reply = self.client.receive()
        self.waits = False
        _check(self.group, reply.topics[0].partitions[0].error_code)


def settle(members: Sequence[Member]) -> None:
    """Bring every group into one generation of all its members. TimeoutError after `LIMIT_S`.

    All join but those that have asked to already.
    """
    poll = select.poll()
    by_fd = {member.client.fileno(): member for member in members}
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    for member in members:
        if not member.waits:
            member.join()
    deadline = time.monotonic() + LIMIT_S
    while unsettled := list(_unsettled(members)):
        ready = poll.poll(LOOK_S * 1000)
        for fd, _ in ready:
            by_fd[fd].take()
        if not ready:
            for member in unsettled:
                if not member.waits:
                    member.heartbeat()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(unsettled)} of {len(members)} members are in no group after {LIMIT_S} s")
    for member in members:
        if member.waits:
            member.take()


def _unsettled(members: Sequence[Member]) -> Iterable[Member]:
    """The members of groups whose members are not all in one generation."""
    generations: dict[str, set[int]] = {}
    for member in members:
        generations.setdefault(member.group, set()).add(member.generation)
    return (member for member in members if generations[member.group] == {-1} or len(generations[member.group]) > 1)


def _check(group: str, code: int, allowed: Iterable[int] = ()) -> None:
    if code and code not in allowed:
        raise RuntimeError(f"{group}: the broker answers {Error(code).name}")
