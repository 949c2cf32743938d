"""How a message is written down: a class is the schema entry.

    @message(key=12, versions=(0, 4), flexible=4, response=HeartbeatResponse)
    class HeartbeatRequest:
        group_id: str = string()
        generation_id: int = int32()
        member_id: str = string()
        group_instance_id: str | None = string(since=3, nullable_since=3, default=None)

Rules:

- A field names the versions that have it: `since` (0 unless told) up to `until` (the newest unless told). In any
  other version it is not written, and takes its default when read. So code that handles a message never asks
  whether a version has a field.
- `nullable_since` is the first version in which null may be sent; no `nullable_since`, never null.
- A field with a `tag` is a tagged field (KIP-482), from `since` on; it is written where it differs from its default.
- A field without a `default` has to be given when a message is made.
- The range in `@message` is what is *served*; ApiVersions, the decoder table and the answer to an unsupported version
  are all made from `apis`, the one registry.
- Wire types stay wire types: times are integer milliseconds, uuids are 16 `bytes`, records are memoryviews.

The classes are plain: slots, keyword arguments, equality by value. `codec` turns them into bytes and back.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

__all__ = [
    "NULL_UUID",
    "Api",
    "Field",
    "Records",
    "Struct",
    "apis",
    "array",
    "boolean",
    "data",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "message",
    "nested",
    "records",
    "string",
    "struct",
    "uint16",
    "uint32",
    "uuid",
]

T = TypeVar("T")

NULL_UUID = bytes(16)
"""The uuid that means "none"."""


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()


class Records:
    """A run of record batches that is not in memory: something with a size that the sender knows how to send.

    A reply's `records` field may hold one instead of bytes; the encoder writes the length and puts the object itself
    among the parts of the frame.
    """

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


class Field:
    """One field of a struct: its wire type and in which versions it is there, may be null, is tagged."""

    __slots__ = ("by_column", "default", "kind", "name", "nullable_since", "of", "since", "tag", "until")

    def __init__(
        self,
        kind: str,
        *,
        since: int = 0,
        until: int | None = None,
        nullable_since: int | None = None,
        default: Any = REQUIRED,
        tag: int | None = None,
        of: "Field | type[Struct] | None" = None,
        by_column: bool = False,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.since = since
        self.until = until
        self.nullable_since = nullable_since
        self.default = default
        self.tag = tag
        self.of = of
        self.by_column = by_column

    def in_version(self, version: int) -> bool:
        """Whether messages of `version` have the field."""
        return self.since <= version and (self.until is None or version <= self.until)

    def nullable(self, version: int) -> bool:
        """Whether the field may be null in `version`."""
        return self.nullable_since is not None and version >= self.nullable_since

    @property
    def absent_value(self) -> Any:
        """What the field is where a version lacks it: the default, or the type's zero."""
        return ZEROS[self.kind] if self.default is REQUIRED else self.default


FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""The types of fixed width, as `struct` names them."""

ZEROS: dict[str, Any] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "uint32": 0,
    "int64": 0,
    "float64": 0.0,
    "uuid": NULL_UUID,
    "string": "",
    "bytes": b"",
    "records": None,
    "array": (),
    "struct": None,
}


def boolean(*, since: int = 0, until: int | None = None, default: bool = REQUIRED, tag: int | None = None) -> bool:
    """A byte, 0 or 1."""
    return cast(bool, Field("bool", since=since, until=until, default=default, tag=tag))


def int8(*, since: int = 0, until: int | None = None, default: int = REQUIRED, tag: int | None = None) -> int:
    """A signed byte."""
    return cast(int, Field("int8", since=since, until=until, default=default, tag=tag))


def int16(*, since: int = 0, until: int | None = None, default: int = REQUIRED, tag: int | None = None) -> int:
    """A signed 16-bit integer, big-endian as all of them."""
    return cast(int, Field("int16", since=since, until=until, default=default, tag=tag))


def uint16(*, since: int = 0, until: int | None = None, default: int = REQUIRED, tag: int | None = None) -> int:
    """An unsigned 16-bit integer."""
    return cast(int, Field("uint16", since=since, until=until, default=default, tag=tag))


def int32(*, since: int = 0, until: int | None = None, default: int = REQUIRED, tag: int | None = None) -> int:
    """A signed 32-bit integer."""
    return cast(int, Field("int32", since=since, until=until, default=default, tag=tag))


def uint32(*, since: int = 0, until: int | None = None, default: int = REQUIRED, tag: int | None = None) -> int:
    """An unsigned 32-bit integer."""
    return cast(int, Field("uint32", since=since, until=until, default=default, tag=tag))


def int64(*, since: int = 0, until: int | None = None, default: int = REQUIRED, tag: int | None = None) -> int:
    """A signed 64-bit integer."""
    return cast(int, Field("int64", since=since, until=until, default=default, tag=tag))


def float64(*, since: int = 0, until: int | None = None, default: float = REQUIRED, tag: int | None = None) -> float:
    """An IEEE 754 double."""
    return cast(float, Field("float64", since=since, until=until, default=default, tag=tag))


def uuid(*, since: int = 0, until: int | None = None, default: bytes = REQUIRED, tag: int | None = None) -> bytes:
    """Sixteen bytes."""
    return cast(bytes, Field("uuid", since=since, until=until, default=default, tag=tag))


def string(
    *,
    since: int = 0,
    until: int | None = None,
    nullable_since: int | None = None,
    default: str | None = REQUIRED,
    tag: int | None = None,
) -> Any:
    """UTF-8 text: an int16 length (-1: null), or in flexible versions an unsigned varint of length + 1 (0: null)."""
    return Field("string", since=since, until=until, nullable_since=nullable_since, default=default, tag=tag)


def data(
    *,
    since: int = 0,
    until: int | None = None,
    nullable_since: int | None = None,
    default: bytes | None = REQUIRED,
    tag: int | None = None,
) -> Any:
    """Opaque bytes: an int32 length (-1: null), or in flexible versions an unsigned varint of length + 1 (0: null)."""
    return Field("bytes", since=since, until=until, nullable_since=nullable_since, default=default, tag=tag)


def records(
    *,
    since: int = 0,
    until: int | None = None,
    nullable_since: int | None = None,
    default: Any = REQUIRED,
    tag: int | None = None,
) -> Any:
    """Record batches: as `data`, but read as a memoryview of the frame, and written from bytes or from `Records`."""
    return Field("records", since=since, until=until, nullable_since=nullable_since, default=default, tag=tag)


def array(
    of: Any,
    *,
    since: int = 0,
    until: int | None = None,
    nullable_since: int | None = None,
    default: Sequence[Any] | None = REQUIRED,
    tag: int | None = None,
    by_column: bool = False,
) -> Any:
    """A list of structs (`array(Partition)`) or of plain values (`array(int32())`): a count, then the elements.

    The count is an int32 (-1: null), or in flexible versions an unsigned varint of count + 1 (0: null). Nullability
    is the array's: an element has its own (`array(string(nullable_since=0))`).

    Structs that are many and small may be read and written `by_column`: where they lie as `columns` says, the array
    that is read is a `columns.Columns`.
    """
    return Field(
        "array",
        since=since,
        until=until,
        nullable_since=nullable_since,
        default=default,
        tag=tag,
        of=of,
        by_column=by_column,
    )


def nested(
    of: type[T],
    *,
    since: int = 0,
    until: int | None = None,
    nullable_since: int | None = None,
    default: T | None = REQUIRED,
    tag: int | None = None,
) -> Any:
    """A struct in a struct. Where it may be null a signed byte stands before it: -1 null, 1 present.

    A `default` that is a struct is shared by all messages that lack the field: it is never to be changed.
    """
    inner = cast("type[Struct]", of)
    return Field("struct", since=since, until=until, nullable_since=nullable_since, default=default, tag=tag, of=inner)


class Struct:  # noqa: PLW1641 - mutable, so not hashable
    """What every struct and message is: named values in slots, made by keyword, equal by value."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[Field, ...]] = ()

    def __init__(self, **values: Any) -> None:
        _install_init(type(self))
        self.__init__(**values)  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_same(getattr(self, field.name), getattr(other, field.name)) for field in self.FIELDS)

    def __repr__(self) -> str:
        values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.FIELDS)
        return f"{type(self).__name__}({values})"


SCALARS = (str, bytes, bytearray, memoryview)
"""Sequences that are one value."""


def _same(mine: Any, theirs: Any) -> bool:
    """Equality by value, in which sequences of the same elements are the same array, whatever keeps them."""
    if not isinstance(mine, SCALARS) and isinstance(mine, Sequence) and isinstance(theirs, Sequence):
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))
    return bool(mine == theirs)


def _install_init(cls: type[Struct]) -> None:
    """Give `cls` an `__init__` of its own; done when the first one is made, so that importing stays cheap."""
    scope: dict[str, Any] = {}
    arguments = []
    for field in cls.FIELDS:
        if field.default is REQUIRED:
            arguments.append(field.name)
        else:
            scope[f"default_{field.name}"] = field.default
            arguments.append(f"{field.name}=default_{field.name}")
    header = f"def __init__(self, *, {', '.join(arguments)}):" if arguments else "def __init__(self):"
    body = [f"    self.{field.name} = {field.name}" for field in cls.FIELDS] or ["    pass"]
    exec("\n".join([header, *body]), scope)  # noqa: S102
    cls.__init__ = scope["__init__"]  # type: ignore[method-assign]


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(
        boolean,
        int8,
        int16,
        uint16,
        int32,
        uint32,
        int64,
        float64,
        uuid,
        string,
        data,
        records,
        array,
        nested,
    ),
)
def struct(cls: type[T]) -> type[T]:
    """Make a class of field specifiers a struct: the element of an array, a nested value, or a reply."""
    return _build(cls)


def _build(cls: type[T]) -> type[T]:
    namespace = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    fields = []
    for name in vars(cls).get("__annotations__", {}):
        field = namespace.pop(name)
        if not isinstance(field, Field):
            raise TypeError(f"{cls.__name__}.{name} is no field: {field!r}")
        field.name = name
        fields.append(field)
    namespace["__slots__"] = tuple(field.name for field in fields)
    namespace["FIELDS"] = tuple(fields)
    return cast(type[T], type(cls.__name__, (Struct,), namespace))


class Api:
    """One API key: its two messages and the versions that are served.

    `client_id_since` is the first version whose request header has a client id: 0 for all APIs but ControlledShutdown.
    """

    __slots__ = ("client_id_since", "first", "flexible", "key", "last", "name", "request", "response")

    def __init__(self, key: int, request: type, response: type, versions: tuple[int, int], flexible: int) -> None:
        self.key = key
        self.name = request.__name__.removesuffix("Request")
        self.request = request
        self.response = response
        self.first, self.last = versions
        self.flexible = flexible
        self.client_id_since = 0

    def __repr__(self) -> str:
        return f"Api({self.key}, {self.name}, {self.first}-{self.last})"


NEVER_FLEXIBLE = 1 << 15
"""A version that no message reaches."""

apis: dict[int, Api] = {}
"""Every API that has been imported, by key."""


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(
        boolean,
        int8,
        int16,
        uint16,
        int32,
        uint32,
        int64,
        float64,
        uuid,
        string,
        data,
        records,
        array,
        nested,
    ),
)
def message(
    *,
    versions: tuple[int, int],
    flexible: int = NEVER_FLEXIBLE,
    key: int | None = None,
    response: type | None = None,
    client_id_since: int = 0,
) -> Callable[[type[T]], type[T]]:
    """Make a class a message: a request (with `key` and `response`), or a record's key or value (without).

    `versions` is the first and the last version served, `flexible` the first one with compact lengths and tagged
    fields (KIP-482). Raises TypeError when two requests claim one key.
    """

    def build(cls: type[T]) -> type[T]:
        built = cast(Any, _build(cls))
        built.VERSIONS = versions
        built.FLEXIBLE = flexible
        if key is not None:
            if response is None or key in apis:
                raise TypeError(f"{cls.__name__}: key {key} has no response or is taken: {apis.get(key)}")
            built.API = apis[key] = Api(key, built, response, versions, flexible)
            built.API.client_id_since = client_id_since
        return cast(type[T], built)

    return build
