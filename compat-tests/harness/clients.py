"""Starting and ending the agents of a test module."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.agent import Agent
from harness.environments import python_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from harness.target import Target


@contextmanager
def client_of(
    environment: str, driver: str, target: Target, folder: Path, env: Mapping[str, str] | None = None
) -> Iterator[Agent]:
    """Run the driver in its Python environment against the target, until the block ends."""
    agent = Agent(python_with(environment), driver, target.bootstrap, folder, env or {})
    try:
        yield agent
    finally:
        agent.close()
