"""Kafka's checkpoint files: small text files, replaced as a whole.

    0                 version
    2                 number of entries
    topic 0 42        an entry a line: words apart from each other by a space

In a log folder stand recovery-point-offset-checkpoint, replication-offset-checkpoint, log-start-offset-checkpoint and
cleaner-offset-checkpoint (topic, partition, offset); in a partition's folder leader-epoch-checkpoint (epoch, start
offset).
"""

import logging
from collections.abc import Iterable, Mapping

from odradek.log.files import Files

__all__ = [
    "CLEANER_OFFSETS",
    "LEADER_EPOCHS",
    "LOG_START_OFFSETS",
    "RECOVERY_POINTS",
    "REPLICATION_OFFSETS",
    "TopicPartition",
    "read_entries",
    "read_offsets",
    "write_entries",
    "write_offsets",
]

logger = logging.getLogger(__name__)

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
REPLICATION_OFFSETS = "replication-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"

_VERSION = "0"

TopicPartition = tuple[str, int]


def read_entries(files: Files, path: str, words: int) -> list[list[str]] | None:
    """The entries of a file, `words` words each.

    Empty when there is no file; None when it makes no sense, which is logged. Raises OSError.
    """
    try:
        text = files.read(path).decode()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError:
        logger.warning("%s is no text, it is ignored", path)
        return None
    lines = text.splitlines()
    entries = [line.split(" ") for line in lines[2:]]
    if lines[:2] != [_VERSION, str(len(entries))] or any(len(entry) != words for entry in entries):
        logger.warning("%s is not a checkpoint of version %s, it is ignored", path, _VERSION)
        return None
    return entries


def write_entries(files: Files, path: str, entries: Iterable[Iterable[object]], *, durable: bool) -> None:
    """Replace a file. Raises OSError; the old content stays then."""
    lines = [" ".join(map(str, entry)) for entry in entries]
    files.replace(path, "\n".join([_VERSION, str(len(lines)), *lines, ""]).encode(), durable=durable)


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """An offset for each partition; empty when the file is missing or makes no sense. Raises OSError."""
    try:
        return {(topic, int(index)): int(offset) for topic, index, offset in read_entries(files, path, 3) or []}
    except ValueError:
        logger.warning("%s holds something else than offsets, it is ignored", path)
        return {}


def write_offsets(files: Files, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace a file of offsets, durably. Raises OSError; the old content stays then."""
    write_entries(files, path, ((*partition, offset) for partition, offset in offsets.items()), durable=True)
