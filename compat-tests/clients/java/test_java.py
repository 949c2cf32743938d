"""Kafka's own Java clients, the releases with a whole admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.core import CoreScenarios
from harness.java_clients import java_driver
from harness.versions import JAVA_CLIENTS

if TYPE_CHECKING:
    from harness.agent import Driver


@pytest.fixture(scope="module", params=[f"java-{version}" for version in JAVA_CLIENTS])
def driver(request: pytest.FixtureRequest) -> Driver:
    return java_driver(request.param)


class TestJava(CoreScenarios):
    pass
