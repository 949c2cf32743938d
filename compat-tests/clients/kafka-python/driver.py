"""kafka-python, 1.4 to 3.x: the same operations in all, in the modules of this folder."""

from __future__ import annotations

import administration  # noqa: F401 - its operations
import consuming  # noqa: F401 - likewise
import producing  # noqa: F401 - likewise
import transactions  # noqa: F401 - likewise
from background import stop_all
from members import close_all
from serving import operation, serve


@operation
def reset() -> None:
    """Let go of what the last test left open."""
    stop_all()
    close_all()


if __name__ == "__main__":
    serve()
