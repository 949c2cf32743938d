"""Where a client's test is known to fail against one broker only, and why.

A test that fails fails the run, unless it stands here for the broker. An entry whose test passes fails the run too, so
that the table stays true. What fails against every broker is the client's own, and stands in `MISSING` of its test
class instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from harness.features import client_of_test, feature_of, names_of
from harness.versions import KAFKA_3, KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Difference:
    """One line of the table. `test` is a function's name, or "function[parameter value]"."""

    broker: str
    client: str
    test: str
    reason: str


DIFFERENCES: Final[tuple[Difference, ...]] = (
    Difference(
        f"kafka-{KAFKA_4}",
        "java-0.11.0.3",
        "test_settings_of_a_topic",
        "the client has DescribeConfigs v0 alone, which Kafka 4 does not serve any more",
    ),
)


# The rows that a broker is not asked for begin so: what came with Kafka 4.
UNASKED_ROWS: Final = {f"kafka-{KAFKA_3}": ("groups: KIP-848", "share groups: ", "streams: groups of KIP-1071")}


def without_unasked(items: Iterable[pytest.Item], broker: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests that the broker is asked, and those that it is not."""
    asked: list[pytest.Item] = []
    unasked: list[pytest.Item] = []
    rows = UNASKED_ROWS.get(broker, ())
    for item in items:
        is_unasked = isinstance(item, pytest.Function) and feature_of(item).startswith(rows) if rows else False
        (unasked if is_unasked else asked).append(item)
    return asked, unasked


def expect_differences(items: Iterable[pytest.Item], broker: str) -> None:
    """Mark the tests that are known to fail against the broker: they must fail."""
    table = {(one.client, one.test): one.reason for one in DIFFERENCES if one.broker == broker}
    for item in items:
        if isinstance(item, pytest.Function) and (client := client_of_test(item)):
            for name in names_of(item):
                if reason := table.get((client, name)):
                    item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
