"""franz-go, by its client and its admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from harness.core import CoreScenarios
from harness.golang import go_driver

if TYPE_CHECKING:
    from harness.agent import Driver


@pytest.fixture(scope="module")
def driver() -> Driver:
    return go_driver("franz-go")


class TestFranzGo(CoreScenarios):
    pass
