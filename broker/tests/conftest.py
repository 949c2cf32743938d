"""One broker for all tests of a module that talk to it over the wire; each test has topics and groups of its own."""

import uuid
from collections.abc import Iterator

import pytest
from support.wire import WireClient

from odradek.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[WireClient]:
    with WireClient(broker.port) as connection:
        yield connection


@pytest.fixture
def topic() -> str:
    """A topic name that no other test has; the topic itself is not made."""
    return f"t-{uuid.uuid4().hex[:12]}"
