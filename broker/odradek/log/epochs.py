"""Where the leaders of a partition began: for each leader epoch the offset of the first record written in it.

Both epochs and offsets ascend. A replica that comes back asks the leader where an epoch ended, and cuts off what only
it has (KIP-101, KIP-279); a consumer asks the same (KIP-320). Kept in leader-epoch-checkpoint.
"""

import logging
import os
from bisect import bisect_right

from odradek.log import checkpoints
from odradek.log.files import Files

__all__ = ["NO_EPOCH", "LeaderEpochs"]

logger = logging.getLogger(__name__)

NO_EPOCH = -1


class LeaderEpochs:
    """The epochs of one log. Changes are written at once, but reach the disk with the next flush."""

    __slots__ = ("_files", "epochs", "latest", "path", "start_offsets")

    def __init__(self, directory: str, files: Files) -> None:
        self._files = files
        self.path = os.path.join(directory, checkpoints.LEADER_EPOCHS)
        self.epochs: list[int] = []
        self.start_offsets: list[int] = []
        self.latest = NO_EPOCH

    def load(self) -> None:
        """Read the file; without one, or with one that makes no sense, there are no epochs. Raises OSError."""
        entries = checkpoints.read_entries(self._files, self.path, 2) or []
        try:
            self.epochs = [int(epoch) for epoch, _ in entries]
            self.start_offsets = [int(offset) for _, offset in entries]
        except ValueError:
            logger.warning("%s holds something else than epochs, it is ignored", self.path)
            self.epochs, self.start_offsets = [], []
        if self.epochs != sorted(self.epochs) or self.start_offsets != sorted(self.start_offsets):
            logger.warning("the epochs of %s do not ascend, they are ignored", self.path)
            self.epochs, self.start_offsets = [], []
        self.latest = self.epochs[-1] if self.epochs else NO_EPOCH

    def relocate(self, directory: str, files: Files) -> None:
        """Go on with a copy of the file that lies in `directory`."""
        self.path = os.path.join(directory, checkpoints.LEADER_EPOCHS)
        self._files = files

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`; an epoch that is not new changes nothing. Raises OSError."""
        if epoch > self.latest:
            self._drop_from(start_offset)
            self.epochs.append(epoch)
            self.start_offsets.append(start_offset)
            self._changed()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int] | None:
        """The greatest epoch up to `epoch`, and the offset behind its last record.

        For an epoch before all known ones: that epoch and the start of the first known one. None for one that is
        newer than all known.
        """
        if epoch == NO_EPOCH or epoch > self.latest:
            return None
        if epoch == self.latest:
            return epoch, log_end_offset
        following = bisect_right(self.epochs, epoch)
        known = self.epochs[following - 1] if following else epoch
        return known, self.start_offsets[following]

    def epoch_of(self, offset: int) -> int:
        """The epoch in which the record at `offset` was or will be written; -1 when none is known."""
        index = bisect_right(self.start_offsets, offset) - 1
        return self.epochs[index] if index >= 0 else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that begin at or behind `end_offset`. Raises OSError."""
        if self._drop_from(end_offset):
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the epochs that ended before `start_offset`, and let its own begin there. Raises OSError."""
        first = bisect_right(self.start_offsets, start_offset) - 1
        if first >= 0 and self.start_offsets[0] < start_offset:
            del self.epochs[:first]
            del self.start_offsets[:first]
            self.start_offsets[0] = start_offset
            self._changed()

    def clear(self) -> None:
        """Forget everything. Raises OSError."""
        if self.epochs:
            self._drop_from(0)
            self._changed()

    def _drop_from(self, offset: int) -> bool:
        keep = len(self.start_offsets)
        while keep and self.start_offsets[keep - 1] >= offset:
            keep -= 1
        dropped = keep < len(self.start_offsets)
        del self.epochs[keep:]
        del self.start_offsets[keep:]
        return dropped

    def _changed(self) -> None:
        self.latest = self.epochs[-1] if self.epochs else NO_EPOCH
        entries = zip(self.epochs, self.start_offsets, strict=True)
        checkpoints.write_entries(self._files, self.path, entries, durable=False)
