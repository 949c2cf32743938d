"""`odradek log dump|verify`: what it says of sound and of damaged files, and that recovery does what it said."""

import json
from pathlib import Path

import pytest
from support.logs import NOW_MS, Opener, contents, marker, records

from odradek.cli import main
from odradek.log.log import Log, Origin
from odradek_protocol.records.control import ControlType

PRODUCER_ID = 7


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    opener = Opener(tmp_path)
    opener.config.segment_bytes = 1000
    return opener


@pytest.fixture
def folder(opener: Opener) -> Path:
    """A log of several segments, with a producer that aborted a transaction, as a crash leaves it."""
    log = opener()
    for number in range(12):
        append(log, records(b"%d" % number * 150, timestamp_ms=NOW_MS + number))
    append(log, records(b"undone", producer=(PRODUCER_ID, 0, 0), attributes=0x10))
    append(log, marker(ControlType.ABORT, PRODUCER_ID, 0), Origin.COORDINATOR)
    log.roll(NOW_MS)
    append(log, records(b"last", b"one", timestamp_ms=NOW_MS + 99))
    flush = log.prepare_flush()
    flush.run()
    log.discard()
    assert len(log.segments) > 3
    return Path(log.directory)


def append(log: Log, data: memoryview, origin: Origin = Origin.CLIENT) -> None:
    log.append_as_leader(data, 0, NOW_MS, origin)


def log_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    status = main(["log", *map(str, arguments)])
    return status, capsys.readouterr().out


def damages(capsys: pytest.CaptureFixture[str], path: Path) -> list[dict[str, object]]:
    status, out = run(capsys, "verify", "--json", path)
    found = [json.loads(line) for line in out.splitlines()]
    assert status == (1 if found else 0)
    assert all(one.pop("damage") for one in found)
    return found


class TestSound:
    def test_verify_says_so(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        status, out = run(capsys, "verify", folder)
        assert status == 0
        assert "a recovery reads 00000000000000000000.log" in out
        assert out.endswith("all sound\n")

    def test_a_log_dir_is_all_its_logs(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert damages(capsys, folder.parent) == []

    def test_dump_tells_every_record(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        status, out = run(capsys, "dump", "--records", "--json", folder)
        entries = [json.loads(line) for line in out.splitlines()]
        assert status == 0
        values = [entry.get("value") for entry in entries if "record" in entry]
        assert values == [*(f"{number}" * 150 for number in range(12)), "undone", None, "last", "one"]
        assert [entry["endTxnMarker"] for entry in entries if "endTxnMarker" in entry] == ["ABORT"]
        aborted = [entry for entry in entries if entry["file"].endswith(".txnindex")]
        assert [(entry["producerId"], entry["firstOffset"], entry["lastOffset"]) for entry in aborted] == [(7, 12, 13)]
        assert any(entry["file"].endswith(".snapshot") and entry["producerId"] == 7 for entry in entries)

    def test_dump_for_people(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        status, out = run(capsys, "dump", log_files(folder)[-1])
        assert status == 0
        assert "baseOffset: 14 lastOffset: 15 count: 2 " in out
        assert " isTransactional: false isControl: false deleteHorizonMs: none position: 0 " in out
        assert "| record" not in out

    def test_nothing_is_changed(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        run(capsys, "dump", "--records", folder)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


class TestDamage:
    def test_a_bit_in_the_middle(self, folder: Path, opener: Opener, capsys: pytest.CaptureFixture[str]) -> None:
        """What is said of a recovery is what it does."""
        logs = log_files(folder)
        data = bytearray(logs[1].read_bytes())
        data[100] ^= 1
        logs[1].write_bytes(data)
        found = damages(capsys, folder)
        [damage] = [one for one in found if one["path"] == str(logs[1])]
        assert damage["position"] == 0
        assert "CRC" in str(damage["problem"])
        assert damage["recovery"] == (
            f"the log is truncated at position 0: loses {len(data)} bytes and {len(logs) - 2} later segments"
        )
        recovered = opener()
        assert log_files(folder) == logs[:2]
        assert logs[1].stat().st_size == 0
        assert recovered.log_end_offset == int(logs[1].stem)
        recovered.discard()
        assert damages(capsys, folder) == []

    def test_a_torn_tail_of_every_length(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        log = log_files(folder)[-1]
        whole = log.read_bytes()
        for kept in range(1, len(whole)):
            log.write_bytes(whole[:kept])
            [damage] = damages(capsys, log)
            assert (damage["position"], damage["problem"]) == (0, "the file ends within a batch")
            assert damage["recovery"] == f"the log is truncated at position 0: loses {kept} bytes"

    @pytest.mark.parametrize("suffix", [".index", ".timeindex"])
    def test_an_index_that_lies(
        self, folder: Path, opener: Opener, capsys: pytest.CaptureFixture[str], suffix: str
    ) -> None:
        index = log_files(folder)[0].with_suffix(suffix)
        data = bytearray(index.read_bytes())
        data[3] += 1
        index.write_bytes(data + b"\0")
        first, *_, last = damages(capsys, index)
        assert (first["position"], last["position"]) == (0, len(data))
        assert first["recovery"] == last["recovery"] == "the index is built again from the log"
        opener().discard()
        assert damages(capsys, index) == []

    def test_an_index_that_is_missing(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        index = log_files(folder)[0].with_suffix(".index")
        index.unlink()
        assert [one["path"] for one in damages(capsys, folder)] == [str(index)]

    def test_other_files(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        snapshot = max(folder.glob("*.snapshot"))
        snapshot.write_bytes(snapshot.read_bytes()[:-1])
        epochs = folder / "leader-epoch-checkpoint"
        epochs.write_text("0\n2\n3 10\n2 20\n")
        aborted = next(folder.glob("*.txnindex"))
        aborted.write_bytes(b"\1" + aborted.read_bytes()[1:])
        points = folder.parent / "recovery-point-offset-checkpoint"
        points.write_text("0\n1\nt 0 x\n")
        found = {str(one["path"]): str(one["recovery"]) for one in damages(capsys, folder.parent)}
        assert found == {
            str(
                snapshot
            ): "the snapshot is removed; the producers are read from an older one and the batches behind it",
            str(epochs): "the epochs are read from the batches",
            str(aborted): "the index is built again from the log",
            str(points): "the file is ignored: every log is read whole",
        }


def test_explains_for_people(folder: Path, opener: Opener, capsys: pytest.CaptureFixture[str]) -> None:
    log = log_files(folder)[-1]
    log.write_bytes(log.read_bytes() + b"\0" * 61)
    (folder.parent / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 14\n")
    status, out = run(capsys, "verify", folder)
    assert status == 1
    assert f"DAMAGED {log} at position " in out
    assert "    expected: the header of a batch\n" in out
    assert "    recovery: the log is truncated at position " in out
    assert f"a recovery reads {log.name} and what follows; the recovery point is 14" in out
    assert contents(opener(recovery_point=14))[-1] == (15, b"one")


def test_a_closed_log_is_not_recovered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder.parent / ".kafka_cleanshutdown").write_text("{}")
    assert "was closed" in run(capsys, "verify", folder)[1]


@pytest.mark.parametrize("name", ["missing-0", "00000000000000000000.log", "words.txt", ""])
def test_what_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / "words.txt").write_text("words")
    assert main(["log", "verify", str(tmp_path / name)]) == 2
    assert "is neither a folder with logs nor a file of one" in capsys.readouterr().err
