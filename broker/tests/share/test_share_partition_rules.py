"""Any order of fetches, acknowledgements, time, log failures and crashes: what always holds of a share partition."""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.share.in_flight import State, StateBatch, Transition
from odradek.share.share_partition import RENEW, Acknowledgement, Acquisition, SharePartition
from odradek.share.stored_state import combined
from odradek_protocol.errors import BrokerError

MEMBERS = st.sampled_from(["a", "b", "c"])
LOCK_S = 10


@dataclass
class Settings:
    delivery_count_limit: int
    max_record_locks: int
    record_lock_duration_ms: int = LOCK_S * 1000
    renew_acknowledge_enable: bool = True


class SharePartitionRules(RuleBasedStateMachine):
    """Members that do anything at any time, and a log that stores late, in order, or fails, and a broker that dies.

    The model knows of each offset who has acquired it until when, how often it was delivered, and what was stored.
    """

    @initialize(limit=st.sampled_from([2, 3, 5]), locks=st.sampled_from([4, 12, 100]))
    def start(self, limit: int, locks: int) -> None:
        self.settings = Settings(limit, locks)
        self.partition = SharePartition(0, (), self.settings)
        self.log: list[tuple[int, int]] = []
        self.now = 0.0
        self.owners: dict[int, tuple[str, float]] = {}
        self.deliveries: dict[int, int] = {}
        self.done: set[int] = set()
        self.stored_start = 0
        self.stored: list[StateBatch] = []
        self.pending: list[tuple[Transition, dict[int, tuple[str, float]]]] = []
        self.start_offset = 0

    @rule(size=st.integers(1, 6))
    def produce(self, size: int) -> None:
        base = self.log[-1][1] + 1 if self.log else 0
        self.log.append((base, base + size - 1))

    @rule(member=MEMBERS, records=st.integers(0, 8), batch_size=st.integers(1, 5), record_limit=st.booleans())
    def fetch(self, member: str, records: int, batch_size: int, record_limit: bool) -> None:
        offset = self.partition.next_fetch_offset
        found = [batch for batch in self.log if batch[1] >= offset]
        wanted = Acquisition(member, records, batch_size, record_limit)
        acquired = self.partition.acquire(wanted, self.now, offset, found) if self.partition.can_acquire else []
        count = 0
        for first, last, delivery_count in acquired:
            for taken in range(first, last + 1):
                assert taken not in self.owners, "acquired by two members at once"
                assert taken not in self.done, "delivered after it was acknowledged"
                self.deliveries[taken] = self.deliveries.get(taken, 0) + 1
                assert delivery_count == self.deliveries[taken] <= self.settings.delivery_count_limit
                self.owners[taken] = (member, self.now + LOCK_S)
                count += 1
        if record_limit:
            assert count <= records

    @rule(member=MEMBERS, first=st.integers(0, 30), size=st.integers(1, 8), types=st.data())
    def acknowledge(self, member: str, first: int, size: int, types: st.DataObject) -> None:
        many = types.draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
        chosen = types.draw(st.sampled_from([many, many[:1]]))
        offsets = [offset for offset in range(first, first + size) if offset >= self.start_offset]
        allowed = all(self.owners.get(offset, ("", 0.0))[0] == member for offset in offsets)
        asked = Acknowledgement(first, first + size - 1, chosen)
        try:
            transition = self.partition.acknowledge(member, [asked], self.now)
        except BrokerError:
            assert not allowed, "its own records"
            return
        assert allowed, "records of nobody, or of somebody else"
        given_up = {}
        for offset in offsets:
            type_ = chosen[0] if len(chosen) == 1 else chosen[offset - first]
            if type_ == RENEW:
                self.owners[offset] = (member, self.now + LOCK_S)
            else:
                given_up[offset] = self.owners.pop(offset)
        self.begin(transition, given_up)

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        given_up = {offset: owner for offset, owner in self.owners.items() if owner[0] == member}
        for offset in given_up:
            del self.owners[offset]
        self.begin(self.partition.release(member), given_up)

    def begin(self, transition: Transition, given_up: dict[int, tuple[str, float]]) -> None:
        assert sum(each.last_offset - each.first_offset + 1 for each in transition.batches) == len(given_up)
        self.pending.append((transition, given_up))

    @rule(succeeded=st.booleans())
    def hear_from_the_log(self, succeeded: bool) -> None:
        if not self.pending:
            return
        transition, given_up = self.pending.pop(0)
        if succeeded:
            self.store(transition.batches)
        else:
            self.owners.update({offset: owner for offset, owner in given_up.items() if owner[1] > self.now})
        self.partition.complete(transition, self.now, succeeded=succeeded)

    def store(self, batches: list[StateBatch]) -> None:
        self.stored_start = max(self.stored_start, self.partition.start_offset)
        self.stored = combined(self.stored, batches, self.stored_start)
        for first, last, state, _ in batches:
            if state in (State.ACKNOWLEDGED, State.ARCHIVED):
                self.done.update(range(first, last + 1))

    @rule(seconds=st.integers(1, LOCK_S))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        batches = self.partition.expire(self.now)
        self.owners = {offset: owner for offset, owner in self.owners.items() if owner[1] > self.now}
        self.store(batches)
        self.partition.forget_done()

    @rule()
    def crash(self) -> None:
        """What was stored is taken up; of what was delivered and not stored nothing is known any more."""
        self.pending.clear()
        self.owners.clear()
        self.partition = SharePartition(self.stored_start, self.stored, self.settings)
        self.start_offset = self.stored_start
        self.deliveries = {
            offset: batch.delivery_count
            for batch in self.stored
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }

    @invariant()
    def start_never_goes_back_while_the_broker_lives(self) -> None:
        assert self.partition.start_offset >= self.start_offset
        self.start_offset = self.partition.start_offset

    @invariant()
    def nothing_is_lost(self) -> None:
        """Whatever is below the start offset is stored as done with."""
        assert set(range(self.start_offset)) <= self.done

    @invariant()
    def somebody_is_woken_when_a_lock_ends(self) -> None:
        assert all(self.partition.deadline <= until for _, until in self.owners.values())


TestSharePartitionRules = SharePartitionRules.TestCase
TestSharePartitionRules.settings = settings(max_examples=300, stateful_step_count=40)
