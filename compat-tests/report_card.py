"""Makes the report card, client by feature by broker, of the results of the runs.

    python compat-tests/report_card.py [CLIENT]

reads `compat-tests/results/*.json`, one file for each broker, prints the card and writes it as `compat-tests/REPORT.md`
and `build/compat/report.html`. With a client's folder it prints that client's part and writes nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from harness.card import Card
from harness.card_html import as_html
from harness.card_markdown import as_markdown

FOLDER = Path(__file__).parent
HTML = FOLDER.parent / "build" / "compat" / "report.html"


def main() -> None:
    files = sorted((FOLDER / "results").glob("*.json"))
    if len(sys.argv) > 1:
        print(as_markdown(Card.read(files, sys.argv[1])))
        return
    card = Card.read(files)
    text = as_markdown(card)
    print(text)
    (FOLDER / "REPORT.md").write_text(text)
    HTML.parent.mkdir(parents=True, exist_ok=True)
    HTML.write_text(as_html(card))
    print(f"\n{HTML}")


if __name__ == "__main__":
    main()
