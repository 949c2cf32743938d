"""kafka-go of Segment."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from harness.core import CoreScenarios
from harness.golang import go_driver

if TYPE_CHECKING:
    from harness.agent import Driver


@pytest.fixture(scope="module")
def driver() -> Driver:
    return go_driver("kafka-go")


class TestKafkaGo(CoreScenarios):
    MISSING: ClassVar[dict[str, str]] = {
        "test_null_and_empty_are_different": "the Reader of kafka-go reads what is empty as nil",
        "test_the_broker_stamps_records_where_the_topic_says_so": "the Reader of kafka-go does not know LogAppendTime",
        "test_null_header_value": "the Reader of kafka-go reads what is empty as nil",
        "test_idempotent_producer": "kafka-go has no idempotent producer",
        "test_cooperative_rebalance_moves_only_what_must_move": "kafka-go has only eager balancers",
        "test_static_member_returns_to_its_partitions": "kafka-go has no static members",
        "test_delete_records": "kafka-go has no DeleteRecords",
        "test_records_beyond_the_end_cannot_be_deleted": "kafka-go has no DeleteRecords",
    }
    EMPTY_HEADER = None
    IDEMPOTENT = False
