"""The small files that say whose a folder is.

    meta.properties in each of `log.dirs`           partition.metadata in a partition's folder
        version=0                                       version: 0
        broker.id=1                                     topic_id: 2LTFGl1rSzKrJ5iTpL6Ahg
        cluster.id=MkU3OEVBNTcwNTJENDM2Qg

Version 0 of meta.properties is that of brokers which a ZooKeeper coordinates; version 1, which has node.id instead of
broker.id, is read too. The topic id is base64 (URL alphabet) without padding.
"""

import base64
import os

from odradek.log.errors import LogFolderError
from odradek.log.files import Files

__all__ = ["META_PROPERTIES", "check_meta", "read_meta", "read_topic_id", "write_meta", "write_topic_id"]

META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"

_NODE_KEYS = {"0": "broker.id", "1": "node.id"}


def read_meta(files: Files, folder: str) -> dict[str, str]:
    """The keys and values in the folder's meta.properties; empty when it has none. Raises OSError."""
    try:
        text = files.read(os.path.join(folder, META_PROPERTIES)).decode(errors="replace")
    except FileNotFoundError:
        return {}
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def check_meta(folder: str, meta: dict[str, str], node_id: int, cluster_id: str | None) -> None:
    """Check that a folder belongs to this broker and cluster; one without a file is anybody's.

    Raises LogFolderError.
    """
    if not meta:
        return
    version = meta.get("version", "0")
    key = _NODE_KEYS.get(version)
    if key is None:
        raise LogFolderError(f"{folder}/{META_PROPERTIES} has version {version}, 0 and 1 are known")
    if meta.get(key, str(node_id)) != str(node_id):
        raise LogFolderError(f"{folder} belongs to broker {meta[key]}, and this is broker {node_id}")
    found = meta.get("cluster.id")
    if cluster_id is not None and found is not None and found != cluster_id:
        raise LogFolderError(f"{folder} belongs to cluster {found}, and this is cluster {cluster_id}")


def write_meta(files: Files, folder: str, meta: dict[str, str], node_id: int, cluster_id: str) -> None:
    """Write meta.properties, unless `meta`, what it holds, is that already. Raises OSError."""
    wanted = {"version": "0"} | meta | {"cluster.id": cluster_id}
    wanted[_NODE_KEYS[wanted["version"]]] = str(node_id)
    if wanted != meta:
        text = "".join(f"{key}={value}\n" for key, value in wanted.items())
        files.replace(os.path.join(folder, META_PROPERTIES), text.encode(), durable=True)


def read_topic_id(files: Files, directory: str) -> bytes | None:
    """The id in a partition's partition.metadata; None when there is none, or none that makes sense. Raises OSError."""
    try:
        text = files.read(os.path.join(directory, PARTITION_METADATA)).decode(errors="replace")
    except FileNotFoundError:
        return None
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    try:
        topic_id = base64.urlsafe_b64decode(fields.get("topic_id", "") + "==")
    except ValueError:
        return None
    return topic_id if fields.get("version") == "0" and len(topic_id) == 16 else None


def write_topic_id(files: Files, directory: str, topic_id: bytes) -> None:
    """Write a partition's partition.metadata. Raises OSError."""
    text = f"version: 0\ntopic_id: {base64.urlsafe_b64encode(topic_id).rstrip(b'=').decode()}\n"
    files.replace(os.path.join(directory, PARTITION_METADATA), text.encode(), durable=False)
