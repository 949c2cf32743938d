"""Topic names: which are legal, which collide, which are the broker's own. As Kafka's `Topic`."""

import re

from odradek_protocol.errors import BrokerError, Error

__all__ = [
    "CONSUMER_OFFSETS",
    "INTERNAL_TOPICS",
    "MAX_NAME_LENGTH",
    "SHARE_GROUP_STATE",
    "TRANSACTION_STATE",
    "check_name",
    "collision_key",
    "is_legal",
]

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})

CLUSTER_METADATA = "__cluster_metadata"
"""The name that Kafka keeps for its own metadata log; nobody may create it."""

MAX_NAME_LENGTH = 249
"""255, the longest file name, less a dash and the five digits of a partition."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_name(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION, saying why, if a topic cannot be called `name`."""
    reason = _fault(name)
    if reason is not None:
        raise BrokerError(Error.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def is_legal(name: str) -> bool:
    """Whether a topic can be called `name`."""
    return _fault(name) is None


def collision_key(name: str) -> str:
    """The same for all names that differ only in '.' and '_', which metric names cannot tell apart."""
    return name.replace(".", "_")


def _fault(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None
