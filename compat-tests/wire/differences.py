"""What may differ between the replies of Odradek and of Kafka, and why. What is not listed here must be the same.

Some questions are not asked, since Kafka has no answer that a broker should have: null records in a Produce and a
JoinGroup whose metadata is no consumer's, an AddPartitionsToTxn without transactions (Kafka never answers); a
Metadata by the null id, a Fetch of two partitions of it, and negative limits of a Fetch (UNKNOWN_SERVER_ERROR).
Others are not asked because Odradek does not open records that need not be opened: batches whose maximal timestamp,
or whose uncompressed records, are not what the header says, and snappy in a framing that is not Kafka's. And a
Produce that names a partition twice is appended twice by Odradek; Kafka keeps the last.
"""

from __future__ import annotations

import re
from typing import Any

from wire.records import whole_batches
from wire.rules import ABSENT, NOTHING, Deviation, Numbered, Seen, Unordered, each

NUMBERED = (
    Numbered("topic", "topic ids are random", ("*.TopicId",)),
    Numbered("member", "member ids hold random uuids", ("*.MemberId", "*.Leader", "*.MemberIds")),
    Numbered("producer", "producer ids come from blocks of a broker's own", ("*.ProducerId",)),
    Numbered("session", "fetch sessions have random ids", ("Fetch.SessionId",)),
    Numbered("cluster", "a cluster's id is random", ("*.ClusterId",)),
    Numbered("port", "each broker has a port of its own", ("*.Port",)),
)


_CONTROL = 0x20
_HEADER_BYTES = 61
_TIMES = ("base_timestamp", "max_timestamp")


def _whether_there(value: Any) -> Any:
    return value if value in NOTHING else "(there)"


def _records(value: Any) -> Any:
    return value if value is None else [_batch(header, data) for header, data in whole_batches(value)]


def _batch(header: dict[str, int], data: bytes) -> Any:
    """A batch as it is, or a message of an older format; a marker, whose time is its broker's, without the times and
    without what depends on them.
    """
    if not header.get("attributes", 0) & _CONTROL:
        return [header, data.hex()]
    timeless = {name: value for name, value in header.items() if name not in ("crc", *_TIMES)}
    return [timeless, data[_HEADER_BYTES:].hex()]


def _without_bounds(text: str | None) -> str:
    return re.sub(r"\[.*\]", "[...]", text or "")


SEEN = (
    Seen(_whether_there, "the time of the append by the broker's clock", ("Produce.*.LogAppendTimeMs",)),
    Seen(_records, "Kafka cuts the last batch of a full reply, Odradek leaves it out", ("Fetch.*.Records",)),
    Seen(_without_bounds, "which times are allowed depends on the clock", ("Produce.*.BatchIndexErrorMessage",)),
    Seen(lambda _: None, "Odradek says why it refuses a batch, Kafka mostly does not", ("Produce.*.ErrorMessage",)),
    Seen(
        lambda value: value > 0,
        "times by the broker's clock",
        ("DescribeTransactions.*.TransactionStartTimeMs", "DescribeProducers.*.LastTimestamp"),
    ),
    Seen(bool, "each broker has a folder of its own", ("DescribeLogDirs.*.LogDir",)),
    Seen(lambda value: value > 0, "the disk fills meanwhile", ("DescribeLogDirs.*.UsableBytes",)),
    Seen(lambda value: value >= 0, "the time a reply was held back", ("*.ThrottleTimeMs",)),
)

# Kafka keeps these in hash maps. Where the order has a meaning, as in Fetch and DescribeTopicPartitions, it counts.
UNORDERED = (
    Unordered("Name", ("*.Configs",)),
    Unordered("Name", each("{}.Topics", "OffsetCommit OffsetDelete DeleteRecords")),
    Unordered("ApiKey", ("ApiVersions.ApiKeys",)),
    Unordered("Name", ("WriteTxnMarkers.*.Topics", "AddPartitionsToTxn.*")),
    Unordered(None, ("DescribeTransactions.*.Partitions", "ListTransactions.TransactionStates")),
    Unordered("GroupId", ("DescribeGroups.Groups", "DeleteGroups.Results")),
    Unordered("Index", ("Produce.*.PartitionResponses",)),
    Unordered(
        "PartitionIndex",
        each("{}.*Partitions", "DescribeLogDirs ListOffsets OffsetCommit OffsetDelete DeleteRecords OffsetFetch"),
    ),
    Unordered(None, ("*.Members", "Produce.Responses", "DeleteTopics.Responses", "ListConfigResources.*")),
    Unordered(None, each("{}.*Topics", "OffsetFetch DescribeLogDirs")),
    Unordered(None, each("{}.Topics", "Metadata CreateTopics")),
)

_MALFORMED = "This most likely occurs because of a request being malformed by the client library*"
_NEWER_KAFKA = "settings of Kafka 4.4, whose set Odradek describes"
_KRAFT = "Kafka is a KRaft node, with eligible leader replicas; Odradek is of the kind that ZooKeeper coordinates"
_OWN = "each broker has addresses and folders of its own"
_PROFILE = "set in the profile that Odradek starts with"
_OLD_CLIENTS = "Odradek serves clients that Kafka 4 has left behind"
_NOT_SERVED = "Odradek does not serve ACLs or quotas"
_NO_TELEMETRY = "Odradek collects no metrics of clients"
_NO_POOLS = "Kafka lets a pool of threads at most double, Odradek has none"
_FAILS = "Kafka fails on a value that does not exist"
_SAYS_WHAT = "Odradek says what is wrong"

DEVIATIONS = (
    # ApiVersions
    Deviation(
        ABSENT,
        "*",
        _NOT_SERVED,
        each("ApiVersions.ApiKeys.{}", "29 30 31 36 38 39 40 41 43 48 49 50 51 55 64 80 81"),
    ),
    Deviation(1, 0, "a version of Kafka 4.4", each("ApiVersions.ApiKeys.{}.MaxVersion", "88 89")),
    Deviation(0, "[12]", _OLD_CLIENTS, each("ApiVersions.ApiKeys.{}.MinVersion", "2 8 9 19 20 23 27 32 34 35")),
    Deviation(0, 4, _OLD_CLIENTS, ("ApiVersions.ApiKeys.1.MinVersion",)),
    Deviation("[356]", "[245]", "a version of Kafka 4.4", each("ApiVersions.ApiKeys.{}.MaxVersion", "18 28 42")),
    Deviation("*", "*", _KRAFT, each("ApiVersions.{}*", "SupportedFeatures FinalizedFeatures")),
    # Settings
    Deviation(
        "*",
        ABSENT,
        _NEWER_KAFKA,
        each(
            "*.Configs.{}",
            "errors.deadletterqueue.* max.decompressed.message.bytes remote.copy.lag.* log.remote.copy.lag.* "
            "group.streams.assignors group.streams.rack.aware.assignment.tags "
            "group.streams.topology.description.plugin.class sasl.oauthbearer.allow.unverified.*",
        ),
    ),
    Deviation(
        "*",
        "*",
        _KRAFT,
        each("DescribeConfigs.*.Configs.{}.*", "controller.listener.names controller.quorum.voters process.roles"),
    ),
    Deviation(5, 3, _KRAFT, each("*.Configs.min.insync.replicas.{}", "ConfigSource Synonyms.Source")),
    Deviation("*", "*", _KRAFT, ("DescribeConfigs.*.Configs.min.insync.replicas.Synonyms",)),
    Deviation("[[]]", "{'min.insync.replicas': *", _KRAFT, ("DescribeConfigs.Results.Configs",)),
    Deviation("*", "*", _OWN, each("DescribeConfigs.*.Configs.{}.*Value", "listeners log.dirs")),
    Deviation("*", "*", _PROFILE, ("DescribeConfigs.*.Configs.default.replication.factor.*",)),
    Deviation(ABSENT, "*", _NOT_SERVED, each("DescribeConfigs.*.Configs.{}.*", "share streams")),
    Deviation(True, False, _NOT_SERVED, ("DescribeConfigs.*.Configs.consumer.*.ReadOnly",)),
    Deviation(True, False, "Kafka 3 never sets it", ("DescribeConfigs.*.IsDefault",)),
    Deviation("*", "*", "documentation is each broker's own", ("*.Documentation",)),
    Deviation(42, 0, _NO_TELEMETRY, ("DescribeConfigs.Results.ErrorCode",)),
    Deviation("Unsupported resource type: 16", "*", _NO_TELEMETRY, ("DescribeConfigs.*.ErrorMessage",)),
    Deviation("[[]]", "{'interval.ms': *", _NO_TELEMETRY, ("DescribeConfigs.Results.Configs",)),
    Deviation(0, 42, _NO_POOLS, ("IncrementalAlterConfigs.*.ErrorCode",)),
    Deviation(None, "*Dynamic thread count update*", _NO_POOLS, ("IncrementalAlterConfigs.*.ErrorMessage",)),
    # Records
    Deviation(87, 0, "Kafka says yes to a set without a whole message", ("Produce.*.ErrorCode",)),
    Deviation("[[]]", None, "clients stumble over null records (mockforge#186)", ("Fetch.*.Records",)),
    # Values that do not exist
    Deviation(42, -1, _FAILS, ("IncrementalAlterConfigs.*.ErrorCode",)),
    Deviation(3, -1, _FAILS, ("ListOffsets.*.ErrorCode",)),
    Deviation("Unknown operations type *", "*", _FAILS, ("IncrementalAlterConfigs.*.ErrorMessage",)),
    # Texts
    Deviation("Invalid timestamp type in *", "Invalid timestamp type in *", _SAYS_WHAT, ("Produce.*.BatchIndex*",)),
    Deviation("Unsupported resource type: *", _MALFORMED, _SAYS_WHAT, ("DescribeConfigs.*.ErrorMessage",)),
    Deviation("There are no coordinators of type *", "*", _SAYS_WHAT, ("FindCoordinator.*ErrorMessage",)),
    Deviation("Share coordinators are looked up *", "*", _SAYS_WHAT, ("FindCoordinator.*ErrorMessage",)),
    Deviation("* is not a group, a topic id and a partition.", "", _SAYS_WHAT, ("FindCoordinator.*ErrorMessage",)),
    Deviation("This server does not host *", None, _SAYS_WHAT, ("CreatePartitions.*.ErrorMessage",)),
    Deviation("Unable to replicate *", "Unable to replicate * cordoned.", "none can be", ("CreateTopics.*Message",)),
    Deviation("Number of partitions was *", "Number of partitions must *", "Kafka 4's", ("CreateTopics.*Message",)),
)
