"""The cleaning process: what it answers to requests, how it keeps to its pace, and when it ends."""

import io
import os
import time
from pathlib import Path

import pytest
from support.cleaning import make_round
from support.logs import NOW_MS, Opener, records

from odradek.log.compaction.__main__ import Pace, serve
from odradek.log.compaction.requests import (
    GO_ON,
    STOP,
    Cleaned,
    CleanedGroup,
    CleanRequest,
    Failed,
    Message,
    decode,
    encode,
)


@pytest.fixture
def request_of_two_groups(tmp_path: Path) -> CleanRequest:
    opener = Opener(tmp_path)
    opener.config.cleanup_policy = ["compact"]
    log = opener()
    for value in (b"1", b"2"):
        log.append_as_leader(records(value), 0, NOW_MS)
        log.roll(NOW_MS)
    opener.config.segment_bytes = 1
    return make_round(log)[1]


def answers_to(*lines: bytes) -> list[Message]:
    answers = io.BytesIO()
    serve(io.BytesIO(b"".join(lines)), answers, os.getppid())
    return [decode(line) for line in answers.getvalue().splitlines()]


def cleaned_files(request: CleanRequest) -> list[str]:
    return sorted(path.name for path in Path(request.directory).glob("*.cleaned"))


def test_a_round(request_of_two_groups: CleanRequest) -> None:
    first, second, end = answers_to(encode(request_of_two_groups), GO_ON, GO_ON)
    assert (first, second) == (CleanedGroup([0]), CleanedGroup([1]))
    assert isinstance(end, Cleaned)
    assert (end.end_offset, end.records_read, end.records_written) == (2, 2, 1)
    assert cleaned_files(request_of_two_groups) == []


def test_what_the_broker_does_not_take_is_removed(request_of_two_groups: CleanRequest) -> None:
    request = encode(request_of_two_groups)
    answers = answers_to(request, STOP, request, GO_ON, GO_ON)
    assert answers[:3] == [CleanedGroup([0]), CleanedGroup([0]), CleanedGroup([1])]
    assert cleaned_files(request_of_two_groups) == []


def test_a_failure_ends_the_round_and_not_the_process(request_of_two_groups: CleanRequest) -> None:
    gone = request_of_two_groups._replace(directory="/nowhere")
    path = Path(request_of_two_groups.directory) / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    missing, damaged = answers_to(encode(gone), encode(request_of_two_groups))
    assert isinstance(missing, Failed)
    assert not missing.damaged
    assert isinstance(damaged, Failed)
    assert damaged.damaged
    assert "the CRC of the batch at 0" in damaged.reason


def test_the_pace_is_kept() -> None:
    began = time.monotonic()
    pace = Pace(1_000_000, io.BytesIO(), os.getppid())
    for _ in range(6):
        pace(20_000)
    assert time.monotonic() - began >= 0.1


def test_it_ends_when_its_broker_is_gone() -> None:
    with pytest.raises(SystemExit):
        Pace(1e9, io.BytesIO(), os.getppid() + 1)(1)
