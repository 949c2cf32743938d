"""The znodes of a cluster: one object for each kind, with its `path`, `encode` and `decode`.

Paths and JSON are those of Kafka 3.9 in ZooKeeper mode, so that its brokers and tools read what is written here:

    /cluster/id                              {"version":"1","id":"..."}
    /controller_epoch                        7
    /controller                              ephemeral: who is controller
    /brokers/ids/ID                          ephemeral: a live broker
    /brokers/topics/TOPIC                    topic id and assignment
    /brokers/topics/TOPIC/partitions/P/state leader, leader epoch, in-sync replicas
    /config/groups/GROUP                     {"version":1,"config":{...}}
    /config/topics/TOPIC  /config/brokers/ID {"version":1,"config":{...}}; /config/brokers/<default> for all brokers
    /admin/delete_topics/TOPIC               the topic is being deleted
    /latest_producer_id_block                the newest block of producer ids that was given out
    /feature                                 the levels of the cluster's features

`decode` raises ValueError, naming the path, for bytes that are not what `encode` makes.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from odradek.cluster.store import parent_of
from odradek.cluster.view import Endpoint

__all__ = [
    "PERSISTENT_PATHS",
    "BrokerConfigZNode",
    "BrokerZNode",
    "ClusterIdZNode",
    "Config",
    "ControllerEpochZNode",
    "ControllerZNode",
    "DeleteTopicZNode",
    "FeatureZNode",
    "GroupConfigZNode",
    "PartitionStateZNode",
    "PartitionZNode",
    "ProducerIdBlockZNode",
    "TopicConfigZNode",
    "TopicZNode",
    "decode_uuid",
    "encode_uuid",
]

PERSISTENT_PATHS = (
    "/admin/delete_topics",
    "/brokers/ids",
    "/brokers/topics",
    "/cluster",
    "/config/brokers",
    "/config/groups",
    "/config/topics",
    "/latest_producer_id_block",
)
"""The nodes that are always there, each with its parents."""

_UUID_TEXT = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)


def encode_uuid(uuid: bytes) -> str:
    """A uuid as Kafka writes it: base64 for URLs, without padding, 22 characters."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode()


def decode_uuid(text: str) -> bytes:
    """The sixteen bytes that `encode_uuid` wrote. ValueError for anything else."""
    if not _UUID_TEXT.fullmatch(text):
        raise ValueError(f"not a uuid: {text!r}")
    return base64.urlsafe_b64decode(text + "==")


def _encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _decode(path: str, data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise ValueError(f"{path}: not JSON: {data[:200]!r}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path}: not a JSON object: {data[:200]!r}")  # noqa: TRY004 - bad bytes, not a bad call
    return value


def _field(path: str, value: Mapping[str, Any], name: str, kind: type) -> Any:
    found = value.get(name)
    if not isinstance(found, kind) or isinstance(found, bool):
        raise ValueError(f"{path}: {name} is no {kind.__name__}: {found!r}")  # noqa: TRY004 - bad bytes, not a bad call
    return found


def _ids(path: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(broker) is int for broker in value):
        raise ValueError(f"{path}: not a list of broker ids: {value!r}")
    return tuple(value)


class ClusterIdZNode:
    """/cluster/id"""

    path = "/cluster/id"

    @staticmethod
    def encode(cluster_id: str) -> bytes:
        return _encode({"version": "1", "id": cluster_id})

    @classmethod
    def decode(cls, data: bytes) -> str:
        return str(_field(cls.path, _decode(cls.path, data), "id", str))


class ControllerEpochZNode:
    """/controller_epoch: plain digits; one more each time that a broker becomes controller, 1 the first time."""

    path = "/controller_epoch"

    @staticmethod
    def encode(epoch: int) -> bytes:
        return str(epoch).encode()

    @classmethod
    def decode(cls, data: bytes) -> int:
        if not data.isdigit():
            raise ValueError(f"{cls.path}: not a number: {data[:200]!r}")
        return int(data)


class ControllerZNode:
    """/controller. The KRaft controller epoch is -1: there is none."""

    path = "/controller"

    @staticmethod
    def encode(node_id: int, timestamp_ms: int) -> bytes:
        return _encode({"version": 2, "brokerid": node_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1})

    @classmethod
    def decode(cls, data: bytes) -> int:
        return int(_field(cls.path, _decode(cls.path, data), "brokerid", int))


class BrokerRegistration(NamedTuple):
    """What a broker says of itself; endpoints by listener name."""

    endpoints: Mapping[str, Endpoint]
    rack: str | None


class BrokerZNode:
    """/brokers/ids/ID, in the JSON's version 5.

    `host` and `port` at the top are the first PLAINTEXT endpoint, null and -1 without one.
    """

    @staticmethod
    def path(node_id: int) -> str:
        return f"/brokers/ids/{node_id}"

    @staticmethod
    def encode(registration: BrokerRegistration, timestamp_ms: int) -> bytes:
        endpoints = registration.endpoints
        plaintext = next((one for one in endpoints.values() if one.security_protocol == "PLAINTEXT"), None)
        value: dict[str, object] = {
            "version": 5,
            "host": plaintext.host if plaintext else None,
            "port": plaintext.port if plaintext else -1,
            "endpoints": [f"{name}://{_address(one)}" for name, one in endpoints.items()],
            "jmx_port": -1,
            "timestamp": str(timestamp_ms),
            "listener_security_protocol_map": {name: one.security_protocol for name, one in endpoints.items()},
            "features": {},
        }
        if registration.rack is not None:
            value["rack"] = registration.rack
        return _encode(value)

    @classmethod
    def decode(cls, node_id: int, data: bytes) -> BrokerRegistration:
        path = cls.path(node_id)
        value = _decode(path, data)
        protocols = _field(path, {"listener_security_protocol_map": {}} | value, "listener_security_protocol_map", dict)
        endpoints = {}
        for text in _field(path, value, "endpoints", list):
            name, slashes, address = str(text).partition("://")
            host, colon, port = address.rpartition(":")
            if not slashes or not colon or not port.isdigit():
                raise ValueError(f"{path}: not an endpoint: {text!r}")
            endpoints[name] = Endpoint(host.removeprefix("[").removesuffix("]"), int(port), protocols.get(name, name))
        return BrokerRegistration(endpoints, value.get("rack"))


def _address(endpoint: Endpoint) -> str:
    return f"[{endpoint.host}]:{endpoint.port}" if ":" in endpoint.host else f"{endpoint.host}:{endpoint.port}"


class TopicAssignment(NamedTuple):
    """A topic's id, and the replicas of each partition in order of preference."""

    topic_id: bytes
    partitions: Mapping[int, tuple[int, ...]]


class TopicZNode:
    """/brokers/topics/TOPIC, in the JSON's version 3 (topic ids, KIP-516). No reassignment is in progress."""

    parent = "/brokers/topics"

    @classmethod
    def path(cls, topic: str) -> str:
        return f"{cls.parent}/{topic}"

    @classmethod
    def partitions_path(cls, topic: str) -> str:
        return f"{cls.parent}/{topic}/partitions"

    @staticmethod
    def encode(assignment: TopicAssignment) -> bytes:
        return _encode(
            {
                "version": 3,
                "topic_id": encode_uuid(assignment.topic_id),
                "partitions": {str(index): list(replicas) for index, replicas in assignment.partitions.items()},
                "adding_replicas": {},
                "removing_replicas": {},
            }
        )

    @classmethod
    def decode(cls, topic: str, data: bytes) -> TopicAssignment:
        path = cls.path(topic)
        value = _decode(path, data)
        partitions = _field(path, value, "partitions", dict)
        if not all(index.isdigit() for index in partitions):
            raise ValueError(f"{path}: not partition numbers: {list(partitions)}")
        text = _field(path, value, "topic_id", str)
        try:
            topic_id = decode_uuid(text)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        return TopicAssignment(
            topic_id,
            {int(index): _ids(path, replicas) for index, replicas in sorted(partitions.items(), key=_by_number)},
        )


def _by_number(item: tuple[str, object]) -> int:
    return int(item[0])


class PartitionZNode:
    """/brokers/topics/TOPIC/partitions/P: empty, the parent of the state."""

    @staticmethod
    def path(topic: str, index: int) -> str:
        return f"{TopicZNode.partitions_path(topic)}/{index}"


class PartitionState(NamedTuple):
    """Who leads a partition since which epoch, who is in sync, and the epoch of the controller that said so."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int


class PartitionStateZNode:
    """/brokers/topics/TOPIC/partitions/P/state"""

    @staticmethod
    def path(topic: str, index: int) -> str:
        return f"{PartitionZNode.path(topic, index)}/state"

    @staticmethod
    def encode(state: PartitionState) -> bytes:
        return _encode(
            {
                "controller_epoch": state.controller_epoch,
                "leader": state.leader,
                "version": 1,
                "leader_epoch": state.leader_epoch,
                "isr": list(state.isr),
            }
        )

    @classmethod
    def decode(cls, topic: str, index: int, data: bytes) -> PartitionState:
        path = cls.path(topic, index)
        value = _decode(path, data)
        return PartitionState(
            leader=_field(path, value, "leader", int),
            leader_epoch=_field(path, value, "leader_epoch", int),
            isr=_ids(path, value.get("isr")),
            controller_epoch=_field(path, value, "controller_epoch", int),
        )


class Config:
    """The body of every /config node: names and values, all text."""

    @staticmethod
    def encode(configs: Mapping[str, str]) -> bytes:
        return _encode({"version": 1, "config": dict(configs)})

    @staticmethod
    def decode(path: str, data: bytes) -> dict[str, str]:
        configs = _field(path, _decode(path, data), "config", dict)
        return {name: str(value) for name, value in configs.items()}


class TopicConfigZNode(Config):
    """/config/topics/TOPIC"""

    @staticmethod
    def path(topic: str) -> str:
        return f"/config/topics/{topic}"


class BrokerConfigZNode(Config):
    """/config/brokers/ID, and /config/brokers/<default> for what holds for all brokers (`node_id` None)."""

    @staticmethod
    def path(node_id: int | None) -> str:
        return f"/config/brokers/{'<default>' if node_id is None else node_id}"


class GroupConfigZNode(Config):
    """/config/groups/GROUP, the name of the group URL-encoded, as it may be any text."""

    parent = "/config/groups"

    @staticmethod
    def path(group: str) -> str:
        return f"/config/groups/{quote(group, safe='')}"

    @staticmethod
    def group(name: str) -> str:
        """The group of a node's name."""
        return unquote(name)


class DeleteTopicZNode:
    """/admin/delete_topics/TOPIC: empty."""

    parent = "/admin/delete_topics"

    @classmethod
    def path(cls, topic: str) -> str:
        return f"{cls.parent}/{topic}"


class ProducerIdBlock(NamedTuple):
    """The producer ids `first` to `last`, both included, given to one broker."""

    node_id: int
    first: int
    last: int


class ProducerIdBlockZNode:
    """/latest_producer_id_block: empty until the first block is given out."""

    path = "/latest_producer_id_block"

    @staticmethod
    def encode(block: ProducerIdBlock) -> bytes:
        return _encode(
            {"version": 1, "broker": block.node_id, "block_start": str(block.first), "block_end": str(block.last)}
        )

    @classmethod
    def decode(cls, data: bytes) -> ProducerIdBlock:
        value = _decode(cls.path, data)
        first, last = (_field(cls.path, value, name, str) for name in ("block_start", "block_end"))
        if not first.isdigit() or not last.isdigit():
            raise ValueError(f"{cls.path}: not producer ids: {first!r}, {last!r}")
        return ProducerIdBlock(_field(cls.path, value, "broker", int), int(first), int(last))


class FeatureZNode:
    """/feature: {"version":2,"status":1,"features":{"NAME":{"max_version_level":N}}}; status 1 is enabled."""

    path = "/feature"

    @staticmethod
    def encode(levels: Mapping[str, int]) -> bytes:
        features = {name: {"max_version_level": level} for name, level in sorted(levels.items())}
        return _encode({"version": 2, "status": 1, "features": features})

    @classmethod
    def decode(cls, data: bytes) -> dict[str, int]:
        value = _decode(cls.path, data)
        levels = {}
        for name, stored in _field(cls.path, value, "features", dict).items():
            if not isinstance(stored, dict):
                raise ValueError(f"{cls.path}: {name} is no object: {stored!r}")  # noqa: TRY004 - bad bytes, not a bad call
            levels[name] = int(_field(cls.path, stored, "max_version_level", int))
        return levels


def parents(path: str) -> Sequence[str]:
    """The paths above `path`, the root left out, highest first."""
    above = parent_of(path)
    return [] if above == "/" else [*parents(above), above]
