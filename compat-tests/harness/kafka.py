"""Apache Kafka as the target: the same tests against the original, to know that they ask for the right things."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from harness.cache import require_program
from harness.jars import jars
from harness.process import Child
from harness.target import QUICK_GROUPS, Target, free_port, wait_until_serving
from harness.versions import KAFKA_3, KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_START_TIMEOUT_S = 90
_STOP_TIMEOUT_S = 60
# Quick to start and small: these brokers live for one run of the tests.
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# What Kafka 3 and ZooKeeper complain of goes to their stderr.
_LOG4J = """\
log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%p %c: %m%n
"""

# One node can hold one replica; groups start without the wait that production wants.
_SINGLE_NODE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
_SHARE_STATE = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class _Kafka(Target):
    def __init__(self, version: str, folder: Path, data: Path | None = None) -> None:
        self.name = f"kafka-{version}"
        self._folder = folder
        self._data = data or folder / "data"
        self._classpath = f"{jars(self.name)}/*"
        self._port = free_port()
        self.bootstrap = f"127.0.0.1:{self._port}"
        self._options: list[str] = []

    def log_folder(self) -> Path:
        return self._data

    def _java(self, main: str, *arguments: str | Path) -> list[str | Path]:
        return [require_program("java"), *_JVM, *self._options, "-cp", self._classpath, main, *arguments]

    def _write_properties(self, name: str, properties: Mapping[str, str]) -> Path:
        path = self._folder / name
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return path

    def _serve(self, properties: Path) -> Child:
        broker = Child("kafka", self._java("kafka.Kafka", properties), self._folder)
        try:
            wait_until_serving(broker, self._port, _START_TIMEOUT_S)
        except BaseException:
            broker.kill()
            raise
        return broker


class KraftKafka(_Kafka):
    """Kafka 4: broker and controller in one process."""

    def __init__(self, folder: Path, data: Path | None = None) -> None:
        super().__init__(KAFKA_4, folder, data)
        controller_port = free_port()
        self._properties = self._write_properties(
            "server.properties",
            {
                "process.roles": "broker,controller",
                "node.id": "1",
                "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
                "controller.listener.names": "CONTROLLER",
                "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{controller_port}",
                "log.dirs": str(self._data),
                **_SINGLE_NODE,
                **_SHARE_STATE,
                **QUICK_GROUPS,
            },
        )
        format_log = self._java("kafka.tools.StorageTool", "format", "-t", "b2RyYWRlay1jb21wYXRzAA", "-c")
        subprocess.run([*format_log, self._properties], check=True, stdout=subprocess.DEVNULL, timeout=60)
        self._broker = self._serve(self._properties)

    def restart_abruptly(self) -> None:
        self._broker.kill()
        self._broker = self._serve(self._properties)

    def stop(self) -> None:
        self._broker.terminate(_STOP_TIMEOUT_S)


class ZooKeeperKafka(_Kafka):
    """Kafka 3 with a ZooKeeper beside it.

    `data` may have its logs already; then `znodes`, commands of ZooKeeper's shell, make what belongs to them.
    """

    def __init__(self, folder: Path, data: Path | None = None, znodes: str = "") -> None:
        super().__init__(KAFKA_3, folder, data)
        log4j = folder / "log4j.properties"
        log4j.write_text(_LOG4J)
        self._options.append(f"-Dlog4j.configuration=file:{log4j}")
        zookeeper_port = free_port()
        zookeeper_properties = self._write_properties(
            "zookeeper.properties",
            {
                "dataDir": str(folder / "zookeeper"),
                "clientPort": str(zookeeper_port),
                "clientPortAddress": "127.0.0.1",
                "admin.enableServer": "false",
            },
        )
        self._properties = self._write_properties(
            "server.properties",
            {
                "broker.id": "1",
                "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
                "zookeeper.connection.timeout.ms": str(_START_TIMEOUT_S * 1000),
                "listeners": f"PLAINTEXT://{self.bootstrap}",
                "log.dirs": str(self._data),
                **_SINGLE_NODE,
            },
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._zookeeper = Child("zookeeper", self._java(main, zookeeper_properties), folder)
        try:
            if znodes:
                self._make_znodes(zookeeper_port, znodes)
            self._broker = self._serve(self._properties)
        except BaseException:
            self._zookeeper.kill()
            raise

    def _make_znodes(self, zookeeper_port: int, commands: str) -> None:
        server = ("-server", f"127.0.0.1:{zookeeper_port}", "-timeout", f"{_START_TIMEOUT_S * 1000}")
        shell = self._java("org.apache.zookeeper.ZooKeeperMain", "-waitforconnection", *server)
        text = f"{commands}\nquit\n"
        done = subprocess.run(
            shell,
            input=text,
            text=True,
            capture_output=True,
            timeout=2 * _START_TIMEOUT_S,
            cwd=self._folder,
            check=False,
        )
        created = done.stdout.count("Created ") + done.stderr.count("Created ")
        assert created == len(commands.splitlines()), done

    def restart_abruptly(self) -> None:
        """Restart in order: after a kill, ZooKeeper would refuse the broker's id until its session has expired."""
        self._broker.terminate(_STOP_TIMEOUT_S)
        self._broker = self._serve(self._properties)

    def stop(self) -> None:
        try:
            self._broker.terminate(_STOP_TIMEOUT_S)
        finally:
            self._zookeeper.kill()
