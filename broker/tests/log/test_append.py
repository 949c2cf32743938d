"""What a leader takes and refuses: traps T25 to T28, T30 and T32 to T34, answers as measured on Kafka 4.3."""

import gzip
from pathlib import Path

import pytest
from support.batches import batch
from support.logs import EVERYTHING, NOW_MS, FaultyFiles, Opener, contents, marker, records

from odradek.log.errors import RecordErrors
from odradek.log.log import AppendResult, Log, Origin
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.records.batch import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, read_header
from odradek_protocol.records.compression import Codec
from odradek_protocol.records.control import ControlType
from odradek_protocol.records.read import read_records

LAST = 2**31 - 1


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    return Opener(tmp_path)


@pytest.fixture
def log(opener: Opener) -> Log:
    return opener()


def append(log: Log, data: bytes | bytearray | memoryview, origin: Origin = Origin.CLIENT) -> AppendResult:
    return log.append_as_leader(memoryview(bytearray(data)), 0, NOW_MS, origin)


def refusal(log: Log, data: bytes | bytearray | memoryview, origin: Origin = Origin.CLIENT) -> Error:
    before = log.log_end_offset, log.size, contents(log)
    with pytest.raises(BrokerError) as caught:
        append(log, data, origin)
    assert (log.log_end_offset, log.size, contents(log)) == before
    return caught.value.error


def stored(log: Log, offset: int = 0) -> bytes:
    piece = log.read(offset, EVERYTHING, log.log_end_offset, at_least_one=True)
    assert piece is not None
    return piece.read_bytes()


class TestOffsets:
    def test_first_offset_of_each_batch(self, log: Log) -> None:
        results = [append(log, records(b"a", b"b")), append(log, records(b"c"))]
        assert [(result.base_offset, result.last_offset) for result in results] == [(0, 1), (2, 2)]
        assert [result.log_append_time_ms for result in results] == [-1, -1]
        assert contents(log) == [(0, b"a"), (1, b"b"), (2, b"c")]

    def test_broker_sets_offset_and_leader_epoch(self, log: Log) -> None:
        append(log, records(b"a"))
        data = records(b"b")
        data[12:16] = (55).to_bytes(4, "big")
        log.append_as_leader(data, 3, NOW_MS, Origin.CLIENT)
        header = read_header(stored(log, 1))
        assert (header.base_offset, header.partition_leader_epoch) == (1, 3)
        assert log.latest_epoch == 3


class TestRefusals:
    @pytest.mark.parametrize(
        ("data", "error"),
        [
            pytest.param(b"", Error.INVALID_RECORD, id="empty"),
            pytest.param(bytes(16), Error.INVALID_RECORD, id="less than a magic"),
            pytest.param(records(b"v")[:-1], Error.INVALID_RECORD, id="cut short"),
            pytest.param(bytes(records(b"a")) + bytes(records(b"b")), Error.INVALID_RECORD, id="two batches"),
            pytest.param(batch(magic=1), Error.INVALID_RECORD, id="format 1"),
            pytest.param(batch(magic=3), Error.CORRUPT_MESSAGE, id="format 3"),
            pytest.param(batch(batch_length=13), Error.CORRUPT_MESSAGE, id="length of no record"),
            pytest.param(batch(batch_length=48), Error.CORRUPT_MESSAGE, id="shorter than a header"),
            pytest.param(batch(batch_length=-1), Error.CORRUPT_MESSAGE, id="negative length"),
            pytest.param(bytes(records(b"a")) + b"\xff" * 20, Error.CORRUPT_MESSAGE, id="nonsense behind it"),
            pytest.param(batch(base_offset=777), Error.INVALID_RECORD, id="base offset"),
            pytest.param(batch(crc=1), Error.CORRUPT_MESSAGE, id="CRC"),
            pytest.param(batch(attributes=CONTROL), Error.INVALID_RECORD, id="control batch"),
            pytest.param(batch(record_count=2), Error.INVALID_RECORD, id="too many records"),
            pytest.param(batch(record_count=0), Error.INVALID_RECORD, id="no records"),
            pytest.param(batch(last_offset_delta=-1, record_count=0), Error.INVALID_RECORD, id="negative delta"),
            pytest.param(batch(last_offset_delta=1), Error.INVALID_RECORD, id="offsets without records"),
            pytest.param(batch(producer=(5, 0, -1)), Error.INVALID_RECORD, id="no sequence number"),
            pytest.param(batch(attributes=TRANSACTIONAL), Error.INVALID_RECORD, id="transaction of nobody"),
            pytest.param(batch(attributes=Codec.GZIP), Error.UNKNOWN_SERVER_ERROR, id="not gzip"),
        ],
    )
    def test_batch(self, log: Log, data: bytes, error: Error) -> None:
        assert refusal(log, data) is error

    def test_bytes_behind_that_are_no_batch_are_not_kept(self, log: Log) -> None:
        append(log, bytes(records(b"a")) + b"\xff" * 16)
        append(log, bytes(records(b"b")) + bytes(records(b"c"))[:-1])
        assert contents(log) == [(0, b"a"), (1, b"b")]

    def test_size_limit(self, opener: Opener, log: Log) -> None:
        data = records(b"x" * 100)
        opener.config.max_message_bytes = len(data)
        append(log, data)
        assert refusal(log, records(b"x" * 101)) is Error.MESSAGE_TOO_LARGE

    def test_larger_than_a_segment(self, opener: Opener, log: Log) -> None:
        data = records(b"x" * 100)
        opener.config.segment_bytes = len(data)
        append(log, data)
        assert refusal(log, records(b"x" * 101)) is Error.RECORD_LIST_TOO_LARGE

    def test_size_is_judged_before_the_crc(self, opener: Opener, log: Log) -> None:
        opener.config.max_message_bytes = 10
        assert refusal(log, batch(crc=1)) is Error.MESSAGE_TOO_LARGE

    @pytest.mark.parametrize("codec", list(Codec))
    def test_codecs_are_kept_unopened(self, log: Log, codec: Codec) -> None:
        append(log, records(b"a" * 50, b"b" * 50, codec=codec))
        assert read_header(stored(log)).codec == codec
        assert [value for _, value in contents(log)] == [b"a" * 50, b"b" * 50]

    def test_keyless_record_in_a_compacted_topic(self, opener: Opener, log: Log) -> None:
        opener.config.cleanup_policy = ["compact"]
        append(log, records(b"v"))
        with pytest.raises(RecordErrors) as caught:
            append(log, batch(b"v", b"w", keys=[b"k", None], timestamps=[NOW_MS] * 2))
        text = "Compacted topic cannot accept message without key in topic partition t-0"
        assert caught.value.error is Error.INVALID_RECORD
        assert caught.value.record_errors == [(1, text)]
        assert caught.value.message == (
            "One or more records have been rejected due to 1 record errors in total, and only showing the first three "
            f"errors at most: [RecordError(batchIndex=1, message='{text}')]"
        )


class TestTimestamps:
    def test_future_is_refused(self, log: Log) -> None:
        limit = NOW_MS + 3_600_000
        append(log, batch(b"v", timestamps=[limit]))
        with pytest.raises(RecordErrors) as caught:
            append(log, batch(b"v", b"w", timestamps=[NOW_MS, limit + 1]))
        assert caught.value.error is Error.INVALID_TIMESTAMP
        assert [index for index, _ in caught.value.record_errors] == [1]
        assert caught.value.message == "One or more records have been rejected due to invalid timestamp"

    def test_past_is_refused_where_the_topic_says_so(self, opener: Opener, log: Log) -> None:
        opener.config.message_timestamp_before_max_ms = 1000
        append(log, batch(b"v", timestamps=[NOW_MS - 1000]))
        append(log, batch(b"v", timestamps=[-1]))
        assert refusal(log, batch(b"v", timestamps=[NOW_MS - 1001])) is Error.INVALID_TIMESTAMP

    @pytest.mark.parametrize("timestamp", [0, -1])
    def test_no_time_and_the_beginning_of_time_are_legal(self, log: Log, timestamp: int) -> None:
        append(log, batch(b"v", timestamps=[timestamp]))
        assert next(read_records(stored(log))).timestamp_ms == timestamp

    def test_log_append_time(self, opener: Opener, log: Log) -> None:
        opener.config.message_timestamp_type = "LogAppendTime"
        result = append(log, batch(b"v", timestamps=[5]))
        header = read_header(stored(log))
        assert result.log_append_time_ms == header.max_timestamp == NOW_MS
        assert header.is_log_append_time

    def test_producer_cannot_claim_log_append_time(self, log: Log) -> None:
        append(log, batch(b"v", timestamps=[5], attributes=LOG_APPEND_TIME))
        assert not read_header(stored(log)).is_log_append_time


class TestCompressionType:
    @pytest.mark.parametrize(("name", "codec"), [("gzip", Codec.GZIP), ("uncompressed", Codec.NONE)])
    def test_topic_decides(self, opener: Opener, log: Log, name: str, codec: Codec) -> None:
        opener.config.compression_type = name
        append(log, records(b"a" * 100, codec=Codec.LZ4))
        assert read_header(stored(log)).codec == codec
        assert contents(log) == [(0, b"a" * 100)]

    def test_limit_is_that_of_the_stored_size(self, opener: Opener, log: Log) -> None:
        opener.config.compression_type = "uncompressed"
        opener.config.max_message_bytes = 500
        assert refusal(log, records(b"a" * 1000, codec=Codec.GZIP)) is Error.MESSAGE_TOO_LARGE

    def test_broken_records_are_refused(self, opener: Opener, log: Log) -> None:
        opener.config.compression_type = "uncompressed"
        broken = gzip.compress(b"nothing")[:-9]
        assert refusal(log, batch(broken, attributes=Codec.LZ4)) is Error.UNKNOWN_SERVER_ERROR


def idempotent(log: Log, sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 9) -> AppendResult:
    return append(log, records(*[b"v"] * count, producer=(producer_id, epoch, sequence)))


def sequence_refusal(log: Log, sequence: int, count: int = 1, *, epoch: int = 0) -> Error:
    return refusal(log, records(*[b"v"] * count, producer=(9, epoch, sequence)))


class TestIdempotence:
    def test_unknown_producer_may_start_anywhere(self, log: Log) -> None:
        assert idempotent(log, 5).base_offset == 0

    def test_gap_is_refused(self, log: Log) -> None:
        idempotent(log, 5)
        assert idempotent(log, 6, 3).base_offset == 1
        assert sequence_refusal(log, 20) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert idempotent(log, 9).base_offset == 4

    def test_last_five_batches_may_be_repeated(self, log: Log) -> None:
        for sequence in range(7):
            idempotent(log, sequence)
        for sequence in (0, 1):
            assert sequence_refusal(log, sequence) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
        for sequence in range(2, 7):
            result = idempotent(log, sequence)
            assert (result.duplicate, result.base_offset, result.last_offset) == (True, sequence, sequence)
        assert log.log_end_offset == 7

    def test_batch_of_another_length_is_no_repetition(self, log: Log) -> None:
        idempotent(log, 0, 2)
        assert sequence_refusal(log, 0, 3) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_new_epoch_starts_at_zero_and_old_one_is_refused(self, log: Log) -> None:
        idempotent(log, 3, epoch=1)
        assert sequence_refusal(log, 4, epoch=2) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert idempotent(log, 0, epoch=2).base_offset == 1
        assert sequence_refusal(log, 4, epoch=1) is Error.INVALID_PRODUCER_EPOCH

    def test_sequence_wraps(self, log: Log) -> None:
        assert idempotent(log, LAST - 1).base_offset == 0
        assert idempotent(log, LAST).base_offset == 1
        assert idempotent(log, 0).base_offset == 2

    def test_batch_across_the_wrap(self, log: Log) -> None:
        idempotent(log, LAST - 1, 4)
        assert idempotent(log, 2).base_offset == 4
        assert idempotent(log, LAST - 1, 4).duplicate
        assert sequence_refusal(log, 5) is Error.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_t34_expired_producer_goes_on(self, log: Log) -> None:
        idempotent(log, 0)
        log.expire_producers(NOW_MS + 1000, 1000)
        assert len(log.producers) == 1
        log.expire_producers(NOW_MS + 1001, 1000)
        assert len(log.producers) == 0
        assert idempotent(log, 1).base_offset == 1

    def test_failed_write_changes_nothing(self, tmp_path: Path) -> None:
        files = FaultyFiles()
        log = Opener(tmp_path, files)()
        idempotent(log, 0)
        files.write_limit = 10
        assert sequence_refusal(log, 1) is Error.KAFKA_STORAGE_ERROR
        files.write_limit = None
        result = idempotent(log, 1)
        assert (result.base_offset, result.duplicate) == (1, False)
        assert contents(log) == [(0, b"v"), (1, b"v")]


class TestTransactions:
    def write(self, log: Log, producer_id: int, sequence: int, epoch: int = 0) -> int:
        data = records(b"t", producer=(producer_id, epoch, sequence), attributes=TRANSACTIONAL)
        return append(log, data).base_offset

    def end(self, log: Log, kind: ControlType, producer_id: int, epoch: int = 0, coordinator_epoch: int = 0) -> int:
        return append(log, marker(kind, producer_id, epoch, coordinator_epoch), Origin.COORDINATOR).base_offset

    def test_stable_offset_waits_for_the_oldest_transaction(self, log: Log) -> None:
        append(log, records(b"a"))
        assert log.first_unstable_offset is None
        self.write(log, 1, 0)
        self.write(log, 2, 0)
        assert (log.first_unstable_offset, log.last_stable_offset(log.log_end_offset)) == (1, 1)
        self.end(log, ControlType.COMMIT, 1)
        assert log.first_unstable_offset == 2
        self.end(log, ControlType.ABORT, 2)
        assert log.first_unstable_offset is None
        assert log.last_stable_offset(log.log_end_offset) == 5

    def test_stable_offset_waits_for_the_marker_to_be_replicated(self, log: Log) -> None:
        self.write(log, 1, 0)
        end = self.end(log, ControlType.ABORT, 1)
        assert log.last_stable_offset(end) == 0
        assert log.last_stable_offset(end + 1) == end + 1

    def test_aborted_transactions(self, log: Log) -> None:
        self.write(log, 1, 0)
        self.write(log, 2, 0)
        self.end(log, ControlType.ABORT, 2)
        self.end(log, ControlType.COMMIT, 1)
        self.write(log, 3, 0)
        self.end(log, ControlType.ABORT, 3)
        assert log.aborted_transactions(0, 6) == [(2, 1), (3, 4)]
        assert log.aborted_transactions(0, 4) == [(2, 1)]
        assert log.aborted_transactions(3, 6) == [(3, 4)]
        assert log.aborted_transactions(0, 1) == []

    def test_plain_batch_inside_a_transaction(self, log: Log) -> None:
        self.write(log, 9, 0)
        assert sequence_refusal(log, 1) is Error.INVALID_TXN_STATE

    def test_old_coordinator_is_fenced(self, log: Log) -> None:
        self.write(log, 1, 0)
        self.end(log, ControlType.COMMIT, 1, coordinator_epoch=3)
        stale = marker(ControlType.COMMIT, 1, 0, 2)
        assert refusal(log, stale, Origin.COORDINATOR) is Error.TRANSACTION_COORDINATOR_FENCED

    def test_marker_of_an_old_producer_epoch(self, log: Log) -> None:
        self.write(log, 1, 0, epoch=1)
        assert refusal(log, marker(ControlType.COMMIT, 1, 0), Origin.COORDINATOR) is Error.INVALID_PRODUCER_EPOCH

    def test_marker_may_raise_the_epoch(self, log: Log) -> None:
        self.write(log, 1, 0)
        self.end(log, ControlType.ABORT, 1, epoch=1)
        assert self.write(log, 1, 0, epoch=1) == 2

    def test_state_survives_restart_and_crash(self, opener: Opener, log: Log) -> None:
        self.write(log, 1, 0)
        self.end(log, ControlType.ABORT, 1)
        self.write(log, 2, 0)
        log.discard()
        crashed = opener()
        crashed.close()
        closed = opener(clean=True)
        for reopened in (crashed, closed):
            assert reopened.first_unstable_offset == 2
            assert reopened.aborted_transactions(0, 3) == [(1, 0)]
