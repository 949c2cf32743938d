"""What a client library with the consumer protocol of KIP-848 must be able to do; a test class of its own inherits it.

A group needs a few heartbeats to settle; brokers that the suite starts ask for two a second (`target.QUICK_GROUPS`).
Where members come and go everything read is committed before, so that each record is read once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

if TYPE_CHECKING:
    from harness.agent import Agent

FEATURE = "groups: KIP-848"
_PARTITIONS = 6
_SETTLE_S = 60


class _Group:
    """Members of one group on one topic, both `name`, and what is produced for them."""

    def __init__(self, client: Agent, name: str) -> None:
        self._client = client
        self._name = name
        self._produced = 0
        self.members: list[str] = []
        client.call("create_topic", topic=name, partitions=_PARTITIONS)

    def come(self, member: str, **settings: Any) -> dict[str, list[list[Any]]]:
        """Have a member join; what each holds when all partitions have one again."""
        subscription = {"topics": [self._name], "protocol": "consumer", **settings}
        self._client.call("open_consumer", name=member, group=self._name, **subscription)
        self.members.append(member)
        return self.settle()

    def go(self, member: str) -> None:
        self._client.call("close_consumer", name=member)
        self.members.remove(member)

    def settle(self) -> dict[str, list[list[Any]]]:
        held: dict[str, list[list[Any]]] = self._client.call(
            "settle", timeout_s=_SETTLE_S, names=self.members, partitions=_PARTITIONS
        )
        return held

    def read_what_is_produced(self, each: int = 10) -> dict[str, set[int]]:
        """Produce and read as much in each partition, nothing twice, and commit; the partitions that each read from."""
        numbers = range(self._produced, self._produced + each * _PARTITIONS)
        self._produced = numbers.stop
        records = [{"partition": number % _PARTITIONS, "value": f"{number}"} for number in numbers]
        self._client.call("produce", topic=self._name, records=records)
        read = self._client.call("poll", names=self.members, count=len(records))
        assert sorted(int(record["value"]) for records in read.values() for record in records) == list(numbers)
        for member in self.members:
            self._client.call("commit", name=member)
        return {member: {record["partition"] for record in records} for member, records in read.items()}


@pytest.mark.feature(FEATURE)
class ConsumerProtocolScenarios:
    """Inherited by a test class whose module has a `client` fixture."""

    MISSING: ClassVar[dict[str, str]] = {}

    @pytest.mark.parametrize("assignor", ["uniform", "range"])
    def test_members_share_partitions_and_take_them_over(self, client: Agent, name: str, assignor: str) -> None:
        group = _Group(client, name)
        group.come("first", assignor=assignor)
        group.read_what_is_produced()
        held = group.come("second", assignor=assignor)
        assert [len(partitions) for partitions in held.values()] == [3, 3]
        read = group.read_what_is_produced()
        assert read == {member: {index for _, index in partitions} for member, partitions in held.items()}
        group.go("second")
        group.settle()
        group.read_what_is_produced()

    def test_only_what_must_moves(self, client: Agent, name: str) -> None:
        group = _Group(client, name)
        everything = group.come("first")["first"]
        held = group.come("second")
        assert client.call("rebalances", name="first") == [["assigned", everything], ["revoked", held["second"]]]
        assert client.call("rebalances", name="second") == [["assigned", held["second"]]]

    def test_static_member_returns_to_its_partitions(self, client: Agent, name: str) -> None:
        group = _Group(client, name)
        group.come("one", instance="instance-one")
        held = group.come("two", instance="instance-two")
        group.read_what_is_produced()
        before = client.call("rebalances", name="two")
        group.go("one")
        assert group.come("one", instance="instance-one") == held
        assert client.call("rebalances", name="two") == before
        group.read_what_is_produced()

    def test_t60_a_group_goes_to_the_consumer_protocol_and_back(self, client: Agent, name: str) -> None:
        """Members of either protocol come and go one by one, and each record is read once."""
        classic = {"protocol": "classic", "assignor": "range"}
        group = _Group(client, name)
        group.come("classic one", **classic)
        group.come("classic two", **classic)
        group.read_what_is_produced()
        held = group.come("new one")
        assert [len(partitions) for partitions in held.values()] == [2, 2, 2]
        group.read_what_is_produced()
        group.go("classic one")
        group.settle()
        group.read_what_is_produced()
        group.go("classic two")
        group.settle()
        group.read_what_is_produced()
        held = group.come("classic three", **classic)
        assert [len(partitions) for partitions in held.values()] == [3, 3]
        group.read_what_is_produced()
        group.go("new one")
        group.settle()
        group.read_what_is_produced()
        group.come("classic four", **classic)
        group.read_what_is_produced()
