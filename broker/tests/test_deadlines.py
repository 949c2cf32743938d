"""Deadlines: what comes up when, and how a task that sleeps until then hears of an earlier one."""

import math

import trio
import trio.testing

from odradek.deadlines import Alarms, Deadlines


def test_a_thing_comes_up_once_and_at_its_earliest_deadline() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for key, at in (("a", 5.0), ("b", 3.0), ("a", 2.0), ("b", 4.0)):
        deadlines.schedule(key, at)
    assert deadlines.next == 2.0
    assert deadlines.pop_due(3.0) == ["a", "b"]
    assert deadlines.pop_due(10.0) == []
    assert deadlines.next == math.inf


def test_what_is_forgotten_does_not_come_up() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.schedule("a", 1.0)
    deadlines.forget("a")
    assert deadlines.next == math.inf
    deadlines.schedule("a", 2.0)
    assert deadlines.pop_due(1.0) == []
    assert deadlines.pop_due(2.0) == ["a"]


def test_who_sleeps_wakes_for_an_earlier_deadline() -> None:
    alarms: Alarms[str] = Alarms()
    came_up = []

    async def listen() -> None:
        while len(came_up) < 3:
            due = await alarms.due()
            came_up.append((trio.current_time(), due))

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await trio.testing.wait_all_tasks_blocked()
            alarms.schedule("late", 100.0)
            await trio.testing.wait_all_tasks_blocked()
            alarms.schedule("early", 10.0)
            alarms.schedule("forgotten", 5.0)
            alarms.forget("forgotten")
            await trio.sleep(20)
            alarms.schedule("past", 1.0)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert came_up == [(10.0, ["early"]), (20.0, ["past"]), (100.0, ["late"])]
