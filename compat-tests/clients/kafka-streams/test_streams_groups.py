"""The same application with `group.protocol=streams`: the broker gives out its tasks and makes its internal topics.

Each instance has two threads, which are members of one process, and tells where it answers queries.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from harness.clients import client_of
from harness.java import Tools
from harness.java_clients import streams_driver
from harness.shop import CUSTOMERS, PARTITIONS, PROCESSED_PARTITIONS, Shop
from harness.versions import KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from harness.agent import Agent, Driver
    from harness.target import Target

FEATURE = "streams: groups of KIP-1071"
GUARANTEES = ("at_least_once", "exactly_once_v2")
GROUP_TIMEOUT_S = 150
"""For a member that is killed, whose session has to be over first."""
PAUSE_S = 0.2


@pytest.fixture(scope="module", params=[f"kafka-streams-{KAFKA_4}"])
def driver(request: pytest.FixtureRequest) -> Driver:
    return streams_driver(request.param)


@pytest.fixture
def other(driver: Driver, target: Target, tmp_path: Path) -> Iterator[Agent]:
    """A second process, to be killed."""
    folder = tmp_path / "other"
    folder.mkdir()
    with client_of(driver, target, folder) as agent:
        yield agent


@pytest.fixture(scope="module")
def tools(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    launched = Tools(KAFKA_4, target.bootstrap, tmp_path_factory.mktemp("tools"))
    try:
        yield launched
    finally:
        launched.close()


def wait_for(done: Callable[[], object]) -> None:
    """Ask until the answer is yes."""
    deadline = time.monotonic() + GROUP_TIMEOUT_S
    while not done():
        assert time.monotonic() < deadline, "the group does not settle"
        time.sleep(PAUSE_S)


@pytest.mark.feature(FEATURE)
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_state_comes_back_from_the_changelog(client: Agent, name: str, tmp_path: Path, guarantee: str) -> None:
    shop = Shop(client, name, tmp_path, guarantee, "streams")
    shop.sell(200)
    shop.start("first")
    shop.settle("first")
    shop.check_stores("first")
    shop.check_output()
    internal = [topic for topic in client.call("list_topics") if topic.endswith(("-changelog", "-repartition"))]
    internal = [topic for topic in internal if topic.startswith(f"{name}-")]
    assert len(internal) == 4
    for topic in internal:
        cleanup = client.call("topic_config", topic=topic, key="cleanup.policy")
        assert cleanup == ("compact" if topic.endswith("changelog") else "delete")
        assert client.call("count_partitions", topic=topic) == PARTITIONS
    shop.stop("first", and_forget=True)
    shop.start("second")
    shop.settle("second")
    assert client.call("restored", name="second") == {"customers": len(CUSTOMERS), "totals": 200}
    shop.sell(100)
    shop.check_stores("second")
    shop.check_output()


@pytest.mark.feature(FEATURE)
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_an_instance_is_killed(
    client: Agent, other: Agent, tools: Tools, name: str, tmp_path: Path, guarantee: str
) -> None:
    standby = ["--add-config", "streams.num.standby.replicas=1"]
    tools.run_on_broker("configs", "--alter", "--entity-type", "groups", "--entity-name", name, *standby)
    shop = Shop(client, name, tmp_path, guarantee, "streams")
    shop.sell(50)
    shop.start("one")
    shop.settle("one")
    shop.start("two", on=other)

    def shares() -> bool:
        held = [client.call("held", name="one"), other.call("held", name="two")]
        return sum(held) == PROCESSED_PARTITIONS and all(held)

    wait_for(shares)
    wait_for(lambda: client.call("standby_tasks", name="one") and other.call("standby_tasks", name="two"))
    wait_for(lambda: client.call("shares", name="one").keys() == {"one", "two"})
    shop.sell(50)
    other.close()
    wait_for(lambda: client.call("held", name="one") == PROCESSED_PARTITIONS)
    shop.sell(50)
    shop.check_stores("one")
    shop.check_output()


@pytest.mark.feature(FEATURE)
def test_restart_of_the_broker(client: Agent, target: Target, name: str, tmp_path: Path) -> None:
    shop = Shop(client, name, tmp_path, "exactly_once_v2", "streams")
    shop.start("only")
    shop.settle("only")
    shop.sell(100)
    shop.check_stores("only")
    target.restart_abruptly()
    shop.sell(100)
    shop.check_stores("only")
    shop.check_output()


@pytest.mark.feature(FEATURE)
def test_the_tool(client: Agent, tools: Tools, name: str, tmp_path: Path) -> None:
    shop = Shop(client, name, tmp_path, "at_least_once", "streams")
    shop.sell(30)
    shop.start("only")
    shop.settle("only")
    shop.check_stores("only")

    def rows(*options: str) -> list[list[str]]:
        lines = tools.run_on_broker("streams-groups", *options).lines
        return [columns for line in lines if (columns := line.split()) and columns[0] == name]

    assert rows("--list") == [[name]]
    assert rows("--list", "--state", "stable") == [[name, "Stable"]]
    assert rows("--list", "--state", "empty") == []
    described = ["--describe", "--group", name]
    [state] = rows(*described, "--state")
    assert state[-2:] == ["Stable", "2"]
    members = rows(*described, "--members")
    assert len(members) == 2
    source_topics = {f"{name}-orders", f"{name}-customers"}
    assert source_topics <= {columns[1] for columns in rows(*described, "--offsets")}
    delete = ["--bootstrap-server", tools.bootstrap, "--delete", "--group", name]
    refused = tools.run("streams-groups", *delete)
    assert "not empty" in (refused.out + refused.err).lower() or "NonEmpty" in refused.out + refused.err

    shop.stop("only")
    wait_for(lambda: rows("--list", "--state", "empty"))
    reset = ["--reset-offsets", "--group", name, "--input-topic", f"{name}-orders", "--to-earliest", "--execute"]
    assert all(columns[-1] == "0" for columns in rows(*reset))
    deleted = tools.run("streams-groups", *delete, "--delete-all-internal-topics")
    assert deleted.status == 0, deleted
    wait_for(lambda: not rows("--list"))
