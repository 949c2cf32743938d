"""Damage to metadata.db: the start is refused with the file's name, or everything is there."""

import shutil
from pathlib import Path

import pytest
from support.batches import batch
from support.wire import WireClient

from odradek.cluster.store import StoreError
from odradek.log.errors import LogFolderError
from odradek.testing import Broker
from odradek_protocol.messages.metadata import MetadataRequest

TOPICS = [f"topic-{number}" for number in range(40)]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a broker that had topics, and was stopped."""
    folder = tmp_path_factory.mktemp("template")
    with Broker(folder=folder) as broker, WireClient(broker.port) as client:
        for name in TOPICS:
            client.create_topic(name)
            client.produce(name, batch(name.encode()))
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "data"))


def check_start(folder: Path) -> bool:
    """Whether the broker starts, with all topics and their records; if not, the reason names the file."""
    try:
        with Broker(folder=folder) as broker, WireClient(broker.port) as client:
            reply = client.call(MetadataRequest(topics=None), 9)
            assert sorted(topic.name for topic in reply.topics) == sorted(TOPICS)
            assert all(client.fetch(name, 0).records for name in TOPICS)
    except (StoreError, LogFolderError) as error:
        assert "metadata.db" in str(error)  # noqa: PT017 - a refusal is one of two right outcomes
        return False
    return True


def test_undamaged(folder: Path) -> None:
    assert check_start(folder)


@pytest.mark.parametrize("share", [0, 0.001, 0.1, 0.5, 0.9])
def test_truncated(folder: Path, share: float) -> None:
    path = folder / "metadata.db"
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert not check_start(folder)
    assert not check_start(folder), "a start that was refused made it no better"


def test_truncated_by_a_byte(folder: Path) -> None:
    path = folder / "metadata.db"
    path.write_bytes(path.read_bytes()[:-1])
    check_start(folder)


@pytest.mark.parametrize("share", [0, 0.1, 0.3, 0.5, 0.7, 0.95])
def test_garbage(folder: Path, share: float) -> None:
    path = folder / "metadata.db"
    data = bytearray(path.read_bytes())
    position = int(share * len(data))
    data[position : position + 4096] = bytes(number * 7 % 251 for number in range(min(4096, len(data) - position)))
    path.write_bytes(data)
    assert not check_start(folder)


def test_missing(folder: Path) -> None:
    (folder / "metadata.db").rename(folder / "elsewhere")
    assert not check_start(folder)
    assert not (folder / "metadata.db").exists()
    (folder / "elsewhere").rename(folder / "metadata.db")
    assert check_start(folder)
