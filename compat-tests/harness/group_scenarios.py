"""Groups: how members share partitions, come and go, what they commit, and what an admin client does with groups.

Members are opened one after the other has settled, so that it is known what each change moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.agent import ClientError
from harness.records import same_in_order

if TYPE_CHECKING:
    from harness.agent import Agent

NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69


class GroupScenarios:
    """Part of `CoreScenarios`."""

    @pytest.mark.feature("many partitions")
    def test_a_hundred_partitions(self, client: Agent, name: str) -> None:
        partitions = 100
        client.call("create_topic", topic=name, partitions=partitions)
        assert client.call("count_partitions", topic=name) == partitions
        client.call("open_consumer", name="one", topics=[name], group=name)
        client.call("settle", names=["one"], partitions=partitions)
        client.call("open_consumer", name="other", topics=[name], group=name)
        held = client.call("settle", names=["one", "other"], partitions=partitions)
        assert [len(assigned) for assigned in held.values()] == [partitions // 2] * 2
        records = [{"partition": number % partitions, "value": f"{number}"} for number in range(10 * partitions)]
        client.call("produce", topic=name, records=records)
        assert client.call("offset_range", topic=name) == [[0, 10]] * partitions
        values: list[int] = []
        for _ in range(4):
            read = client.call("poll", names=["one", "other"], count=10 * partitions // 4)
            values += [int(record["value"]) for records in read.values() for record in records]
        assert sorted(values) == list(range(10 * partitions))

    @pytest.mark.feature("groups: rebalance (eager)")
    def test_group_shares_partitions_and_takes_them_over(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name, partitions=4)
        everything = [[name, partition] for partition in range(4)]

        client.call("open_consumer", name="first", topics=[name], group=name)
        assert client.call("settle", names=["first"], partitions=4) == {"first": everything}

        client.call("open_consumer", name="second", topics=[name], group=name)
        held = client.call("settle", names=["first", "second"], partitions=4)
        assert [len(partitions) for partitions in held.values()] == [2, 2]
        assert sorted(held["first"] + held["second"]) == everything
        self.check_group(client, name, "Stable", members=2)

        records = [{"partition": number % 4, "value": f"{number}"} for number in range(40)]
        client.call("produce", topic=name, records=records)
        read = client.call("poll", names=["first", "second"], count=40)
        assert sorted(int(record["value"]) for records in read.values() for record in records) == list(range(40))
        for consumer, records in read.items():
            assert {record["partition"] for record in records} == {partition for _, partition in held[consumer]}

        client.call("commit", name="second")
        client.call("commit", name="first")
        client.call("close_consumer", name="second")
        assert client.call("settle", names=["first"], partitions=4) == {"first": everything}
        client.call("produce", topic=name, records=[{"partition": p, "value": f"late {p}"} for p in range(4)])
        late = client.call("poll", names=["first"], count=4)["first"]
        assert sorted(record["value"] for record in late) == [f"late {partition}" for partition in range(4)]

    @pytest.mark.feature("groups: rebalance (cooperative)")
    def test_cooperative_rebalance_moves_only_what_must_move(self, client: Agent, name: str) -> None:
        """KIP-429: a member keeps what it holds while another comes, but for the partitions that the other gets."""
        client.call("create_topic", topic=name, partitions=6)
        cooperative = {"topics": [name], "group": name, "assignor": "cooperative-sticky"}
        everything = [[name, partition] for partition in range(6)]
        client.call("open_consumer", name="first", **cooperative)
        client.call("settle", names=["first"], partitions=6)

        client.call("open_consumer", name="second", **cooperative)
        held = client.call("settle", names=["first", "second"], partitions=6)
        assert [len(partitions) for partitions in held.values()] == [3, 3]
        assert client.call("describe_group", group=name)["protocol"] == "cooperative-sticky"
        assert client.call("rebalances", name="first") == [["assigned", everything], ["revoked", held["second"]]]
        assert client.call("rebalances", name="second") == [["assigned", held["second"]]]

        records = [{"partition": number % 6, "value": f"{number}"} for number in range(60)]
        client.call("produce", topic=name, records=records)
        read = client.call("poll", names=["first", "second"], count=60)
        assert {member: len(records) for member, records in read.items()} == {"first": 30, "second": 30}
        client.call("close_consumer", name="second")
        assert client.call("settle", names=["first"], partitions=6) == {"first": everything}
        assert client.call("rebalances", name="first")[2:] == [["assigned", held["second"]]]

    @pytest.mark.feature("groups: static members")
    def test_static_member_returns_to_its_partitions(self, client: Agent, name: str) -> None:
        """KIP-345: closed and opened again within the session timeout it has them back, and nobody rebalances."""
        client.call("create_topic", topic=name, partitions=4)
        client.call("open_consumer", name="one", topics=[name], group=name, instance="instance-one")
        client.call("settle", names=["one"], partitions=4)
        client.call("open_consumer", name="two", topics=[name], group=name, instance="instance-two")
        held = client.call("settle", names=["one", "two"], partitions=4)
        before = client.call("rebalances", name="two")

        client.call("close_consumer", name="one")
        described = client.call("describe_group", group=name)
        assert (described["state"], described["members"]) == ("Stable", 2)
        client.call("open_consumer", name="one", topics=[name], group=name, instance="instance-one")
        assert client.call("settle", names=["one", "two"], partitions=4) == held
        assert client.call("rebalances", name="two") == before

        client.call("produce", topic=name, records=[{"partition": n % 4, "value": f"{n}"} for n in range(40)])
        read = client.call("poll", names=["one", "two"], count=40)
        for consumer, records in read.items():
            assert {record["partition"] for record in records} == {partition for _, partition in held[consumer]}

    @pytest.mark.feature("groups: commit and resume")
    def test_group_resumes_where_it_committed(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        client.call("produce", topic=name, records=[{"value": f"{number}"} for number in range(20)])
        assert client.call("committed", group=name, topic=name, partition=0) is None

        client.call("open_consumer", name="before", topics=[name], group=name)
        before = client.call("poll", names=["before"], count=12)["before"]
        client.call("commit", name="before")
        client.call("close_consumer", name="before")
        assert client.call("committed", group=name, topic=name, partition=0) == 12

        client.call("open_consumer", name="after", topics=[name], group=name)
        after = client.call("poll", names=["after"], count=8)["after"]
        assert [int(record["value"]) for record in before + after] == list(range(20))

    @pytest.mark.feature("admin: groups")
    def test_group_administration(self, client: Agent, name: str) -> None:
        self.leave_a_group(client, name)
        assert name in client.call("list_groups")
        described = client.call("describe_group", group=name)
        assert (described["state"], described["members"]) == ("Empty", 0)
        client.call("delete_group", group=name)
        assert name not in client.call("list_groups")
        assert client.call("committed", group=name, topic=name, partition=0) is None

    @pytest.mark.feature("admin: group offsets")
    def test_offsets_of_a_group_are_set(self, client: Agent, name: str) -> None:
        client.call("create_topic", topic=name)
        client.call("produce", topic=name, records=[{"value": f"{number}"} for number in range(10)])
        client.call("alter_offset", group=name, topic=name, partition=0, offset=7)
        assert client.call("committed", group=name, topic=name, partition=0) == 7
        client.call("open_consumer", name="reader", topics=[name], group=name)
        read = client.call("poll", names=["reader"], count=3)["reader"]
        assert same_in_order(read, "offset", "value") == [(7, "7"), (8, "8"), (9, "9")]

    @pytest.mark.feature("admin: groups")
    def test_groups_that_cannot_be_deleted(self, client: Agent, name: str) -> None:
        with pytest.raises(ClientError) as refusal:
            client.call("delete_group", group=name)
        assert refusal.value.code == GROUP_ID_NOT_FOUND
        client.call("create_topic", topic=name)
        client.call("open_consumer", name="member", topics=[name], group=name)
        client.call("settle", names=["member"], partitions=1)
        with pytest.raises(ClientError) as refusal:
            client.call("delete_group", group=name)
        assert refusal.value.code == NON_EMPTY_GROUP

    def check_group(self, client: Agent, group: str, state: str, members: int) -> None:
        """Check how the broker describes a group."""
        described = client.call("describe_group", group=group)
        assert (described["state"], described["members"]) == (state, members)

    @staticmethod
    def leave_a_group(client: Agent, name: str) -> None:
        """Make a topic and a group, both `name`, that committed an offset and has no members any more."""
        client.call("create_topic", topic=name)
        client.call("produce", topic=name, records=[{"value": "only"}])
        client.call("open_consumer", name="leaving", topics=[name], group=name)
        client.call("poll", names=["leaving"], count=1)
        client.call("commit", name="leaving")
        client.call("close_consumer", name="leaving")
