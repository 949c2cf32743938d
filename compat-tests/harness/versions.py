"""Every version that the compatibility tests download; nothing is pinned anywhere else."""

from __future__ import annotations

from typing import Final

KAFKA_3: Final = "3.9.1"  # the last line with ZooKeeper, and the one that speaks the oldest request versions
KAFKA_4: Final = "4.3.1"
SPARK: Final = "4.0.0"  # the newest for which the connector and its token provider are both published

OLD_JAVA: Final = ("0.9.0.1", "0.10.2.2")  # clients of record formats 0 and 1

MAVEN_DEPENDENCY_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"

# (coordinates, whether what they depend on comes too)
JARS: Final[dict[str, tuple[tuple[str, bool], ...]]] = {
    f"kafka-{KAFKA_3}": (
        (f"org.apache.kafka:kafka_2.13:{KAFKA_3}", True),
        (f"org.apache.kafka:kafka-tools:{KAFKA_3}", True),
    ),
    f"kafka-{KAFKA_4}": (
        (f"org.apache.kafka:kafka_2.13:{KAFKA_4}", True),
        (f"org.apache.kafka:kafka-tools:{KAFKA_4}", True),
    ),
    **{f"kafka-clients-{release}": ((f"org.apache.kafka:kafka-clients:{release}", True),) for release in OLD_JAVA},
    # PySpark's own package holds all that these need.
    f"spark-{SPARK}": (
        (f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}", False),
        (f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{SPARK}", False),
        ("org.apache.kafka:kafka-clients:3.9.0", False),
        ("org.apache.commons:commons-pool2:2.12.0", False),
    ),
}

_CODECS: Final = ("crc32c==2.7.1", "cramjam==2.9.1", "lz4==4.4.4", "python-snappy==0.7.3", "zstandard==0.23.0")

# Environments of their own, because the two kafka-python versions share one module name.
PYTHON: Final[dict[str, tuple[str, ...]]] = {
    "kafka-python-3": ("kafka-python==3.0.12", *_CODECS),
    "kafka-python-2": ("kafka-python==2.3.1", *_CODECS),
    "kafka-python-1": ("kafka-python==1.4.7", *_CODECS, "xxhash==3.5.0"),
    "aiokafka": ("aiokafka==0.14.0", *_CODECS),
    "confluent-kafka": ("confluent-kafka==2.16.1",),
    "pyspark": (f"pyspark=={SPARK}",),
}
