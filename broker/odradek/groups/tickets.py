"""Answers that a classic group owes: what a handler gives for a `Ticket`.

A generation of a hundred members is two hundred requests that wait: what waits is an object, and no task.
"""

import math
from collections.abc import Callable
from typing import Generic, TypeVar

from odradek.groups.member import Ticket
from odradek.waiting import Postponed

__all__ = ["TicketAnswer", "answer_for_ticket"]

T = TypeVar("T")
R = TypeVar("R")


class TicketAnswer(Postponed, Generic[T, R]):
    """The reply that `respond` makes of what the ticket is resolved with."""

    __slots__ = ("_respond", "_ticket", "_woken")

    deadline = math.inf
    """The group has a deadline for everything that it owes, and resolves every ticket."""

    def __init__(self, ticket: Ticket[T], respond: Callable[[T], R]) -> None:
        self._ticket = ticket
        self._respond = respond
        self._woken: Callable[[], object]

    def begin(self, woken: Callable[[], object]) -> None:
        self._woken = woken
        self._ticket.on_resolved(woken)

    def look(self) -> R | None:
        result = self._ticket.result
        return None if result is None else self._respond(result)

    def end(self) -> None:
        self._ticket.forget(self._woken)


def answer_for_ticket(ticket: Ticket[T], respond: Callable[[T], R]) -> R | TicketAnswer[T, R]:
    """The reply where the ticket is resolved, else a postponed one."""
    return TicketAnswer(ticket, respond) if ticket.result is None else respond(ticket.result)
