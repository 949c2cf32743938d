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


def read_committed(client: WireClient, topic: str, *, index: int = 0) -> list[bytes]:
    """The values that a consumer of committed records gets: those of aborted transactions are left out."""
    found: list[bytes] = []
    offset = 0
    aborting: set[int] = set()
    while True:
        reply = client.fetch(topic, offset, index=index, isolation_level=1)
        assert reply.error_code == 0, reply
        begins = {(one.producer_id, one.first_offset) for one in reply.aborted_transactions or ()}
        data = memoryview(bytes(reply.records))
        if not data:
            return found
        for position, header in iter_batches(data):
            aborting |= {producer_id for producer_id, first in begins if first <= header.base_offset}
            begins = {begin for begin in begins if begin[1] > header.base_offset}
            offset = header.last_offset + 1
            if header.is_control:
                aborting.discard(header.producer_id)
            elif not header.is_transactional or header.producer_id not in aborting:
                records = read_records(data[position : position + header.size])
                found += [bytes(record.value or b"") for record in records]
