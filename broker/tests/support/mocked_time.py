"""Async test functions run under trio, on a clock that jumps to the next deadline when everything waits.

A folder's conftest.py takes `pytest_pyfunc_call` from here, and `without_threads`.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

__all__ = ["pytest_pyfunc_call", "run_in_place", "run_on_mocked_time", "without_threads"]


async def run_in_place(function: Callable[..., Any], *arguments: Any, **_options: Any) -> Any:
    await trio.lowlevel.checkpoint()
    return function(*arguments)


@pytest.fixture
def without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work for threads is done in place: the clock cannot see that a thread is at work, and would jump meanwhile."""
    monkeypatch.setattr(trio.to_thread, "run_sync", run_in_place)


def run_on_mocked_time(function: Callable[..., Any], **arguments: Any) -> None:
    """Run an async function to its end."""
    trio.run(functools.partial(function, **arguments), clock=MockClock(autojump_threshold=0))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    run_on_mocked_time(pyfuncitem.obj, **arguments)
    return True
