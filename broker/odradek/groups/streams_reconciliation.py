"""The next step of a member of a streams group from the tasks it has to those it is to have (KIP-1071).

    STABLE ----> UNREVOKED ----> UNRELEASED ----> STABLE
       new target    the member has given up     all that it waited for
                     what it was asked to         is free

A member first gives up what it is not to have, in its old epoch; then it goes to the epoch of the target with what is
free, and gets the rest as others give it up. So a task is active in one process at any time, and a process has a task
in one role: the stores of a task are one folder of the process.
"""

from collections.abc import Callable

from odradek.groups.consumer_state import MemberState
from odradek.groups.streams_state import StreamsCurrent
from odradek.groups.streams_tasks import Role, Task, Tasks
from odradek_protocol.errors import BrokerError, Error

__all__ = ["reconcile"]

S = MemberState


def reconcile(
    current: StreamsCurrent,
    target_epoch: int,
    target: Tasks,
    *,
    process_id: str,
    processes: Callable[[Task], frozenset[str]],
    owned: Tasks | None,
) -> StreamsCurrent:
    """The member's next assignment; `current` itself when nothing can be done yet.

    `processes` tells which processes have a task, and `owned` is what the member says it has, None when it does not
    say. Raises FENCED_MEMBER_EPOCH for a member in a state of a newer broker that still has tasks.
    """
    if current.is_reconciled_to(target_epoch):
        return current
    epoch = current.epoch
    if current.state is S.UNREVOKED_PARTITIONS:
        if owned is None or not owned.isdisjoint(current.revoking):
            return current
        # Kafka counts the step, so that the deadline for giving up begins anew where there is more to give up.
        epoch += 1
    elif current.state is S.UNKNOWN and (owned is None or owned):
        raise BrokerError(
            Error.FENCED_MEMBER_EPOCH,
            "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
        )
    kept = {task: since for task, since in current.assigned.items() if task in target}
    revoking = {task: since for task, since in current.assigned.items() if task not in target}
    if revoking and (owned is None or not owned.isdisjoint(revoking)):
        following = StreamsCurrent(epoch, current.epoch, S.UNREVOKED_PARTITIONS, kept, revoking)
    else:
        missing = target - kept.keys()
        gained = [task for task in missing if _is_free(task, process_id, processes)]
        state = S.STABLE if len(gained) == len(missing) else S.UNRELEASED_PARTITIONS
        following = StreamsCurrent(target_epoch, current.epoch, state, {**kept, **dict.fromkeys(gained, target_epoch)})
    return current if following == current else following


def _is_free(task: Task, process_id: str, processes: Callable[[Task], frozenset[str]]) -> bool:
    """Whether nobody does the task, if it is to be done, and the process does not have it in any role."""
    if task.role is Role.ACTIVE and processes(task):
        return False
    return not any(process_id in processes(task._replace(role=role)) for role in Role)
