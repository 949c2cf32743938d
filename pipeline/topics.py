"""The topics of the pipeline.

    page-views  searches  ad-clicks     what users do, keyed by user; clicks cost money: they come in transactions
    users                               compacted: the latest profile of each user
    dead-letters                        what no job may take, with the reason
    top-pages  conversions              results

The folder's other names for a topic belong to the same family: `page-views-mobile` is read like `page-views`, from its
first record on, as soon as it exists.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "AD_CLICKS",
    "CONVERSIONS",
    "DEAD_LETTERS",
    "EVENTS",
    "PAGE_VIEWS",
    "SEARCHES",
    "TOPICS",
    "TOP_PAGES",
    "USERS",
    "Topic",
    "family",
]

PAGE_VIEWS = "page-views"
SEARCHES = "searches"
AD_CLICKS = "ad-clicks"
USERS = "users"
DEAD_LETTERS = "dead-letters"
TOP_PAGES = "top-pages"
CONVERSIONS = "conversions"

EVENTS = (PAGE_VIEWS, SEARCHES, AD_CLICKS)

_COMPACTED = {"cleanup.policy": "compact"}


@dataclass(frozen=True)
class Topic:
    """A topic as it is created."""

    name: str
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)


TOPICS = (
    Topic(PAGE_VIEWS, 4),
    Topic(SEARCHES, 2),
    Topic(AD_CLICKS, 2),
    Topic(USERS, 2, _COMPACTED),
    Topic(DEAD_LETTERS, 1),
    # The sink writes at least once. The latest value for each key is the truth, so that a repeat changes nothing.
    Topic(TOP_PAGES, 1, _COMPACTED),
    Topic(CONVERSIONS, 1, _COMPACTED),
)


def family(*topics: str) -> str:
    """A `subscribePattern` for topics of these names, alone or followed by a dash and more.

    It says where a name begins and ends, as Spark takes every topic that has a match somewhere in its name.
    """
    return f"^({'|'.join(topics)})(-.+)?$"
