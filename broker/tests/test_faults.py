"""A fault in a handler is told as one, or closes the connection; it never looks like an answer."""

import pytest

from odradek.channel import top_level_error
from odradek.handlers.registry import CloseConnection, load_all
from odradek_protocol.connection import Request
from odradek_protocol.errors import Error
from odradek_protocol.schema import apis

load_all()


@pytest.mark.parametrize(("key", "version"), [(1, 7), (1, 18), (12, 0), (35, 3)])
def test_a_reply_with_a_place_for_it_carries_the_error(key: int, version: int) -> None:
    request = Request(apis[key], version, 1, "probe", None)
    assert top_level_error(apis[key], ValueError("broken"), request).error_code == Error.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(("key", "version"), [(1, 4), (1, 6), (35, 2), (2, 5), (0, 9)])
def test_a_version_without_one_closes_the_connection(key: int, version: int) -> None:
    request = Request(apis[key], version, 1, "probe", None)
    with pytest.raises(CloseConnection):
        top_level_error(apis[key], ValueError("broken"), request)
