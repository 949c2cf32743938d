"""The parts of groups as records of __consumer_offsets: Kafka's keys and values, the version of a key is its kind."""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from odradek.groups.tables import Change, Tables
from odradek_protocol.errors import BrokerError, Error, ProtocolError
from odradek_protocol.internal.versioned import decode_versioned, encode_versioned, read_version

__all__ = ["PartKind", "PartRecord", "PartRecords", "StoredRecord"]

VALUE_VERSION = 0

P = TypeVar("P", bound=Enum)
V = TypeVar("V")

StoredRecord = tuple[bytes, bytes | None]
"""A key and a value; None deletes what the key tells of."""


class PartKind(NamedTuple):
    """How one part of a group is stored: its messages for key and value, and how a value becomes one and was one.

    `name_field` is the field of the key that tells apart what a group has several of; None for what it has one of.
    `decode` is given the name as well.
    """

    part: Any
    key: Any
    value: Any
    encode: Callable[[Any], object]
    decode: Callable[[str, Any], Any]
    name_field: str | None = None


class PartRecord(NamedTuple, Generic[P, V]):
    """What a record is about."""

    group_id: str
    part: P
    name: str
    value: V | None


class PartRecords(Generic[P, V]):
    """The records of one kind of group."""

    def __init__(self, kinds: Iterable[PartKind]) -> None:
        """`kinds` in the order in which they come to be; a group is deleted in the opposite one."""
        self._by_part: dict[P, PartKind] = {kind.part: kind for kind in kinds}
        self._by_key_version: dict[int, PartKind] = {kind.key.VERSIONS[0]: kind for kind in kinds}

    def encode(self, group_id: str, change: Change[P, V]) -> StoredRecord:
        """The key and the value of a change. INVALID_REQUEST for text that they cannot hold."""
        kind = self._by_part[change.part]
        names = {} if kind.name_field is None else {kind.name_field: change.name}
        try:
            key = encode_versioned(kind.key(group_id=group_id, **names), kind.key.VERSIONS[0])
            value = None if change.value is None else encode_versioned(kind.encode(change.value), VALUE_VERSION)
        except ProtocolError as error:
            raise BrokerError(Error.INVALID_REQUEST, str(error)) from error
        return key, value

    def tombstones(self, group_id: str, tables: Tables[P, V]) -> list[StoredRecord]:
        """The records that delete a group: all that is stored of it, and what it has one of in any case."""
        return [
            self.encode(group_id, Change(part, name, None))
            for part, kind in reversed(self._by_part.items())
            for name in (("",) if kind.name_field is None else tables.names(part))
        ]

    def decode(self, key: bytes | memoryview, value: bytes | memoryview | None) -> PartRecord[P, V] | None:
        """What a record tells of a group; None when it is not of this kind of group. ProtocolError when it is none."""
        kind = self._by_key_version.get(read_version(key))
        if kind is None:
            return None
        subject = decode_versioned(kind.key, key)
        name: str = "" if kind.name_field is None else getattr(subject, kind.name_field)
        decoded = None if value is None else kind.decode(name, decode_versioned(kind.value, value))
        return PartRecord(subject.group_id, kind.part, name, decoded)
