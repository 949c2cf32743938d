"""A znode tree in memory, and the rules of changing it: what an operation needs and what it does.

Nothing here does I/O. A write has two steps, so that it can be made durable between them: `plan` works out what a
list of operations would change without changing anything, `apply` does it. Between the two, no other plan may be
made.
"""

from collections.abc import Iterable, Sequence

from odradek.cluster.store import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Failure,
    Operation,
    SetData,
    StoreError,
    ZNode,
    check_path,
    parent_of,
)

__all__ = ["Plan", "Record", "Tree"]


class Record:
    """One znode: its data, its version, the next number for a sequential child, and whether it is ephemeral."""

    __slots__ = ("data", "ephemeral", "next_sequence", "version")

    def __init__(self, data: bytes, version: int = 0, next_sequence: int = 0, *, ephemeral: bool = False) -> None:
        self.data = data
        self.version = version
        self.next_sequence = next_sequence
        self.ephemeral = ephemeral

    def copy(self) -> "Record":
        return Record(self.data, self.version, self.next_sequence, ephemeral=self.ephemeral)


class Plan:
    """What a list of operations comes to: the changed records (None: removed), and the results."""

    __slots__ = ("child_changes", "children", "data_changes", "records", "results")

    def __init__(self) -> None:
        self.records: dict[str, Record | None] = {}
        self.children: dict[str, set[str]] = {}
        self.results: list[str | int | None] = []
        self.data_changes: dict[str, None] = {}
        self.child_changes: dict[str, None] = {}


class Tree:
    """The nodes, by path. A new tree has the root only."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {"/": Record(b"")}
        self._children: dict[str, set[str]] = {"/": set()}

    @classmethod
    def of(cls, records: Iterable[tuple[str, Record]]) -> "Tree":
        """The tree of these nodes. Raises ValueError when one of them has no parent, or there is no root."""
        tree = cls()
        tree._records = dict(records)
        tree._children = {path: set() for path in tree._records}
        if "/" not in tree._records:
            raise ValueError("there is no root")
        for path in tree._records:
            parent = parent_of(path)
            if parent not in tree._records:
                raise ValueError(f"{path} has no parent")
            if path != "/":
                tree._children[parent].add(path.rpartition("/")[2])
        return tree

    def get(self, path: str) -> ZNode:
        """The node's data and version. StoreError NO_NODE."""
        record = self._records.get(check_path(path))
        if record is None:
            raise StoreError(Failure.NO_NODE, path)
        return ZNode(record.data, record.version)

    def exists(self, path: str) -> bool:
        """Whether there is such a node."""
        return check_path(path) in self._records

    def children(self, path: str) -> list[str]:
        """The sorted names of the node's children. StoreError NO_NODE."""
        names = self._children.get(check_path(path))
        if names is None:
            raise StoreError(Failure.NO_NODE, path)
        return sorted(names)

    def lasts(self, path: str) -> bool:
        """Whether there is such a node and it outlives the session."""
        record = self._records.get(path)
        return record is not None and not record.ephemeral

    def plan(self, operations: Sequence[Operation]) -> Plan:
        """What `operations`, done in order, would change. StoreError when one of them cannot be done."""
        plan = Plan()
        for operation in operations:
            check_path(operation.path)
            match operation:
                case Create():
                    result: str | int | None = self._create(plan, operation)
                case SetData():
                    result = self._set_data(plan, operation)
                case Delete():
                    result = None
                    self._delete(plan, operation)
                case Check():
                    result = None
                    self._expect(plan, operation.path, operation.version)
            plan.results.append(result)
        return plan

    def apply(self, plan: Plan) -> None:
        """Do what was planned."""
        for path, record in plan.records.items():
            if record is None:
                self._records.pop(path, None)
                self._children.pop(path, None)
            else:
                self._records[path] = record
        for path, names in plan.children.items():
            if path in self._records:
                self._children[path] = names

    def _create(self, plan: Plan, operation: Create) -> str:
        parent_path = parent_of(operation.path)
        parent = self._record(plan, parent_path)
        if parent is None:
            raise StoreError(Failure.NO_NODE, parent_path)
        if parent.ephemeral:
            raise StoreError(Failure.EPHEMERAL_PARENT, parent_path)
        path = f"{operation.path}{parent.next_sequence:010}" if operation.sequential else operation.path
        if self._record(plan, path) is not None:
            raise StoreError(Failure.NODE_EXISTS, path)
        changed = parent.copy()
        changed.next_sequence += 1
        plan.records[parent_path] = changed
        plan.records[path] = Record(operation.data, ephemeral=operation.ephemeral)
        plan.children[path] = set()
        self._names(plan, parent_path).add(path.rpartition("/")[2])
        plan.data_changes[path] = plan.child_changes[parent_path] = None
        return path

    def _set_data(self, plan: Plan, operation: SetData) -> int:
        changed = self._expect(plan, operation.path, operation.version).copy()
        changed.data = operation.data
        changed.version += 1
        plan.records[operation.path] = changed
        plan.data_changes[operation.path] = None
        return changed.version

    def _delete(self, plan: Plan, operation: Delete) -> None:
        path = operation.path
        if path == "/":
            raise ValueError("the root is never removed")
        self._expect(plan, path, operation.version)
        if plan.children.get(path, self._children.get(path)):
            raise StoreError(Failure.NOT_EMPTY, path)
        parent_path = parent_of(path)
        plan.records[path] = None
        self._names(plan, parent_path).discard(path.rpartition("/")[2])
        plan.data_changes[path] = plan.child_changes[parent_path] = None

    def _expect(self, plan: Plan, path: str, version: int) -> Record:
        record = self._record(plan, path)
        if record is None:
            raise StoreError(Failure.NO_NODE, path)
        if version not in (ANY_VERSION, record.version):
            raise StoreError(Failure.BAD_VERSION, path, f"expected {version}, is {record.version}")
        return record

    def _record(self, plan: Plan, path: str) -> Record | None:
        return plan.records[path] if path in plan.records else self._records.get(path)

    def _names(self, plan: Plan, path: str) -> set[str]:
        names = plan.children.get(path)
        if names is None:
            names = plan.children[path] = set(self._children[path])
        return names
