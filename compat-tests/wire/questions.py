"""Questions about the records of one topic, which several tests ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wire.client import Wire


def fetch(wire: Wire, name: str, *offsets: int, version: int = 12, limit: int = 1 << 20, **options: Any) -> Any:
    """Fetch from offsets of partitions 0, 1... `options` are fields of the request or of each partition."""
    inner = {key: options.pop(key) for key in ("CurrentLeaderEpoch", "LastFetchedEpoch") if key in options}
    topic_id = options.pop("TopicId", bytes(16))
    partitions = [
        {"Partition": index, "FetchOffset": offset, "PartitionMaxBytes": limit, **inner}
        for index, offset in enumerate(offsets)
    ]
    topics = [{"Topic": name, "TopicId": topic_id, "Partitions": partitions}] if offsets else []
    return wire.call("Fetch", version, **{"MaxWaitMs": 0, "MinBytes": 0, "Topics": topics, **options})


def list_offsets(wire: Wire, version: int, name: str, timestamp: int, index: int = 0, **more: Any) -> None:
    """Ask for the offset of a timestamp in one partition. `more` are fields of the request or of the partition."""
    inner = {key: more.pop(key) for key in ("CurrentLeaderEpoch",) if key in more}
    wanted = [{"PartitionIndex": index, "Timestamp": timestamp, **inner}]
    wire.note("timestamp", timestamp)
    wire.call("ListOffsets", version, **{"ReplicaId": -1, **more}, Topics=[{"Name": name, "Partitions": wanted}])
