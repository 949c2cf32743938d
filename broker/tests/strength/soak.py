"""A mixed load in rounds, each ended by a clean stop or by kill -9, and what has to hold at the end of each.

    make soak [MINUTES=60]              or: python broker/tests/strength/soak.py --minutes 60 [--seed 1]

Rules that are checked, any breach of which ends the run with an error:

- Every record is read once and in order, from the first round to the last, and none that was acknowledged lacks.
- A committed offset never goes back. A topic that was deleted stays away, one that was made is there.
- When all clients are gone, so are their sockets; no deleted file is held open, and the disk has the partitions that
  the metadata has, and no other.
- Between the first half of a round and its end the broker's memory grows by less than `GROWTH_BYTES`; so it does from
  the end of the first clean round to that of any later one, as the records are deleted at the end of each.
"""

import argparse
import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.batches import batch
from support.consumers import Member
from support.meters import MIB, memory_bytes, open_files, socket_count, wait_until
from support.partitions import kept, told
from support.process import BrokerProcess, broker_process
from support.records import read_some, read_values
from support.wire import WireClient, fetch_request, produce_request
from support.workers import Producer, Worker

from odradek_protocol.errors import Error
from odradek_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from odradek_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek_protocol.messages.list_groups import ListGroupsRequest
from odradek_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek_protocol.messages.metadata import MetadataRequest
from odradek_protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from odradek_protocol.records.compression import Codec

TOPIC = "soak"
UNACKNOWLEDGED = "soak-acks-0"
QUIET = "soak-quiet"
SETTINGS = {
    "log.segment.bytes": str(MIB),
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": str(MIB),
    "log.segment.delete.delay.ms": "0",
    "log.initial.task.delay.ms": "0",
    "log.flush.offset.checkpoint.interval.ms": "1000",
}
GROWTH_BYTES = 16 * MIB
"""More than the receive buffers that a broker keeps for a while, less than any leak brings in a round."""


class Follower(Worker):
    """Reads what a producer writes by long polls, from where it stopped before, and checks each record."""

    def __init__(self, producer: Producer) -> None:
        super().__init__()
        self.producer = producer
        self.position = 0

    def step(self, client: WireClient) -> None:
        values = read_some(client, self.producer.topic, index=self.producer.index, offset=self.position, max_wait_ms=50)
        for offset, value in enumerate(values, self.position):
            assert value == self.producer.value(offset)
        self.position += len(values)


class CarelessProducer(Worker):
    """Produces with acks=0: records may be lost with the broker, but none comes twice or in another order."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = 0

    def step(self, client: WireClient) -> None:
        for _ in range(20):
            request = produce_request(UNACKNOWLEDGED, batch(b"%d" % self.sent), acks=0)
            client.send(request, 9, expect_reply=False)
            self.sent += 1
        client.call(MetadataRequest(topics=()), 9)

    def check(self, client: WireClient) -> None:
        """Behind a restart: numbers that ascend, as far as they are there."""
        found = [int(value) for value in read_values(client, UNACKNOWLEDGED, offset=start_offset(client))]
        assert not found or found[-1] < self.sent
        assert found == sorted(set(found))
        delete_records(client, UNACKNOWLEDGED, 0)


class Committer(Worker):
    """The one member of a group, which commits ever greater offsets."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.group = f"group-{number}"
        self.member_id = ""
        self.committed = self.asked = 0
        self._member: Member

    def begin(self, client: WireClient) -> None:
        member = self._member = Member(client, self.group)
        member.find_coordinator()
        member.member_id = self.member_id
        member.join_alone()
        self.member_id = member.member_id
        member.ask_to_sync()
        member.take_sync()
        asked = OffsetFetchRequest(
            group_id=self.group, topics=[OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
        )
        found = client.call(asked, 5).topics[0].partitions[0].committed_offset
        assert max(found, 0) in range(self.committed, self.asked + 1)

    def step(self, client: WireClient) -> None:
        self.asked += 1
        self._member.ask_to_commit(TOPIC, self.asked)
        assert client.receive().topics[0].partitions[0].error_code == 0
        self.committed = self.asked
        self._member.ask_heartbeat()
        assert client.receive().error_code == 0

    def end(self, client: WireClient) -> None:  # noqa: ARG002 - as the base class has it
        self._member.leave()
        self.member_id = ""


class TopicMaker(Worker):
    """Makes topics, writes to them and deletes them. The one at which a broker died may be there or not."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0
        self._there = False

    @property
    def name(self) -> str:
        return f"made-{self.made}"

    def begin(self, client: WireClient) -> None:
        found = {topic.name for topic in client.call(MetadataRequest(topics=None), 9).topics}
        left = {name for name in found if name.startswith("made-")}
        assert left <= {self.name}
        assert left or not self._there
        if left:
            client.delete_topic(self.name)
        self._there = False
        self.made += 1

    def step(self, client: WireClient) -> None:
        client.create_topic(self.name, partitions=3)
        self._there = True
        assert client.produce(self.name, batch(b"x"), index=2).error_code == 0
        self._there = False
        client.delete_topic(self.name)
        self.made += 1


class Administrator(Worker):
    """Looks at everything, and changes settings."""

    def begin(self, client: WireClient) -> None:
        while client.call(ListGroupsRequest(), 4).error_code == Error.COORDINATOR_LOAD_IN_PROGRESS:
            pass

    def step(self, client: WireClient) -> None:
        assert {TOPIC, UNACKNOWLEDGED} <= {topic.name for topic in client.call(MetadataRequest(topics=None), 9).topics}
        assert client.call(ListGroupsRequest(), 4).error_code == 0
        change = AlterableConfig(name="retention.ms", config_operation=0, value=str(3_600_000 + self.steps))
        resource = AlterConfigsResource(resource_type=2, resource_name=TOPIC, configs=[change])
        reply = client.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
        assert reply.responses[0].error_code == 0


class Leaver(Worker):
    """Begins long polls and leaves without their replies, by a close or a reset."""

    def step(self, client: WireClient) -> None:
        assert client.call(MetadataRequest(topics=()), 9).brokers
        with WireClient(client.port) as other:
            other.send(fetch_request(QUIET, [(0, 0)], max_wait_ms=50), 12)
            if self.steps % 2:
                other.reset_when_closed()


def delete_records(client: WireClient, topic: str, index: int) -> None:
    """Delete everything that is in a partition."""
    partition = DeleteRecordsPartition(partition_index=index, offset=-1)
    asked = DeleteRecordsTopic(name=topic, partitions=[partition])
    reply = client.call(DeleteRecordsRequest(topics=[asked], timeout_ms=10_000), 2)
    assert reply.topics[0].partitions[0].error_code == 0


def start_offset(client: WireClient) -> int:
    """Where the records begin that are not deleted yet."""
    reply = client.fetch(UNACKNOWLEDGED, 1 << 40)
    assert reply.error_code == Error.OFFSET_OUT_OF_RANGE
    asked = ListOffsetsPartition(partition_index=0, timestamp=-2)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=UNACKNOWLEDGED, partitions=[asked])])
    offset: int = client.call(request, 6).topics[0].partitions[0].offset
    return offset


def no_deleted_file(pid: int) -> bool:
    """Whether every file that a process has open still has its name."""
    return not any(".log" in name and name.endswith(" (deleted)") for name in open_files(pid))


class Soak:
    """The clients of a run; each round is a broker's life."""

    def __init__(self, seed: int, steps_in_a_round: int) -> None:
        self.chance = random.Random(seed)
        self.steps_in_a_round = steps_in_a_round
        self.memory: list[int] = []
        """What the broker held at the end of each clean round, in bytes."""
        codecs = list(Codec)
        self.producers = [
            Producer(TOPIC, index, acks=(-1, 1)[index % 2], codec=codecs[index % len(codecs)])
            for index in range(len(codecs) + 1)
        ]
        self.followers = [Follower(producer) for producer in self.producers]
        self.careless = CarelessProducer()
        others = [self.careless, Committer(0), Committer(1), TopicMaker(), Administrator(), Leaver()]
        self.workers: list[Worker] = [*self.producers, *self.followers, *others]

    def prepare(self, port: int) -> None:
        """Make the topics."""
        with WireClient(port) as client:
            client.create_topic(TOPIC, partitions=len(self.producers))
            client.create_topic(UNACKNOWLEDGED)
            client.create_topic(QUIET)

    def work(self, port: int) -> None:
        """Let all clients work until the producers have done so many steps, and each of the others one."""
        before = {worker: worker.steps for worker in self.workers}
        for worker in self.workers:
            worker.start(port)

        def done() -> bool:
            for worker in self.workers:
                if worker.failure is not None:
                    raise worker.failure
            steps = sum(producer.steps - before[producer] for producer in self.producers)
            return steps >= self.steps_in_a_round and all(worker.steps > before[worker] for worker in self.workers)

        wait_until(done, "the clients work", wait_s=600)

    def stop(self) -> None:
        """End all clients; every producer has an answer to everything."""
        for worker in self.workers:
            worker.stop()

    def round_with_a_kill(self, broker: BrokerProcess) -> None:
        """Kill the broker at work."""
        self.work(broker.port)
        broker.kill()
        for worker in self.workers:
            worker.wait()

    def clean_round(self, broker: BrokerProcess, folder: Path) -> None:
        """Work twice and see what the second time adds; then check the records, and stop the broker."""
        with WireClient(broker.port) as client:
            self.careless.check(client)
        sockets = socket_count(broker.pid)
        self.work(broker.port)
        self.stop()
        memory = memory_bytes(broker.pid)
        self.work(broker.port)
        self.stop()
        wait_until(lambda: socket_count(broker.pid) <= sockets, "sockets are left")
        self.memory.append(memory_bytes(broker.pid))
        assert self.memory[-1] - min(memory, self.memory[0]) < GROWTH_BYTES
        with WireClient(broker.port) as client:
            for follower in self.followers:
                before = -1
                while before < follower.position < follower.producer.acknowledged_records:
                    before = follower.position
                    follower.step(client)
                assert follower.position == follower.producer.acknowledged_records
                assert follower.producer.acknowledged == follower.producer.sent
                delete_records(client, TOPIC, follower.producer.index)
            self.careless.check(client)
            assert kept(folder) == told(client)
        wait_until(lambda: no_deleted_file(broker.pid), "deleted files are held open")
        wait_until(lambda: not list(folder.glob("*-delete")), "deleted partitions are on the disk")
        assert broker.stop() == 0

    @contextmanager
    def _stopped_at_the_end(self) -> Iterator[None]:
        """Whatever happens, no client is left at work."""
        try:
            yield
        finally:
            for worker in self.workers:
                with contextlib.suppress(BaseException):
                    worker.stop()

    def run(self, folder: Path, wanted: Callable[[int], bool]) -> int:
        """Rounds as long as one more is `wanted`; the last is a clean one. Gives their number."""
        rounds = 0
        while True:
            last = not wanted(rounds)
            with broker_process(folder, SETTINGS) as broker, self._stopped_at_the_end():
                if rounds == 0:
                    self.prepare(broker.port)
                if last or self.chance.random() < 0.5:
                    self.clean_round(broker, folder)
                else:
                    self.round_with_a_kill(broker)
                assert "Traceback" not in broker.errors(), broker.errors()
            rounds += 1
            if last:
                return rounds


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a mixed load with restarts, and check that nothing is lost.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20_000, help="requests of all producers in a round (%(default)s)")
    given = parser.parse_args()
    end = time.monotonic() + given.minutes * 60

    def wanted(rounds: int) -> bool:
        held = f", {soak.memory[-1] / MIB:.1f} MiB held at the end of the last clean one" if soak.memory else ""
        print(f"round {rounds + 1}, {max(end - time.monotonic(), 0) / 60:.1f} minutes left{held}", flush=True)
        return time.monotonic() < end

    soak = Soak(given.seed, given.steps)
    with tempfile.TemporaryDirectory(prefix="odradek-soak-") as folder:
        rounds = soak.run(Path(folder), wanted)
        records = sum(producer.acknowledged_records for producer in soak.producers)
        print(f"{rounds} rounds and {records} records, none lost or doubled")


if __name__ == "__main__":
    main()
