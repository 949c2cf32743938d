"""UpdateFeatures (key 57), v0-2: bring the cluster's features to other levels.

Each update is checked by itself (`Features.check`), and all are put in force or none. Up to v1 there is a result for
each feature; from v2 on the first error stands at the top. In v0 `allow_downgrade` stands for a kind of upgrade.

KIP-584, KIP-778 (v1), KIP-1022 (v2).
"""

from typing import TYPE_CHECKING

from odradek.cluster.features import UNSAFE_DOWNGRADE, UPGRADE
from odradek.handlers.registry import answer_for, handles
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

FIRST_WITH_UPGRADE_TYPE = 1
FIRST_WITHOUT_RESULTS = 2


@handles(UpdateFeaturesRequest)
async def update_features(
    node: "Node", connection: "Connection", request: Request[UpdateFeaturesRequest]
) -> UpdateFeaturesResponse:
    """Answer an UpdateFeatures request."""
    body = request.body
    results = []
    failure: BrokerError | None = None
    for update in body.feature_updates:
        kind = update.upgrade_type
        if request.version < FIRST_WITH_UPGRADE_TYPE:
            kind = UNSAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
        code, message = Error.NONE, None
        try:
            node.features.check(update.feature, update.max_version_level, kind)
        except BrokerError as error:
            failure = failure or error
            code, message = error.error, error.message
        results.append(UpdatableFeatureResult(feature=update.feature, error_code=code, error_message=message))
    if request.version >= FIRST_WITHOUT_RESULTS and failure is not None:
        text = f"The update failed for all features since the following feature had an error: {failure.message}"
        return UpdateFeaturesResponse(error_code=failure.error, error_message=text)
    if failure is None and not body.validate_only:
        try:
            await node.features.update({update.feature: update.max_version_level for update in body.feature_updates})
        except Exception as error:  # noqa: BLE001 - answered, and logged when it is no BrokerError
            code, message = answer_for(error, request)
            return UpdateFeaturesResponse(error_code=code, error_message=message)
    return UpdateFeaturesResponse(error_code=Error.NONE, error_message=None, results=results)
