"""Incremental fetch sessions (KIP-227): a consumer names its partitions once and then only what changes.

    session id, epoch    what the request asks for
    0, -1                no session: the whole list, this once
    0, 0                 a new session: the whole list, to be kept
    id, 0                end that session, and a new one as above
    id, n                the next fetch of that session: the list changes by what the request names
    id, -1               end that session; the list is whole, this once

A session's epoch counts its fetches from 1, and goes from 2147483647 to 1 again. A request with another epoch than the
next is answered INVALID_FETCH_SESSION_EPOCH and leaves the session as it was. In a reply to an incremental fetch a
partition is left out when it has neither records nor an error and its offsets are those told last.

The cache has `max.incremental.fetch.session.cache.slots` places. When it is full, a session that was not used for
`EVICTION_MS` makes room, then one that is older than that and smaller than the new one; without either the new fetch
gets no session, which is always correct.
"""

import random
from collections.abc import Sequence

from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

__all__ = ["FINAL_EPOCH", "INITIAL_EPOCH", "FetchSession", "FetchSessions", "FetchTarget"]

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
WHOLE = (INITIAL_EPOCH, FINAL_EPOCH)
"""The epochs of requests that name all their partitions."""
EVICTION_MS = 120_000
"""Kafka's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS: how long a session is safe from others."""


class FetchTarget:
    """One partition of a fetch: what a request last asked of it, and (in a session) what the last reply told."""

    __slots__ = ("asked", "served_topic", "told", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: bytes, asked: FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.asked = asked
        self.served_topic = ""
        """The name of the topic that was last read by its id."""
        self.told: tuple[int, int, int] | None = None
        """High watermark, last stable offset and log start offset of the last reply that had no error."""

    def must_tell(self, data: PartitionData) -> bool:
        """Whether a reply to an incremental fetch has to name the partition; remembers what is told."""
        if data.error_code:
            self.told = None
            return True
        told, self.told = self.told, (data.high_watermark, data.last_stable_offset, data.log_start_offset)
        return (
            told != self.told
            or bool(data.records)
            or data.preferred_read_replica != -1
            or data.diverging_epoch.epoch != -1
        )


class FetchSession:
    """The partitions of one consumer or follower, in the order in which they are read."""

    __slots__ = ("created_ms", "epoch", "id", "targets", "used_ms", "uses_topic_ids")

    def __init__(self, session_id: int, targets: dict[object, FetchTarget], uses_topic_ids: bool, now_ms: int) -> None:
        self.id = session_id
        self.epoch = 1
        self.targets = targets
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = self.used_ms = now_ms

    def update(self, request: FetchRequest) -> None:
        """Add, change and drop the partitions that the request names."""
        targets = self.targets
        for topic in request.topics:
            name = topic.topic_id if self.uses_topic_ids else topic.topic
            for asked in topic.partitions:
                target = targets.get((name, asked.partition))
                if target is None:
                    targets[name, asked.partition] = FetchTarget(topic.topic, topic.topic_id, asked)
                else:
                    target.asked = asked
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if self.uses_topic_ids else forgotten.topic
            for index in forgotten.partitions:
                targets.pop((name, index), None)

    def move_to_end(self, target: FetchTarget) -> None:
        """Read `target` last the next time: it had data now, and the others want their turn."""
        key = (target.topic_id if self.uses_topic_ids else target.topic, target.asked.partition)
        if key in self.targets:
            del self.targets[key]
            self.targets[key] = target


def targets_of(request: FetchRequest, uses_topic_ids: bool) -> dict[object, FetchTarget]:
    """The partitions that a request names, by (topic or topic id, index)."""
    targets: dict[object, FetchTarget] = {}
    for topic in request.topics:
        name, topic_id = topic.topic, topic.topic_id
        key = topic_id if uses_topic_ids else name
        for asked in topic.partitions:
            targets[key, asked.partition] = FetchTarget(name, topic_id, asked)
    return targets


class FetchSessions:
    """The sessions of this broker. `slots` is how many there may be."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(
        self, request: FetchRequest, uses_topic_ids: bool, now_ms: int
    ) -> tuple[FetchSession | None, Sequence[FetchTarget], bool]:
        """The session of a request, the partitions to read, and whether the fetch is incremental.

        Raises BrokerError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, or FETCH_SESSION_TOPIC_ID_ERROR
        when a session that was made with topic names goes on with ids, or the other way.
        """
        if request.session_epoch in WHOLE:
            self._sessions.pop(request.session_id, None)
            targets = targets_of(request, uses_topic_ids)
            session = None
            if request.session_epoch == INITIAL_EPOCH:
                session = self._maybe_create(targets, uses_topic_ids, now_ms)
            return session, list(targets.values()), False
        session = self._sessions.get(request.session_id)
        if session is None:
            raise BrokerError(Error.FETCH_SESSION_ID_NOT_FOUND, f"no fetch session {request.session_id}")
        if session.epoch != request.session_epoch:
            raise BrokerError(
                Error.INVALID_FETCH_SESSION_EPOCH,
                f"epoch {request.session_epoch} of fetch session {session.id}, expected {session.epoch}",
            )
        if session.uses_topic_ids != uses_topic_ids:
            raise BrokerError(Error.FETCH_SESSION_TOPIC_ID_ERROR, f"fetch session {session.id} changed its kind")
        session.update(request)
        session.epoch = 1 if session.epoch == 0x7FFFFFFF else session.epoch + 1
        session.used_ms = now_ms
        return session, list(session.targets.values()), True

    def _maybe_create(
        self, targets: dict[object, FetchTarget], uses_topic_ids: bool, now_ms: int
    ) -> FetchSession | None:
        if len(self._sessions) >= self.slots and not self._evict(len(targets), now_ms):
            return None
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = random.randint(1, 0x7FFFFFFF)  # noqa: S311 - has to be unlikely, not secret
        session = self._sessions[session_id] = FetchSession(session_id, targets, uses_topic_ids, now_ms)
        return session

    def _evict(self, size: int, now_ms: int) -> bool:
        """Make room for a session of `size` partitions, if one may go."""
        if not self._sessions:
            return False
        stale = min(self._sessions.values(), key=lambda session: session.used_ms)
        if now_ms - stale.used_ms <= EVICTION_MS:
            old = [session for session in self._sessions.values() if now_ms - session.created_ms > EVICTION_MS]
            stale = min(old, key=lambda session: len(session.targets), default=stale)
            if not old or len(stale.targets) >= size:
                return False
        del self._sessions[stale.id]
        return True
