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
    topic-partition.UUID-future/            a copy of one in another folder, which is to take its place, see `moves`
    topic-partition.UUID-delete/            a deleted one, see `deletion`
    topic-partition.UUID-stray/             one that the metadata does not know, for an administrator to judge

A folder that fails (see `watched`) goes offline with its logs, which refuse everything from then on; the others go on.
What of it may be needed again when it is repaired stays as it is: nothing is made in its place elsewhere.
"""

import logging
import os
import resource
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from odradek.log import checkpoints, properties
from odradek.log.checkpoints import TopicPartition
from odradek.log.errors import LogFolderError
from odradek.log.files import FileCache, Files
from odradek.log.folder import Folder
from odradek.log.loading import FolderLoad, Progress
from odradek.log.moves import FUTURE_SUFFIX, Move, parse_future_name, take_place
from odradek.log.recover import open_log
from odradek_protocol.errors import BrokerError, Error

if TYPE_CHECKING:
    from odradek.log.config import LogConfig
    from odradek.log.log import Log

__all__ = ["Folder", "LogStore", "StoreClock", "StoreConfig"]

logger = logging.getLogger(__name__)

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"

_MAX_NAME = 255
"""Bytes in the name of a file, on nearly every file system."""
_MAX_OPEN_SEGMENTS = 16384
_MIN_OPEN_SEGMENTS = 64
_SYNC_TOGETHER = 64
"""Changed logs from which on one syncfs, which also writes what is others', is quicker than some fsyncs for each."""


class StoreConfig(Protocol):
    """What the store asks of a broker's configuration."""

    @property
    def num_recovery_threads_per_data_dir(self) -> int: ...
    @property
    def cordoned_log_dirs(self) -> Sequence[str]: ...
    def topic_config(self, overrides: Mapping[str, str]) -> "LogConfig": ...


class StoreClock(Protocol):
    def now_ms(self) -> int: ...


class LogStore:
    """The logs of one broker. Opening and closing take time, and may run in a thread; the rest is quick."""

    def __init__(
        self, folders: Sequence[str], config: StoreConfig, node_id: int, clock: StoreClock, files: Files
    ) -> None:
        self.folders = [Folder(os.path.abspath(path), files, self._take_offline) for path in folders]
        self._config = config
        self._node_id = node_id
        self._clock = clock
        self._cache = FileCache(_open_segments())
        self._topic_ids: dict[TopicPartition, bytes] = {}
        self._checkpointing = threading.Lock()
        self.logs: dict[TopicPartition, Log] = {}
        self.moves: dict[TopicPartition, Move] = {}
        """Logs that are copied to another folder, where they are to live."""
        self.preferred: dict[TopicPartition, str] = {}
        """In which folder a log is to be made, where somebody asked for one (KIP-113)."""
        self.high_watermarks: dict[TopicPartition, int] = {}
        """What the checkpoints said when the store was opened."""
        self.on_folder_failure: Callable[[Folder], None] | None = None
        """Called with each folder that fails, in whatever thread; its logs refuse everything by then."""

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

        A folder that cannot be read is offline. Raises LogFolderError when all are, when another broker uses a folder,
        or when one belongs to another broker or cluster.
        """
        store = cls(folders, config, node_id, clock, files or Files())
        try:
            for folder in store.folders:
                folder.open()
            store._check_metas(cluster_id)
            store._load()
            store._check_online()
        except LogFolderError:
            store.abandon()
            raise
        return store

    @property
    def online_folders(self) -> list[Folder]:
        """The folders that can be used."""
        return [folder for folder in self.folders if folder.online]

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the folders belong to; None when they are new."""
        return next((folder.meta["cluster.id"] for folder in self.folders if "cluster.id" in folder.meta), None)

    def folder_of(self, log: "Log") -> Folder:
        """The folder that a log lies in."""
        path = os.path.dirname(log.directory)
        return next(folder for folder in self.folders if folder.path == path)

    def identify(self, cluster_id: str) -> None:
        """Write into the folders that they belong to this broker in this cluster. Raises LogFolderError."""
        self._check_metas(cluster_id)
        for folder in self.online_folders:
            try:
                folder.identify(self._node_id, cluster_id)
            except OSError as error:
                folder.fail(error)

    def _check_metas(self, cluster_id: str | None) -> None:
        cluster_id = cluster_id or self.cluster_id
        for folder in self.folders:
            properties.check_meta(folder.path, folder.meta, self._node_id, cluster_id)
        properties.check_directory_ids({folder.path: folder.meta for folder in self.folders})

    def _check_online(self) -> None:
        if not self.online_folders:
            reasons = "; ".join(f"{folder.path}: {folder.failed}" for folder in self.folders)
            raise LogFolderError(f"no folder of log.dirs can be used: {reasons}")

    # -- opening ----------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        config, now_ms, progress = self._config.topic_config({}), self._clock.now_ms(), Progress()
        threads = self._config.num_recovery_threads_per_data_dir
        loads = [FolderLoad(folder, config, self._cache, now_ms, threads, progress) for folder in self.online_folders]
        workers = [threading.Thread(target=load.run, name=f"load {load.folder.path}") for load in loads]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if progress.all_logs:
            logger.info("%s", progress)
        loads = [load for load in loads if load.folder.online]
        for load in loads:
            self._adopt(load)
            logger.info(
                "%s: %d logs, %s", load.folder.path, len(load.logs), "closed" if load.folder.clean else "recovered"
            )
        for load in loads:
            for name in load.other_names:
                self._take_over(load, name, loads, now_ms)

    def _adopt(self, load: FolderLoad) -> None:
        for log in load.logs[load.folder.log_count :]:
            known = self.logs.setdefault((log.topic, log.partition), log)
            if known is not log:
                raise LogFolderError(f"{log.directory} and {known.directory} hold the same partition")
            load.folder.log_count += 1
        self._topic_ids |= load.topic_ids
        self.high_watermarks |= load.high_watermarks

    def _take_over(self, load: FolderLoad, name: str, loads: Sequence[FolderLoad], now_ms: int) -> None:
        """Go on with what a deletion or a move left behind."""
        directory = os.path.join(load.folder.path, name)
        partition = parse_future_name(name)
        if name.endswith(DELETE_SUFFIX):
            load.folder.deletions.add(directory, now_ms)
        elif partition is not None and (log := self.logs.get(partition)) is not None:
            self._doom_future(self.moves.pop(partition, None))
            self.moves[partition] = Move(log, self.folder_of(log), load.folder, directory)
        elif partition is not None and len(loads) == len(self.folders):
            # The log went, and its copy has not come: a move was cut between the two. With a folder offline, the log
            # may be there.
            start_offset = max(other.start_offsets.get(partition, 0) for other in loads)
            load.start_offsets[partition] = start_offset
            try:
                load.open(take_place(load.folder, directory, partition))
            except OSError as error:
                load.folder.fail(error)
                return
            self._adopt(load)

    def _take_offline(self, folder: Folder) -> None:
        for log in list(self.logs.values()):
            if os.path.dirname(log.directory) == folder.path:
                log.failed = log.failed or f"its folder is offline: {folder.failed}"
        if self.on_folder_failure is not None:
            self.on_folder_failure(folder)

    def is_cordoned(self, folder: Folder) -> bool:
        """Whether a folder is to take no new logs (KIP-1066). Where all are, it takes them none the less."""
        return folder.path in map(os.path.abspath, self._config.cordoned_log_dirs)

    def drop(self, folder: Folder) -> None:
        """Know no longer of the logs in a folder that is offline, nor of moves from and to it."""
        for topic, index in self._logs_in(folder):
            self.logs[topic, index].discard()
            self.forget(topic, index)
        for partition, move in list(self.moves.items()):
            if folder in (move.source, move.folder):
                del self.moves[partition]

    def is_missing(self, topic: str, index: int) -> bool:
        """Whether the log of a partition that was made before cannot be had: it is in a folder that is offline."""
        return (topic, index) not in self.logs and len(self.online_folders) < len(self.folders)

    # -- single logs ------------------------------------------------------------------------------------------------

    def get(self, topic: str, index: int) -> "Log | None":
        return self.logs.get((topic, index))

    def of_topic(self, topic: str, topic_id: bytes) -> list["Log"]:
        """The logs of a topic: those of its name that do not say they are another's."""
        named = [(partition, log) for partition, log in self.logs.items() if partition[0] == topic]
        return [log for partition, log in named if self._topic_ids.get(partition, topic_id) == topic_id]

    def get_or_create(self, topic: str, index: int, topic_id: bytes, config: "LogConfig") -> "Log":
        """The log of a partition, which from now on goes by `config`.

        A new one is made in the folder that somebody asked for, or in the one with the fewest logs. One that says it is
        another topic's is put aside first and kept, as nobody asked to delete it: the id may be damaged.

        Raises KAFKA_STORAGE_ERROR.
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
            folder = self._folder_for(partition)
            directory = os.path.join(folder.path, f"{topic}-{index}")
            if partition in folder.noted:
                # What the checkpoints say of an earlier log of this name would be believed of the new one.
                self._checkpoint(folder, self._logs_in(folder), None)
            log = open_log(
                directory,
                config,
                files=folder.files,
                cache=self._cache,
                now_ms=self._clock.now_ms(),
                deletions=folder.deletions,
            )
            self._keep_topic_id(log, topic_id)
        except OSError as error:
            raise BrokerError(Error.KAFKA_STORAGE_ERROR, f"no log for {topic}-{index}: {error}") from error
        self.logs[partition] = log
        folder.log_count += 1
        return log

    def _keep_topic_id(self, log: "Log", topic_id: bytes) -> None:
        properties.write_topic_id(self.folder_of(log).files, log.directory, topic_id)
        self._topic_ids[log.topic, log.partition] = topic_id

    def _folder_for(self, partition: TopicPartition) -> Folder:
        preferred = self.preferred.pop(partition, None)
        online = self.online_folders
        if not online:
            raise BrokerError(Error.KAFKA_STORAGE_ERROR, "no folder of log.dirs can be used")
        open_ones = [folder for folder in online if not self.is_cordoned(folder)] or online
        for folder in online:
            if folder.path == preferred:
                return folder
        return min(open_ones, key=lambda folder: folder.log_count)

    def delete(self, log: "Log") -> None:
        """Delete a log: its folder is renamed at once, and its files go with `purge`. A move of it ends.

        Raises KAFKA_STORAGE_ERROR.
        """
        folder = self.folder_of(log)
        try:
            doomed = self._withdraw(log, DELETE_SUFFIX)
        except OSError as error:
            raise BrokerError(Error.KAFKA_STORAGE_ERROR, f"{log.directory} cannot be deleted: {error}") from error
        folder.deletions.add(doomed, self._clock.now_ms() + log.config.file_delete_delay_ms)

    def _put_aside(self, log: "Log") -> None:
        """Keep a log that the metadata does not know where nothing looks for it."""
        stray = self._withdraw(log, STRAY_SUFFIX)
        logger.warning("%s is the log of another topic: it is kept as %s", log.directory, stray)

    def _withdraw(self, log: "Log", suffix: str) -> str:
        """Serve a log no more, under a new name for its folder, which this gives; a move of it ends.

        Raises OSError, KAFKA_STORAGE_ERROR.
        """
        self.end_move(log.topic, log.partition)
        log.discard()
        log.failed = "it is deleted"
        renamed = _rename(log, self.folder_of(log), log.directory, suffix)
        self.forget(log.topic, log.partition)
        return renamed

    def forget(self, topic: str, index: int) -> None:
        """Know no longer of a log, whose files stay as they are."""
        log = self.logs.pop((topic, index), None)
        if log is not None:
            self.folder_of(log).log_count -= 1
        self._topic_ids.pop((topic, index), None)

    def _doom(self, log: "Log", folder: Folder, directory: str) -> None:
        """Rename a folder of a log, whose files are to go. Raises OSError."""
        doomed = _rename(log, folder, directory, DELETE_SUFFIX)
        folder.deletions.add(doomed, self._clock.now_ms() + log.config.file_delete_delay_ms)

    @property
    def next_deletion_ms(self) -> int | None:
        """When there are deleted files to be removed; None while nothing waits."""
        due = (folder.deletions.next_due_ms for folder in self.online_folders)
        return min((due_ms for due_ms in due if due_ms is not None), default=None)

    def purge(self) -> None:
        """Remove the deleted files and folders whose time has come; may run in a thread.

        Raises OSError, when all folders had their turn.
        """
        now_ms = self._clock.now_ms()
        self._in_each_folder(lambda folder: folder.deletions.run(now_ms))

    def _in_each_folder(self, work: Callable[[Folder], None]) -> None:
        failure = None
        for folder in self.online_folders:
            try:
                work(folder)
            except OSError as error:
                failure = error
        if failure is not None:
            raise failure

    # -- moving -----------------------------------------------------------------------------------------------------

    def begin_move(self, log: "Log", folder: Folder) -> Move | None:
        """Let a log move to `folder`, and end its move to any other. None when it is there, or on its way there.

        Raises KAFKA_STORAGE_ERROR.
        """
        partition = log.topic, log.partition
        move = self.moves.get(partition)
        if move is not None and move.folder is folder:
            return None
        self.end_move(*partition)
        if self.folder_of(log) is folder:
            return None
        directory = os.path.join(folder.path, f"{log.topic}-{log.partition}.{uuid.uuid4().hex}{FUTURE_SUFFIX}")
        try:
            folder.files.mkdir(directory)
            properties.write_topic_id(folder.files, directory, self._topic_ids[partition])
        except OSError as error:
            raise BrokerError(Error.KAFKA_STORAGE_ERROR, f"{log!r} cannot move to {folder.path}: {error}") from error
        move = self.moves[partition] = Move(log, self.folder_of(log), folder, directory)
        return move

    def end_move(self, topic: str, index: int) -> None:
        """Give up a move, if there is one; the log stays where it is. Raises KAFKA_STORAGE_ERROR."""
        move = self.moves.pop((topic, index), None)
        try:
            self._doom_future(move)
        except OSError as error:
            raise BrokerError(Error.KAFKA_STORAGE_ERROR, f"{topic}-{index}: {error}") from error

    def _doom_future(self, move: Move | None) -> None:
        if move is not None and move.folder.online:
            self._doom(move.log, move.folder, move.directory)

    def finish_move(self, move: Move) -> None:
        """Let the log live where its copy is, which has all of it. Synchronous, so that nothing is appended meanwhile.

        Raises KAFKA_STORAGE_ERROR; the log stays where it is then, or has failed with a folder.
        """
        log, source = move.log, move.source
        old = log.directory
        try:
            self._doom(log, source, old)
            source.files.sync(source.path)
            place = take_place(move.folder, move.directory, (log.topic, log.partition))
            log.relocate(place, move.folder.files, move.folder.deletions)
        except OSError as error:
            log.failed = log.failed or f"moving it failed half way: {error}"
            raise BrokerError(Error.KAFKA_STORAGE_ERROR, f"{old}: {log.failed}") from error
        finally:
            self.moves.pop((log.topic, log.partition), None)
        source.log_count -= 1
        move.folder.log_count += 1
        logger.info("%s-%d moved from %s to %s", log.topic, log.partition, source.path, move.folder.path)

    # -- checkpoints and closing ------------------------------------------------------------------------------------

    def checkpoint(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Write the checkpoints of recovery points and log starts, and of high watermarks if given.

        Flushes small files, and may run in a thread. Raises OSError, when all folders had their turn.
        """
        with self._checkpointing:
            self._in_each_folder(lambda folder: self._checkpoint(folder, self._logs_in(folder), high_watermarks))

    def _logs_in(self, folder: Folder) -> dict[TopicPartition, "Log"]:
        logs = list(self.logs.items())
        return {partition: log for partition, log in logs if os.path.dirname(log.directory) == folder.path}

    def _checkpoint(
        self,
        folder: Folder,
        logs: dict[TopicPartition, "Log"],
        high_watermarks: Mapping[TopicPartition, int] | None,
    ) -> None:
        coming = {partition: move.log for partition, move in list(self.moves.items()) if move.folder is folder}
        starts = {
            partition: log.log_start_offset
            for partition, log in (coming | logs).items()
            if log.log_start_offset > log.segments[0].base_offset
        }
        folder.noted.clear()
        self._checkpoint_cleaning(folder, logs)
        folder.write_offsets(checkpoints.RECOVERY_POINTS, {key: log.recovery_point for key, log in logs.items()})
        folder.write_offsets(checkpoints.LOG_START_OFFSETS, starts)
        if high_watermarks is not None:
            watermarks = {key: high_watermarks[key] for key in logs if key in high_watermarks}
            folder.write_offsets(checkpoints.REPLICATION_OFFSETS, watermarks)

    def checkpoint_cleaning(self) -> None:
        """Write the checkpoints of compaction. Flushes small files, and may run in a thread.

        Raises OSError, when all folders had their turn.
        """
        with self._checkpointing:
            self._in_each_folder(lambda folder: self._checkpoint_cleaning(folder, self._logs_in(folder)))

    def _checkpoint_cleaning(self, folder: Folder, logs: dict[TopicPartition, "Log"]) -> None:
        cleaned = {key: log.cleaned_offset for key, log in logs.items() if log.cleaned_offset is not None}
        folder.write_offsets(checkpoints.CLEANER_OFFSETS, cleaned)

    def close(self, high_watermarks: Mapping[TopicPartition, int] | None = None) -> None:
        """Close every log, and release the folders.

        What cannot be closed is logged; the next start recovers the logs of that folder then, as after a crash.
        """
        clean = [folder for folder in self.online_folders if _close_all(folder, self._logs_in(folder).values())]
        try:
            self.checkpoint(high_watermarks)
            for folder in clean:
                if folder.online:
                    folder.leave_clean_mark()
        except OSError as error:
            logger.warning("the end of the shutdown could not be noted: %s", error)
        self.abandon()

    def abandon(self) -> None:
        """Let go of files and folders without writing anything, as a crash does."""
        for log in self.logs.values():
            log.discard()
        for folder in self.folders:
            folder.release()


def _close_all(folder: Folder, logs: Iterable["Log"]) -> bool:
    """Close the logs of a folder; whether all of them could be."""
    clean, pending = True, []
    for log in logs:
        try:
            pending.append((log, log.prepare_close()))
        except BrokerError as error:
            logger.warning("a log could not be closed: %s", error)
            clean = False
    changed = [flush for _, flush in pending if not flush.is_empty]
    try:
        together = len(changed) >= _SYNC_TOGETHER and folder.sync_all()
    except OSError:
        return False
    for log, flush in pending:
        try:
            if not together:
                flush.run()
            log.close_done(flush)
        except BrokerError as error:
            logger.warning("a log could not be closed: %s", error)
            clean = False
    return clean


def _rename(log: "Log", folder: Folder, directory: str, suffix: str) -> str:
    """Give a folder of a log a name under which nothing looks for it, and tell it. Raises OSError."""
    suffix = f"-{log.partition}.{uuid.uuid4().hex}{suffix}"
    renamed = os.path.join(folder.path, log.topic[: _MAX_NAME - len(suffix)] + suffix)
    folder.files.rename(directory, renamed)
    return renamed


def _open_segments() -> int:
    """How many segment files may be open: half of what the process may have, the rest is for connections."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(min(allowed // 2, _MAX_OPEN_SEGMENTS), _MIN_OPEN_SEGMENTS)
