"""The files beside the batches, byte by byte and back: indexes, snapshots, epochs, checkpoints."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.log import checkpoints, snapshots
from odradek.log.aborted import AbortedEntry, AbortedIndex
from odradek.log.epochs import LeaderEpochs
from odradek.log.files import Files
from odradek.log.index import OffsetIndex, TimeIndex
from odradek.log.producers import CachedBatch, Producer, Producers

INT32 = st.integers(0, 2**31 - 1)
INT64 = st.integers(0, 2**63 - 1)


class TestIndexes:
    @given(st.lists(st.tuples(INT32, INT32), unique_by=(lambda entry: entry[0], lambda entry: entry[1])))
    def test_offsets_round_trip(self, entries: list[tuple[int, int]]) -> None:
        index = OffsetIndex()
        pairs = list(zip(sorted(offset for offset, _ in entries), sorted(at for _, at in entries), strict=True))
        for offset, position in pairs:
            index.append(offset, position)
        data = index.unsaved()
        assert data == b"".join(struct.pack(">ii", *pair) for pair in pairs)
        parsed = OffsetIndex.parse(data, 2**31)
        assert parsed is not None
        assert list(zip(parsed.offsets, parsed.positions, strict=True)) == pairs
        assert parsed.unsaved() == b""
        for offset, position in pairs:
            assert (parsed.position_of(offset), parsed.position_before(position)) == (position, position)

    @pytest.mark.parametrize(
        "data",
        [b"x", struct.pack(">ii", 5, 100), struct.pack(">ii", -1, 0), struct.pack(">iiii", 5, 9, 4, 10), bytes(7)],
    )
    def test_unsound_offsets(self, data: bytes) -> None:
        assert OffsetIndex.parse(data, 100) is None

    def test_between_entries(self) -> None:
        index = OffsetIndex()
        index.append(10, 100)
        index.append(20, 200)
        assert [index.position_of(offset) for offset in (0, 9, 10, 19, 20, 99)] == [0, 0, 100, 100, 200, 200]
        assert [index.position_before(at) for at in (0, 99, 100, 199, 200)] == [0, 0, 100, 100, 200]
        index.truncate(200)
        assert list(index.positions) == [100]

    def test_times_ascend(self) -> None:
        index = TimeIndex()
        for timestamp, offset in ((-1, 0), (5, 1), (5, 2), (4, 3), (9, 4)):
            index.maybe_append(timestamp, offset)
        data = index.unsaved()
        assert data == struct.pack(">qiqi", 5, 1, 9, 4)
        parsed = TimeIndex.parse(data)
        assert parsed is not None
        assert [parsed.offset_before(timestamp) for timestamp in (0, 5, 6, 9, 10)] == [0, 0, 1, 1, 4]
        assert TimeIndex.parse(data[:-1]) is None
        assert TimeIndex.parse(data[12:] + data[:12]) is None

    def test_aborted(self) -> None:
        index = AbortedIndex()
        index.entries += [AbortedEntry(7, 10, 20, 15), AbortedEntry(8, 15, 30, 31)]
        data = index.unsaved()
        assert data == struct.pack(">hqqqq", 0, 7, 10, 20, 15) + struct.pack(">hqqqq", 0, 8, 15, 30, 31)
        parsed = AbortedIndex.parse(data)
        assert parsed is not None
        assert parsed.entries == index.entries
        parsed.truncate(30)
        assert len(parsed.entries) == parsed.saved == 1
        assert AbortedIndex.parse(data[1:]) is None
        assert AbortedIndex.parse(b"\1" + data[1:]) is None


class TestSnapshots:
    @given(st.lists(st.tuples(INT64, st.integers(0, 2**15 - 1), INT32, INT64), unique_by=lambda entry: entry[0]))
    def test_round_trip(self, entries: list[tuple[int, int, int, int]]) -> None:
        producers = Producers()
        for producer_id, epoch, sequence, offset in entries:
            producer = producers.by_id[producer_id] = Producer(producer_id, epoch)
            producer.batches.append(CachedBatch(sequence, offset, 0, 5))
            producer.last_timestamp = 5
        found = snapshots.decode(snapshots.encode(producers))
        assert found is not None
        assert [(p.producer_id, p.producer_epoch, *p.batches[-1][:2]) for p in found] == entries

    @given(st.binary())
    def test_nonsense(self, data: bytes) -> None:
        assert snapshots.decode(data) is None

    def test_every_changed_byte_is_noticed(self) -> None:
        producers = Producers()
        producers.by_id[1] = Producer(1, 0)
        data = snapshots.encode(producers)
        for position in range(len(data)):
            assert snapshots.decode(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]) is None

    def test_newest_sound_one_is_loaded(self, tmp_path: Path) -> None:
        files, producers = Files(), Producers()
        for offset in (10, 20, 30):
            producers.by_id[offset] = Producer(offset, 0)
            snapshots.save(files, str(tmp_path), offset, producers)
        (tmp_path / f"{20:020d}.snapshot").write_bytes(b"torn")
        assert snapshots.load_newest(files, str(tmp_path), 29, producers) == 10
        assert set(producers.by_id) == {10}
        assert snapshots.offsets_of(files, str(tmp_path)) == [10, 30]
        assert snapshots.load_newest(files, str(tmp_path), 9, producers) is None
        assert not producers.by_id


class TestEpochs:
    @pytest.fixture
    def epochs(self, tmp_path: Path) -> LeaderEpochs:
        epochs = LeaderEpochs(str(tmp_path), Files())
        for epoch, offset in ((0, 0), (2, 10), (5, 20)):
            epochs.assign(epoch, offset)
        return epochs

    def reloaded(self, epochs: LeaderEpochs) -> list[tuple[int, int]]:
        again = LeaderEpochs(str(Path(epochs.path).parent), Files())
        again.load()
        return list(zip(again.epochs, again.start_offsets, strict=True))

    def test_file(self, epochs: LeaderEpochs) -> None:
        assert Path(epochs.path).read_text() == "0\n3\n0 0\n2 10\n5 20\n"
        assert self.reloaded(epochs) == [(0, 0), (2, 10), (5, 20)]

    def test_old_epochs_change_nothing(self, epochs: LeaderEpochs) -> None:
        epochs.assign(5, 99)
        epochs.assign(3, 99)
        assert self.reloaded(epochs) == [(0, 0), (2, 10), (5, 20)]

    def test_epoch_without_records_gives_way(self, epochs: LeaderEpochs) -> None:
        epochs.assign(6, 20)
        assert self.reloaded(epochs) == [(0, 0), (2, 10), (6, 20)]

    def test_truncation(self, epochs: LeaderEpochs) -> None:
        epochs.truncate_from_end(20)
        assert self.reloaded(epochs) == [(0, 0), (2, 10)]
        epochs.truncate_from_start(15)
        assert self.reloaded(epochs) == [(2, 15)]
        epochs.clear()
        assert self.reloaded(epochs) == []
        assert epochs.latest == -1

    @pytest.mark.parametrize("text", ["0\n1\n0 x\n", "0\n2\n3 0\n1 5\n", "0\n2\n0 0\n", "7\n0\n"])
    def test_nonsense_is_no_epochs(self, epochs: LeaderEpochs, text: str) -> None:
        Path(epochs.path).write_text(text)
        assert self.reloaded(epochs) == []


def test_checkpoint_round_trip(tmp_path: Path) -> None:
    path = str(tmp_path / checkpoints.RECOVERY_POINTS)
    offsets = {("a-b", 0): 5, ("__consumer_offsets", 49): 2**62}
    assert checkpoints.read_offsets(Files(), path) == {}
    checkpoints.write_offsets(Files(), path, offsets)
    assert Path(path).read_text() == f"0\n2\na-b 0 5\n__consumer_offsets 49 {2**62}\n"
    assert checkpoints.read_offsets(Files(), path) == offsets
