"""Every version that the compatibility tests download; nothing is pinned anywhere else."""

from __future__ import annotations

from typing import Final

KAFKA_3: Final = "3.9.1"  # the last line with ZooKeeper, and the one that speaks the oldest request versions
KAFKA_4: Final = "4.3.1"
SPARK: Final = "4.0.0"  # the newest for which the connector and its token provider are both published

OLD_JAVA: Final = ("0.9.0.1", "0.10.2.2")  # clients of record formats 0 and 1
JAVA_CLIENTS: Final = (KAFKA_4, KAFKA_3, "2.8.2")
JAVA_CLIENTS_BEFORE_2: Final = ("1.1.1", "0.11.0.3")  # the last is the first with record format v2
JAVA_SHARE_CLIENTS: Final = (
    KAFKA_4,
    "4.2.2",
    "4.1.2",
)  # 4.2 is the first with locks that are renewed, and record limits
_JACKSON: Final = "com.fasterxml.jackson.core:jackson-databind:2.19.2"

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
    **{
        f"java-{version}": ((f"org.apache.kafka:kafka-clients:{version}", True), (_JACKSON, True))
        for version in sorted({*JAVA_CLIENTS, *JAVA_CLIENTS_BEFORE_2, *JAVA_SHARE_CLIENTS})
    },
    **{
        f"kafka-streams-{version}": ((f"org.apache.kafka:kafka-streams:{version}", True),)
        for version in (KAFKA_4, KAFKA_3)
    },
    # PySpark's own package holds all that these need.
    f"spark-{SPARK}": (
        (f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}", False),
        (f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{SPARK}", False),
        ("org.apache.kafka:kafka-clients:3.9.0", False),
        ("org.apache.commons:commons-pool2:2.12.0", False),
    ),
}

_CODECS: Final = ("crc32c==2.7.1", "cramjam==2.9.1", "lz4==4.4.4", "python-snappy==0.7.3", "zstandard==0.23.0")

# Environments of their own, because the releases of a client share one module name.
PYTHON: Final[dict[str, tuple[str, ...]]] = {
    "kafka-python-3": ("kafka-python==3.0.12", *_CODECS),
    "kafka-python-2": ("kafka-python==2.3.1", *_CODECS),
    "kafka-python-2.0": ("kafka-python==2.0.2", *_CODECS),
    "kafka-python-1.4": ("kafka-python==1.4.7", *_CODECS, "xxhash==3.5.0"),
    "aiokafka": ("aiokafka==0.14.0", *_CODECS),
    "aiokafka-0.8": ("aiokafka==0.8.1", "kafka-python==2.0.2", *_CODECS),
    "confluent-kafka": ("confluent-kafka==2.16.1",),
    "confluent-kafka-2.0": ("confluent-kafka==2.0.2",),
    "pyspark": (f"pyspark=={SPARK}",),
}

# What each client's go.mod asks for by name; its go.sum holds the rest. Checked when a driver is compiled.
GO: Final[dict[str, dict[str, str]]] = {
    "franz-go": {"github.com/twmb/franz-go": "v1.22.2", "github.com/twmb/franz-go/pkg/kadm": "v1.19.0"},
    "sarama": {"github.com/IBM/sarama": "v1.61.1"},
    "kafka-go": {"github.com/segmentio/kafka-go": "v0.4.51"},
}

# The broker that the benchmarks measure as a third; it has no releases.
KFAKE: Final[dict[str, str]] = {"github.com/twmb/franz-go/pkg/kfake": "v0.0.0-20260918054303-01f206a7e32c"}

# The same for package.json and package-lock.json. kafkajs has only gzip; the others of npm give it the other codecs.
NPM: Final[dict[str, dict[str, str]]] = {
    "kafkajs": {"kafkajs": "2.2.4", "kafkajs-snappy": "1.1.0", "lz4-napi": "2.10.0", "zstd-codec": "0.1.5"},
}

# What the manifest of each crate under `clients/` asks for; its lock file holds what these ask for in turn.
RUST: Final[dict[str, dict[str, str]]] = {
    "rskafka": {"rskafka": "0.6.0", "serde_json": "1.0.154", "tokio": "1.54.1"},
}


def release_of(client: str) -> str:
    """Return the pinned release of a client by its name in the card; "" where its name says it, or the system."""
    if client in PYTHON:
        return PYTHON[client][0].partition("==")[2]
    for library, modules in (GO | NPM | RUST).items():
        if client == library or client.startswith(f"{library}-"):
            return next(iter(modules.values())).removeprefix("v")
    return ""
