"""All logs of a broker, below the folders of `log.dirs`.

A folder holds:

    .lock                                   locked while a broker uses the folder
    meta.properties                         whose folder it is, see `properties`
    .kafka_cleanshutdown                    all logs were closed; removed before any of them is written to
    recovery-point-offset-checkpoint        see `checkpoints`
    replication-offset-checkpoint
    log-start-offset-checkpoint
    cleaner-offset-checkpoint               how far compaction has come
    topic-partition/                        the log of a partition
    topic-partition.UUID-delete/            a deleted one, see `deletion`
    topic-partition.UUID-stray/             one that the metadata does not know, for an administrator to judge
"""

import logging
import os
import resource
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from odradek.log import checkpoints, properties
from odradek.log.checkpoints import TopicPartition
from odradek.log.deletion import Deletions
from odradek.log.errors import LogFolderError
from odradek.log.files import FileCache, FileHandle, Files
from odradek.log.recover import open_log, parse_directory_name
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.log.config import LogConfig
    from odradek.log.log import Log

__all__ = ["LogStore", "StoreClock", "StoreConfig"]

logger = logging.getLogger(__name__)

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"

_CLEAN_SHUTDOWN = b'{"version":0,"brokerEpoch":-1}'
_MAX_NAME = 255
"""Bytes in the name of a file, on nearly every file system."""
_MAX_OPEN_SEGMENTS = 16384
_MIN_OPEN_SEGMENTS = 64


class StoreConfig(Protocol):
    """What the store asks of a broker's configuration."""

    def topic_config(self, overrides: Mapping[str, str]) -> "LogConfig": ...


class StoreClock(Protocol):
    def now_ms(self) -> int: ...


class _Folder:
    """One of `log.dirs`."""

    __slots__ = ("lock", "meta", "path")

    def __init__(self, path: str, lock: FileHandle, meta: dict[str, str]) -> None:
        self.path = path
        self.lock: FileHandle | None = lock
        self.meta = meta


class LogStore:
    """The logs of one broker. Opening and closing take time, and may run in a thread; the rest is quick."""

    def __init__(
        self,
        folders: list[_Folder],
        config: StoreConfig,
        node_id: int,
        clock: StoreClock,
        files: Files,
    ) -> None:
        self._folders = folders
        self._config = config
        self._node_id = node_id
        self._clock = clock
        self._files = files
        self._cache = FileCache(_open_segments())
        self._topic_ids: dict[TopicPartition, bytes] = {}
        self.deletions = Deletions(files)
        self.logs: dict[TopicPartition, Log] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        """What the checkpoints said when the store was opened."""

    @classmethod
    def open(
        cls,
        folders: Sequence[str],
        config: StoreConfig,
        node_id: int,
        clock: StoreClock,
        *,
        cluster_id: str | None = None,
        files: Files | None = None,
    ) -> "LogStore":
        """Lock the folders, which are made if need be, and open every log in them.

        Raises LogFolderError when another broker uses a folder, or it belongs to another broker or cluster; OSError.
        """
        files = files or Files()
        opened = [_open_folder(os.path.abspath(folder), files, node_id, cluster_id) for folder in folders]
        store = cls(opened, config, node_id, clock, files)
        for folder in opened:
            store._load(folder)
        return store

    @property
    def folders(self) -> list[str]:
        """The folders, as absolute paths."""
        return [folder.path for folder in self._folders]

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the folders belong to; None when they are new."""
        return next((folder.meta["cluster.id"] for folder in self._folders if "cluster.id" in folder.meta), None)

    def identify(self, cluster_id: str) -> None:
        """Write into the folders that they belong to this broker in this cluster. Raises LogFolderError, OSError."""
        for folder in self._folders:
            properties.check_meta(folder.path, folder.meta, self._node_id, cluster_id)
        for folder in self._folders:
            properties.write_meta(self._files, folder.path, folder.meta, self._node_id, cluster_id)
            folder.meta = properties.read_meta(self._files, folder.path)

    def _load(self, folder: _Folder) -> None:
        files, path = self._files, folder.path
        marker = os.path.join(path, CLEAN_SHUTDOWN_FILE)
        clean = files.exists(marker)
        if clean:
            files.unlink(marker)
            files.sync(path)
        recovery_points = checkpoints.read_offsets(files, os.path.join(path, checkpoints.RECOVERY_POINTS))
        start_offsets = checkpoints.read_offsets(files, os.path.join(path, checkpoints.LOG_START_OFFSETS))
        cleaned_offsets = checkpoints.read_offsets(files, os.path.join(path, checkpoints.CLEANER_OFFSETS))
        self.high_watermarks |= checkpoints.read_offsets(files, os.path.join(path, checkpoints.REPLICATION_OFFSETS))
        config = self._config.topic_config({})
        now_ms = self._clock.now_ms()
        for name in files.names(path):
            directory = os.path.join(path, name)
            if name.endswith(DELETE_SUFFIX) and files.is_directory(directory):
                self.deletions.add(directory, now_ms)
                continue
            partition = parse_directory_name(name)
            if partition is None or not files.is_directory(directory):
                continue
            if partition in self.logs:
                raise LogFolderError(f"{directory} and {self.logs[partition].directory} hold the same partition")
            self.logs[partition] = open_log(
                directory,
                config,
                files=files,
                cache=self._cache,
                now_ms=now_ms,
                clean=clean,
                recovery_point=recovery_points.get(partition, 0),
                log_start_offset=start_offsets.get(partition, 0),
                deletions=self.deletions,
            )
            self.logs[partition].cleaned_offset = cleaned_offsets.get(partition)
            topic_id = properties.read_topic_id(files, directory)
            if topic_id is not None:
                self._topic_ids[partition] = topic_id
        logger.info("%s: %d logs, %s", path, len(self.logs), "closed" if clean else "recovered")

    def get(self, topic: str, index: int) -> "Log | None":
        return self.logs.get((topic, index))

    def get_or_create(self, topic: str, index: int, topic_id: bytes, config: "LogConfig") -> "Log":
        """The log of a partition, which from now on goes by `config`.

        A new one is made in the folder with the fewest logs. One that says it is another topic's is put aside first and
        kept, as nobody asked to delete it: the id may be damaged. Raises KAFKA_STORAGE_ERROR.
        """
        partition = topic, index
        log = self.logs.get(partition)
        try:
            if log is not None:
                known = self._topic_ids.get(partition)
                if known == topic_id:
                    log.config = config
                    return log
                if known is None:
                    log.config = config
                    self._keep_topic_id(log, topic_id)
                    return log
                self._put_aside(log)
            directory = os.path.join(self._emptiest_folder(), f"{topic}-{index}")
            log = open_log(
                directory,
                config,
                files=self._files,
                cache=self._cache,
                now_ms=self._clock.now_ms(),
                deletions=self.deletions,
            )
            self._keep_topic_id(log, topic_id)
        except OSError as error:
            raise BrokerError(Error.KAFKA_STORAGE_ERROR, f"no log for {topic}-{index}: {error}") from error
        self.logs[partition] = log
        return log

    def _keep_topic_id(self, log: "Log", topic_id: bytes) -> None:
        properties.write_topic_id(self._files, log.directory, topic_id)
        self._topic_ids[log.topic, log.partition] = topic_id

    def _emptiest_folder(self) -> str:
        counts = dict.fromkeys((folder.path for folder in self._folders), 0)
        if len(counts) > 1:
            for log in self.logs.values():
                counts[os.path.dirname(log.directory)] += 1
        return min(counts, key=counts.__getitem__)

    def delete(self, log: "Log") -> None:
        """Delete a log: its folder is renamed at once, and its files go with `purge`.

        Raises KAFKA_STORAGE_ERROR.
        """
        try:
            doomed = self._rename(log, DELETE_SUFFIX)
        except OSError as error:
            raise BrokerError(Error.KAFKA_STORAGE_ERROR, f"{log.directory} cannot be deleted: {error}") from error
        self.deletions.add(doomed, self._clock.now_ms() + log.config.file_delete_delay_ms)

    def _put_aside(self, log: "Log") -> None:
        """Keep a log that the metadata does not know where nothing looks for it."""
        stray = self._rename(log, STRAY_SUFFIX)
        logger.warning("%s is the log of another topic: it is kept as %s", log.directory, stray)

    def _rename(self, log: "Log", suffix: str) -> str:
        """Serve a log no more, under a new name for its folder, which this gives. Raises OSError."""
        log.discard()
        log.failed = "it is deleted"
        suffix = f"-{log.partition}.{uuid.uuid4().hex}{suffix}"
        renamed = os.path.join(os.path.dirname(log.directory), log.topic[: _MAX_NAME - len(suffix)] + suffix)
        self._files.rename(log.directory, renamed)
        self.logs.pop((log.topic, log.partition), None)
        self._topic_ids.pop((log.topic, log.partition), None)
        return renamed

    def purge(self) -> None:
        """Remove the deleted files and folders whose time has come; may run in a thread. Raises OSError."""
        self.deletions.run(self._clock.now_ms())

    def checkpoint(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Write the checkpoints of recovery points and log starts, and of high watermarks if given.

        Flushes small files, and may run in a thread. Raises OSError.
        """
        logs = list(self.logs.items())
        for folder in self._folders:
            here = {partition: log for partition, log in logs if os.path.dirname(log.directory) == folder.path}
            starts = {
                partition: log.log_start_offset
                for partition, log in here.items()
                if log.log_start_offset > log.segments[0].base_offset
            }
            self._write(folder, checkpoints.RECOVERY_POINTS, {key: log.recovery_point for key, log in here.items()})
            self._write(folder, checkpoints.LOG_START_OFFSETS, starts)
            if high_watermarks is not None:
                watermarks = {key: high_watermarks[key] for key in here if key in high_watermarks}
                self._write(folder, checkpoints.REPLICATION_OFFSETS, watermarks)

    def checkpoint_cleaning(self) -> None:
        """Write the checkpoints of compaction. Flushes small files, and may run in a thread. Raises OSError."""
        logs = list(self.logs.items())
        for folder in self._folders:
            cleaned = {
                partition: log.cleaned_offset
                for partition, log in logs
                if log.cleaned_offset is not None and os.path.dirname(log.directory) == folder.path
            }
            self._write(folder, checkpoints.CLEANER_OFFSETS, cleaned)

    def _write(self, folder: _Folder, name: str, offsets: dict[TopicPartition, int]) -> None:
        checkpoints.write_offsets(self._files, os.path.join(folder.path, name), offsets)

    def close(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Close every log, and release the folders.

        What cannot be closed is logged; the next start recovers the logs then, as after a crash.
        """
        clean = _close_all(self.logs.values())
        try:
            self.checkpoint(high_watermarks)
            if clean:
                for folder in self._folders:
                    marker = os.path.join(folder.path, CLEAN_SHUTDOWN_FILE)
                    self._files.replace(marker, _CLEAN_SHUTDOWN, durable=True)
        except OSError as error:
            logger.warning("the end of the shutdown could not be noted: %s", error)
        self.abandon()

    def abandon(self) -> None:
        """Let go of files and folders without writing anything, as a crash does."""
        for log in self.logs.values():
            log.discard()
        for folder in self._folders:
            folder.lock = None


def _close_all(logs: Iterable["Log"]) -> bool:
    clean = True
    for log in logs:
        try:
            log.close()
        except BrokerError as error:
            logger.warning("a log could not be closed: %s", error)
            clean = False
    return clean


def _open_folder(path: str, files: Files, node_id: int, cluster_id: str | None) -> _Folder:
    files.make_directories(path)
    lock = files.lock(os.path.join(path, LOCK_FILE))
    if lock is None:
        raise LogFolderError(f"another broker uses {path}")
    meta = properties.read_meta(files, path)
    properties.check_meta(path, meta, node_id, cluster_id)
    return _Folder(path, lock, meta)


def _open_segments() -> int:
    """How many segment files may be open: half of what the process may have, the rest is for connections."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(min(allowed // 2, _MAX_OPEN_SEGMENTS), _MIN_OPEN_SEGMENTS)
