"""Share groups beside a real Kafka: members, sessions, records that are acquired and acknowledged, offsets, states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from wire.comparison import compared
from wire.records import batch

if TYPE_CHECKING:
    from wire.client import Reply, Wire

GROUP = 32
SET = 0
JOINS = 0
LEAVES = -1
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


class Sharing:
    """One share group that begins at the earliest offset, on a topic of its own."""

    def __init__(self, wire: Wire, name: str, partitions: int = 1) -> None:
        self.wire = wire
        self.group = name
        self.topic = f"{name}-topic"
        self.topic_id = wire.create_topic(self.topic, partitions=partitions)
        self.epochs: dict[str, int] = {}
        configs = {"share.auto.offset.reset": "earliest", "share.assignment.interval.ms": "0"}
        rows = [{"Name": key, "ConfigOperation": SET, "Value": value} for key, value in configs.items()]
        resource = {"ResourceType": GROUP, "ResourceName": name, "Configs": rows}
        wire.call("IncrementalAlterConfigs", 1, Resources=[resource])

    def beat(self, member: str, epoch: int = JOINS, **told: Any) -> Reply:
        body: dict[str, Any] = {"RackId": None, "SubscribedTopicNames": None, **told}
        if epoch == JOINS and "SubscribedTopicNames" not in told:
            body["SubscribedTopicNames"] = [self.topic]
        reply: Reply = self.wire.call(
            "ShareGroupHeartbeat", 1, GroupId=self.group, MemberId=member, MemberEpoch=epoch, **body
        )
        return reply

    def begin(self, start_offset: int = 0) -> None:
        """Have the share coordinator begin with the partition, without a member."""
        partitions = [{"PartitionIndex": 0, "StartOffset": start_offset}]
        topics = [{"TopicName": self.topic, "Partitions": partitions}]
        self.wire.call("AlterShareGroupOffsets", 0, GroupId=self.group, Topics=topics)

    def produce(self, *values: bytes) -> None:
        partitions = [{"Index": 0, "Records": batch(*values)}]
        topics = [{"Name": self.topic, "TopicId": self.topic_id, "PartitionData": partitions}]
        self.wire.call("Produce", 13, Acks=-1, TimeoutMs=30_000, TopicData=topics, TransactionalId=None)

    def _next_epoch(self, member: str, epoch: int | None) -> int:
        current = self.epochs.get(member, 0) if epoch is None else epoch
        self.epochs[member] = current + 1 if current >= 0 else 0
        return current

    def _topics(self, batches: tuple[tuple[int, ...], ...]) -> list[dict[str, Any]]:
        rows = [
            {"FirstOffset": first, "LastOffset": last, "AcknowledgeTypes": types} for first, last, *types in batches
        ]
        return [{"TopicId": self.topic_id, "Partitions": [{"PartitionIndex": 0, "AcknowledgementBatches": rows}]}]

    def fetch(
        self, member: str, *batches: tuple[int, ...], epoch: int | None = None, version: int = 2, **told: Any
    ) -> Reply:
        body: dict[str, Any] = {
            "GroupId": self.group,
            "MemberId": member,
            "ShareSessionEpoch": self._next_epoch(member, epoch),
            "MaxWaitMs": 200,
            "MinBytes": 1,
            "MaxBytes": 1 << 20,
            "MaxRecords": 500,
            "BatchSize": 500,
            "Topics": self._topics(batches),
            **told,
        }
        reply: Reply = self.wire.call("ShareFetch", version, **body)
        return reply

    def acknowledge(self, member: str, *batches: tuple[int, ...], epoch: int | None = None, **told: Any) -> None:
        self.wire.call(
            "ShareAcknowledge",
            2,
            GroupId=self.group,
            MemberId=member,
            ShareSessionEpoch=self._next_epoch(member, epoch),
            Topics=self._topics(batches),
            **told,
        )

    def where(self) -> None:
        topics = [{"TopicName": self.topic, "Partitions": [0]}]
        for version in (0, 1):
            groups = [{"GroupId": self.group, "Topics": topics}]
            self.wire.call("DescribeShareGroupOffsets", version, Groups=groups)


class TestMembers:
    @compared("beside_kafka_4")
    def test_a_member_joins_and_leaves(self, wire: Wire, name: str) -> None:
        sharing = Sharing(wire, name)
        sharing.beat("m")
        sharing.beat("m", LEAVES)
        sharing.beat("m", LEAVES)
        sharing.beat("m", 1)
        for group in (name, f"{name}-other", ""):
            wire.call("ShareGroupDescribe", 1, GroupIds=[group])
        wire.call("DeleteGroups", 2, GroupsNames=[name])

    @compared("beside_kafka_4")
    def test_requests_that_are_refused(self, wire: Wire, name: str) -> None:
        sharing = Sharing(wire, name)
        sharing.beat("")
        sharing.beat("m", RackId="")
        sharing.beat("m", -2)
        sharing.beat("m", SubscribedTopicNames=[])
        sharing.beat("m", SubscribedTopicNames=None)
        sharing.beat("m", 3)
        sharing.beat("m", LEAVES)


class TestRecords:
    @pytest.mark.parametrize("version", [1, 2])
    @compared("beside_kafka_4")
    def test_records_are_acquired_and_acknowledged(self, wire: Wire, name: str, version: int) -> None:
        sharing = Sharing(wire, name)
        sharing.begin()
        sharing.produce(b"0", b"1", b"2", b"3")
        sharing.produce(b"4", b"5")
        sharing.fetch("m", version=version)
        sharing.fetch("n", version=version)
        sharing.fetch("m", (0, 1, ACCEPT), (2, 3, RELEASE, REJECT), version=version)
        sharing.where()
        sharing.fetch("n", (4, 5, ACCEPT), version=version)
        sharing.fetch("m", (0, 1, ACCEPT), (2, 2, ACCEPT), (4, 5, ACCEPT), version=version)
        sharing.where()
        sharing.fetch("m", epoch=LEAVES, version=version)
        sharing.fetch("m", version=version)

    @compared("beside_kafka_4")
    def test_acknowledgements_by_themselves(self, wire: Wire, name: str) -> None:
        sharing = Sharing(wire, name)
        sharing.begin()
        sharing.produce(b"0", b"1", b"2", b"3", b"4", b"5")
        sharing.acknowledge("m", (0, 5, ACCEPT), epoch=1)
        sharing.fetch("m", epoch=0)
        sharing.acknowledge("m", (0, 1, ACCEPT), (3, 3, GAP))
        sharing.acknowledge("m", (2, 2, RENEW))
        sharing.acknowledge("m", (2, 2, RENEW), IsRenewAck=True)
        sharing.acknowledge("m", (2, 1, ACCEPT))
        sharing.acknowledge("m", (2, 4, ACCEPT, ACCEPT))
        sharing.acknowledge("m", (2, 4, 9))
        sharing.acknowledge("m", (4, 9, ACCEPT))
        sharing.acknowledge("m", (7, 9, ACCEPT))
        sharing.acknowledge("m", (4, 4, RELEASE), epoch=99)
        sharing.epochs["m"] = 9
        sharing.acknowledge("m", (4, 4, RELEASE))
        sharing.where()
        sharing.acknowledge("m", (5, 5, ACCEPT), epoch=LEAVES)
        sharing.where()

    @compared("beside_kafka_4")
    def test_sessions(self, wire: Wire, name: str) -> None:
        sharing = Sharing(wire, name)
        sharing.begin()
        sharing.produce(b"0")
        sharing.fetch("m", epoch=5)
        sharing.fetch("m", epoch=LEAVES)
        sharing.fetch("m", (0, 0, ACCEPT), epoch=0)
        sharing.fetch("m", epoch=0)
        sharing.fetch("m", epoch=3)
        sharing.fetch("", epoch=0)
        sharing.fetch("m" * 37, epoch=0)
        sharing.fetch("m", epoch=1, IsRenewAck=True)
        sharing.acknowledge("m", epoch=0)

    @compared("beside_kafka_4")
    def test_a_record_limit(self, wire: Wire, name: str) -> None:
        sharing = Sharing(wire, name)
        sharing.begin()
        sharing.produce(b"0", b"1", b"2", b"3", b"4", b"5")
        sharing.fetch("m", MaxRecords=2, ShareAcquireMode=1)
        sharing.fetch("m", MaxRecords=2, ShareAcquireMode=0)

    @compared("beside_kafka_4")
    def test_records_given_back_too_often(self, wire: Wire, name: str) -> None:
        sharing = Sharing(wire, name)
        sharing.begin()
        sharing.produce(b"0", b"1", b"2", b"3")
        sharing.fetch("m")
        for _ in range(8):
            sharing.acknowledge("m", (0, 3, RELEASE))
            sharing.fetch("m")


class TestOffsets:
    @compared("beside_kafka_4")
    def test_offsets_of_groups(self, wire: Wire, name: str) -> None:
        sharing = Sharing(wire, name)
        sharing.where()
        sharing.begin(3)
        sharing.where()
        partitions = [{"PartitionIndex": 7, "StartOffset": 0}]
        for topic in (sharing.topic, f"{name}-no"):
            topics = [{"TopicName": topic, "Partitions": partitions}]
            wire.call("AlterShareGroupOffsets", 0, GroupId=name, Topics=topics)
        wire.call("DescribeShareGroupOffsets", 1, Groups=[{"GroupId": name, "Topics": None}])
        for topic in (f"{name}-no", sharing.topic, sharing.topic):
            wire.call("DeleteShareGroupOffsets", 0, GroupId=name, Topics=[{"TopicName": topic}])
        sharing.where()
        for group in ("", f"{name}-no"):
            wire.call("DeleteShareGroupOffsets", 0, GroupId=group, Topics=[{"TopicName": sharing.topic}])


class TestStates:
    @compared("beside_kafka_4")
    def test_the_share_coordinator(self, wire: Wire, name: str) -> None:
        sharing = Sharing(wire, name)
        sharing.begin()
        topic = sharing.topic_id

        def ask(api: str, version: int = 0, **told: Any) -> None:
            state = [{"TopicId": topic, "Partitions": [{"Partition": 0, **told}]}]
            wire.call(api, version, GroupId=name, Topics=state)

        batches = [{"FirstOffset": 0, "LastOffset": 4, "DeliveryState": 2, "DeliveryCount": 1}]
        ask("ReadShareGroupState", LeaderEpoch=-1)
        told = {"StateEpoch": 5, "LeaderEpoch": 0, "StartOffset": 0, "StateBatches": batches}
        ask("WriteShareGroupState", 1, DeliveryCompleteCount=5, **told)
        ask("ReadShareGroupState", LeaderEpoch=3)
        ask("ReadShareGroupState", LeaderEpoch=2)
        ask("WriteShareGroupState", 1, DeliveryCompleteCount=5, **told)
        ask("ReadShareGroupStateSummary", 1, LeaderEpoch=-1)
        ask("InitializeShareGroupState", StateEpoch=9, StartOffset=7)
        ask("InitializeShareGroupState", StateEpoch=8, StartOffset=7)
        ask("ReadShareGroupStateSummary", 1, LeaderEpoch=-1)
        for _ in range(2):
            ask("DeleteShareGroupState")
        ask("ReadShareGroupState", LeaderEpoch=-1)
        ask("ReadShareGroupStateSummary", 1, LeaderEpoch=-1)
