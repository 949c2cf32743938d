"""A short run of the soak, and its clients against a broker whose tasks can be counted."""

import importlib.util
import sys
from collections import Counter
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
        wait_until(lambda: not tasks_of(broker) - before, "tasks are left")
        assert broker.node.server.buffers.lent_bytes == 0


def tasks_of(broker: Broker) -> Counter[str]:
    """The tasks in the broker's loop by their names, without those that are kept for work to come."""
    return trio.from_thread.run_sync(_busy_tasks, trio_token=broker._token)


def _busy_tasks() -> Counter[str]:
    root = trio.lowlevel.current_root_task()
    assert root is not None
    found: Counter[str] = Counter()
    tasks = [root]
    while tasks:
        task = tasks.pop()
        tasks += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
        if not _waits_for_work(task):
            found[task.name] += 1
    return found


def _waits_for_work(task: trio.lowlevel.Task) -> bool:
    """Whether a task of `Workers` has nothing to do: as many are kept as once were at work, up to a limit."""
    awaited = getattr(task.coro, "cr_await", None)
    return task.name.endswith("Workers._run") and getattr(awaited, "__name__", "") == "wait_task_rescheduled"
