"""The internal topics of Kafka Streams applications: made for members that miss them, nobody waits for it.

A topic that could not be made is not tried again for a while; meanwhile members are told why.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import Protocol

import trio

from odradek.cluster.plans import DEFAULT, NewTopic
from odradek.groups.streams_topology import InternalTopic
from odradek_protocol.errors import BrokerError

__all__ = ["InternalTopics", "TopicMaker"]

log = logging.getLogger(__name__)


class TopicMaker(Protocol):
    """Who makes topics: the controller."""

    async def create_topic(self, new: NewTopic, /) -> object:
        """Make a topic. BrokerError."""


class InternalTopics:
    """What is being made, and what could not be made lately."""

    def __init__(self, maker: TopicMaker) -> None:
        self._maker = maker
        self._under_way: set[str] = set()
        self._failures: dict[str, tuple[float, str]] = {}
        """Until when a topic is not tried again, and why."""

    def faults(self, topics: Iterable[InternalTopic]) -> list[str]:
        """Why those of the topics could not be made that were tried lately."""
        now = trio.current_time()
        return [
            f"{topic.name} ({self._failures[topic.name][1]})"
            for topic in topics
            if topic.name in self._failures and now < self._failures[topic.name][0]
        ]

    def to_make(self, topics: Iterable[InternalTopic]) -> list[InternalTopic]:
        """Those of the topics that are to be made now, for `make`; from here on they are under way."""
        now = trio.current_time()
        for name in [name for name, (until, _) in self._failures.items() if until <= now]:
            del self._failures[name]
        wanted = [each for each in topics if each.name not in self._under_way and each.name not in self._failures]
        self._under_way.update(topic.name for topic in wanted)
        return wanted

    async def make(self, topics: Sequence[InternalTopic], retry_s: float) -> None:
        """Make topics; one that cannot be made is not tried again for `retry_s`."""
        try:
            for topic in topics:
                try:
                    await self._maker.create_topic(_new_topic(topic))
                except Exception as error:
                    told = isinstance(error, BrokerError)
                    log.warning("internal topic %s cannot be made: %s", topic.name, error, exc_info=not told)
                    self._failures[topic.name] = (
                        trio.current_time() + retry_s,
                        getattr(error, "message", "") or str(error),
                    )
        finally:
            self._under_way.difference_update(topic.name for topic in topics)


def _new_topic(topic: InternalTopic) -> NewTopic:
    return NewTopic(topic.name, topic.partitions, topic.replication_factor or DEFAULT, configs=dict(topic.configs))
