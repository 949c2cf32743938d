"""Share sessions: a member names its partitions once and then only what changes (KIP-932).

    epoch    what a request asks for
    0        a new session, in the place of the one that the member may have
    n        the next request of that session; ShareFetch and ShareAcknowledge count together
    -1       the last request of that session

A session's epoch counts from 1, and goes from 2147483647 to 1 again. It ends with the connection that began it, too.
There are at most `group.share.max.share.sessions`; none is put out to make room.
"""

from collections.abc import Iterable

from odradek_protocol.errors import BrokerError, Error

__all__ = ["FINAL_EPOCH", "INITIAL_EPOCH", "ShareSession", "ShareSessions", "TopicIdPartition"]

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
HIGHEST_EPOCH = (1 << 31) - 1

TopicIdPartition = tuple[bytes, int]


class ShareSession:
    """The partitions of one member. `told` is whether the replies so far have named a partition."""

    __slots__ = ("epoch", "group_id", "member_id", "partitions")

    def __init__(self, group_id: str, member_id: str, partitions: Iterable[TopicIdPartition]) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = 1
        self.partitions: dict[TopicIdPartition, bool] = dict.fromkeys(partitions, False)
        """Each partition, and whether the next reply has to name it."""

    def update(self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        """Add and drop partitions; the replies name a new one once, whatever there is of it."""
        for partition in added:
            self.partitions.setdefault(partition, True)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def must_tell(self, partition: TopicIdPartition, *, has_records: bool, has_error: bool) -> bool:
        """Whether a reply has to name a partition; remembers what is told."""
        if partition not in self.partitions:
            return True
        told = self.partitions[partition] or has_records or has_error
        if told:
            self.partitions[partition] = has_error
        return told


class ShareSessions:
    """The sessions of this broker. `limit` is how many there may be."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sessions: dict[tuple[str, str], ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, group_id: str, member_id: str) -> ShareSession:
        """The session of a member. SHARE_SESSION_NOT_FOUND when it has none."""
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise BrokerError(Error.SHARE_SESSION_NOT_FOUND, "The share session was not found.")
        return session

    def create(self, group_id: str, member_id: str, partitions: Iterable[TopicIdPartition]) -> ShareSession:
        """A new session in the place of the member's. SHARE_SESSION_LIMIT_REACHED when there is no place for it."""
        self._sessions.pop((group_id, member_id), None)
        if len(self._sessions) >= self._limit:
            raise BrokerError(Error.SHARE_SESSION_LIMIT_REACHED, "The limit of share sessions has been reached.")
        session = self._sessions[group_id, member_id] = ShareSession(group_id, member_id, partitions)
        return session

    def advance(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session that a request goes on with.

        Raises SHARE_SESSION_NOT_FOUND, and INVALID_SHARE_SESSION_EPOCH for another epoch than the next.
        """
        if epoch == INITIAL_EPOCH:
            raise BrokerError(Error.INVALID_SHARE_SESSION_EPOCH, "The share session epoch is invalid.")
        session = self.find(group_id, member_id)
        if epoch != FINAL_EPOCH:
            if epoch != session.epoch:
                raise BrokerError(Error.INVALID_SHARE_SESSION_EPOCH, "The share session epoch is invalid.")
            session.epoch = 1 if epoch == HIGHEST_EPOCH else epoch + 1
        return session

    def remove(self, session: ShareSession) -> bool:
        """End a session; whether it was there."""
        key = session.group_id, session.member_id
        if self._sessions.get(key) is not session:
            return False
        del self._sessions[key]
        return True

    def has_members(self, group_id: str) -> bool:
        """Whether any member of a group has a session."""
        return any(group == group_id for group, _ in self._sessions)
