"""kafka-python's codecs and record classes, which ours are held against.

The package raises a DeprecationWarning when it is first imported: it reads its definitions in an old way.
"""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import codec
    from kafka.record.default_records import DefaultRecordBatchBuilder
    from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder
    from kafka.record.memory_records import MemoryRecords

__all__ = ["DefaultRecordBatchBuilder", "LegacyRecordBatch", "LegacyRecordBatchBuilder", "MemoryRecords", "codec"]
