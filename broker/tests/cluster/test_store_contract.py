"""What every MetadataStore does: the rules of `odradek.cluster.store`, one by one.

An implementation joins by adding to `STORES` a function that opens a session on the tree kept under a folder.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from odradek.cluster.embedded import EmbeddedStore
from odradek.cluster.store import Check, Create, Delete, Failure, MetadataStore, SetData, StoreError

Session = Callable[[], Awaitable[MetadataStore]]


def embedded(folder: Path) -> Session:
    return partial(EmbeddedStore.open, folder / "metadata.db")


STORES = [embedded]


@pytest.fixture(params=STORES, ids=lambda store: store.__name__)
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    opened: Session = request.param(tmp_path)
    return opened


@asynccontextmanager
async def opened(session: Session) -> AsyncIterator[MetadataStore]:
    store = await session()
    try:
        yield store
    finally:
        await store.close()


async def failure(call: Awaitable[object]) -> Failure:
    with pytest.raises(StoreError) as caught:
        await call
    return caught.value.failure


async def test_a_node_has_data_and_a_version(session: Session) -> None:
    async with opened(session) as store:
        assert await store.create("/a", b"one") == "/a"
        assert await store.get("/a") == (b"one", 0)
        assert await store.set_data("/a", b"two") == 1
        assert await store.get("/a") == (b"two", 1)
        assert await store.exists("/a")
        await store.delete("/a")
        assert not await store.exists("/a")


async def test_data_may_be_any_bytes(session: Session) -> None:
    async with opened(session) as store:
        for name, data in (("empty", b""), ("binary", bytes(range(256))), ("large", b"x" * 900_000)):
            await store.create(f"/{name}", data)
            assert (await store.get(f"/{name}")).data == data


async def test_a_missing_node_is_no_node(session: Session) -> None:
    async with opened(session) as store:
        assert await failure(store.get("/a")) is Failure.NO_NODE
        assert await failure(store.children("/a")) is Failure.NO_NODE
        assert await failure(store.set_data("/a", b"")) is Failure.NO_NODE
        assert await failure(store.delete("/a")) is Failure.NO_NODE
        assert await failure(store.create("/a/b")) is Failure.NO_NODE
        assert not await store.exists("/a/b/c")


async def test_a_node_is_made_once(session: Session) -> None:
    async with opened(session) as store:
        await store.create("/a", b"first")
        assert await failure(store.create("/a", b"second")) is Failure.NODE_EXISTS
        assert await store.get("/a") == (b"first", 0)


async def test_a_write_may_expect_a_version(session: Session) -> None:
    async with opened(session) as store:
        await store.create("/a")
        assert await store.set_data("/a", b"x", 0) == 1
        assert await failure(store.set_data("/a", b"y", 0)) is Failure.BAD_VERSION
        assert await failure(store.delete("/a", 0)) is Failure.BAD_VERSION
        assert await store.get("/a") == (b"x", 1)
        await store.delete("/a", 1)


async def test_a_node_that_is_made_again_starts_at_version_0(session: Session) -> None:
    async with opened(session) as store:
        await store.create("/a")
        await store.set_data("/a", b"x")
        await store.delete("/a")
        await store.create("/a")
        assert await store.get("/a") == (b"", 0)


async def test_children_are_names_in_order(session: Session) -> None:
    async with opened(session) as store:
        await store.create("/a")
        for name in ("z", "b", "m"):
            await store.create(f"/a/{name}")
        await store.create("/a/m/deep")
        assert await store.children("/a") == ["b", "m", "z"]
        await store.delete("/a/b")
        assert await store.children("/a") == ["m", "z"]
        assert "a" in await store.children("/")


async def test_children_do_not_change_their_parents_version(session: Session) -> None:
    async with opened(session) as store:
        await store.create("/a")
        await store.create("/a/b")
        assert await store.get("/a") == (b"", 0)


async def test_a_node_with_children_stays(session: Session) -> None:
    async with opened(session) as store:
        await store.create("/a")
        await store.create("/a/b")
        assert await failure(store.delete("/a")) is Failure.NOT_EMPTY
        await store.delete("/a/b")
        await store.delete("/a")


async def test_sequential_names_grow_and_are_never_used_twice(session: Session) -> None:
    names = []
    async with opened(session) as store:
        await store.create("/q")
        for _ in range(3):
            names.append(await store.create("/q/n-", sequential=True))
            await store.delete(names[-1])
    async with opened(session) as store:
        names.append(await store.create("/q/n-", sequential=True))
        names.append(await store.create("/q/m-", ephemeral=True, sequential=True))
    numbers = [int(name[-10:]) for name in names]
    assert all(name.startswith(("/q/n-", "/q/m-")) and len(name) == len("/q/n-") + 10 for name in names)
    assert numbers == sorted(set(numbers))


async def test_ephemeral_nodes_go_with_the_session(session: Session) -> None:
    async with opened(session) as store:
        await store.create("/live")
        await store.create("/live/1", b"here", ephemeral=True)
        assert await store.get("/live/1") == (b"here", 0)
        assert await store.set_data("/live/1", b"still") == 1
    async with opened(session) as store:
        assert await store.children("/live") == []
        await store.create("/live/1", ephemeral=True)


async def test_an_ephemeral_node_may_follow_a_lasting_one(session: Session) -> None:
    async with opened(session) as store:
        await store.create("/a")
        await store.multi([Delete("/a"), Create("/a", ephemeral=True)])
    async with opened(session) as store:
        assert not await store.exists("/a")


async def test_an_ephemeral_node_has_no_children(session: Session) -> None:
    async with opened(session) as store:
        await store.create("/a", ephemeral=True)
        assert await failure(store.create("/a/b")) is Failure.EPHEMERAL_PARENT


async def test_what_was_written_is_there_in_the_next_session(session: Session) -> None:
    async with opened(session) as store:
        await store.create("/a", b"1")
        await store.set_data("/a", b"2")
        await store.multi([Create("/a/b", b"3"), Create("/gone"), Delete("/gone")])
    async with opened(session) as store:
        assert await store.get("/a") == (b"2", 1)
        assert await store.get("/a/b") == (b"3", 0)
        assert not await store.exists("/gone")


async def test_multi_does_all_and_tells_each_result(session: Session) -> None:
    async with opened(session) as store:
        await store.create("/old", b"x")
        results = await store.multi(
            [
                Check("/old", 0),
                Create("/a"),
                Create("/a/b", b"1"),
                SetData("/a/b", b"2", 0),
                Create("/a/n-", sequential=True),
                Delete("/old", 0),
            ]
        )
        assert results[:4] == [None, "/a", "/a/b", 1]
        assert isinstance(results[4], str)
        assert results[4].startswith("/a/n-")
        assert results[5] is None
        assert await store.get("/a/b") == (b"2", 1)
        assert not await store.exists("/old")


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (Create("/there"), Failure.NODE_EXISTS),
        (Create("/no/parent"), Failure.NO_NODE),
        (SetData("/there", b"", 7), Failure.BAD_VERSION),
        (Delete("/there"), Failure.NOT_EMPTY),
        (Check("/nowhere"), Failure.NO_NODE),
        (Check("/there", 3), Failure.BAD_VERSION),
    ],
    ids=str,
)
async def test_multi_does_nothing_when_one_fails(
    session: Session, bad: Create | SetData | Delete | Check, expected: Failure
) -> None:
    async with opened(session) as store:
        await store.create("/there", b"data")
        await store.create("/there/child")
        before = [Create("/new"), Create("/there/other")]
        assert await failure(store.multi([*before, bad, Delete("/there/child")])) is expected
        assert not await store.exists("/new")
        assert await store.children("/there") == ["child"]
        assert await store.get("/there") == (b"data", 0)


async def test_multi_of_nothing_does_nothing(session: Session) -> None:
    async with opened(session) as store:
        assert await store.multi([]) == []


async def test_one_of_many_racing_writers_wins(session: Session) -> None:
    async with opened(session) as store:
        await store.create("/counter", b"0")
        won = []
        lost = []

        async def race(number: int) -> None:
            try:
                await store.set_data("/counter", str(number).encode(), 0)
            except StoreError as error:
                lost.append(error.failure)
            else:
                won.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(race, number)
        assert len(won) == 1
        assert lost == [Failure.BAD_VERSION] * 9
        assert await store.get("/counter") == (str(won[0]).encode(), 1)


class Calls:
    """A watch's callback that keeps what it was told, and can be waited for."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._called = trio.Event()

    def __call__(self, path: str) -> None:
        self.paths.append(path)
        self._called.set()

    async def next(self) -> str:
        with trio.fail_after(10):
            await self._called.wait()
        self._called = trio.Event()
        return self.paths[-1]


async def test_a_data_watch_tells_of_each_kind_of_change(session: Session) -> None:
    async with opened(session) as store:
        calls = Calls()
        store.watch_data("/a", calls)
        await store.create("/a")
        assert await calls.next() == "/a"
        await store.set_data("/a", b"x")
        assert await calls.next() == "/a"
        await store.multi([Check("/a"), Delete("/a")])
        assert await calls.next() == "/a"


async def test_a_child_watch_tells_of_children_only(session: Session) -> None:
    async with opened(session) as store:
        await store.create("/a")
        children, data = Calls(), Calls()
        store.watch_children("/a", children)
        store.watch_data("/a", data)
        await store.create("/a/b", ephemeral=True)
        assert await children.next() == "/a"
        await store.delete("/a/b")
        assert await children.next() == "/a"
        assert data.paths == []


async def test_a_cancelled_watch_is_silent_and_others_are_not(session: Session) -> None:
    async with opened(session) as store:
        cancelled, kept = Calls(), Calls()
        watch = store.watch_data("/a", cancelled)
        store.watch_data("/a", kept)
        watch.cancel()
        watch.cancel()
        await store.create("/a")
        assert await kept.next() == "/a"
        assert cancelled.paths == []


async def test_a_failed_write_wakes_no_watch(session: Session) -> None:
    async with opened(session) as store:
        calls = Calls()
        store.watch_data("/a", calls)
        assert await failure(store.multi([Create("/a"), Delete("/nowhere")])) is Failure.NO_NODE
        assert calls.paths == []


@pytest.mark.parametrize("path", ["", "a", "a/b", "//", "/a/", "/a//b", "/./a", "/a/.."])
async def test_what_is_no_path_is_a_mistake_of_the_caller(session: Session, path: str) -> None:
    async with opened(session) as store:
        with pytest.raises(ValueError, match="not a znode path"):
            await store.get(path)
        with pytest.raises(ValueError, match="not a znode path"):
            await store.create(path)


async def test_a_closed_store_is_unavailable(session: Session) -> None:
    store = await session()
    await store.close()
    await store.close()
    assert await failure(store.get("/")) is Failure.UNAVAILABLE
    assert await failure(store.create("/a")) is Failure.UNAVAILABLE
