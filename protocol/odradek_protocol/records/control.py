"""Control records: the markers that end a transaction in each partition that it wrote to.

    key     version  int16  0        value   version            int16  0
            type     int16                   coordinator_epoch  int32

A reader takes what it knows and leaves what a later version adds behind it. Source: Kafka documentation, "Control
Batches"; KIP-98.
"""

import enum
import struct

from odradek_protocol.errors import ProtocolError
from odradek_protocol.records.build import NewRecord

__all__ = ["ControlType", "control_record", "read_control_type", "read_coordinator_epoch"]

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0


class ControlType(enum.IntEnum):
    """How a transaction ended."""

    ABORT = 0
    COMMIT = 1


def control_record(kind: ControlType, coordinator_epoch: int, timestamp_ms: int) -> NewRecord:
    """The one record of a control batch; the batch needs the TRANSACTIONAL and CONTROL attributes."""
    return NewRecord(_KEY.pack(_VERSION, kind), _VALUE.pack(_VERSION, coordinator_epoch), timestamp_ms=timestamp_ms)


def read_control_type(key: bytes | None) -> int:
    """The type in a control record's key: one of ControlType, or a number that is not known here.

    Raises ProtocolError when the key is none of a control record.
    """
    if key is None or len(key) < _KEY.size:
        raise ProtocolError("a control record has too short a key")
    version, kind = _KEY.unpack_from(key)
    if version < _VERSION:
        raise ProtocolError(f"a control record of version {version}")
    return int(kind)


def read_coordinator_epoch(value: bytes | None) -> int:
    """The epoch of the transaction coordinator in a marker's value. Raises ProtocolError when it is not there."""
    if value is None or len(value) < _VALUE.size:
        raise ProtocolError("a transaction marker has too short a value")
    version, epoch = _VALUE.unpack_from(value)
    if version < _VERSION:
        raise ProtocolError(f"a transaction marker of version {version}")
    return int(epoch)
