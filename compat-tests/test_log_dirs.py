"""Several folders of logs, as Kafka's own Admin client and kafka-log-dirs see them."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from harness.java import Tools
from harness.java_clients import java_program
from harness.versions import KAFKA_3, KAFKA_4

from odradek.testing import Broker

ALTER = Path(__file__).parent / "harness" / "AlterLogDirs.java"
TIMEOUT_S = 120


def alter(version: str, bootstrap: str, topic: str, folders: dict[int, Path]) -> subprocess.CompletedProcess[str]:
    """Ask for partitions in folders."""
    moves = [part for index, folder in folders.items() for part in (topic, str(index), "1", str(folder))]
    command = [*java_program(f"kafka-{version}", [ALTER], "AlterLogDirs").command, bootstrap, *moves]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def placed(tools: Tools, topic: str) -> dict[str, list[tuple[str, int, bool]]]:
    """What kafka-log-dirs tells: for each folder the partitions, with their lag and whether they are copies."""
    shown = tools.run_on_broker("log-dirs", "--describe", "--topic-list", topic)
    [broker] = json.loads(next(line for line in shown.lines if line.startswith("{")))["brokers"]
    return {
        found["logDir"]: [(one["partition"], one["offsetLag"], one["isFuture"]) for one in found["partitions"]]
        for found in broker["logDirs"]
    }


@pytest.mark.parametrize("version", [KAFKA_4, KAFKA_3])
def test_reassign_partitions_moves_them_too(version: str, tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    wanted = tmp_path / "wanted.json"
    with Broker({"log.dirs": ",".join(map(str, folders))}) as broker:
        tools = Tools(version, broker.bootstrap_servers, tmp_path)
        try:
            tools.run_on_broker("topics", "--create", "--topic", "moved", "--partitions", "2")
            tools.run_on_broker("console-producer", "--topic", "moved", stdin="value\n" * 100)
            moves = [
                {"topic": "moved", "partition": index, "replicas": [1], "log_dirs": [str(folders[1])]}
                for index in range(2)
            ]
            wanted.write_text(json.dumps({"version": 1, "partitions": moves}))
            begun = tools.run_on_broker("reassign-partitions", "--reassignment-json-file", wanted, "--execute")
            assert "Successfully started partition reassignments for moved-0,moved-1" in begun.out
            assert f"Successfully started moving log directory to {folders[1]} for replica moved-0" in begun.out
            deadline = time.monotonic() + TIMEOUT_S
            done = "Reassignment of replica moved-{}-1 completed successfully."
            while True:
                seen = tools.run_on_broker("reassign-partitions", "--reassignment-json-file", wanted, "--verify")
                assert "Reassignment of partition moved-0 is completed." in seen.out
                if all(done.format(index) in seen.out for index in range(2)):
                    break
                assert time.monotonic() < deadline, seen
            assert sorted(placed(tools, "moved")[str(folders[1])]) == [("moved-0", 0, False), ("moved-1", 0, False)]
            moves[0]["replicas"], moves[0]["log_dirs"] = [1, 2], ["any", "any"]
            wanted.write_text(json.dumps({"version": 1, "partitions": moves}))
            refused = tools.run(
                *("reassign-partitions", "--bootstrap-server", broker.bootstrap_servers),
                *("--reassignment-json-file", wanted, "--execute"),
            )
            assert refused.status != 0
            listed = tools.run_on_broker("reassign-partitions", "--list")
            assert "No partition reassignments found." in listed.out
        finally:
            tools.close()


@pytest.mark.parametrize("version", [KAFKA_4, KAFKA_3])
def test_replicas_move(version: str, tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    with Broker({"log.dirs": ",".join(map(str, folders))}) as broker:
        tools = Tools(version, broker.bootstrap_servers, tmp_path)
        try:
            tools.run_on_broker("topics", "--create", "--topic", "moved", "--partitions", "4")
            lines = "".join(f"value {number}\n" for number in range(100))
            tools.run_on_broker("console-producer", "--topic", "moved", stdin=lines)
            asked = alter(version, broker.bootstrap_servers, "moved", dict.fromkeys(range(4), folders[1]))
            assert asked.returncode == 0, asked.stderr
            wanted = sorted((f"moved-{index}", 0, False) for index in range(4))
            deadline = time.monotonic() + TIMEOUT_S
            while (found := placed(tools, "moved")) != {str(folders[0]): [], str(folders[1]): found[str(folders[1])]}:
                assert time.monotonic() < deadline, found
            assert sorted(found[str(folders[1])]) == wanted
            read = tools.run_on_broker(
                "console-consumer", "--topic", "moved", "--from-beginning", "--max-messages", "100"
            )
            assert sorted(read.lines) == sorted(lines.splitlines())
            refused = alter(version, broker.bootstrap_servers, "moved", {0: tmp_path / "nowhere"})
            assert "LogDirNotFoundException" in refused.stderr
        finally:
            tools.close()
