"""Streams the committed records of a topic into Parquet until it is killed: BOOTSTRAP TOPIC FILES CHECKPOINT."""

from __future__ import annotations

import sys

from session import spark


def run(bootstrap: str, topic: str, files: str, checkpoint: str) -> None:
    """Stream for ever, from where the checkpoint ends."""
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "kafka.isolation.level": "read_committed",
        "includeHeaders": "true",
    }
    source = spark.readStream.format("kafka").options(**options).load()
    files_sink = source.writeStream.format("parquet").option("path", files).option("checkpointLocation", checkpoint)
    files_sink.trigger(processingTime="200 milliseconds").start().awaitTermination()


if __name__ == "__main__":
    run(*sys.argv[1:])
