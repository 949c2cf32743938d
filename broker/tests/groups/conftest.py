"""Time jumps to the next deadline when everything waits, and work for threads is done in place."""

import pytest
from support.mocked_time import pytest_pyfunc_call, without_threads

__all__ = ["pytest_pyfunc_call", "without_threads"]


@pytest.fixture(autouse=True)
def _in_place(without_threads: None) -> None:
    """In every test of this folder."""
