"""Records as the tests compare them."""

from __future__ import annotations

from typing import Any


def same_in_order(records: list[dict[str, Any]], *fields: str) -> list[tuple[Any, ...]]:
    """Return the named fields of each record, to compare lists by what matters to a test."""
    return [tuple(record[field] for field in fields) for record in records]
