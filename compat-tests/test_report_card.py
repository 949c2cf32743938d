"""The report card: what a cell says of several brokers, and what a run leaves of an earlier one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from harness.card import Card, Note
from harness.card_html import as_html
from harness.card_markdown import as_markdown
from harness.results import DIFFERS, FAILED, MISSING, PASSED, Results
from harness.versions import release_of

if TYPE_CHECKING:
    from pathlib import Path


def cell(reason: str = "", **counts: int) -> dict[str, Any]:
    return {"counts": counts, "reasons": [reason] if reason else []}


@pytest.fixture
def card(tmp_path: Path) -> Card:
    results = {
        "kafka-3.9.1": {"sarama": {"groups": cell(passed=2), "admin": cell("<old>", differs=1, passed=3)}},
        "odradek": {
            "kafka-python-2": {"groups": cell("no assignor", missing=1)},
            "kafkajs": {"groups": cell(passed=1)},
            "sarama": {"groups": cell(passed=2), "admin": cell(passed=4)},
        },
        "kafka-4.3.1": {
            "kafkajs": {"groups": cell("test_join (call)", failed=1)},
            "sarama": {"groups": cell(passed=2), "admin": cell("test_topics (call)", failed=1, passed=3)},
        },
    }
    for broker, clients in results.items():
        (tmp_path / f"{broker}.json").write_text(json.dumps({"broker": broker, "clients": clients}))
    return Card.read(tmp_path.glob("*.json"))


def test_brokers_stand_odradek_first_then_the_newest_kafka(card: Card) -> None:
    assert card.brokers == ["odradek", "kafka-4.3.1", "kafka-3.9.1"]


def test_a_cell_has_one_sign_where_all_brokers_agree(card: Card) -> None:
    assert card.signs("sarama", "groups") == "✓"
    assert card.signs("sarama", "admin") == "✓ ✗ ≠"
    assert card.signs("kafka-python-2", "groups") == "·"
    assert card.signs("kafkajs", "groups") == "✓ ✗ ?"
    assert card.signs("kafka-python-2", "admin") == ""


def test_reasons_are_told_once_the_worst_first(card: Card) -> None:
    assert card.notes() == [
        Note(FAILED, "kafkajs", ("kafka-4.3.1",), "groups", "test_join (call)"),
        Note(FAILED, "sarama", ("kafka-4.3.1",), "admin", "test_topics (call)"),
        Note(DIFFERS, "sarama", ("kafka-3.9.1",), "admin", "<old>"),
        Note(MISSING, "kafka-python-2", ("odradek",), "groups", "no assignor"),
    ]
    assert card.counts("sarama", "kafka-4.3.1") == {PASSED: 5, FAILED: 1}


def test_both_texts_tell_all_of_it(card: Card) -> None:
    markdown, html = as_markdown(card), as_html(card)
    rows = [[column.strip() for column in line.strip("|").split("|")] for line in markdown.splitlines()]
    assert ["admin", "", "", "✓ ✗ ≠"] in rows
    assert ["sarama", release_of("sarama"), "6 of 6", "5 of 6", "5 of 6"] in rows
    assert "- sarama, admin (kafka-3.9.1): <old>" in markdown
    assert "&lt;old&gt;" in html
    assert 'title="odradek: passed; kafka-4.3.1: failed; kafka-3.9.1: differs"' in html


def test_one_folder_of_a_card(tmp_path: Path, card: Card) -> None:
    assert card.clients == ["kafka-python-2", "kafkajs", "sarama"]
    assert Card.read(tmp_path.glob("*.json"), "kafka-python").clients == ["kafka-python-2"]


def report(client: str, outcome: str, **told: str) -> pytest.TestReport:
    properties = [("client", client), ("feature", "groups"), *told.items()]
    location = ("test_groups.py", 1, "test_join")
    phase = "call" if outcome == "passed" else "setup"
    return pytest.TestReport(
        "test_groups.py::test_join", location, {}, outcome, None, phase, user_properties=properties
    )


def test_a_run_replaces_the_clients_that_it_ran_and_no_others(tmp_path: Path) -> None:
    file = tmp_path / "odradek.json"
    earlier = {"sarama": {"groups": cell(passed=1)}, "kafkajs": {"groups": cell(passed=1), "admin": cell(passed=1)}}
    file.write_text(json.dumps({"broker": "odradek", "clients": earlier}))
    run = Results("odradek", file)
    run.pytest_runtest_logreport(report("kafkajs", "passed"))
    run.pytest_runtest_logreport(report("kafkajs", "failed"))
    run.pytest_runtest_logreport(report("aiokafka", "skipped", missing="no assignor"))
    run.pytest_runtest_logreport(report("kcat", "skipped"))
    run.pytest_sessionfinish()
    assert json.loads(file.read_text())["clients"] == {
        "aiokafka": {"groups": cell("no assignor", missing=1)},
        "kafkajs": {"groups": cell("test_join (setup)", passed=1, failed=1)},
        "sarama": earlier["sarama"],
    }
