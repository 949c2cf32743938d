"""ApiVersions (key 18), v0-5: which APIs and versions are served.

Order of the checks: the version (a request in one that is not served gets UNSUPPORTED_VERSION, in a reply of version 0
that names only this API, KIP-511); v3+ name and version of the client's software (INVALID_REQUEST); v5 the cluster and
the node that the client means to talk to (REBOOTSTRAP_REQUIRED, KIP-1242).

The list is made from the handlers that are there, so nothing is advertised that is not served. The levels of features
that are in force are told from v3 on; the levels that could be, from v4 on, as older clients do not know that one may
be 0 (KIP-1022).
"""

import re
from typing import TYPE_CHECKING

from odradek.cluster.features import SUPPORTED
from odradek.handlers.registry import handles, served
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""What the name and the version of a client's software may look like (KIP-511)."""

FIRST_WITH_SOFTWARE = 3
FIRST_WITH_LEVEL_ZERO = 4
ANY_NODE = -1


@handles(ApiVersionsRequest)
def api_versions(
    node: "Node",
    connection: "Connection",
    request: Request[ApiVersionsRequest],
) -> ApiVersionsResponse:
    """Answer an ApiVersions."""
    body = request.body
    if not request.supported:
        this = ApiVersion(api_key=request.api.key, min_version=request.api.first, max_version=request.api.last)
        return ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=[this])
    if request.version >= FIRST_WITH_SOFTWARE and not (
        SOFTWARE.fullmatch(body.client_software_name) and SOFTWARE.fullmatch(body.client_software_version)
    ):
        return ApiVersionsResponse(error_code=Error.INVALID_REQUEST, api_keys=())
    if body.cluster_id not in (None, node.view.cluster_id) or body.node_id not in (ANY_NODE, node.node_id):
        return ApiVersionsResponse(error_code=Error.REBOOTSTRAP_REQUIRED, api_keys=())
    return ApiVersionsResponse(
        error_code=Error.NONE,
        api_keys=[ApiVersion(api_key=api.key, min_version=api.first, max_version=api.last) for api in served()],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=first, max_version=last)
            for name, (first, last) in SUPPORTED.items()
            if first or request.version >= FIRST_WITH_LEVEL_ZERO
        ],
        finalized_features_epoch=node.features.epoch,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in node.features.levels.items()
        ],
    )
