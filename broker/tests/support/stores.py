"""Log stores for tests: a configuration, a clock that stands still, and short ways to make and fill logs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from odradek.log.log import Log, Origin
from odradek.log.store import LogStore
from support.logs import NOW_MS, LogSettings, records

ID = bytes(range(16))
OTHER_ID = bytes(range(16, 32))


class Config:
    num_recovery_threads_per_data_dir = 2
    cordoned_log_dirs: Sequence[str] = ()

    def topic_config(self, overrides: Mapping[str, str]) -> LogSettings:
        assert not overrides
        return LogSettings()


class SetClock:
    def __init__(self) -> None:
        self.now = NOW_MS

    def now_ms(self) -> int:
        return self.now


def open_store(
    *folders: Path, node_id: int = 1, clock: SetClock | None = None, cluster_id: str | None = None
) -> LogStore:
    return LogStore.open(
        [str(folder) for folder in folders], Config(), node_id, clock or SetClock(), cluster_id=cluster_id
    )


def make(store: LogStore, topic: str = "a", index: int = 0, topic_id: bytes = ID) -> Log:
    return store.get_or_create(topic, index, topic_id, LogSettings())


def append(log: Log, value: bytes) -> None:
    log.append_as_leader(records(value), 0, NOW_MS, Origin.CLIENT)
