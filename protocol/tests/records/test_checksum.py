"""CRC-32C is crc32c's, however it was loaded."""

import importlib.util
import subprocess
import sys

import crc32c as package
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek_protocol.records import checksum

EXAMPLES = [
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (b"123456789", 0xE3069283),
]
"""From RFC 3720 B.4, and the check value of the catalogue of parametrised CRC algorithms."""


@pytest.mark.parametrize(("data", "expected"), EXAMPLES)
def test_known_values(data: bytes, expected: int) -> None:
    assert checksum.crc32c(data) == expected
    assert checksum.crc32c(memoryview(data)) == expected


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_it_is_the_packages_function(start: bytes, rest: bytes) -> None:
    assert checksum.crc32c(start + rest) == package.crc32c(start + rest)
    assert checksum.crc32c(rest, checksum.crc32c(start)) == package.crc32c(start + rest)


def test_the_package_itself_serves_where_its_extension_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksum, "find_spec", lambda _: None)
    assert checksum._load() is package.crc32c


def test_what_the_package_loads_besides_is_not_loaded() -> None:
    assert importlib.util.find_spec("importlib.metadata") is not None
    told = "import sys, odradek_protocol.records.batch; sys.exit('importlib.metadata' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", told], check=False).returncode == 0
