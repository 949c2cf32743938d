"""What kafka-python's admin client does. Its answers changed shape from release to release."""

from __future__ import annotations

import re
from contextlib import closing
from typing import Any

import kafka
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
from kafka.errors import for_code
from library import BOOTSTRAP, VERSION, partitions_of
from serving import operation


def _admin() -> closing[KafkaAdminClient]:
    return closing(KafkaAdminClient(bootstrap_servers=BOOTSTRAP))


def _check(result: str) -> None:
    """Raise what the admin client of 3.x answers: "OK", an exception's name, or its code and message."""
    if code := re.match(r"\[Error (\d+)\]", result):
        raise for_code(int(code[1]))(result)
    if result != "OK":
        raise getattr(kafka.errors, result)


@operation
def create_topic(topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
    """Create a topic with one replica."""
    with _admin() as admin:
        admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs or {})])


@operation
def delete_topic(topic: str) -> None:
    """Delete a topic."""
    with _admin() as admin:
        admin.delete_topics([topic])


@operation
def list_topics() -> list[str]:
    """Return the names of all topics."""
    if VERSION < 2:
        with closing(kafka.KafkaConsumer(bootstrap_servers=BOOTSTRAP)) as consumer:
            return sorted(consumer.topics())
    with _admin() as admin:
        return admin.list_topics()


@operation
def count_partitions(topic: str) -> int:
    """Return how many partitions the topic has, as its description says."""
    if VERSION < 2:
        with closing(kafka.KafkaConsumer(bootstrap_servers=BOOTSTRAP)) as consumer:
            return len(partitions_of(consumer, topic))
    with _admin() as admin:
        [description] = admin.describe_topics([topic])
    if description["error_code"]:
        raise for_code(description["error_code"])(topic)
    return len(description["partitions"])


@operation
def create_partitions(topic: str, total: int) -> None:
    """Raise the number of partitions."""
    with _admin() as admin:
        admin.create_partitions({topic: NewPartitions(total)})


@operation
def topic_config(topic: str, key: str) -> str | None:
    """Return the value that is in force for a topic's setting."""
    with _admin() as admin:
        if VERSION >= 3:
            described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter="all")
            return described["topic"][topic][key]["value"]
        answer = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        [response] = answer if VERSION == 2 else [answer]
        [(_, _, _, _, entries)] = response.resources
        return {entry[0]: entry[1] for entry in entries}[key]


@operation
def alter_topic_config(topic: str, configs: dict[str, str]) -> None:
    """Set settings of a topic: incrementally in 3.x, before by replacing all."""
    with _admin() as admin:
        answer = admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)])
    if VERSION >= 3:
        _check(answer["topic"][topic])
    elif code := answer.resources[0][0]:
        raise for_code(code)(answer.resources[0][1])


@operation
def change_topic_config(topic: str, changes: list[list[Any]]) -> None:
    """Apply [operation, key, value] changes: set, delete, append, subtract (3.x)."""
    configs = {key: (operation.upper(), value) for operation, key, value in changes}
    with _admin() as admin:
        answer = admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)])
    _check(answer["topic"][topic])


@operation
def delete_records(topic: str, partition: int, before: int) -> int:
    """Delete what lies before an offset; return the partition's new beginning."""
    tp = kafka.TopicPartition(topic, partition)
    with _admin() as admin:
        return admin.delete_records({tp: before})[tp]["low_watermark"]


@operation
def alter_offset(group: str, topic: str, partition: int, offset: int) -> None:
    """Set the committed offset of a group without members (3.x)."""
    tp = kafka.TopicPartition(topic, partition)
    with _admin() as admin:
        answer = admin.alter_group_offsets(group, {tp: kafka.OffsetAndMetadata(offset, "", -1)})
    if answer[tp].errno:
        raise answer[tp](group)


@operation
def describe_cluster() -> dict[str, Any]:
    """Return the cluster's id, controller and [id, host, port] of its nodes."""
    with _admin() as admin:
        described = admin.describe_cluster()
    node_id = "broker_id" if VERSION >= 3 else "node_id"
    return {
        "cluster_id": described["cluster_id"],
        "controller": described["controller_id"],
        "nodes": [[broker[node_id], broker["host"], broker["port"]] for broker in described["brokers"]],
    }


@operation
def list_groups() -> list[str]:
    """Return the names of all groups."""
    with _admin() as admin:
        if VERSION >= 3:
            return [group["group_id"] for group in admin.list_groups()]
        return [group for group, _ in admin.list_consumer_groups()]


@operation
def describe_group(group: str) -> dict[str, Any]:
    """Return the group's state, protocol and number of members."""
    with _admin() as admin:
        if VERSION >= 3:
            described = admin.describe_groups([group])[group]
            state, protocol, members = (described[key] for key in ("group_state", "protocol_data", "members"))
        else:
            [(_, _, state, _, protocol, members, *_)] = admin.describe_consumer_groups([group])
    return {"state": state, "protocol": protocol, "members": len(members)}


@operation
def delete_group(group: str) -> None:
    """Delete an empty group."""
    with _admin() as admin:
        if VERSION >= 3:
            _check(admin.delete_groups([group])[group])
        else:
            [(_, error)] = admin.delete_consumer_groups([group])
            if error.errno:
                raise error(group)
