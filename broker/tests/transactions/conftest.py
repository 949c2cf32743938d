"""Time jumps to the next deadline when everything waits."""

from support.mocked_time import pytest_pyfunc_call, without_threads

__all__ = ["pytest_pyfunc_call", "without_threads"]
