"""What is asked of a broker beside records, through kafka-python: making topics, and which offsets they have."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import TopicAlreadyExistsError

from pipeline.topics import TOPICS, Topic

__all__ = ["beginnings", "create_topics", "ends", "offsets_at"]

TopicOffsets = dict[str, dict[int, int]]


def create_topics(bootstrap_servers: str, topics: tuple[Topic, ...] = TOPICS) -> None:
    """Create those of `topics` that are not there."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        for topic in topics:
            try:
                admin.create_topics({topic.name: {"num_partitions": topic.partitions, "configs": dict(topic.configs)}})
            except TopicAlreadyExistsError:
                continue
    finally:
        admin.close()


def beginnings(bootstrap_servers: str, topics: Iterable[str]) -> TopicOffsets:
    """The first offset of each partition that is still there."""
    return _ask(bootstrap_servers, topics, lambda consumer, places: consumer.beginning_offsets(places))


def ends(bootstrap_servers: str, topics: Iterable[str]) -> TopicOffsets:
    """The offset behind the last record of each partition that is committed."""
    return _ask(bootstrap_servers, topics, lambda consumer, places: consumer.end_offsets(places))


def offsets_at(bootstrap_servers: str, topics: Iterable[str], time_ms: int) -> TopicOffsets:
    """The offset of the first record of each partition that arrived at `time_ms` or later, or the end."""

    def find(consumer: KafkaConsumer, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        found = consumer.offsets_for_times(dict.fromkeys(places, time_ms))
        end = consumer.end_offsets(places)
        return {place: found[place].offset if found.get(place) else end[place] for place in places}

    return _ask(bootstrap_servers, topics, find)


def _ask(
    bootstrap_servers: str,
    topics: Iterable[str],
    question: Callable[[KafkaConsumer, list[TopicPartition]], dict[TopicPartition, int]],
) -> TopicOffsets:
    answer: TopicOffsets = {}
    with _consumer(bootstrap_servers) as consumer:
        places = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in sorted(consumer.partitions_for_topic(topic) or ())
        ]
        for place, offset in question(consumer, places).items():
            answer.setdefault(place.topic, {})[place.partition] = offset
    return answer


@contextmanager
def _consumer(bootstrap_servers: str) -> Iterator[KafkaConsumer]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap_servers, isolation_level="read_committed")
    try:
        yield consumer
    finally:
        consumer.close()
