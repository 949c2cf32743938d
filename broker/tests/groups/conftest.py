"""Async test functions run under trio, on a clock that jumps to the next deadline when everything waits."""

import functools
import inspect
from typing import Any

import pytest
import trio
from trio.testing import MockClock

IDLE_S = 0.01
"""How long everything has to wait, in real time, before the clock jumps: work in threads does not show."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    trio.run(functools.partial(pyfuncitem.obj, **arguments), clock=MockClock(autojump_threshold=IDLE_S))
    return True
