"""One of `log.dirs`: whose it is, what its checkpoint files say, and whether it can still be used.

A folder fails for good: once the disk below it has refused a call, what is on it is not known any more, and nothing is
written to it until the broker starts anew.
"""

import logging
import os
import shutil
from collections.abc import Callable, Mapping

from odradek.log import checkpoints, properties
from odradek.log.checkpoints import TopicPartition
from odradek.log.deletion import Deletions
from odradek.log.errors import LogFolderError
from odradek.log.files import FileHandle, Files
from odradek.log.watched import WatchedFiles

__all__ = ["Folder"]

logger = logging.getLogger(__name__)

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"

_CLEAN_SHUTDOWN = b'{"version":0,"brokerEpoch":-1}'


class Folder:
    """A folder of logs. `on_failure` is called once, in whatever thread, with the folder that failed."""

    __slots__ = ("_lock", "_on_failure", "clean", "deletions", "failed", "files", "log_count", "meta", "noted", "path")

    def __init__(self, path: str, files: Files, on_failure: Callable[["Folder"], None]) -> None:
        self.path = path
        self.files = WatchedFiles(files, self.fail)
        self.deletions = Deletions(self.files)
        self.meta: dict[str, str] = {}
        self.clean = False
        """Whether all its logs were closed when the folder was last used."""
        self.failed: str | None = None
        """Why it is offline; None while it is not."""
        self.log_count = 0
        self.noted: set[TopicPartition] = set()
        """The partitions that a checkpoint file has an offset of."""
        self._lock: FileHandle | None = None
        self._on_failure = on_failure

    def __repr__(self) -> str:
        return f"Folder({self.path})"

    @property
    def online(self) -> bool:
        return self.failed is None

    def open(self) -> None:
        """Lock the folder, made if need be, and read its meta.properties. One that cannot be read fails.

        Raises LogFolderError when another broker uses it.
        """
        try:
            self.files.make_directories(self.path)
            self._lock = self.files.lock(os.path.join(self.path, LOCK_FILE))
            self.meta = properties.read_meta(self.files, self.path)
        except OSError as error:
            self.fail(error)
            return
        if self._lock is None:
            raise LogFolderError(f"another broker uses {self.path}")

    def fail(self, error: OSError) -> None:
        """Take the folder offline."""
        if self.failed is None:
            self.failed = str(error)
            logger.error("%s is offline: %s", self.path, error)
            self._on_failure(self)

    def take_clean_mark(self) -> None:
        """Note whether the last shutdown was clean, and remove the mark: from now on none is. Raises OSError."""
        marker = os.path.join(self.path, CLEAN_SHUTDOWN_FILE)
        self.clean = self.files.exists(marker)
        if self.clean:
            self.files.unlink(marker)
            self.files.sync(self.path)

    def leave_clean_mark(self) -> None:
        """Say that all logs are closed. Raises OSError."""
        self.files.replace(os.path.join(self.path, CLEAN_SHUTDOWN_FILE), _CLEAN_SHUTDOWN, durable=True)

    def identify(self, node_id: int, cluster_id: str) -> None:
        """Write down whose the folder is, with an id of its own if it has none (KIP-858). Raises OSError."""
        properties.write_meta(self.files, self.path, self.meta, node_id, cluster_id)
        self.meta = properties.read_meta(self.files, self.path)

    def read_offsets(self, name: str) -> dict[TopicPartition, int]:
        """What a checkpoint file says. Raises OSError."""
        offsets = checkpoints.read_offsets(self.files, os.path.join(self.path, name))
        self.noted |= offsets.keys()
        return offsets

    def write_offsets(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace a checkpoint file. Raises OSError."""
        checkpoints.write_offsets(self.files, os.path.join(self.path, name), offsets)
        self.noted |= offsets.keys()

    def sync_all(self) -> bool:
        """Bring everything on the folder's file system to the disk; False where the system cannot. Raises OSError."""
        return self._lock is not None and self.files.sync_file_system(self._lock.fd)

    def space(self) -> tuple[int, int]:
        """Total and usable bytes of the volume, -1 where the system does not tell."""
        try:
            volume = shutil.disk_usage(self.path)
        except OSError:
            return -1, -1
        return volume.total, volume.free

    def release(self) -> None:
        """Let others use the folder."""
        self._lock = None
