"""Structs, messages and the registry of APIs."""

from collections.abc import Sequence
from typing import Any

import pytest

from odradek_protocol.messages import load_all
from odradek_protocol.schema import (
    NULL_UUID,
    Field,
    Records,
    apis,
    array,
    int32,
    message,
    string,
    struct,
    uuid,
)


@struct
class Point:
    x: int = int32()
    y: int = int32(default=0)


@struct
class Path:
    name: str | None = string(nullable_since=2, default=None)
    points: Sequence[Point] = array(Point, since=1, until=3, default=())
    id: bytes = uuid(since=4, default=NULL_UUID)


class TestStruct:
    def test_is_made_by_keyword_with_defaults(self) -> None:
        point = Point(x=1)
        assert (point.x, point.y) == (1, 0)

    def test_lacks_nothing_without_a_default(self) -> None:
        with pytest.raises(TypeError, match="'x'"):
            Point(y=1)  # type: ignore[call-arg]  # what is tested

    @pytest.mark.parametrize("arguments", [{"x": 1, "z": 2}, {"X": 1}])
    def test_has_only_its_fields(self, arguments: dict[str, int]) -> None:
        with pytest.raises(TypeError):
            Point(**arguments)
        with pytest.raises(AttributeError):
            Point(x=1).z = 2  # type: ignore[attr-defined]  # what is tested

    def test_is_equal_by_value(self) -> None:
        assert Point(x=1) == Point(x=1, y=0)
        assert Point(x=1) != Point(x=2)
        assert Point(x=1) != (1, 0)

    def test_arrays_are_equal_whatever_their_type(self) -> None:
        assert Path(points=[Point(x=1)]) == Path(points=(Point(x=1),))
        assert Path(points=[]) == Path()
        assert Path(points=[Point(x=1)]) != Path(points=[Point(x=1), Point(x=1)])

    def test_can_be_changed_and_so_is_not_hashable(self) -> None:
        point = Point(x=1)
        point.x = 5
        assert point == Point(x=5)
        with pytest.raises(TypeError, match="unhashable"):
            hash(point)

    def test_shows_its_values(self) -> None:
        assert repr(Path(points=[Point(x=1)])) == f"Path(name=None, points=[Point(x=1, y=0)], id={NULL_UUID!r})"

    def test_has_slots_only(self) -> None:
        assert not hasattr(Point(x=1), "__dict__")

    def test_without_fields(self) -> None:
        @struct
        class Nothing:
            pass

        assert Nothing() == Nothing()

    def test_attribute_that_is_no_field_is_refused(self) -> None:
        with pytest.raises(TypeError, match=r"Wrong\.x is no field: 7"):

            @struct
            class Wrong:
                x: int = 7


class TestField:
    @pytest.mark.parametrize(
        ("since", "until", "versions"), [(0, None, {0, 1, 2, 3, 4}), (2, None, {2, 3, 4}), (1, 2, {1, 2}), (0, 0, {0})]
    )
    def test_versions(self, since: int, until: int | None, versions: set[int]) -> None:
        field = Field("int32", since=since, until=until)
        assert {version for version in range(5) if field.in_version(version)} == versions

    def test_null(self) -> None:
        assert [Field("string", nullable_since=2).nullable(version) for version in (1, 2, 3)] == [False, True, True]
        assert not Field("string").nullable(0)

    @pytest.mark.parametrize(
        ("kind", "zero"), [("int64", 0), ("string", ""), ("uuid", NULL_UUID), ("array", ()), ("bool", False)]
    )
    def test_value_where_it_is_absent(self, kind: str, zero: Any) -> None:
        assert Field(kind).absent_value == zero
        assert Field(kind, default="else").absent_value == "else"


class TestApis:
    def test_a_request_registers_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("odradek_protocol.schema.apis", taken := dict[int, Any]())

        @message(key=999, versions=(1, 3), flexible=2, response=Point)
        class PointRequest:
            x: int = int32()

        api = taken[999]
        assert (api.name, api.request, api.response) == ("Point", PointRequest, Point)
        assert (api.first, api.last, api.flexible) == (1, 3, 2)
        assert repr(api) == "Api(999, Point, 1-3)"
        with pytest.raises(TypeError, match="key 999"):
            message(key=999, versions=(0, 0), response=Point)(type("OtherRequest", (), {}))

    def test_a_request_needs_a_response(self) -> None:
        with pytest.raises(TypeError, match="has no response"):
            message(key=998, versions=(0, 0))(type("LonelyRequest", (), {}))

    def test_a_message_without_a_key_is_not_served(self) -> None:
        load_all()
        known = dict(apis)

        @message(versions=(0, 0))
        class Stored:
            x: int = int32()

        assert apis == known

    def test_every_api_is_loaded(self) -> None:
        load_all()
        served = {0, 1, 2, 3, 8, 9, *range(10, 24), 32, 33, 34, 35, 37, 42, 44, 47, 60, 74, 75}
        assert served <= apis.keys()
        assert all(key == api.key and api.request.API is api for key, api in apis.items())  # type: ignore[attr-defined]


def test_records_tell_their_size() -> None:
    assert len(Records(7)) == 7
