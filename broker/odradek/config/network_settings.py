"""Settings of the broker itself, its listeners and its connections."""

from odradek.config.config_types import BOOLEAN, INT, LIST, LONG, STRING
from odradek.config.errors import ConfigError
from odradek.config.listeners import (
    Listener,
    connection_overrides,
    resolve_advertised,
    resolve_inter_broker,
    resolve_listeners,
    security_protocols,
)
from odradek.config.setting import CLUSTER_WIDE, PER_BROKER, Settings, Values, setting
from odradek.config.validators import at_least, non_empty, one_of

__all__ = ["NetworkSettings"]

INT_MAX = (1 << 31) - 1
PROTOCOL_MAP = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"
DEFAULT_NODE_ID = 1


def resolve_node_id(values: Values) -> int:
    """The broker's id: node.id or broker.id, which is its older name; both only with one value."""
    new, old = values["node.id"], values["broker.id"]
    if new is not None and old >= 0 and new != old:
        raise ConfigError("node.id", new, f"Expected the same value as broker.id, which is {old}")
    if new is not None:
        return int(new)
    return int(old) if old >= 0 else DEFAULT_NODE_ID


def resolve_max_connections_per_ip(values: Values) -> int:
    """max.connections.per.ip, which may be 0 only where some address is allowed connections of its own."""
    value = int(values["max.connections.per.ip"])
    if value == 0 and not values["max.connections.per.ip.overrides"]:
        raise ConfigError(
            "max.connections.per.ip", value, "Value can be 0 only if max.connections.per.ip.overrides is set"
        )
    return value


def resolve_queued_max_request_bytes(values: Values) -> int:
    """queued.max.request.bytes, which must let the largest request in."""
    value, largest = int(values["queued.max.request.bytes"]), values["socket.request.max.bytes"]
    if 0 < value < largest:
        expected = f"Value must be larger than or equal to socket.request.max.bytes, which is {largest}"
        raise ConfigError("queued.max.request.bytes", value, expected)
    return value


def upper_names(values: Values) -> list[str]:
    """controller.listener.names in capitals."""
    return [name.upper() for name in values["controller.listener.names"] or ()]


class NetworkSettings(Settings):
    node_id: int = setting(
        "node.id",
        INT,
        default=None,
        valid=at_least(0),
        resolve=resolve_node_id,
        doc="The id of this broker. broker.id is its synonym; without either it is 1.",
    )
    broker_id: int = setting("broker.id", INT, default=-1, resolve=resolve_node_id, doc="A synonym of node.id.")
    broker_rack: str | None = setting("broker.rack", STRING, default=None, doc="The rack that clients are told.")
    listeners: list[Listener] = setting(
        "listeners",
        LIST,
        default=["PLAINTEXT://:9092"],
        valid=non_empty,
        update=PER_BROKER,
        resolve=resolve_listeners,
        doc="The addresses to listen on, each NAME://host:port; no host is every interface, port 0 any free port.",
    )
    advertised_listeners: list[Listener] | None = setting(
        "advertised.listeners",
        LIST,
        default=None,
        valid=non_empty,
        resolve=resolve_advertised,
        doc="The addresses that clients are told. Without it each client is told the one that it dialled.",
    )
    listener_security_protocol_map: dict[str, str] = setting(
        "listener.security.protocol.map",
        STRING,
        default=PROTOCOL_MAP,
        update=PER_BROKER,
        resolve=security_protocols,
        doc="The security protocol of each listener name.",
    )
    inter_broker_listener_name: str = setting(
        "inter.broker.listener.name",
        STRING,
        default=None,
        resolve=resolve_inter_broker,
        doc="The listener that brokers use among themselves; else the first one of security.inter.broker.protocol.",
    )
    security_inter_broker_protocol: str = setting(
        "security.inter.broker.protocol",
        STRING,
        default="PLAINTEXT",
        valid=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        doc="The security protocol that brokers use among themselves.",
    )
    controller_listener_names: list[str] = setting(
        "controller.listener.names",
        LIST,
        default=None,
        valid=non_empty,
        resolve=upper_names,
        doc="Listeners of a KRaft quorum. Odradek has none and leaves them out.",
    )
    socket_send_buffer_bytes: int = setting(
        "socket.send.buffer.bytes",
        INT,
        default=100 * 1024,
        valid=at_least(-1),
        doc="A connection's send buffer (SO_SNDBUF); -1 leaves the choice to the system.",
    )
    socket_receive_buffer_bytes: int = setting(
        "socket.receive.buffer.bytes",
        INT,
        default=100 * 1024,
        valid=at_least(-1),
        doc="A connection's receive buffer (SO_RCVBUF); -1 leaves the choice to the system.",
    )
    socket_request_max_bytes: int = setting(
        "socket.request.max.bytes",
        INT,
        default=100 * 1024 * 1024,
        valid=at_least(1),
        doc="The largest request; a larger one closes its connection.",
    )
    socket_listen_backlog_size: int = setting(
        "socket.listen.backlog.size",
        INT,
        default=50,
        valid=at_least(1),
        doc="Connections that may wait to be accepted.",
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms", LONG, default=600_000, doc="How long a connection may be silent before it is closed."
    )
    max_connections: int = setting(
        "max.connections",
        INT,
        default=INT_MAX,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        doc="The most connections that the broker holds at a time.",
    )
    max_connections_per_ip: int = setting(
        "max.connections.per.ip",
        INT,
        default=INT_MAX,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        resolve=resolve_max_connections_per_ip,
        doc="The most connections from one address.",
    )
    max_connections_per_ip_overrides: dict[str, int] = setting(
        "max.connections.per.ip.overrides",
        STRING,
        default="",
        update=CLUSTER_WIDE,
        resolve=connection_overrides,
        doc="The most connections from certain addresses: host:count pairs, parted by commas.",
    )
    max_connection_creation_rate: int = setting(
        "max.connection.creation.rate",
        INT,
        default=INT_MAX,
        valid=at_least(0),
        update=CLUSTER_WIDE,
        doc="The most connections that are accepted in a second.",
    )
    queued_max_request_bytes: int = setting(
        "queued.max.request.bytes",
        LONG,
        default=-1,
        resolve=resolve_queued_max_request_bytes,
        doc="The most bytes of requests that are held in memory at a time; -1 is no limit.",
    )
    fetch_max_bytes: int = setting(
        "fetch.max.bytes",
        INT,
        default=55 * 1024 * 1024,
        valid=at_least(1024),
        doc="The most bytes of records that one Fetch is answered with, beyond a first batch.",
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        "max.incremental.fetch.session.cache.slots",
        INT,
        default=1000,
        valid=at_least(0),
        doc="The most fetch sessions that are remembered.",
    )
    max_request_partition_size_limit: int = setting(
        "max.request.partition.size.limit",
        INT,
        default=2000,
        valid=at_least(1),
        doc="The most partitions that one DescribeTopicPartitions is answered with.",
    )
    auto_create_topics_enable: bool = setting(
        "auto.create.topics.enable", BOOLEAN, default=True, doc="Whether asking for a topic's metadata may create it."
    )
    delete_topic_enable: bool = setting(
        "delete.topic.enable", BOOLEAN, default=True, doc="Whether topics may be deleted."
    )
