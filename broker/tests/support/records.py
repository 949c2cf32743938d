"""Reading what is in a partition, over the wire."""

from typing import Any

from odradek_protocol.records.batch import iter_batches
from odradek_protocol.records.read import read_records
from support.wire import WireClient


def read_some(client: WireClient, topic: str, *, index: int = 0, offset: int = 0, **options: Any) -> list[bytes]:
    """The values of the records from `offset` on that one fetch brings; checks that each lies where it belongs.

    `options` are those of `WireClient.fetch`.
    """
    reply = client.fetch(topic, offset, index=index, **options)
    assert reply.error_code == 0, reply
    data = memoryview(reply.records)
    found: list[bytes] = []
    for position, header in iter_batches(data):
        assert header.base_offset == offset + len(found)
        found += [bytes(record.value or b"") for record in read_records(data[position : position + header.size])]
    return found


def read_values(client: WireClient, topic: str, *, index: int = 0, offset: int = 0) -> list[bytes]:
    """The values of all records from `offset` to the end."""
    found: list[bytes] = []
    while more := read_some(client, topic, index=index, offset=offset + len(found)):
        found += more
    return found
