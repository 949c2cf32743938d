"""What a run must come to, computed from the records that were produced: the other half of every reconciliation.

Written without Spark and in another way, so that the two can be wrong in different places only.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from pipeline.generator import Event, Fate, Record
from pipeline.settings import Settings
from pipeline.topics import AD_CLICKS, PAGE_VIEWS

__all__ = ["Session", "Truth", "derive"]


@dataclass(frozen=True, order=True)
class Session:
    """A session by its user, and the times of its first and last event."""

    user_id: str
    start_ms: int
    end_ms: int


@dataclass
class Truth:
    """What the produced records come to."""

    fates: Counter[Fate] = field(default_factory=Counter)
    landed: dict[str, Event] = field(default_factory=dict)
    """The events that the lake holds, by id."""

    aborted: set[str] = field(default_factory=set)
    """The ids of events that nothing may ever hold."""

    views: Counter[tuple[int, str, str]] = field(default_factory=Counter)
    """Page views by start of the window, dimension and value."""

    sessions: list[Session] = field(default_factory=list)
    """All sessions, whether the watermark has passed them or not."""

    conversions: dict[str, str] = field(default_factory=dict)
    """The view that caused a click, by the click's id."""

    cost_cents: int = 0
    newest_ms: int = 0
    """The time of the newest event of no bot: the watermark of sessions ends up `watermark_s` behind it."""

    @property
    def dead(self) -> dict[str, int]:
        """Dead letters by fault."""
        no_fault = (Fate.LANDED, Fate.DUPLICATE, Fate.ABORTED, Fate.PROFILE)
        return {fate.value: count for fate, count in self.fates.items() if fate not in no_fault}

    def closed_sessions(self, settings: Settings) -> list[Session]:
        """The sessions that the watermark has passed when all is read."""
        watermark_ms = self.newest_ms - settings.watermark_s * 1000
        return [one for one in self.sessions if one.end_ms + settings.session_gap_s * 1000 <= watermark_ms]


def derive(records: Iterable[Record], settings: Settings) -> Truth:
    """What `records`, all of them acknowledged, come to by the rules of `settings`."""
    truth = Truth()
    clicks: list[Event] = []
    views: dict[str, Event] = {}
    people: list[Event] = []
    for record in records:
        truth.fates[record.fate] += 1
        if record.event is None:
            continue
        event = record.event
        if record.fate is Fate.ABORTED:
            truth.aborted.add(event.event_id)
        if record.fate is not Fate.LANDED:
            continue
        truth.landed[event.event_id] = event
        if not event.by_bot:
            people.append(event)
            truth.newest_ms = max(truth.newest_ms, event.event_time_ms)
        if record.topic == PAGE_VIEWS:
            views[event.event_id] = event
            _count_view(truth, event, settings)
        elif record.topic == AD_CLICKS:
            clicks.append(event)
    truth.sessions = _sessions(people, settings.session_gap_s * 1000)
    truth.cost_cents = sum(click.cost_cents or 0 for click in clicks)
    truth.conversions = _conversions(clicks, views, settings.attribution_s * 1000)
    return truth


def _count_view(truth: Truth, view: Event, settings: Settings) -> None:
    if view.by_bot:
        return
    window_ms = settings.window_s * 1000
    start_ms = view.event_time_ms // window_ms * window_ms
    for dimension, value in (("page", view.page), ("country", view.country)):
        assert value is not None
        truth.views[start_ms, dimension, value] += 1


def _sessions(events: Iterable[Event], gap_ms: int) -> list[Session]:
    sessions: list[Session] = []
    for event in sorted(events, key=lambda event: (event.user_id, event.event_time_ms)):
        last = sessions[-1] if sessions else None
        time_ms = event.event_time_ms
        # To Spark, an event exactly one gap behind the last belongs to the same session.
        if last is not None and last.user_id == event.user_id and time_ms <= last.end_ms + gap_ms:
            sessions[-1] = Session(last.user_id, last.start_ms, time_ms)
        else:
            sessions.append(Session(event.user_id, time_ms, time_ms))
    return sessions


def _conversions(clicks: Iterable[Event], views: dict[str, Event], within_ms: int) -> dict[str, str]:
    found = {}
    for click in clicks:
        view = views.get(click.view_id or "")
        if view is not None and 0 <= click.event_time_ms - view.event_time_ms <= within_ms:
            found[click.event_id] = view.event_id
    return found
