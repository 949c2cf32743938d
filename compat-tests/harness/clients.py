"""Starting and ending the agents of a test module."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.agent import Agent, Driver
from harness.environments import python_with
from harness.features import CLIENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from harness.target import Target


def python_driver(environment: str, client: str, script: str = "driver.py") -> Driver:
    """Return `clients/<client>/<script>`, run in the environment of `versions.PYTHON` that holds its library."""
    env = {"PYTHONPATH": str(CLIENTS / "serving"), "PYTHONUNBUFFERED": "1"}
    return Driver([python_with(environment), CLIENTS / client / script], env)


@contextmanager
def client_of(driver: Driver, target: Target, folder: Path, env: Mapping[str, str] | None = None) -> Iterator[Agent]:
    """Run the driver against the target, until the block ends; `folder` is where it runs and what it logs to."""
    agent = Agent(driver, target.bootstrap, folder, env or {})
    try:
        yield agent
    finally:
        agent.close()
