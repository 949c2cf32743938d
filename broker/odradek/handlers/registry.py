"""Which function answers which request.

    @handles(HeartbeatRequest)
    def heartbeat(node, connection, request): ...

A handler that may have to wait is `async`; one that seldom has to is a function that gives its answer, or a coroutine
for it where it has to wait. What is answered without a coroutine is answered without a switch to another task.

`load_all` imports every module beside this one. An API is served when both its message and its handler are there;
`served` is what ApiVersions tells.
"""

import importlib
import logging
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from odradek import handlers as package
from odradek_protocol.connection import Request
from odradek_protocol.errors import BrokerError, Error
from odradek_protocol.schema import Api, apis

if TYPE_CHECKING:
    from odradek.node import Node
    from odradek.server import Connection

__all__ = ["CloseConnection", "Handler", "answer_for", "handles", "load_all", "registered", "served"]

log = logging.getLogger(__name__)

Handler = Callable[["Node", "Connection", Request[Any]], Any]
F = TypeVar("F", bound=Callable[..., Any])


class CloseConnection(Exception):  # noqa: N818 - says what to do, and is no error of anybody's
    """A request that cannot be answered, for a reason that the client may only learn from a closed connection."""


registered: dict[int, Handler] = {}
"""The handlers by API key."""


def handles(request: type) -> Callable[[F], F]:
    """Enter a function as the handler of a request class. TypeError when the key has one."""

    def register(function: F) -> F:
        key: int = request.API.key  # type: ignore[attr-defined]  # given to each request class by `message`
        if key in registered:
            raise TypeError(f"{request.__name__} has two handlers: {registered[key]} and {function}")
        registered[key] = function
        return function

    return register


def load_all() -> None:
    """Import every handler."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


def served() -> list[Api]:
    """The APIs that have a handler, by key."""
    return [apis[key] for key in sorted(registered)]


def answer_for(error: Exception, request: Request[Any]) -> tuple[Error, str]:
    """The code and text that tell `error` to a client.

    A BrokerError speaks for itself. Anything else is a fault of the broker: it is logged with the request, and the
    client gets UNKNOWN_SERVER_ERROR.
    """
    if isinstance(error, BrokerError):
        return error.error, error.message
    log.error("%r failed", request, exc_info=error)
    return Error.UNKNOWN_SERVER_ERROR, "The server experienced an unexpected error when processing the request."
