"""A short run of the soak, and its clients against a broker whose tasks can be counted."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import trio
from support.meters import wait_until

from odradek.testing import Broker


@pytest.fixture(scope="module")
def soak() -> ModuleType:
    """The script beside this file, as a module."""
    spec = importlib.util.spec_from_file_location("soak", Path(__file__).with_name("soak.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["soak"] = module
    spec.loader.exec_module(module)
    return module


def test_a_mixed_load_with_restarts_loses_nothing(soak: ModuleType, tmp_path: Path) -> None:
    run = soak.Soak(seed=7, steps_in_a_round=600)
    assert run.run(tmp_path, lambda rounds: rounds < 4) == 5


def test_no_task_is_left_when_all_clients_are_gone(soak: ModuleType) -> None:
    with Broker(soak.SETTINGS) as broker:
        run = soak.Soak(seed=7, steps_in_a_round=300)
        run.prepare(broker.port)
        run.work(broker.port)
        run.stop()
        wait_until(lambda: broker.node.server.connection_count == 0, "connections are left")
        before = tasks_of(broker)
        run.work(broker.port)
        run.stop()
        wait_until(lambda: tasks_of(broker) <= before, "tasks are left")
        assert broker.node.server.buffers.lent_bytes == 0


def tasks_of(broker: Broker) -> int:
    """How many tasks the broker's loop has."""
    statistics = trio.from_thread.run_sync(trio.lowlevel.current_statistics, trio_token=broker._token)
    return statistics.tasks_living
