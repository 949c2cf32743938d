"""The features of the cluster: which there are, and the levels that are in force (KIP-584).

Clients go by the levels in force: with `transaction.version` 2 a producer lets Produce add partitions to transactions
and gets a new epoch at each end (KIP-890), with 0 or 1 it does neither. A new cluster begins with the highest levels;
UpdateFeatures changes them, in /feature, whose version is the epoch of the levels.
"""

from collections.abc import Mapping

from odradek.cluster.loading import ensure_node
from odradek.cluster.store import MetadataStore
from odradek.cluster.znodes import FeatureZNode
from odradek_protocol.errors import BrokerError, Error

__all__ = [
    "GROUP_VERSION",
    "SHARE_VERSION",
    "STREAMS_VERSION",
    "SUPPORTED",
    "TRANSACTION_VERSION",
    "UNSAFE_DOWNGRADE",
    "UPGRADE",
    "Features",
]

GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
TRANSACTION_VERSION = "transaction.version"

SUPPORTED: Mapping[str, tuple[int, int]] = {
    GROUP_VERSION: (0, 1),
    SHARE_VERSION: (0, 1),
    STREAMS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
}
"""The lowest and the highest level of each feature."""

UPGRADE = 1
SAFE_DOWNGRADE = 2
UNSAFE_DOWNGRADE = 3


class Features:
    """The levels in force."""

    def __init__(self, store: MetadataStore, node_id: int) -> None:
        self._store = store
        self._node_id = node_id
        self.levels: Mapping[str, int] = {}
        """The level of each feature; one that is not there is at 0."""
        self.epoch = -1

    @property
    def group_version(self) -> int:
        """The level of `group.version`: consumer groups of KIP-848 are served from 1 on."""
        return self.levels.get(GROUP_VERSION, 0)

    @property
    def transaction_version(self) -> int:
        """The level of `transaction.version`."""
        return self.levels.get(TRANSACTION_VERSION, 0)

    def check_share_groups(self) -> None:
        """Raise UNSUPPORTED_VERSION where `share.version` is 0: share groups (KIP-932) are served from 1 on."""
        if self.levels.get(SHARE_VERSION, 0) < 1:
            raise BrokerError(Error.UNSUPPORTED_VERSION, "The version of API is not supported.")

    def check_streams_groups(self) -> None:
        """Raise UNSUPPORTED_VERSION where `streams.version` is 0: streams groups (KIP-1071) are served from 1 on."""
        if self.levels.get(STREAMS_VERSION, 0) < 1:
            raise BrokerError(Error.UNSUPPORTED_VERSION, "The version of API is not supported.")

    async def load(self) -> None:
        """Take the levels from the store; a new cluster gets the highest ones. StoreError, ValueError."""
        highest = {name: last for name, (_, last) in SUPPORTED.items()}
        await ensure_node(self._store, FeatureZNode.path, FeatureZNode.encode(highest))
        data, self.epoch = await self._store.get(FeatureZNode.path)
        self.levels = FeatureZNode.decode(data)

    async def update(self, levels: Mapping[str, int]) -> None:
        """Put these levels in force; 0 takes a feature away. They have passed `check`. StoreError."""
        changed = {name: level for name, level in {**self.levels, **levels}.items() if level}
        self.epoch = await self._store.set_data(FeatureZNode.path, FeatureZNode.encode(changed), self.epoch)
        self.levels = changed

    def check(self, feature: str, level: int, upgrade_type: int) -> None:
        """Raise INVALID_UPDATE_VERSION, with Kafka's text, when a feature cannot be brought to `level` in this way."""
        reason = self._fault(feature, level, upgrade_type)
        if reason is not None:
            text = f"Invalid update version {level} for feature {feature}. {reason}"
            raise BrokerError(Error.INVALID_UPDATE_VERSION, text)

    def _fault(self, feature: str, level: int, upgrade_type: int) -> str | None:
        if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            return "The controller does not support the given upgrade type."
        if level < 0:
            return "A feature version cannot be less than 0."
        if feature not in SUPPORTED:
            return f"Local controller {self._node_id} does not support this feature."
        first, last = SUPPORTED[feature]
        if not first <= level <= last:
            return f"Local controller {self._node_id} only supports versions {first}-{last}"
        current = self.levels.get(feature, 0)
        if level < current and upgrade_type == UPGRADE:
            return (
                "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
                "unsafe downgrade."
            )
        if level > current and upgrade_type != UPGRADE:
            return "Can't downgrade to a newer version."
        return None
