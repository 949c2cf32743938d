"""Reading the store: what a broker needs of it when it starts."""

from odradek.cluster.plans import random_uuid
from odradek.cluster.store import Create, Failure, MetadataStore, StoreError
from odradek.cluster.topics import INTERNAL_TOPICS
from odradek.cluster.view import BrokerView, PartitionView, TopicView
from odradek.cluster.znodes import (
    PERSISTENT_PATHS,
    BrokerConfigZNode,
    BrokerZNode,
    ClusterIdZNode,
    GroupConfigZNode,
    PartitionStateZNode,
    TopicConfigZNode,
    TopicZNode,
    encode_uuid,
    parents,
)

__all__ = [
    "ensure_cluster_id",
    "ensure_node",
    "ensure_standing_nodes",
    "read_broker_configs",
    "read_brokers",
    "read_group_configs",
    "read_topic",
]


async def ensure_node(store: MetadataStore, path: str, data: bytes = b"") -> bool:
    """Make a node if it is not there; whether it was made now."""
    try:
        await store.create(path, data)
    except StoreError as error:
        if error.failure is not Failure.NODE_EXISTS:
            raise
        return False
    return True


async def ensure_standing_nodes(store: MetadataStore) -> None:
    """Make the nodes that are always there: those that lack, in one write."""
    standing = dict.fromkeys(node for path in PERSISTENT_PATHS for node in (*parents(path), path))
    while lacking := [Create(path) for path in standing if not await store.exists(path)]:
        try:
            await store.multi(lacking)
        except StoreError as error:
            if error.failure is not Failure.NODE_EXISTS:
                raise


async def ensure_cluster_id(store: MetadataStore) -> str:
    """The cluster's id: 22 characters, made up by the first broker that asks."""
    await ensure_standing_nodes(store)
    if not await store.exists(ClusterIdZNode.path):
        await ensure_node(store, ClusterIdZNode.path, ClusterIdZNode.encode(encode_uuid(random_uuid())))
    return ClusterIdZNode.decode((await store.get(ClusterIdZNode.path)).data)


async def read_topic(store: MetadataStore, name: str) -> TopicView:
    """A topic's picture. StoreError NO_NODE when it is not there, ValueError when what is there makes no sense."""
    assignment = TopicZNode.decode(name, (await store.get(TopicZNode.path(name))).data)
    if list(assignment.partitions) != list(range(len(assignment.partitions))):
        raise ValueError(f"{TopicZNode.path(name)}: partitions are not 0 to n: {list(assignment.partitions)}")
    partitions = []
    for index, replicas in assignment.partitions.items():
        data = (await store.get(PartitionStateZNode.path(name, index))).data
        state = PartitionStateZNode.decode(name, index, data)
        partitions.append(PartitionView(state.leader, state.leader_epoch, replicas, state.isr))
    configs = await _read_configs(store, TopicConfigZNode.path(name))
    return TopicView(name, assignment.topic_id, partitions, configs, internal=name in INTERNAL_TOPICS)


async def read_broker_configs(store: MetadataStore, node_id: int | None) -> dict[str, str]:
    """The dynamic settings of one broker, or (None) of all; empty when none was ever set."""
    return await _read_configs(store, BrokerConfigZNode.path(node_id))


async def read_group_configs(store: MetadataStore) -> dict[str, dict[str, str]]:
    """The settings that groups have of their own, by group."""
    groups = map(GroupConfigZNode.group, await store.children(GroupConfigZNode.parent))
    return {group: await _read_configs(store, GroupConfigZNode.path(group)) for group in groups}


async def read_brokers(store: MetadataStore) -> dict[int, BrokerView]:
    """The live brokers, by id."""
    brokers = {}
    for name in await store.children("/brokers/ids"):
        node_id = int(name)
        registration = BrokerZNode.decode(node_id, (await store.get(BrokerZNode.path(node_id))).data)
        brokers[node_id] = BrokerView(node_id, registration.rack, registration.endpoints)
    return brokers


async def _read_configs(store: MetadataStore, path: str) -> dict[str, str]:
    if not await store.exists(path):
        return {}
    return TopicConfigZNode.decode(path, (await store.get(path)).data)
