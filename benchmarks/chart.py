"""The ratios as a chart of bars, in SVG: each is Odradek's figure as a share of Kafka's."""

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.results import METRICS, Line

LABEL_WIDTH = 460
SCALE = 240
"""Pixels for a ratio of 1."""
LARGEST = 2.0
"""Longer bars are cut here; their number tells the rest."""
BAR = 16
TOP = 60

GOOD, BAD = "#3b7a57", "#b5462f"


def write_chart(path: Path, lines: Sequence[Line], title: str) -> None:
    """Draw every line that has a ratio."""
    drawn = [(line, ratio) for line in lines if (ratio := line.ratio()) is not None]
    height = TOP + len(drawn) * (BAR + 4) + 20
    width = LABEL_WIDTH + int(SCALE * LARGEST) + 80
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="10" y="22" font-size="15">{escape(title)}</text>',
        '<text x="10" y="42" fill="#555">Odradek / Kafka; green: the target is met</text>',
    ]
    for index, (line, ratio) in enumerate(drawn):
        y = TOP + index * (BAR + 4)
        metric = METRICS[line.metric]
        parts += [
            f'<text x="{LABEL_WIDTH - 8}" y="{y + 12}" text-anchor="end">'
            f"{escape(line.row)}: {escape(metric.title)}</text>",
            f'<rect x="{LABEL_WIDTH}" y="{y}" width="{min(ratio, LARGEST) * SCALE:.0f}" height="{BAR}" '
            f'fill="{GOOD if metric.met(ratio) else BAD}"/>',
            f'<text x="{LABEL_WIDTH + min(ratio, LARGEST) * SCALE + 5:.0f}" y="{y + 12}">{ratio:.2f}</text>',
        ]
    parts.append(
        f'<line x1="{LABEL_WIDTH + SCALE}" y1="{TOP - 10}" x2="{LABEL_WIDTH + SCALE}" y2="{height - 10}" '
        f'stroke="#333" stroke-dasharray="3 3"/>'
    )
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")
