"""The report card as one HTML file that needs nothing beside it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from harness.card import LEGEND, SIGNS, TITLES
from harness.results import DIFFERS, FAILED, PASSED
from harness.versions import release_of

if TYPE_CHECKING:
    from harness.card import Card

_STYLE = """
:root { --ink: #1d2430; --soft: #626d7d; --paper: #fbfbf9; --line: #e3e4e0; --head: #f1f2ee;
  --passed: #1f7a4d; --missing: #9aa3af; --differs: #b26a00; --failed: #c0332b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e5e8ec; --soft: #9aa4b2; --paper: #14171c; --line: #2a2f38;
  --head: #1b2027; --passed: #58c48d; --missing: #6b7482; --differs: #e0a44a; --failed: #f0766e; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 120rem; padding: 2.5rem 2rem 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.1rem; margin: 2.4rem 0 .7rem; }
p { margin: .2rem 0; color: var(--soft); max-width: 50rem; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.6rem; margin: 1rem 0 0; padding: 0; list-style: none; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .36rem .7rem; text-align: center; white-space: nowrap; border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
tbody tr:hover > * { background: var(--head); }
thead th { background: var(--head); font-weight: 600; vertical-align: bottom; }
tbody th { text-align: left; font-weight: 500; position: sticky; left: 0; background: var(--paper); }
thead th:first-child { text-align: left; }
.turned { height: 10rem; min-width: 2.8rem; }
.turned span { writing-mode: vertical-rl; transform: rotate(180deg); }
b { font-weight: 700; padding: 0 .12rem; }
.passed { color: var(--passed); } .missing, .unasked { color: var(--missing); }
.differs { color: var(--differs); } .failed { color: var(--failed); }
.notes th { text-align: left; }
.notes td { text-align: left; white-space: normal; vertical-align: top; }
.notes td:first-child { white-space: nowrap; }
"""


def as_html(card: Card) -> str:
    """Return the whole card as a page."""
    legend = "".join(f"<li>{_sign(outcome)} {escape(LEGEND[outcome])}</li>" for outcome in SIGNS)
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Odradek: clients, features and brokers</title>
<style>{_STYLE}</style>
<h1>Clients, features and brokers</h1>
<p>Unmodified clients, the same tests against each broker. A cell has one sign where all brokers agree,
else one for each, in this order: {escape(", ".join(card.brokers))}.</p>
<ul class="legend">{legend}</ul>
<h2>Features</h2>
{_features(card)}
<h2>Tests passed</h2>
{_sums(card)}
{"".join(_notes(card, outcome, title) for outcome, title in TITLES.items())}
</html>
"""


def _sign(outcome: str) -> str:
    return f'<b class="{outcome}">{SIGNS[outcome]}</b>'


def _features(card: Card) -> str:
    head = "".join(f'<th class="turned"><span>{escape(client)}</span></th>' for client in card.clients)
    rows = "".join(
        f"<tr><th>{escape(feature)}</th>{''.join(_cell(card, client, feature) for client in card.clients)}</tr>\n"
        for feature in card.features
    )
    return f'<div class="scroll"><table><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(card: Card, client: str, feature: str) -> str:
    outcomes = card.outcomes(client, feature)
    told = "; ".join(f"{broker}: {outcome}" for broker, outcome in outcomes.items())
    return f'<td title="{escape(told)}">{"".join(map(_sign, card.shown(client, feature)))}</td>'


def _sums(card: Card) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in ("client", "release", *card.brokers))
    rows = ""
    for client in card.clients:
        cells = ""
        for broker in card.brokers:
            counts = card.counts(client, broker)
            outcome = next((worst for worst in (FAILED, DIFFERS) if worst in counts), PASSED)
            cells += f'<td class="{outcome}">{card.passed(client, broker)}</td>'
        rows += f"<tr><th>{escape(client)}</th><td>{escape(release_of(client))}</td>{cells}</tr>\n"
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _notes(card: Card, outcome: str, title: str) -> str:
    rows = "".join(
        f"<tr><td>{escape(note.client)}</td><td>{escape(note.feature)}</td>"
        f"<td>{escape(', '.join(note.brokers))}</td><td>{escape(note.reason)}</td></tr>\n"
        for note in card.notes()
        if note.outcome == outcome
    )
    if not rows:
        return ""
    head = "<tr><th>client</th><th>feature</th><th>brokers</th><th>reason</th></tr>"
    return (
        f'<h2>{title}</h2><div class="scroll"><table class="notes"><thead>{head}</thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
