"""Carrying out the moves of logs between the folders of `log.dirs`, one after the other, while clients are served.

A log is copied piece by piece in a thread. When only little is left to copy, the last of it is copied between two
requests: a log that is written to all the time would never be caught up with otherwise. See `odradek.log.moves` for
what is on the disk meanwhile.
"""

import logging
from typing import TYPE_CHECKING

import trio

from odradek.log.moves import Move
from odradek_protocol.errors import BrokerError

if TYPE_CHECKING:
    from odradek.log.store import Folder, LogStore
    from odradek.partition import Partition

__all__ = ["LogMoves"]

log = logging.getLogger(__name__)

ROUNDS = 5
"""How often to try to catch up in threads; each round leaves what was appended during the one before."""


class LogMoves:
    """The moves of one broker's logs. `run` has to run while requests are served."""

    def __init__(self, logs: "LogStore") -> None:
        self._logs = logs
        self._wanted = trio.Event()

    def begin(self, partition: "Partition", folder: "Folder") -> None:
        """Let a partition's log move to `folder`. Raises KAFKA_STORAGE_ERROR."""
        if self._logs.begin_move(partition.log, folder) is not None:
            self._wanted.set()

    async def run(self) -> None:
        """Carry out what an earlier run of the broker began, and what is asked for, until cancelled."""
        for move in list(self._logs.moves.values()):
            try:
                await trio.to_thread.run_sync(move.resume)
            except OSError as error:
                self._give_up(move, error)
        while True:
            while self._logs.moves:
                move = next(iter(self._logs.moves.values()))
                try:
                    await self._carry_out(move)
                except (OSError, BrokerError) as error:
                    self._give_up(move, error)
            self._wanted = trio.Event()
            await self._wanted.wait()

    def _is_on(self, move: Move) -> bool:
        """Whether nobody ended the move, and neither folder nor log failed."""
        return self._logs.moves.get((move.log.topic, move.log.partition)) is move and move.log.failed is None

    async def _carry_out(self, move: Move) -> None:
        """Copy a log, and let it live where the copy is. Raises OSError, BrokerError."""
        log.info("%r begins", move)
        for _ in range(ROUNDS):
            await self._copy(move)
            if not self._is_on(move):
                return
            await trio.to_thread.run_sync(move.copy_rest)
            await trio.to_thread.run_sync(self._logs.checkpoint)
            if not self._is_on(move):
                return
            if move.is_complete():
                break
        else:
            _copy_now(move)
        self._logs.finish_move(move)
        await trio.to_thread.run_sync(self._logs.checkpoint)

    async def _copy(self, move: Move) -> None:
        """Copy in a thread until nothing is left at that moment, or again and again only what has just come."""
        last = 0
        while last < ROUNDS and self._is_on(move) and (piece := move.next_piece()) is not None:
            await trio.to_thread.run_sync(piece.run)
            piece.done()
            last += piece.is_last

    def _give_up(self, move: Move, error: Exception) -> None:
        """End a move that failed; the log stays where it is."""
        if not self._is_on(move):
            return
        log.warning("%r failed: %s", move, error)
        try:
            self._logs.end_move(move.log.topic, move.log.partition)
        except BrokerError as left:
            log.warning("what is left of it will be found by the next start: %s", left)


def _copy_now(move: Move) -> None:
    """Copy what came during the last round. Raises OSError."""
    while (piece := move.next_piece()) is not None:
        piece.run()
        piece.done()
    move.copy_rest()
