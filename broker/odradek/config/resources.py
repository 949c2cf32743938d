"""What has settings: the kinds of resources that requests about settings name."""

import enum

__all__ = ["ResourceType"]


class ResourceType(enum.IntEnum):
    """A kind of resource, by its number in the protocol."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
