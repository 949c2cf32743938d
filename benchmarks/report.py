"""Results as text: a table for a terminal, Markdown for the README, and the comparison of two trees."""

import statistics
from collections.abc import Iterator, Sequence
from itertools import groupby

from benchmarks.results import METRICS, OTHER_TREE, OURS, THEIRS, Line, Results

TITLES = {OURS: "Odradek", THEIRS: "Kafka"}


def table(results: Results, brokers: Sequence[str]) -> str:
    """A line for each figure: medians, the ratio to Kafka, and its target. `!` marks a ratio that misses it."""
    cells = []
    for line, row in _with_row(results.lines()):
        metric, medians, ratio = METRICS[line.metric], line.medians, line.ratio()
        sign = ">=" if metric.higher_is_better else "<="
        cells.append(
            [
                row,
                metric.title,
                *(_number(medians.get(name)) for name in brokers),
                _ratio(ratio),
                f"{sign} {metric.target:g}",
                "!" if ratio is not None and not metric.met(ratio) else "",
            ]
        )
    return _aligned(["row", "figure", *brokers, "ratio", "target", ""], cells) + _notes(results)


def comparison(results: Results) -> str:
    """What another tree makes of the same rows: medians, least and most of all rounds, and the ratio.

    A difference is told where no round of the one was as good as any of the other; all else may be chance.
    """
    cells = []
    for line, row in _with_row(results.lines()):
        metric, ratio = METRICS[line.metric], line.ratio(OTHER_TREE)
        ours, other = line.samples.get(OURS), line.samples.get(OTHER_TREE)
        verdict = ""
        if ours and other and (min(ours) > max(other) or max(ours) < min(other)):
            verdict = "better" if (min(ours) > max(other)) == metric.higher_is_better else "worse"
        cells.append([row, metric.title, _spread(ours), _spread(other), _ratio(ratio), verdict])
    return _aligned(["row", "figure", "this tree", "the other", "ratio", ""], cells) + _notes(results)


def markdown(results: Results, brokers: Sequence[str]) -> str:
    """A line for each row, with all its figures: the table of the README. Ratios that miss their target are bold."""
    titles = [TITLES.get(name, name) for name in brokers]
    texts = [f"| row | figures | {' | '.join(titles)} | Odradek / Kafka |", "|---" * (len(brokers) + 3) + "|"]
    for row, group in groupby(results.lines(), key=lambda line: line.row):
        lines = list(group)
        figures = [METRICS[line.metric].title for line in lines]
        cells = ["; ".join(_number(line.medians.get(name)) for line in lines) for name in brokers]
        ratios = [_marked_ratio(line) for line in lines]
        texts.append(f"| {row} | {'; '.join(figures)} | {' | '.join(cells)} | {'; '.join(ratios)} |")
    return "\n".join(texts) + _notes(results)


def matrix(results: Results) -> str:
    """The ratios of rows that are named "LINE: COLUMN", in Markdown. Those that miss their target are bold."""
    ratios = {
        row: [_marked_ratio(line) for line in group] for row, group in groupby(results.lines(), key=lambda x: x.row)
    }
    names = [row.partition(": ") for row in ratios]
    lines, columns = dict.fromkeys(name[0] for name in names), dict.fromkeys(name[2] for name in names)
    texts = [f"| batches | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for line in lines:
        cells = ["; ".join(ratios.get(f"{line}: {column}", ["-"])) for column in columns]
        texts.append(f"| {line} | {' | '.join(cells)} |")
    return "\n".join(texts) + _notes(results)


def _with_row(lines: Sequence[Line]) -> Iterator[tuple[Line, str]]:
    """Each line with the name of its row, where that is not the one before."""
    before = ""
    for line in lines:
        yield line, line.row if line.row != before else ""
        before = line.row


def _aligned(head: list[str], cells: list[list[str]]) -> str:
    rows = [head, ["-" * len(cell) for cell in head], *cells]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "| "
        + " | ".join(
            cell.ljust(width) if index < 2 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        + " |"
        for row in rows
    )


def _notes(results: Results) -> str:
    """What a reader has to know of the table: rows that were disturbed, and what failed."""
    notes = []
    disturbed = results.disturbed()
    if disturbed:
        worst = max(disturbed, key=disturbed.__getitem__)
        notes.append(
            f"Warning: the machine was busy with other work during {len(disturbed)} of {len(results.rows)} rows, up to "
            f"{disturbed[worst]:.0%} of it ({worst}): read the ratios only, and those roughly."
        )
    notes += [f"Not measured: {row}, {broker}: {text}" for (row, broker), text in results.failures.items()]
    return "".join(f"\n\n{note}" for note in notes)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _spread(values: list[float] | None) -> str:
    if not values:
        return "-"
    return f"{_number(statistics.median(values))} ({_number(min(values))}..{_number(max(values))})"


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def _marked_ratio(line: Line) -> str:
    ratio = line.ratio()
    text = _ratio(ratio)
    return text if ratio is None or METRICS[line.metric].met(ratio) else f"**{text}**"
