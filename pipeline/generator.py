"""A website's activity, made up: the same seed gives the same records, so the truth about a run is a second run.

`generate` is an endless iterator of records, without clock or clients. Time is the number of the step: `rate` steps a
second from `start_ms` on. People come, look at pages, search, click on ads, and go; a bot never goes. On the way to the
broker things go wrong, each with a share of its own:

    out of order     up to `DELAY_MS` between happening and arriving
    late             minutes between them
    duplicates       sent again soon after, with the same event id
    malformed, incomplete, of an unknown version, from the future
    aborted          all clicks of a transaction that the producer gives up

Each record says what should become of it: its `Fate`. Profiles of all users come first, and change now and then; some
users delete theirs.
"""

import json
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from pipeline.topics import AD_CLICKS, PAGE_VIEWS, SEARCHES, USERS

__all__ = ["Fate", "Plan", "Record", "generate"]

DELAY_MS: Final = 8_000
LATE_MS: Final = (60_000, 600_000)
FUTURE_MS: Final = (3_600_000, 86_400_000)
CLICKS_IN_TRANSACTION: Final = 10
MIN_RATE: Final = 5

_VERSION: Final = 1
_AGENT_OF_BOTS: Final = "bot"
_AGENTS: Final = ("browser", "phone", "tablet")
_COUNTRIES: Final = ("BR", "DE", "FR", "IN", "JP", "NG", "US")
_SEGMENTS: Final = ("free", "plus", "team")
_WORDS: Final = ("boots", "castle", "lamp", "letters", "map", "trial", "umbrella", "window")
_PAGES: Final = 40


class Fate(StrEnum):
    """What should become of a record; the faults have the names that `events.Fault` gives them."""

    LANDED = "landed"
    DUPLICATE = "duplicate"
    MALFORMED = "malformed"
    INCOMPLETE = "incomplete"
    UNKNOWN_VERSION = "unknown_version"
    FUTURE = "future"
    LATE = "late"
    ABORTED = "aborted"
    PROFILE = "profile"


@dataclass(frozen=True)
class Plan:
    """What is generated. The shares are of the events."""

    seed: int
    start_ms: int
    rate: float
    users: int = 300
    late_after_s: int = 10
    """What the jobs take as late: out of order events stay below it."""

    out_of_order: float = 0.1
    late: float = 0.01
    duplicates: float = 0.02
    faulty: float = 0.01
    bots: float = 0.03
    aborted: float = 0.2
    """Of the transactions."""

    def __post_init__(self) -> None:
        if self.rate < MIN_RATE:
            raise ValueError(f"at least {MIN_RATE} events/s, so that a transaction is not open for long: {self.rate}")
        if self.late_after_s * 1000 <= DELAY_MS:
            raise ValueError(f"events arrive up to {DELAY_MS} ms out of order: they are late only after more than that")


@dataclass(frozen=True, slots=True)
class Record:
    """A record to produce, and the truth about it."""

    topic: str
    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int
    """When it arrives, which is the record's timestamp."""

    fate: Fate
    event: "Event | None" = None
    """What the value holds, where that is an event."""

    transaction: int | None = None
    """Records with the same number are committed or aborted together. Numbers count from 0."""

    def arguments(self) -> dict[str, Any]:
        """What `KafkaProducer.send` takes."""
        return {
            "topic": self.topic,
            "key": self.key,
            "value": self.value,
            "headers": list(self.headers),
            "timestamp_ms": self.timestamp_ms,
        }


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a user did, or a bot."""

    event_id: str
    event_time_ms: int
    user_id: str
    agent: str
    page: str | None = None
    country: str | None = None
    query: str | None = None
    view_id: str | None = None
    cost_cents: int | None = None

    @property
    def by_bot(self) -> bool:
        """Whether a bot did it."""
        return self.agent == _AGENT_OF_BOTS

    def fields(self) -> dict[str, object]:
        """The JSON object on the wire."""
        given = {name: getattr(self, name) for name in self.__slots__}
        return {"schema_version": _VERSION} | {name: value for name, value in given.items() if value is not None}


def generate(plan: Plan) -> Iterator[Record]:
    """The records of `plan`, without end, in the order in which they are sent."""
    website = _Website(plan)
    yield from website.profiles()
    for step in range(10**15):
        yield from website.step(plan.start_ms + int(step * 1000 / plan.rate))


class _Website:
    """The users, and what is under way."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        # Seeded for data, not for secrets.
        self._random = random.Random(plan.seed)  # noqa: S311
        self._users = [f"u{number}" for number in range(plan.users)]
        self._country = {user: self._random.choice(_COUNTRIES) for user in self._users}
        self._online = self._random.sample(self._users, max(plan.users // 5, 1))
        self._last_view: dict[str, Event] = {}
        self._again: deque[tuple[int, Record]] = deque()
        self._clicks = 0
        self._aborts = False

    def profiles(self) -> Iterator[Record]:
        """The profile of each user."""
        for user in self._users:
            yield self._profile(user, self._plan.start_ms)

    def step(self, now_ms: int) -> Iterator[Record]:
        """What arrives at this step: an event, and what was due to be sent again."""
        while self._again and self._again[0][0] <= now_ms:
            due_ms, record = self._again.popleft()
            yield self._sent_again(record, due_ms)
        if self._chance(0.01):
            yield self._profile(self._random.choice(self._users), now_ms)
        record = self._record(now_ms)
        if record.topic != AD_CLICKS and record.event is not None and self._chance(self._plan.duplicates):
            last_ms = self._again[-1][0] if self._again else now_ms
            self._again.append((max(last_ms, now_ms + self._random.randrange(1000)), record))
        yield record

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _profile(self, user: str, now_ms: int) -> Record:
        if self._chance(0.05):
            value = None
        else:
            profile = {"country": self._country[user], "segment": self._random.choice(_SEGMENTS)}
            value = json.dumps(profile).encode()
        return Record(USERS, user.encode(), value, (), now_ms, Fate.PROFILE)

    def _sent_again(self, record: Record, now_ms: int) -> Record:
        assert record.event is not None
        fate = Fate.LATE if self._is_late(record.event.event_time_ms, now_ms) else Fate.DUPLICATE
        return Record(record.topic, record.key, record.value, record.headers, now_ms, fate, record.event)

    def _is_late(self, event_time_ms: int, now_ms: int) -> bool:
        return now_ms - event_time_ms > self._plan.late_after_s * 1000

    def _record(self, now_ms: int) -> Record:
        event_time_ms = now_ms
        if self._chance(self._plan.out_of_order):
            event_time_ms -= self._random.randrange(DELAY_MS)
        elif self._chance(self._plan.late):
            event_time_ms -= self._random.randrange(*LATE_MS)
        topic, event = self._act(event_time_ms)
        fate = Fate.LATE if self._is_late(event_time_ms, now_ms) else Fate.LANDED
        value = json.dumps(event.fields()).encode()
        if self._chance(self._plan.faulty):
            fate, value = self._spoil(event, now_ms)
        transaction = None
        if topic == AD_CLICKS:
            transaction = self._transaction()
            if self._aborts:
                fate = Fate.ABORTED
        trace = f"00-{self._random.getrandbits(128):032x}-{self._random.getrandbits(64):016x}-01"
        headers = (("traceparent", trace.encode()),)
        known = event if fate in (Fate.LANDED, Fate.LATE, Fate.ABORTED) else None
        return Record(topic, event.user_id.encode(), value, headers, now_ms, fate, known, transaction)

    def _transaction(self) -> int:
        if self._clicks % CLICKS_IN_TRANSACTION == 0:
            self._aborts = self._chance(self._plan.aborted)
        self._clicks += 1
        return (self._clicks - 1) // CLICKS_IN_TRANSACTION

    def _act(self, time_ms: int) -> tuple[str, Event]:
        """What somebody does next, and the topic for it."""
        event_id = str(UUID(int=self._random.getrandbits(128), version=4))
        if self._chance(self._plan.bots):
            page = f"/articles/{self._random.randrange(_PAGES)}"
            return PAGE_VIEWS, Event(event_id, time_ms, "bot-1", _AGENT_OF_BOTS, page, "US")
        place = self._random.randrange(len(self._online))
        user = self._online[place]
        agent = _AGENTS[sum(user.encode()) % len(_AGENTS)]
        view = self._last_view.get(user)
        if view is not None and self._chance(0.1):
            cost = self._random.randint(5, 80)
            return AD_CLICKS, Event(event_id, time_ms, user, agent, view.page, view_id=view.event_id, cost_cents=cost)
        if self._chance(0.12):
            return SEARCHES, Event(event_id, time_ms, user, agent, query=self._random.choice(_WORDS))
        # The first pages are the popular ones.
        page = f"/articles/{min(int(self._random.expovariate(0.15)), _PAGES - 1)}"
        event = Event(event_id, time_ms, user, agent, page, self._country[user])
        self._last_view[user] = event
        if self._chance(0.04):
            self._online[place] = self._random.choice(self._users)
        return PAGE_VIEWS, event

    def _spoil(self, event: Event, now_ms: int) -> tuple[Fate, bytes]:
        fields = event.fields()
        fate = self._random.choice((Fate.MALFORMED, Fate.INCOMPLETE, Fate.UNKNOWN_VERSION, Fate.FUTURE))
        if fate is Fate.MALFORMED:
            return fate, json.dumps(fields).encode()[:-7]
        if fate is Fate.INCOMPLETE:
            del fields[self._random.choice(("event_id", "user_id", "event_time_ms"))]
        elif fate is Fate.UNKNOWN_VERSION:
            fields["schema_version"] = _VERSION + 1
        else:
            fields["event_time_ms"] = now_ms + self._random.randrange(*FUTURE_MS)
        return fate, json.dumps(fields).encode()
