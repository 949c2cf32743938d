"""Producer ids: unique, in blocks that are written before they are used."""

from pathlib import Path

import pytest
import trio

from odradek.cluster.embedded import EmbeddedStore
from odradek.cluster.loading import ensure_standing_nodes
from odradek.cluster.producer_ids import BLOCK_SIZE, ProducerIds
from odradek.cluster.store import StoreError
from odradek.cluster.znodes import ProducerIdBlock, ProducerIdBlockZNode


async def opened(folder: Path) -> EmbeddedStore:
    store = await EmbeddedStore.open(folder / "metadata.db")
    await ensure_standing_nodes(store)
    return store


async def test_ids_count_up_from_0_through_blocks(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    ids = ProducerIds(store, 1)
    assert [await ids.next() for _ in range(BLOCK_SIZE + 2)] == list(range(BLOCK_SIZE + 2))
    block = ProducerIdBlockZNode.decode((await store.get(ProducerIdBlockZNode.path)).data)
    assert block == ProducerIdBlock(1, BLOCK_SIZE, 2 * BLOCK_SIZE - 1)
    await store.close()


async def test_a_restart_never_gives_an_id_again(tmp_path: Path) -> None:
    seen = []
    for _ in range(3):
        store = await opened(tmp_path)
        ids = ProducerIds(store, 1)
        seen.extend([await ids.next() for _ in range(5)])
        await store.close()
    assert len(set(seen)) == len(seen)
    assert seen[5] == BLOCK_SIZE


async def test_brokers_and_clients_at_once_share_no_id(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    brokers = [ProducerIds(store, node_id) for node_id in range(4)]
    seen: list[int] = []

    async def ask(ids: ProducerIds) -> None:
        seen.extend([await ids.next() for _ in range(700)])

    async with trio.open_nursery() as nursery:
        for ids in brokers:
            for _ in range(3):
                nursery.start_soon(ask, ids)
    assert len(set(seen)) == len(seen) == 4 * 3 * 700
    await store.close()


async def test_the_last_id_is_the_largest_int64(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    almost = ProducerIdBlock(1, 0, 2**63 - 1 - BLOCK_SIZE)
    await store.set_data(ProducerIdBlockZNode.path, ProducerIdBlockZNode.encode(almost))
    ids = ProducerIds(store, 1)
    assert [await ids.next() for _ in range(BLOCK_SIZE)][-1] == 2**63 - 1
    with pytest.raises(StoreError, match="given out"):
        await ids.next()
    await store.close()
