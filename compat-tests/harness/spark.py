"""What a session of PySpark needs in its environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.cache import require_program
from harness.jars import jars
from harness.versions import SPARK

if TYPE_CHECKING:
    from pathlib import Path


def spark_environment(folder: Path) -> dict[str, str]:
    """Return the variables for a session that keeps what it leaves in `folder`; skip the test without Java."""
    require_program("java")
    return {
        "ODRADEK_SPARK_JARS": str(jars(f"spark-{SPARK}")),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
    }
