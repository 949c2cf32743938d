"""The small files that say whose a folder is.

    meta.properties in each of `log.dirs`           partition.metadata in a partition's folder
        version=0                                       version: 0
        broker.id=1                                     topic_id: 2LTFGl1rSzKrJ5iTpL6Ahg
        cluster.id=MkU3OEVBNTcwNTJENDM2Qg
        directory.id=4VR-k5LIQ0qqhXNLxzVCrg

Version 0 of meta.properties is that of brokers which a ZooKeeper coordinates; version 1, which has node.id instead of
broker.id, is read too. Ids are base64 (URL alphabet) without padding; each folder has a directory.id of its own
(KIP-858).
"""

import base64
import os
import uuid
from collections.abc import Mapping

from odradek.log.errors import LogFolderError
from odradek.log.files import Files

__all__ = [
    "META_PROPERTIES",
    "PARTITION_METADATA",
    "check_directory_ids",
    "check_meta",
    "read_meta",
    "read_topic_id",
    "write_meta",
    "write_topic_id",
]

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
    for name, expected in ((key, str(node_id)), ("cluster.id", cluster_id)):
        found = meta.get(name)
        if found is not None and expected is not None and found != expected:
            raise LogFolderError(f"{folder}/{META_PROPERTIES} has {name}={found}, and this broker has {expected}")


def check_directory_ids(metas: Mapping[str, dict[str, str]]) -> None:
    """Check that no two folders have one directory.id, as a copied folder has. Raises LogFolderError."""
    seen: dict[str, str] = {}
    for folder, meta in metas.items():
        directory_id = meta.get("directory.id")
        if directory_id is not None and (other := seen.setdefault(directory_id, folder)) != folder:
            raise LogFolderError(
                f"{folder}/{META_PROPERTIES} and {other}/{META_PROPERTIES} both have directory.id={directory_id}"
            )


def write_meta(files: Files, folder: str, meta: dict[str, str], node_id: int, cluster_id: str) -> None:
    """Write meta.properties, unless `meta`, what it holds, is that already. Raises OSError."""
    wanted = {"version": "0"} | meta | {"cluster.id": cluster_id}
    wanted.setdefault("directory.id", _new_directory_id())
    wanted[_NODE_KEYS[wanted["version"]]] = str(node_id)
    if wanted != meta:
        text = "".join(f"{key}={value}\n" for key, value in wanted.items())
        files.replace(os.path.join(folder, META_PROPERTIES), text.encode(), durable=True)


def _new_directory_id() -> str:
    """A random id that does not begin with a dash, which command lines would take for an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()).startswith("-"):
        pass
    return text


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
