"""A data pipeline on PySpark with Odradek as its broker: website activity, from events to tables and files.

    python -m pipeline run --minutes 2        everything on this machine, and a report at the end
    python -m pipeline --help                 the parts

    topics.py  generator.py                   topics, and made-up activity
    produce.py  transactions.py               sending it
    events.py  jobs/                          what the jobs compute: DataFrame -> DataFrame
    sources.py  streams.py  database.py       the queries round them: sources, sinks, checkpoints
    admin.py  offline.py  replay.py           topic -> Parquet with a manifest; and back
    session.py  spark-defaults.conf           Spark: versions, jars, settings
    broker.py  run.py  progress.py            a run on one machine, and what is seen of it
    cluster.py                                Spark's standalone cluster, to try spark-submit with
    truth.py  landed.py  report.py            what should have come out, what did, and both in pictures

README.md beside this file is the guide.
"""
