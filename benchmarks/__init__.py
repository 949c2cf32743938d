"""Odradek measured beside Apache Kafka: `make bench`, or `python -m benchmarks --help`.

Both brokers run at the same time on the same disk and get the same load in turns, several rounds in one run, the first
one for warming up. A figure is the median of the rounds; what counts is the ratio between the brokers, as both suffer
alike from whatever else the machine does.

    brokers.py          how each broker is started; its CPU time and memory, from /proc
    client.py           one connection: requests one at a time, for what goes before and after a load
    frames.py           requests, written before the clock starts
    load.py             sends frames, and takes replies with as little CPU as can be
    tools.py            Kafka's own performance tools, and librdkafka
    rows.py             what one row of the table does
    cleaning.py         the row about compaction
    transactions.py     the row of transactions
    spark.py            the rows of PySpark, which has one session in this process
    groups.py           the rows of groups: commits, heartbeats, rebalances
    catalogue.py        which rows there are
    report.py chart.py  table, JSON, SVG

Kafka's jars come from the compatibility tests' cache (`compat-tests/harness`), which fetches them the first time.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "compat-tests"))
