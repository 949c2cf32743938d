"""Odradek measured beside Apache Kafka: `make bench`, or `python -m benchmarks --help`.

The brokers run at the same time on the same disk and get the same load in turns, several rounds in one run, the first
one for warming up. Where a load can be split, it comes in parts of some tenths of a second, which the brokers get in
turns too. A figure is the median of the rounds; what counts is the ratio between the brokers, the median of the rounds'
ratios, as in one round all suffer alike from whatever else the machine does. How much that was is measured for each
row, and the report warns of it.

    python -m benchmarks --brokers odradek kafka kfake      kfake: a broker in Go, built if Go is there
    python -m benchmarks --rows fetch --into FILE           measure these rows again, and put them in their place
    python -m benchmarks --show FILE --markdown             the table of the README
    python -m benchmarks --combinations                     every kind of batch, produced and read in every way
    python -m benchmarks --against ../before --rows fetch   has a change made it slower? Another tree of these sources

    brokers.py          how each broker is started; its CPU time, by its clock, and its memory
    client.py           one connection: requests one at a time, for what goes before and after a load
    frames.py           requests, written before the clock starts
    load.py             sends frames, and takes replies with as little CPU as can be
    tools.py            Kafka's own performance tools, and librdkafka
    members.py          members of classic groups
    spark.py            the rows of PySpark, which has one session in this process
    rows.py patterns.py crowds.py groups.py cleaning.py transactions.py    what one row of the table does
    catalogue.py        which rows there are
    machine.py          what is measured on, and what others take of it
    results.py          medians, spread, ratios; JSON
    report.py chart.py  table, Markdown, SVG

Results go to `build/benchmarks`, which is thrown away; those that the README tells are kept in `benchmarks/results`.
All rows take about nine minutes a round with two brokers, and what Kafka needs to start with 10,000 partitions;
`--quick` takes two minutes in all.

Kafka's jars come from the compatibility tests' cache (`compat-tests/harness`), which fetches them the first time.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "compat-tests"))
