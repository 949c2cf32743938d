"""Taking over a folder: what is read of the description, what is refused, and what clients find afterwards.

The folders are as Kafka leaves them, without a metadata store; `compat-tests/test_folders.py` takes a real one's.
"""

from pathlib import Path

import pytest
from support.batches import batch
from support.process import broker_process, run_to_end
from support.wire import WireClient

from odradek.adoption import AdoptionError, DescribedTopic, read_description
from odradek.cluster.znodes import encode_uuid
from odradek_protocol.messages.init_producer_id import InitProducerIdRequest
from odradek_protocol.messages.metadata import MetadataRequest

UUID = bytes(range(16))


def line(name: str, topic_id: bytes = UUID, partitions: int = 1, configs: str = "") -> str:
    """What `kafka-topics.sh --describe` prints of a topic, with the line of its first partition."""
    head = f"Topic: {name}\tTopicId: {encode_uuid(topic_id)}\tPartitionCount: {partitions}\tReplicationFactor: 1\t"
    return f"{head}Configs: {configs}\n\tTopic: {name}\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \n"


def test_topics_and_their_settings_are_read() -> None:
    text = line("plain") + "\n" + line("set", partitions=3, configs="cleanup.policy=compact,delete,retention.ms=-1")
    assert read_description(text) == {
        "plain": DescribedTopic(UUID, 1, {}),
        "set": DescribedTopic(UUID, 3, {"cleanup.policy": "compact,delete", "retention.ms": "-1"}),
    }


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "no line"),
        ("Topic: t\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n", "no line"),
        (line("t").replace("TopicId: AAEC", "TopicId: A"), "topic t: not a uuid"),
        (line("t", configs="compact"), "topic t: not settings"),
    ],
)
def test_other_text_is_refused(text: str, named: str) -> None:
    with pytest.raises(AdoptionError, match=named):
        read_description(text)


PRODUCER_ID = 4_321


@pytest.fixture
def left(tmp_path: Path) -> tuple[Path, bytes]:
    """A folder with a topic "t" of two partitions, a topic "stray" and no metadata store; and the id of "t"."""
    folder = tmp_path / "data"
    with broker_process(folder) as broker:
        with WireClient(broker.port) as client:
            topic_id = client.create_topic("t", 2)
            client.create_topic("stray")
            for topic in ("t", "stray"):
                assert client.produce(topic, batch(b"before", producer=(PRODUCER_ID, 0, 0))).error_code == 0
        assert broker.stop() == 0
    for file in folder.glob("metadata.db*"):
        file.unlink()
    return folder, topic_id


def adopt(folder: Path, text: str) -> tuple[int, str, str]:
    description = folder.parent / "topics.txt"
    description.write_text(text)
    ended = run_to_end("adopt", str(description), "--override", f"log.dirs={folder}")
    return ended.returncode, ended.stdout, ended.stderr


def test_adopted_topics_are_served_as_they_were(left: tuple[Path, bytes]) -> None:
    folder, topic_id = left
    cluster = next(text for text in (folder / "meta.properties").read_text().splitlines() if "cluster.id" in text)
    assert adopt(folder, line("t", topic_id, 2, "retention.ms=-1"))[:2] == (0, "odradek adopted 1 topics\n")
    with broker_process(folder) as broker:
        with WireClient(broker.port) as client:
            told = client.call(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
            assert f"cluster.id={told.cluster_id}" == cluster
            assert [(topic.name, topic.topic_id, len(topic.partitions)) for topic in told.topics] == [
                ("t", topic_id, 2)
            ]
            # Newer than any in the log, or nobody could tell the new records from old ones.
            assert told.topics[0].partitions[0].leader_epoch > 0
            assert client.produce("t", batch(b"after", producer=(PRODUCER_ID, 0, 1))).base_offset == 1
            assert (
                client.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 4).producer_id
                > PRODUCER_ID
            )
        assert broker.stop() == 0
        (warning,) = [line for line in broker.errors().splitlines() if "WARNING" in line]
        assert "stray (see `odradek adopt`)" in warning
    assert (folder / "stray-0").is_dir()


def test_what_does_not_fit_the_folder_is_refused(left: tuple[Path, bytes]) -> None:
    folder, topic_id = left
    for text, named in [
        (line("t", topic_id, 3), "t-2 is not here"),
        (line("t", UUID, 2), "another id"),
        (line("gone", UUID), "gone-0 is not here"),
        (line("t", topic_id, 2, "retention.ms=soon"), "retention.ms"),
    ]:
        status, out, told = adopt(folder, text)
        assert (status, out) == (1, "")
        assert named in told.splitlines()[-1]
        assert "Traceback" not in told
    assert adopt(folder, line("t", topic_id, 2))[0] == 0
    status, _, told = adopt(folder, line("t", topic_id, 2))
    assert status == 1
    assert "there already" in told


def test_a_folder_in_use_or_of_no_broker_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no meta.properties" in adopt(tmp_path / "empty", line("t"))[2]
    with broker_process(tmp_path / "used"):
        status, _, told = adopt(tmp_path / "used", line("t"))
        assert status == 1
        assert "another broker uses" in told
