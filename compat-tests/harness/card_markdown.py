"""The report card as Markdown, which is also how it is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.card import LEGEND, SIGNS, TITLES
from harness.versions import release_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.card import Card, Note


def as_markdown(card: Card) -> str:
    """Return the whole card: how many tests, the features, and the reasons."""
    parts = [
        "# Clients, features and brokers",
        "Made by `make compat` of what the tests in `clients/` found; `clients/*/FINDINGS.md` says what else is known.",
        "A cell has one sign where all brokers agree, else one for each, in this order: "
        + ", ".join(card.brokers)
        + ".",
        "\n".join(f"- {sign} {LEGEND[outcome]}" for outcome, sign in SIGNS.items()),
        "## Tests passed",
        _table(["client", "release", *card.brokers], (_sums(card, client) for client in card.clients)),
        "## Features",
        _table(
            ["", *card.clients],
            ([feature, *(card.signs(client, feature) for client in card.clients)] for feature in card.features),
        ),
    ]
    for outcome, title in TITLES.items():
        if notes := [note for note in card.notes() if note.outcome == outcome]:
            parts += [f"## {title}", "\n".join(_line(card, note) for note in notes)]
    return "\n\n".join(parts) + "\n"


def _sums(card: Card, client: str) -> list[str]:
    return [client, release_of(client), *(card.passed(client, broker) for broker in card.brokers)]


def _line(card: Card, note: Note) -> str:
    where = "" if len(note.brokers) == len(card.brokers) else f" ({', '.join(note.brokers)})"
    return f"- {note.client}, {note.feature}{where}: {note.reason}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    texts = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    rule = "-|-".join("-" * width for width in widths)
    return "\n".join(f"| {text} |" for text in texts[:1]) + f"\n|-{rule}-|\n" + "\n".join(f"| {t} |" for t in texts[1:])
