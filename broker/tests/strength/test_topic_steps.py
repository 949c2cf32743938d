"""A kill at each step of making and deleting a topic: behind the next start the disk holds what the metadata says.

What is counted are the folders that are made for a new topic, and all renames: of a doomed folder, and of each small
file that is put in place of an old one.
"""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from support.partitions import kept, told
from support.process import broker_process
from support.steps import arm, killed_at, program
from support.wire import WireClient

pytestmark = pytest.mark.timeout(300)

PARTITIONS = 3

SETTINGS = {"log.segment.delete.delay.ms": "0"}


def make(client: WireClient) -> None:
    client.create_topic("t", partitions=PARTITIONS)


def delete(client: WireClient) -> None:
    client.delete_topic("t")


@pytest.mark.parametrize(
    ("step", "call"), [(make, "mkdir"), (make, "rename"), (delete, "rename")], ids=["mkdir", "made", "deleted"]
)
def test_a_kill_at_each_step_leaves_what_the_metadata_says(
    tmp_path: Path, step: Callable[[WireClient], None], call: str
) -> None:
    whole = {f"t-{index}" for index in range(PARTITIONS)}
    kills = 0
    for number in itertools.count(1):
        with (
            broker_process(tmp_path, SETTINGS, program=program(call, number)) as broker,
            WireClient(broker.port) as client,
        ):
            there = told(client)
            assert kept(tmp_path) == there
            assert there in (set(), whole)
            if there and step is make:
                delete(client)
            elif not there and step is delete:
                make(client)
            arm(broker)
            try:
                step(client)
            except (EOFError, OSError):
                assert killed_at(broker)
                kills += 1
            else:
                assert kept(tmp_path) == told(client) == (whole if step is make else set())
                break
            finally:
                assert "Traceback" not in broker.errors()
    assert kills >= PARTITIONS
