"""The wall clock: the time of records, of retention and of committed offsets, in milliseconds since 1970.

Waiting is another matter and goes by trio's clock; a test replaces each of them.
"""

import time

__all__ = ["Clock"]


class Clock:
    """The system's time of day."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000
