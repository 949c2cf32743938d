"""What the members of a group subscribe to, and whether the topics behind it are what they were.

Topics are named, or stand behind a pattern. A pattern is resolved when a member brings it, and again when topics have
come or gone, at most every ten seconds, or when it has not been for `group.consumer.regex.refresh.interval.ms`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Protocol

from odradek.groups.consumer_state import MemberInfo, Part, ResolvedPattern
from odradek.groups.consumer_tables import ConsumerTables
from odradek.groups.pattern import PatternError, TopicPattern
from odradek_protocol.errors import BrokerError, Error

__all__ = ["PatternLimits", "SubscribedTopics", "Subscriptions", "Topics"]

PATTERN_REFRESH_MIN_MS = 10_000
"""How long topics that come and go wait until the patterns of a group are looked at again; Kafka's constant."""


class Topic(Protocol):
    """A topic as the cluster's view has it."""

    @property
    def name(self) -> str: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> Sequence[object]: ...


class Topics(Protocol):
    """The topics there are; `revision` grows when one comes, goes or gets partitions."""

    @property
    def topics(self) -> Mapping[str, Topic]: ...
    @property
    def topics_by_id(self) -> Mapping[bytes, Topic]: ...
    @property
    def revision(self) -> int: ...


class PatternLimits(Protocol):
    """The setting that patterns obey."""

    @property
    def pattern_refresh_interval_ms(self) -> int: ...


class SubscribedTopics:
    """The topics that the members of a group subscribe to by name: what they were, and what they are."""

    def __init__(self, names: Collection[str], topics: Topics) -> None:
        """`names` is followed as it changes."""
        self._names = names
        self._topics = topics
        self._revision = -1
        """The revision of the topics that the group has been compared with."""

    def note_topics(self) -> bool:
        """Whether any topic has changed since this was asked before."""
        changed = not self.is_noted
        self._revision = self._topics.revision
        return changed

    @property
    def is_noted(self) -> bool:
        """Whether the topics have stayed as they were noted."""
        return self._revision == self._topics.revision

    def look_anew(self) -> None:
        """Take nothing for noted: what followed from it was undone."""
        self._revision = -1

    def metadata_hash(self) -> int:
        """A number for the topics that the group subscribes to, with their ids and sizes; 0 for none.

        Kafka stores a hash of its own there. Where a Kafka takes a group over the two differ, and the group gets one
        new epoch.
        """
        digest, found = blake2b(digest_size=8), False
        for name in sorted(self._names):
            topic = self._topics.topics.get(name)
            if topic is not None:
                found = True
                digest.update(topic.topic_id + len(topic.partitions).to_bytes(4, "big"))
        return int.from_bytes(digest.digest(), "big", signed=True) if found else 0

    def ids(self, names: Iterable[str]) -> frozenset[bytes]:
        """The ids of topics, of those that exist."""
        topics = self._topics.topics
        return frozenset(topics[name].topic_id for name in names if name in topics)


class Subscriptions(SubscribedTopics):
    """The subscriptions in `tables`, by name and by pattern, compared with `topics`."""

    def __init__(self, tables: ConsumerTables, topics: Topics, limits: PatternLimits) -> None:
        super().__init__(tables.subscribers, topics)
        self._tables = tables
        self._limits = limits
        self._patterns_revision = -1

    def resolve(self, pattern: str, wall_ms: int) -> ResolvedPattern:
        """The topics that a pattern stands for. INVALID_REGULAR_EXPRESSION when it is none."""
        try:
            matches = TopicPattern(pattern).matches
        except PatternError as error:
            text = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}."
            raise BrokerError(Error.INVALID_REGULAR_EXPRESSION, text) from error
        found = frozenset(name for name in self._topics.topics if matches(name))
        return ResolvedPattern(found, self._topics.revision, wall_ms)

    def refresh_patterns(self, wall_ms: int) -> bool:
        """Look again which topics the patterns stand for, when it is time; whether that has changed."""
        tables, revision, changed = self._tables, self._topics.revision, False
        if tables.patterns and self._patterns_are_due(revision, wall_ms):
            self._patterns_revision = revision
            for pattern, resolved in list(tables.patterns.items()):
                newer = self.resolve(pattern, wall_ms)
                tables.change(Part.PATTERN, pattern, newer)
                changed = changed or newer.topics != resolved.topics
        return changed

    def are_noted(self, wall_ms: int) -> bool:
        """Whether there is nothing to look at: all topics are as they were noted, and no pattern is due."""
        if self._tables.patterns and self._patterns_are_due(self._topics.revision, wall_ms):
            return False
        return self.is_noted

    def _patterns_are_due(self, revision: int, wall_ms: int) -> bool:
        age_ms = wall_ms - min(resolved.timestamp_ms for resolved in self._tables.patterns.values())
        if age_ms > self._limits.pattern_refresh_interval_ms:
            return True
        return revision != self._patterns_revision and age_ms > PATTERN_REFRESH_MIN_MS

    def forget_patterns(self, patterns: Iterable[str]) -> None:
        """Keep nothing of those among `patterns` that no member has any more."""
        for pattern in set(patterns):
            if pattern and pattern in self._tables.patterns and pattern not in self._tables.pattern_members:
                self._tables.change(Part.PATTERN, pattern, None)

    def look_anew(self) -> None:
        """See `SubscribedTopics`."""
        super().look_anew()
        self._patterns_revision = -1

    def topic_ids(self, member: MemberInfo) -> frozenset[bytes]:
        """The ids of the topics that a member subscribes to, of those that exist."""
        names: Collection[str] = member.topic_names
        resolved = self._tables.patterns.get(member.topic_pattern)
        if resolved is not None:
            names = member.topic_names | resolved.topics
        return self.ids(names)
