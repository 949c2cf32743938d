"""Any order of commits, transactions, deletions, compaction and restarts: an offset is what was committed last.

The log is real, and a restart reads it. What is last is what the log has last among what counts: a commit counts when
it is there, one of a transaction when its marker says so. Compaction changes nothing of that, nor does asking, which
happens now and then only: offsets settle when they are asked for.
"""

import shutil
import tempfile
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.cleaning import clean
from support.consumer_groups import ConsumerLimits, FakeTopics
from support.logs import NOW_MS, Opener, marker

from odradek.clock import Clock
from odradek.cluster.topics import CONSUMER_OFFSETS
from odradek.config import BrokerConfig
from odradek.group_commit import FlushRounds
from odradek.groups.commits import NewOffsets
from odradek.groups.shard import GroupShard
from odradek.log.log import Log, Origin
from odradek.partition import Partition
from odradek_protocol.records.control import ControlType

GROUPS = st.sampled_from(["g", "h"])
PARTITIONS = st.lists(st.sampled_from([("t", 0), ("t", 1), ("u", 0)]), min_size=1, max_size=3, unique=True).map(sorted)
PRODUCERS = st.integers(1, 2)
OFFSETS = st.integers(0, 9)

Subject = tuple[str, str, int]
"""Group, topic and partition."""


class FixedClock(Clock):
    """A time of day that stands still."""

    def now_ms(self) -> int:
        return NOW_MS


@dataclass
class Model:
    """What has to be visible: of each offset where it stands in the log, and its number."""

    visible: dict[Subject, tuple[int, int]] = field(default_factory=dict)
    open: dict[int, dict[Subject, tuple[int, int]]] = field(default_factory=dict)
    """What the transaction of each producer has committed so far."""

    def see(self, commits: dict[Subject, tuple[int, int]]) -> None:
        for subject, commit in commits.items():
            self.visible[subject] = max(commit, self.visible.get(subject, commit))


class OffsetRules(RuleBasedStateMachine):
    """Consumers, transactional producers, an administrator, and a broker that ends at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="odradek-offsets-")
        self.open_log = Opener(self.folder)
        self.open_log.config.cleanup_policy = ["compact"]
        self.open_log.config.delete_retention_ms = 0
        self.model = Model()
        self.log: Log | None = None
        self.start()

    def start(self) -> None:
        self.log = self.open_log(f"{CONSUMER_OFFSETS}-0")
        config: Any = self.open_log.config
        self.partition = Partition(CONSUMER_OFFSETS, 0, bytes(16), self.log, config, 1, FixedClock(), FlushRounds())
        self.partition.become_leader(self.log.latest_epoch + 1, (1,), (1,))
        limits = cast(Any, ConsumerLimits())
        self.shard = GroupShard(self.partition, BrokerConfig({}), FixedClock(), limits, FakeTopics())
        while not self.shard.is_read:
            self.shard.load_some()

    def commits(self, group: str, partitions: list[tuple[str, int]], offset: int) -> dict[Subject, tuple[int, int]]:
        """What the model has of a commit that is about to be appended."""
        end = self.partition.log.log_end_offset
        return {(group, *each): (end + number, offset) for number, each in enumerate(partitions)}

    @rule(group=GROUPS, partitions=PARTITIONS, offset=OFFSETS)
    def commit(self, group: str, partitions: list[tuple[str, int]], offset: int) -> None:
        self.model.see(self.commits(group, partitions, offset))
        commits, _ = self.shard.append_commits(group, _new_offsets(partitions, offset))
        self.shard.put_offsets(group, commits)

    @rule(producer=PRODUCERS, group=GROUPS, partitions=PARTITIONS, offset=OFFSETS)
    def commit_in_a_transaction(
        self, producer: int, group: str, partitions: list[tuple[str, int]], offset: int
    ) -> None:
        self.model.open.setdefault(producer, {}).update(self.commits(group, partitions, offset))
        self.shard.append_commits(group, _new_offsets(partitions, offset), producer=(producer, 0))

    @rule(producer=PRODUCERS, committed=st.booleans())
    def end_transaction(self, producer: int, committed: bool) -> None:
        kind = ControlType.COMMIT if committed else ControlType.ABORT
        self.partition.append(marker(kind, producer, 0), origin=Origin.COORDINATOR)
        self.shard.end_transaction(producer, committed=committed)
        ended = self.model.open.pop(producer, {})
        if committed:
            self.model.see(ended)

    @rule(group=GROUPS, partitions=PARTITIONS)
    def forget(self, group: str, partitions: list[tuple[str, int]]) -> None:
        """Offsets that an open transaction may change stay, as where offsets expire."""
        found, pending = self.shard.groups.get(group), self.shard.pending.of_group(group)
        known = [] if found is None else [each for each in partitions if found.offsets.get(*each)]
        known = [each for each in known if each not in pending]
        if found is not None and known:
            self.shard.remove_offsets(found, known)
            for each in known:
                del self.model.visible[group, *each]

    @rule(kind=st.sampled_from(["CreateTime", "LogAppendTime"]))
    def take_times(self, kind: str) -> None:
        """The topic's timestamps change their meaning."""
        self.open_log.config.message_timestamp_type = kind

    @rule()
    def compact(self) -> None:
        assert self.log is not None
        self.log.roll(NOW_MS)
        clean(self.log, NOW_MS + 1)

    @rule()
    def restart(self) -> None:
        assert self.log is not None
        self.log.close()
        self.start()

    @rule()
    def ask(self) -> None:
        found = {
            (name, *partition): (committed.record_offset, committed.offset)
            for name, group in self.shard.groups.items()
            for partition in group.offsets.partitions()
            if (committed := group.offsets.get(*partition)) is not None
        }
        assert found == self.model.visible

    @invariant()
    def what_may_change_is_known(self) -> None:
        for group in ("g", "h"):
            pending = {
                subject[1:] for commits in self.model.open.values() for subject in commits if subject[0] == group
            }
            assert set(self.shard.pending.of_group(group)) == pending

    def teardown(self) -> None:
        self.ask()
        if self.log is not None:
            self.log.close()
        shutil.rmtree(self.folder)


def _new_offsets(partitions: list[tuple[str, int]], offset: int) -> list[NewOffsets]:
    found = []
    for topic, named in groupby(partitions, key=itemgetter(0)):
        indexes = [index for _, index in named]
        count = len(indexes)
        found.append(NewOffsets(topic, indexes, [offset] * count, [-1] * count, [-1] * count, [""] * count))
    return found


OffsetRules.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestOffsetRules = OffsetRules.TestCase
