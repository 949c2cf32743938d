"""Producer ids: numbers that no two producers of the cluster ever share (KIP-98).

Ids are handed out from blocks. A block is in the store before its first id is used, so a restart loses what is left of
a block, and never hands out an id again.
"""

import trio

from odradek.cluster.store import Failure, MetadataStore, StoreError
from odradek.cluster.znodes import ProducerIdBlock, ProducerIdBlockZNode

__all__ = ["BLOCK_SIZE", "ProducerIds"]

BLOCK_SIZE = 1000
"""Kafka's: one write for a thousand producers, and 2^63 ids last all the same."""

MAX_PRODUCER_ID = 2**63 - 1


class ProducerIds:
    """The producer ids of one broker."""

    def __init__(self, store: MetadataStore, node_id: int) -> None:
        self._store = store
        self._node_id = node_id
        self._next = 0
        self._last = -1
        self._claiming = trio.Lock()

    async def next(self) -> int:
        """A producer id that nobody has had. Raises StoreError when a block is needed and cannot be had."""
        while self._next > self._last:
            await self._claim()
        self._next += 1
        return self._next - 1

    async def _claim(self) -> None:
        async with self._claiming:
            while self._next > self._last:
                block, version = await self._next_block()
                try:
                    await self._store.set_data(ProducerIdBlockZNode.path, ProducerIdBlockZNode.encode(block), version)
                except StoreError as error:
                    if error.failure is not Failure.BAD_VERSION:
                        raise
                    continue  # another broker took the block
                self._next, self._last = block.first, block.last

    async def _next_block(self) -> tuple[ProducerIdBlock, int]:
        """The block after the newest one that was given out, and the version of the node that told which it was."""
        data, version = await self._store.get(ProducerIdBlockZNode.path)
        first = ProducerIdBlockZNode.decode(data).last + 1 if data else 0
        if first > MAX_PRODUCER_ID - BLOCK_SIZE + 1:
            raise StoreError(Failure.UNAVAILABLE, ProducerIdBlockZNode.path, "all producer ids have been given out")
        return ProducerIdBlock(self._node_id, first, first + BLOCK_SIZE - 1), version
