"""A log on its way to another folder, cut short at each step: the next start goes on, and nothing is lost."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.logs import FaultyFiles, contents
from support.stores import Config, SetClock, append, make, open_store

from odradek.log.log import Log
from odradek.log.moves import Move, parse_future_name
from odradek.log.store import LogStore
from odradek_protocol.errors import BrokerError

VALUES = [b"%d" % number * 50 for number in range(60)]


def begin(tmp_path: Path, files: FaultyFiles | None = None) -> tuple[LogStore, Log, Move]:
    """A log of several segments in the first folder, on its way to the second."""
    paths = [str(tmp_path / "1"), str(tmp_path / "2")]
    store = LogStore.open(paths, Config(), 1, SetClock(), files=files or FaultyFiles())
    log = make(store)
    for number, value in enumerate(VALUES):
        append(log, value)
        if number % 20 == 19:
            log.roll(0)
    log.increment_log_start_offset(5)
    move = store.begin_move(log, store.folders[1])
    assert move is not None
    return store, log, move


def copy(move: Move) -> None:
    while (piece := move.next_piece()) is not None:
        piece.run()
        piece.done()
    move.copy_rest()


def expected(start: int = 5) -> list[tuple[int, bytes]]:
    return list(enumerate(VALUES))[start:]


def nothing(store: LogStore, move: Move) -> None:
    """Stop as soon as the move has begun."""


def half(store: LogStore, move: Move) -> None:
    """Stop when some segments are copied."""
    for _ in range(3):
        piece = move.next_piece()
        assert piece is not None
        piece.run()
        piece.done()


def all_but_places(store: LogStore, move: Move) -> None:
    """Stop when everything is copied."""
    copy(move)
    store.checkpoint()


def without_log(store: LogStore, move: Move) -> None:
    """Stop when the log's folder is renamed, and the copy's is not yet."""
    all_but_places(store, move)
    Path(move.log.directory).rename(Path(move.log.directory).with_name(f"a-0.{'0' * 32}-delete"))


def finished(store: LogStore, move: Move) -> None:
    """Stop when the log lives in its new folder."""
    all_but_places(store, move)
    assert move.is_complete()
    store.finish_move(move)
    store.checkpoint()


@pytest.mark.parametrize("step", [nothing, half, all_but_places, without_log, finished])
def test_cut_short(tmp_path: Path, step: Callable[[LogStore, Move], None]) -> None:
    store, _, move = begin(tmp_path)
    store.checkpoint()
    step(store, move)
    store.abandon()
    again = open_store(tmp_path / "1", tmp_path / "2")
    log = make(again)
    assert contents(log) == expected()
    append(log, b"next")
    moved = step in (without_log, finished)
    assert Path(log.directory).parent.name == ("2" if moved else "1")
    if not moved:
        (resumed,) = again.moves.values()
        resumed.resume()
        copy(resumed)
        assert resumed.is_complete()
        again.finish_move(resumed)
    assert Path(log.directory).parent.name == "2"
    assert contents(log) == [*expected(), (60, b"next")]
    assert again.moves == {}
    again.close()
    last = open_store(tmp_path / "1", tmp_path / "2")
    assert contents(make(last)) == [*expected(), (60, b"next")]
    last.close()


def test_what_was_copied_whole_is_not_copied_again(tmp_path: Path) -> None:
    store, log, move = begin(tmp_path)
    copy(move)
    sealed = sum(segment.size for segment in log.segments[:-1])
    store.abandon()
    again = open_store(tmp_path / "1", tmp_path / "2")
    (resumed,) = again.moves.values()
    resumed.resume()
    assert resumed.size == sealed
    assert resumed.lag == 0
    again.abandon()


def test_appended_truncated_and_rolled_meanwhile(tmp_path: Path) -> None:
    store, log, move = begin(tmp_path)
    copy(move)
    assert move.is_complete()
    log.truncate_to(50)
    assert not move.is_complete()
    for value in (b"x", b"y"):
        append(log, value)
    log.roll(0)
    append(log, b"z")
    assert move.lag > 0
    copy(move)
    assert move.is_complete()
    before = contents(log)
    store.finish_move(move)
    assert contents(log) == before
    append(log, b"after")
    store.close()
    again = open_store(tmp_path / "1", tmp_path / "2")
    assert contents(make(again)) == [*before, (53, b"after")]
    again.close()


def test_deletion_ends_a_move(tmp_path: Path) -> None:
    store, log, move = begin(tmp_path)
    copy(move)
    store.delete(log)
    assert store.moves == {}
    assert not list(tmp_path.glob("*/*-future"))
    store.close()


def test_a_third_folder_instead(tmp_path: Path) -> None:
    store, log, move = begin(tmp_path)
    assert store.begin_move(log, store.folders[1]) is None
    assert list(store.moves.values()) == [move]
    assert store.begin_move(log, store.folders[0]) is None
    assert store.moves == {}
    assert not list(tmp_path.glob("*/*-future"))
    store.close()


def test_a_copy_is_no_log_while_a_folder_is_offline(tmp_path: Path) -> None:
    store, _, move = begin(tmp_path)
    half(store, move)
    store.checkpoint()
    store.abandon()
    away = (tmp_path / "1").rename(tmp_path / "away")
    (tmp_path / "1").write_text("not a folder")
    again = open_store(tmp_path / "1", tmp_path / "2")
    assert again.is_missing("a", 0)
    again.close()
    (tmp_path / "1").unlink()
    away.rename(tmp_path / "1")
    repaired = open_store(tmp_path / "1", tmp_path / "2")
    assert contents(make(repaired)) == expected()
    assert len(repaired.moves) == 1
    repaired.close()


def test_a_full_target_costs_the_move_alone(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, log, move = begin(tmp_path, files)
    files.write_limit = 100
    with pytest.raises(OSError, match="No space left"):
        copy(move)
    files.write_limit = None
    store.end_move("a", 0)
    assert contents(log) == expected()
    store.close()


def test_a_disk_that_breaks_in_the_last_step(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, log, move = begin(tmp_path, files)
    copy(move)
    store.checkpoint()
    files.broken = {"fsync"}
    with pytest.raises(BrokerError, match="its folder is offline"):
        store.finish_move(move)
    with pytest.raises(BrokerError):
        append(log, b"lost")
    store.abandon()
    again = open_store(tmp_path / "1", tmp_path / "2")
    assert contents(make(again)) == expected()
    again.close()


def test_names() -> None:
    assert parse_future_name(f"a.b-c-12.{'0af' * 10}00-future") == ("a.b-c", 12)
    assert parse_future_name("a-0") is None
    assert parse_future_name(f"a-0.{'0' * 32}-delete") is None
