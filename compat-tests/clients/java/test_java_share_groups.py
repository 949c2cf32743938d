"""Kafka's own Java client as a member of share groups (KIP-932), in the releases that have them for good."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from harness.agent import ClientError
from harness.java_clients import share_driver
from harness.versions import JAVA_SHARE_CLIENTS
from harness.waiting import eventually

if TYPE_CHECKING:
    from harness.agent import Agent, Driver
    from harness.target import Target

ACCEPT, RELEASE, REJECT, RENEW = "ACCEPT", "RELEASE", "REJECT", "RENEW"
EARLIEST = {"share.auto.offset.reset": "earliest"}
LIMIT = 5
NON_EMPTY_GROUP = 68
GROUP_ID_NOT_FOUND = 69


@pytest.fixture(scope="module", params=[f"java-{version}" for version in JAVA_SHARE_CLIENTS])
def driver(request: pytest.FixtureRequest) -> Driver:
    return share_driver(request.param)


class Group:
    """A share group and its topic, both `name`, and what is produced for it."""

    def __init__(self, client: Agent, name: str, partitions: int = 1, **configs: str) -> None:
        self._client = client
        self.name = name
        self._produced = 0
        self._partitions = partitions
        client.call("create_topic", topic=name, partitions=partitions)
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        client.call("alter_group_config", group=name, configs={**EARLIEST, **settings})

    def join(self, member: str, **how: Any) -> None:
        self._client.call("open_share", name=member, group=self.name, topics=[self.name], **how)

    def produce(self, count: int) -> list[str]:
        """Produce one batch in each partition; the values."""
        values = [f"{number}" for number in range(self._produced, self._produced + count)]
        self._produced += count
        records = [{"partition": int(value) % self._partitions, "value": value} for value in values]
        self._client.call("produce", topic=self.name, records=records)
        return values

    def poll(self, *members: str, count: int, kind: str | None = None) -> list[dict[str, Any]]:
        """Records that members have got, `count` or more; acknowledged at once where a type is given."""
        polled = self._client.call("share_poll", names=members, count=count, type=kind)
        return [record for records in polled.values() for record in records]

    def acknowledge(self, member: str, records: list[dict[str, Any]], kind: str) -> None:
        rows = [[record["partition"], record["offset"], kind] for record in records]
        self._client.call("share_acknowledge", name=member, records=rows)

    def commit(self, member: str) -> set[str]:
        """Send what was acknowledged; the errors of the partitions, "" for none."""
        return set(self._client.call("share_commit", name=member).values())

    def only_new_ones_come(self, member: str) -> bool:
        """Whether nothing is delivered any more but what is produced now."""
        new = self.produce(self._partitions)
        polled = self.poll(member, count=len(new), kind=ACCEPT)
        assert self.commit(member) == {""}
        return sorted(values(polled)) == sorted(new)

    def offsets(self) -> list[list[int]]:
        """[partition, start offset] of each partition."""
        return [row[1:3] for row in self._client.call("share_offsets", group=self.name)]

    def lags(self) -> list[int]:
        """How many records are left in each partition."""
        return [row[3] for row in self._client.call("share_offsets", group=self.name)]


def values(records: list[dict[str, Any]]) -> list[str]:
    return [record["value"] for record in records]


def deliveries(records: list[dict[str, Any]]) -> list[int]:
    return [record["deliveries"] for record in records]


def code_of(client: Agent, operation: str, **arguments: Any) -> int | None:
    """The error code with which the broker refuses something."""
    with pytest.raises(ClientError) as refused:
        client.call(operation, **arguments)
    return refused.value.code


@pytest.mark.feature("share groups: acknowledgement")
class TestAcknowledgement:
    def test_what_was_polled_is_accepted_implicitly(self, client: Agent, name: str) -> None:
        """By the next poll, and by a commit; the end of the member gives it back."""
        group = Group(client, name)
        group.join("one")
        for _ in range(3):
            produced = group.produce(10)
            polled = group.poll("one", count=10)
            assert (values(polled), deliveries(polled)) == (produced, [1] * 10)
        assert group.commit("one") == {""}
        last = group.produce(10)
        assert values(group.poll("one", count=10)) == last
        client.call("close_share", name="one")
        group.join("two", explicit=True)
        polled = group.poll("two", count=10, kind=ACCEPT)
        assert (values(polled), deliveries(polled)) == (last, [2] * 10)
        assert group.only_new_ones_come("two")

    def test_each_record_in_its_own_way(self, client: Agent, name: str) -> None:
        group = Group(client, name)
        group.join("one", explicit=True)
        produced = group.produce(9)
        polled = group.poll("one", count=9)
        for first, kind in enumerate((ACCEPT, RELEASE, REJECT)):
            group.acknowledge("one", polled[first::3], kind)
        assert group.commit("one") == {""}
        again = group.poll("one", count=3, kind=ACCEPT)
        assert (values(again), deliveries(again)) == (produced[1::3], [2] * 3)
        assert group.commit("one") == {""}
        assert group.only_new_ones_come("one")

    def test_a_poll_needs_the_last_one_acknowledged(self, client: Agent, name: str) -> None:
        group = Group(client, name)
        group.join("one", explicit=True)
        group.produce(2)
        polled = group.poll("one", count=2)
        with pytest.raises(ClientError, match="IllegalState"):
            group.poll("one", count=1)
        group.acknowledge("one", polled, ACCEPT)
        assert group.only_new_ones_come("one")

    def test_what_a_member_has_when_it_goes_is_given_back(self, client: Agent, name: str) -> None:
        group = Group(client, name)
        group.join("one", explicit=True)
        produced = group.produce(6)
        group.acknowledge("one", group.poll("one", count=6)[:2], ACCEPT)
        client.call("close_share", name="one")
        group.join("two", explicit=True)
        polled = group.poll("two", count=4, kind=ACCEPT)
        assert (values(polled), deliveries(polled)) == (produced[2:], [2] * 4)
        assert group.only_new_ones_come("two")


@pytest.mark.feature("share groups: deliveries and locks")
class TestDeliveries:
    MISSING: ClassVar[dict[str, str]] = {"test_a_lock_is_renewed[java-4.1.2]": "locks are renewed since 4.2"}

    def test_a_record_is_delivered_as_often_as_the_limit_says(self, client: Agent, name: str) -> None:
        group = Group(client, name)
        group.join("one", explicit=True)
        [bad] = group.produce(1)
        for attempt in range(1, LIMIT + 1):
            [record] = group.poll("one", count=1, kind=RELEASE)
            assert (record["value"], record["deliveries"]) == (bad, attempt)
        assert group.commit("one") == {""}
        assert group.only_new_ones_come("one")

    def test_a_group_has_its_own_limit(self, client: Agent, name: str) -> None:
        group = Group(client, name, share_delivery_count_limit="2")
        group.join("one", explicit=True)
        produced = group.produce(5)
        for attempt in (1, 2):
            polled = group.poll("one", count=5, kind=RELEASE)
            assert (values(polled), set(deliveries(polled))) == (produced, {attempt})
            assert group.commit("one") == {""}
        assert group.only_new_ones_come("one")

    def test_a_lock_ends(self, client: Agent, name: str) -> None:
        """Then somebody else gets the records, and who was late is told so."""
        group = Group(client, name, share_record_lock_duration_ms="1000")
        group.join("slow", explicit=True)
        produced = group.produce(4)
        late = group.poll("slow", count=4)
        group.join("other", explicit=True)
        polled = group.poll("other", count=4, kind=ACCEPT)
        assert values(polled) == produced
        assert min(deliveries(polled)) > 1  # the lock may have ended before "slow" had them, too
        assert group.commit("other") == {""}
        with suppress(ClientError):  # the client may have seen by itself that the time is over
            group.acknowledge("slow", late, ACCEPT)
            group.commit("slow")
        assert group.only_new_ones_come("other")

    def test_a_lock_is_renewed(self, client: Agent, name: str) -> None:
        """It outlasts a lock of another group, as long and begun later, that nobody renews."""
        lock = {"share_record_lock_duration_ms": "10000"}
        group, control = Group(client, name, **lock), Group(client, f"{name}-control", **lock)
        produced = group.produce(1)
        group.join("busy", explicit=True)
        assert values(group.poll("busy", count=1, kind=RENEW)) == produced
        assert group.commit("busy") == {""}
        control.produce(1)
        control.join("idle", explicit=True)
        assert control.poll("idle", count=1)
        # These join only now: a member that has polled may have a fetch under way, which gets what is produced.
        group.join("other", explicit=True)
        control.join("waiting", explicit=True)
        while not control.poll("waiting", count=0):
            assert values(group.poll("busy", count=1, kind=RENEW)) == produced
            assert group.commit("busy") == {""}
            assert group.poll("other", count=0) == []
        client.call("close_share", name="busy")
        assert values(group.poll("other", count=1)) == produced


@pytest.mark.feature("share groups: several members")
class TestMembers:
    def test_members_share_one_partition(self, client: Agent, name: str) -> None:
        """Each record goes to one of them, and each of them gets some."""
        group = Group(client, name, share_partition_max_record_locks="100")
        members = ["one", "two", "three"]
        for member in members:
            group.join(member, max_records=10)
        produced: list[str] = []
        for _ in range(30):
            produced += group.produce(10)
        polled = client.call("share_poll", names=members, count=300)
        assert sorted(int(value) for records in polled.values() for value in values(records)) == list(range(300))
        assert all(polled.values())
        assert {count for records in polled.values() for count in deliveries(records)} == {1}

    def test_members_share_several_partitions(self, client: Agent, name: str) -> None:
        group = Group(client, name, partitions=4)
        for member in ("one", "two"):
            group.join(member)
        produced = group.produce(200)
        polled = group.poll("one", "two", count=200)
        assert sorted(values(polled)) == sorted(produced)
        assert {record["partition"] for record in polled} == {0, 1, 2, 3}
        described = client.call("describe_share_group", group=name)
        assert described["state"] == "Stable"
        read = {index for member in described["members"] for _, index in member}
        assert (len(described["members"]), read) == (2, {0, 1, 2, 3})

    def test_groups_do_not_know_of_each_other(self, client: Agent, name: str) -> None:
        group = Group(client, name)
        produced = group.produce(20)
        client.call("alter_group_config", group=f"{name}-other", configs=EARLIEST)
        group.join("one")
        client.call("open_share", name="other", group=f"{name}-other", topics=[name])
        for member in ("one", "other"):
            assert values(group.poll(member, count=20)) == produced


@pytest.mark.feature("share groups: read_committed")
class TestTransactions:
    def test_records_of_transactions(self, client: Agent, name: str) -> None:
        group = Group(client, name, share_isolation_level="read_committed")
        group.join("one", explicit=True)
        for prefix, commit in (("kept", True), ("dropped", False), ("also kept", True)):
            records = [{"value": f"{prefix} {number}"} for number in range(3)]
            client.call("produce_transaction", topic=name, records=records, commit=commit)
        polled = group.poll("one", count=6, kind=ACCEPT)
        assert values(polled) == [f"{prefix} {number}" for prefix in ("kept", "also kept") for number in range(3)]
        assert group.commit("one") == {""}
        assert group.only_new_ones_come("one")

    def test_records_of_aborted_transactions_are_delivered_too(self, client: Agent, name: str) -> None:
        group = Group(client, name, share_isolation_level="read_uncommitted")
        group.join("one")
        client.call("produce_transaction", topic=name, records=[{"value": "dropped"}], commit=False)
        assert values(group.poll("one", count=1)) == ["dropped"]


@pytest.mark.feature("share groups: where they begin")
class TestBeginnings:
    @pytest.mark.parametrize("reset", ["earliest", "by_duration:PT1H"])
    def test_before_what_is_there(self, client: Agent, name: str, reset: str) -> None:
        group = Group(client, name, share_auto_offset_reset=reset)
        produced = group.produce(5)
        group.join("one")
        assert values(group.poll("one", count=5)) == produced

    def test_behind_what_is_there(self, client: Agent, name: str) -> None:
        """A group reads nothing before its first fetch has set where it begins, which its offsets do not tell."""
        group = Group(client, name, share_auto_offset_reset="latest")
        group.produce(5)
        group.join("one")
        seen: list[str] = []
        while not seen:
            last = group.produce(1)
            seen = values(group.poll("one", count=0))
        assert set(seen).isdisjoint({"0", "1", "2", "3", "4"})
        assert last[-1] in seen or int(seen[-1]) < int(last[-1])


@pytest.mark.feature("share groups: record limit")
class TestAcquireModes:
    MISSING: ClassVar[dict[str, str]] = {
        "test_how_many_records_are_acquired[java-4.1.2]": "share.acquire.mode came with 4.2"
    }

    @pytest.mark.parametrize(("acquire", "first", "second"), [("record_limit", 4, 4), ("batch_optimized", 10, 10)])
    def test_how_many_records_are_acquired(
        self, client: Agent, name: str, acquire: str, first: int, second: int
    ) -> None:
        """A batch of ten, and four at a time: exactly that, or whole batches."""
        group = Group(client, name)
        group.join("one", explicit=True, acquire=acquire, max_records=4)
        group.produce(10)
        group.produce(10)
        for size in (first, second):
            polled = group.poll("one", count=1, kind=ACCEPT)
            assert len(polled) == size
            assert group.commit("one") == {""}


@pytest.mark.feature("share groups: restart of the broker")
class TestRestart:
    MISSING: ClassVar[dict[str, str]] = {"test_members_go_on[java-4.1.2]": "the admin client tells lags since 4.2"}

    def test_what_was_accepted_does_not_come_again(self, client: Agent, target: Target, name: str) -> None:
        """And what was not comes, also to a member that the broker has not seen before."""
        group = Group(client, name)
        group.join("one", explicit=True)
        produced = group.produce(100)
        polled = group.poll("one", count=100)
        for kind, which in ((ACCEPT, slice(0, 40)), (REJECT, slice(40, 50)), (RELEASE, slice(50, 60))):
            group.acknowledge("one", polled[which], kind)
        assert group.commit("one") == {""}
        target.restart_abruptly()
        client.close()
        group.join("new", explicit=True)
        rest = group.poll("new", count=50, kind=ACCEPT)
        assert sorted(values(rest)) == sorted(values(polled[50:]))
        assert set(values(rest)) < set(produced)
        assert group.commit("new") == {""}
        assert group.only_new_ones_come("new")

    def test_members_go_on(self, client: Agent, target: Target, name: str) -> None:
        """Each record is accepted. A member may not hear of it when the broker dies; where it did, that was the end."""
        max_records = 20
        group = Group(client, name, partitions=2)
        for member in ("one", "two"):
            group.join(member, explicit=True, max_records=max_records)
        for _ in range(100):
            group.produce(20)
        client.call("start_sharing", names=["one", "two"])
        client.call("wait_accepted", count=400)
        target.restart_abruptly()
        client.call("wait_accepted", count=1000)
        assert eventually(group.lags, lambda lags: lags == [0, 0]) == [0, 0]
        records = {(partition, offset) for partition in (0, 1) for offset in range(1000)}
        accepted, refused = set(), set()
        for what, partition, offset in client.call("finish_sharing"):
            assert (partition, offset) not in accepted
            if what != "delivered":
                (accepted if what == "accepted" else refused).add((partition, offset))
        assert accepted | refused == records
        assert len(records - accepted) <= 2 * max_records


@pytest.mark.feature("share groups: admin")
class TestAdministration:
    MISSING: ClassVar[dict[str, str]] = {
        "test_offsets[java-4.1.2]": "the admin client of 4.1 keeps it to itself when offsets cannot be altered"
    }

    def test_offsets(self, client: Agent, name: str) -> None:
        group = Group(client, name, partitions=2)
        group.produce(20)
        client.call("alter_share_offsets", group=name, topic=name, offsets=[[0, 3], [1, 10]])
        assert group.offsets() == [[0, 3], [1, 10]]
        group.join("one", explicit=True)
        polled = group.poll("one", count=7, kind=ACCEPT)
        assert sorted(int(value) for value in values(polled)) == list(range(6, 20, 2))
        offsets = {"group": name, "topic": name, "offsets": [[0, 0]]}
        assert code_of(client, "alter_share_offsets", **offsets) == NON_EMPTY_GROUP
        assert code_of(client, "delete_share_offsets", group=name, topic=name) == NON_EMPTY_GROUP
        client.call("close_share", name="one")
        client.call("alter_share_offsets", **offsets)
        assert group.offsets() == [[0, 0], [1, 10]]
        client.call("delete_share_offsets", group=name, topic=name)
        assert group.offsets() == []

    def test_groups(self, client: Agent, name: str) -> None:
        group = Group(client, name)
        group.join("one", explicit=True)
        group.produce(1)
        group.poll("one", count=1, kind=ACCEPT)
        assert name in client.call("list_share_groups")
        assert client.call("describe_share_group", group=name) == {"state": "Stable", "members": [[[name, 0]]]}
        assert code_of(client, "delete_share_group", group=name) == NON_EMPTY_GROUP
        client.call("close_share", name="one")
        assert client.call("describe_share_group", group=name) == {"state": "Empty", "members": []}
        client.call("delete_share_group", group=name)
        assert name not in client.call("list_share_groups")
        assert code_of(client, "describe_share_group", group=name) == GROUP_ID_NOT_FOUND
