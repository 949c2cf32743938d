"""Kafka's own command line tools, several runs in one JVM (`ToolLauncher.java`), since starting one takes seconds."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from harness.cache import require_program
from harness.classes import classes
from harness.jars import jars
from harness.process import is_readable
from harness.versions import KAFKA_3

_LAUNCHER = Path(__file__).parent / "ToolLauncher.java"
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

_TOOLS = {
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "configs": "kafka.admin.ConfigCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
}
_OTHERWISE_IN_KAFKA_3 = {
    "console-producer": "kafka.tools.ConsoleProducer",
    "dump-log": "kafka.tools.DumpLogSegments",
    "broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a tool ended."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of its output."""
        return self.out.splitlines()


class Tools:
    """The tools of one Kafka release, for one broker."""

    def __init__(self, version: str, bootstrap: str, folder: Path) -> None:
        self.version = version
        self.bootstrap = bootstrap
        self._classes = {**_TOOLS, **(_OTHERWISE_IN_KAFKA_3 if version == KAFKA_3 else {})}
        folder_of_jars = jars(f"kafka-{version}")
        tools = [folder_of_jars / f"kafka-tools-{version}.jar", folder_of_jars / f"kafka_2.13-{version}.jar"]
        libraries = sorted(set(folder_of_jars.glob("*.jar")) - set(tools))
        class_path = os.pathsep.join(map(str, (classes(f"kafka-{version}", [_LAUNCHER]), *libraries)))
        self._log = folder / "launcher.err"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [require_program("java"), *_JVM, "-cp", class_path, "ToolLauncher", *tools],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                bufsize=0,
                start_new_session=True,
            )

    def run(self, tool: str, *arguments: str | Path, stdin: str = "", timeout_s: float = 60) -> Outcome:
        """Run a tool with its arguments as they would stand on the command line and return how it ended."""
        assert self._process.stdin is not None
        fields = [self._classes[tool].encode(), stdin.encode(), *(str(argument).encode() for argument in arguments)]
        self._process.stdin.write(b" ".join(map(base64.b64encode, fields)) + b"\n")
        status, out, err = self._read_line(tool, timeout_s).split(b" ")
        return Outcome(int(status), base64.b64decode(out).decode(), base64.b64decode(err).decode())

    def run_on_broker(self, tool: str, *arguments: str | Path, stdin: str = "") -> Outcome:
        """Run a tool with `--bootstrap-server`, and require that it ends with 0."""
        outcome = self.run(tool, "--bootstrap-server", self.bootstrap, *arguments, stdin=stdin)
        assert outcome.status == 0, outcome
        return outcome

    def close(self) -> None:
        """End the JVM."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def _read_line(self, tool: str, timeout_s: float) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout_s
        line = b""
        while not line.endswith(b"\n"):
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0 or not is_readable(self._process.stdout, remaining_s):
                self.close()
                raise TimeoutError(f"{tool} of Kafka {self.version} did not end within {timeout_s} s")
            chunk = self._process.stdout.read(1 << 20)
            if not chunk:
                raise RuntimeError(f"{tool}: the JVM ended\n{self._log.read_text()}")
            line += chunk
        return line.removesuffix(b"\n")


class GroupTool:
    """One group, as a tool for groups of its kind shows and changes it."""

    def __init__(self, tools: Tools, tool: str, group: str) -> None:
        self._tools = tools
        self._tool = tool
        self._group = group

    def list(self, *filters: str) -> list[list[str]]:
        """Return the columns of the group's line, if it is listed."""
        return self._rows("--list", *filters)

    def describe(self, *what: str) -> list[list[str]]:
        """Return the columns of each line about the group."""
        return self._rows("--describe", "--group", self._group, *what)

    def change(self, *what: str) -> str:
        """Run the tool where the group may refuse what is asked; return what it says."""
        where = ["--bootstrap-server", self._tools.bootstrap, "--group", self._group]
        outcome = self._tools.run(self._tool, *where, *what)
        return outcome.out + outcome.err

    def _rows(self, *options: str) -> list[list[str]]:
        lines = self._tools.run_on_broker(self._tool, *options).lines
        return [columns for line in lines if (columns := line.split()) and columns[0] == self._group]
