"""The partitions that there are: as clients are told, and as the disk has them."""

from pathlib import Path

from odradek_protocol.messages.metadata import MetadataRequest
from support.wire import WireClient


def told(client: WireClient) -> set[str]:
    """The partitions that clients are told of."""
    topics = client.call(MetadataRequest(topics=None), 9).topics
    return {f"{topic.name}-{partition.partition_index}" for topic in topics for partition in topic.partitions}


def kept(folder: Path) -> set[str]:
    """The partitions that a folder of `log.dirs` has; what is doomed has another name."""
    return {path.name for path in folder.iterdir() if path.is_dir() and not path.name.endswith("-delete")}
