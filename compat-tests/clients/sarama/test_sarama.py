"""sarama, which speaks the protocol of the Kafka release that its user names: its default and the newest it knows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from harness.core import CoreScenarios
from harness.golang import go_driver
from harness.versions import KAFKA_4

if TYPE_CHECKING:
    from harness.agent import Driver


@pytest.fixture(scope="module", params=["sarama-kafka-2.8.0", f"sarama-kafka-{KAFKA_4}"])
def driver(request: pytest.FixtureRequest) -> Driver:
    env = {"SARAMA_VERSION": request.param.removeprefix("sarama-kafka-")}
    return replace(go_driver("sarama"), env=env)


class TestSarama(CoreScenarios):
    pass
