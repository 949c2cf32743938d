"""One conversation with two brokers, whose replies must be the same but for what `differences.py` lists."""

from __future__ import annotations

import functools
import inspect
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from wire.client import Wire
from wire.differences import DEVIATIONS, NUMBERED, SEEN, UNORDERED
from wire.rules import ABSENT, Simplifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wire.client import Exchange
    from wire.schemas import Api

_MOST_LINES = 60  # of a failure's message


def compared(fixture: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a test of a conversation, which has an argument `wire`; `fixture` gives the Comparison to hold it with."""

    def decorate(conversation: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(conversation)
        def test(*instance: object, **arguments: Any) -> None:
            comparison = arguments.pop(fixture)
            comparison.run(lambda wire: conversation(*instance, wire=wire, **arguments))

        signature = inspect.signature(conversation)
        parameters = [
            parameter.replace(name=fixture) if name == "wire" else parameter
            for name, parameter in signature.parameters.items()
        ]
        test.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return test

    return decorate


class Comparison:
    """Odradek and a Kafka, by their addresses, and the APIs of that Kafka's release."""

    def __init__(self, odradek: str, kafka: str, apis: dict[str, Api]) -> None:
        self._brokers = {"Odradek": odradek, "Kafka": kafka}
        self.apis = apis
        for bootstrap in self._brokers.values():
            with Wire(bootstrap, apis) as wire:
                wire.wait_for_coordinators()

    def run(self, conversation: Callable[[Wire], None]) -> None:
        """Hold the conversation with both brokers at once and fail the test on each difference."""
        __tracebackhide__ = True
        with ThreadPoolExecutor(2) as pool:
            hold = functools.partial(self._hold, conversation)
            (ours, our_error), (theirs, their_error) = pool.map(hold, self._brokers.values())
        lines = list(_differences_of(ours, theirs))
        lines += [
            f"{who} ended the conversation: {error!r}"
            for who, error in zip(self._brokers, (our_error, their_error), strict=True)
            if error
        ]
        if lines:
            left_out = [f"... and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
            pytest.fail("\n".join(lines[:_MOST_LINES] + left_out), pytrace=False)

    def _hold(self, conversation: Callable[[Wire], None], bootstrap: str) -> tuple[list[Exchange], Exception | None]:
        with Wire(bootstrap, self.apis) as wire:
            error = None
            try:
                conversation(wire)
            except Exception as raised:  # noqa: BLE001 - told beside the replies before it, which explain it
                error = raised
            return wire.transcript, error


def _differences_of(ours: list[Exchange], theirs: list[Exchange]) -> Iterator[str]:
    """Tell each difference once, with all the exchanges that show it."""
    our_view, their_view = (Simplifier(NUMBERED, SEEN, UNORDERED) for _ in range(2))
    found: dict[str, list[str]] = {}
    for (what, mine), (their_what, other) in zip(ours, theirs, strict=False):
        if what != their_what:
            found.setdefault(f"the conversations part: Odradek was asked {what}, Kafka {their_what}", [])
            break
        api, _, version = what.partition(" ")
        for path, one, two in _unequal(our_view.simplify(api, mine), their_view.simplify(api, other), api):
            if not any(deviation.holds(re.sub(r"\[\d+\]", "", path), one, two) for deviation in DEVIATIONS):
                found.setdefault(f"{path}: Odradek {one!r}, Kafka {two!r}", []).append(version)
    for difference, versions in found.items():
        yield f"{difference} [{', '.join(dict.fromkeys(versions))}]"
    if len(ours) != len(theirs):
        yield f"Odradek answered {len(ours)} times, Kafka {len(theirs)} times"


def _unequal(one: Any, two: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(two, dict):
        for key in {**one, **two}:
            yield from _unequal(one.get(key, ABSENT), two.get(key, ABSENT), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(two, list):
        if len(one) != len(two):
            yield path, one, two
        for index, (mine, other) in enumerate(zip(one, two, strict=False)):
            yield from _unequal(mine, other, f"{path}[{index}]")
    elif one != two:
        yield path, one, two
