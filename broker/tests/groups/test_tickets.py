"""What waits for a ticket: an answer is there at once, later, or nobody wants it any more."""

from odradek.groups.member import Ticket
from odradek.groups.tickets import TicketAnswer, answer_for_ticket


def test_an_answer_that_is_there_is_not_postponed() -> None:
    assert answer_for_ticket(Ticket(3), str) == "3"


def test_an_answer_is_there_when_the_ticket_is_resolved() -> None:
    ticket: Ticket[int] = Ticket()
    answer = answer_for_ticket(ticket, str)
    assert isinstance(answer, TicketAnswer)
    woken: list[str] = []
    answer.begin(lambda: woken.append("woken"))
    assert answer.look() is None
    ticket.resolve(3)
    assert woken == ["woken"]
    assert answer.look() == "3"
    answer.end()


def test_who_wants_no_answer_any_more_is_not_woken() -> None:
    ticket: Ticket[int] = Ticket()
    gone, stays = TicketAnswer(ticket, str), TicketAnswer(ticket, str)
    woken: list[str] = []
    gone.begin(lambda: woken.append("gone"))
    stays.begin(lambda: woken.append("stays"))
    gone.end()
    ticket.resolve(3)
    assert woken == ["stays"]
