"""Reading what is in a partition, over the wire."""

from typing import Any

from odradek_protocol.records.batch import iter_batches
from odradek_protocol.records.read import read_records
from support.wire import WireClient


def read_values(client: WireClient, topic: str, *, index: int = 0, offset: int = 0, **options: Any) -> list[bytes]:
    """The values of all records from `offset` to the end; checks that each lies at the offset where it belongs.

    `options` are those of `WireClient.fetch`.
    """
    found: list[bytes] = []
    while True:
        reply = client.fetch(topic, offset, index=index, **options)
        assert reply.error_code == 0, reply
        data = memoryview(reply.records)
        if not data:
            return found
        for position, header in iter_batches(data):
            assert header.base_offset == offset
            found += [bytes(record.value or b"") for record in read_records(data[position : position + header.size])]
            offset = header.last_offset + 1
