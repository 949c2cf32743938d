"""The states of a classic group, what is answered in each, and which may follow which."""

import enum
from collections.abc import Mapping

__all__ = ["VALID_PREVIOUS_STATES", "GroupState"]


class GroupState(enum.Enum):
    """Where a group is in its life; the value is the name that DescribeGroups tells."""

    EMPTY = "Empty"
    """No members, perhaps committed offsets. Answered: join (a new id); commits without a generation.
    Everything else is told UNKNOWN_MEMBER_ID."""

    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are asked to join again; joins wait. Answered: heartbeat and sync (REBALANCE_IN_PROGRESS), leave, commits
    of the generation that is ending."""

    COMPLETING_REBALANCE = "CompletingRebalance"
    """The generation is named, its assignment is not known; syncs wait. Answered: heartbeat, leave, a join that changes
    nothing (the same generation again); commits are told REBALANCE_IN_PROGRESS."""

    STABLE = "Stable"
    """Every member may have its assignment. Answered: everything; a join of the leader or of a member whose metadata
    changed starts a rebalance."""

    DEAD = "Dead"
    """Gone. Everything is told COORDINATOR_NOT_AVAILABLE: look up the coordinator and try again."""


S = GroupState

VALID_PREVIOUS_STATES: Mapping[GroupState, frozenset[GroupState]] = {
    S.EMPTY: frozenset({S.PREPARING_REBALANCE}),
    S.PREPARING_REBALANCE: frozenset({S.EMPTY, S.COMPLETING_REBALANCE, S.STABLE}),
    S.COMPLETING_REBALANCE: frozenset({S.PREPARING_REBALANCE}),
    S.STABLE: frozenset({S.COMPLETING_REBALANCE}),
    S.DEAD: frozenset(S),
}
