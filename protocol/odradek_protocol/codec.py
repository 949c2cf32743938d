"""Messages to bytes and back: one flat function per (struct, version, direction), compiled on first use.

A table that is walked field by field costs ten times a function that was written for exactly this message and
version, so that is what is made here, from the `schema` entries. Neighbouring fields of fixed width, and the lengths
behind them, become one `struct` call; arrays become loops in place, or are left to `columns`; an empty set of tagged
fields is one byte in such a call. The source of each function is put into `linecache`, so a traceback shows its lines.

Reading never trusts a length: each one is checked against the bytes that are left before anything is made from it.
Whatever the bytes, only ProtocolError leaves a decoder.

A decoder takes a memoryview and a position, and gives the message and the position behind it; `records` fields are
slices of that view. An encoder takes a message and a function that appends a part (bytes, a memoryview or `Records`).

Source: Kafka protocol guide, "Protocol Primitive Types"; KIP-482 for compact forms and tagged fields.
"""

import linecache
import struct
from collections.abc import Callable
from typing import Any, cast

from odradek_protocol.columns import MANY, Columns, Layout
from odradek_protocol.errors import ProtocolError
from odradek_protocol.schema import FIXED, Field, Records, Struct
from odradek_protocol.varint import UVARINTS, decode_uvarint, encode_uvarint

__all__ = ["Decoder", "Encoder", "Part", "decode", "decoder", "encode", "encoder"]

Part = bytes | bytearray | memoryview | Records
Decoder = Callable[[memoryview, int], tuple[Any, int]]
Encoder = Callable[[Any, Callable[[Part], Any]], None]


def decode(kind: type[Any], version: int, payload: bytes | memoryview, *, flexible: bool) -> Any:
    """Read one message of type `kind` from the start of `payload`; bytes behind it are not looked at.

    Raises ProtocolError when the bytes are no such message.
    """
    return decoder(kind, version, flexible)(memoryview(payload), 0)[0]


def encode(value: object, version: int, *, flexible: bool) -> bytes:
    """The bytes of one message that holds no `Records`.

    Raises ProtocolError when a value does not fit its field.
    """
    parts: list[Any] = []
    kind: type[Any] = type(value)
    encoder(kind, version, flexible)(value, parts.append)
    return b"".join(parts)


def decoder(kind: type[Any], version: int, flexible: bool) -> Decoder:
    """The function that reads `kind` in `version`."""
    made = _decoders.get((kind, version, flexible))
    if made is None:
        made = _decoders[kind, version, flexible] = _make_decoder(kind, version, flexible)
    return made


def encoder(kind: type[Any], version: int, flexible: bool) -> Encoder:
    """The function that writes `kind` in `version`."""
    made = _encoders.get((kind, version, flexible))
    if made is None:
        made = _encoders[kind, version, flexible] = _make_encoder(kind, version, flexible)
    return made


_decoders: dict[tuple[type, int, bool], Decoder] = {}
_encoders: dict[tuple[type, int, bool], Encoder] = {}


def _make_decoder(kind: type[Struct], version: int, flexible: bool) -> Decoder:
    source = _DecoderSource(flexible)
    source.line("def decode(m, p):")
    source.depth = 1
    source.line("try:")
    source.depth = 2
    source.line("e = len(m)")
    source.struct(kind, version, "o")
    source.flush()
    source.line("return o, p")
    source.depth = 1
    source.line("except (IndexError, struct_error, UnicodeDecodeError) as error:")
    source.line(f"    raise ProtocolError(f'{kind.__name__} version {version}: {{error}}') from error")
    return cast(Decoder, source.compile("decode", kind, version))


def _make_encoder(kind: type[Struct], version: int, flexible: bool) -> Encoder:
    source = _EncoderSource(flexible)
    source.line("def encode(o, a):")
    source.depth = 1
    source.line("try:")
    source.depth = 2
    source.struct(kind, version, "o")
    source.flush()
    source.line("pass")
    source.depth = 1
    source.line("except (struct_error, AttributeError, TypeError, OverflowError, UnicodeEncodeError) as error:")
    source.line(f"    raise ProtocolError(f'{kind.__name__} version {version}: {{error}}') from error")
    return cast(Encoder, source.compile("encode", kind, version))


class _Source:
    """Lines of a function in the making, the objects they name, and the run of fixed-width values not yet written."""

    def __init__(self, flexible: bool) -> None:
        self.flexible = flexible
        self.lines: list[str] = []
        self.depth = 0
        self.names = 0
        self.run: list[tuple[str, str]] = []
        self.scope: dict[str, Any] = {
            "ProtocolError": ProtocolError,
            "struct_error": struct.error,
            "unpack": struct.unpack_from,
            "pack": struct.pack,
            "new": object.__new__,
            "uvarint": decode_uvarint,
            "to_uvarint": encode_uvarint,
            "U": UVARINTS,
        }

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def bind(self, prefix: str, value: Any) -> str:
        name = self.name(prefix)
        self.scope[name] = value
        return name

    def flush(self) -> None:
        raise NotImplementedError

    def compile(self, function: str, kind: type[Struct], version: int) -> Any:
        text = "\n".join(self.lines) + "\n"
        file = f"<{function} {kind.__module__}.{kind.__name__} version {version}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), self.scope)  # noqa: S102
        return self.scope[function]


def _present(kind: type[Struct], version: int) -> tuple[list[Field], list[Field]]:
    """The fields of `kind` in `version`: those in line, and the tagged ones in the order of their tags."""
    present = [field for field in kind.FIELDS if field.in_version(version)]
    tagged = sorted((field for field in present if field.tag is not None), key=lambda field: field.tag or 0)
    return [field for field in present if field.tag is None], tagged


class _DecoderSource(_Source):
    def flush(self) -> None:
        if not self.run:
            return
        layout = struct.Struct(">" + "".join(code for code, _ in self.run))
        targets = ", ".join(target for _, target in self.run)
        self.line(f"{targets}, = {self.bind('S', layout.unpack_from)}(m, p)")
        self.line(f"p += {layout.size}")
        self.run.clear()

    def fixed(self, code: str, target: str) -> None:
        self.run.append((code, target))

    def uvarint(self, target: str) -> None:
        self.flush()
        self.line(f"{target} = m[p]; p += 1")
        self.line(f"if {target} > 127: {target}, p = uvarint(m, p - 1)")

    def struct(self, kind: type[Struct], version: int, target: str) -> None:
        inline, tagged = _present(kind, version)
        cls = self.bind("C", kind)
        self.line(f"{target} = new({cls})")
        for field in kind.FIELDS:
            if not field.in_version(version) or field.tag is not None:
                self.line(f"{target}.{field.name} = {self.bind('D', field.absent_value)}")
        for field in inline:
            self.value(field, version, f"{target}.{field.name}")
        if self.flexible:
            self.tagged(tagged, version, target)

    def tagged(self, fields: list[Field], version: int, target: str) -> None:
        count, tag, size, stop = (self.name(prefix) for prefix in ("n", "t", "z", "q"))
        self.uvarint(count)
        self.line(f"for _ in range({count}):")
        self.depth += 1
        self.uvarint(tag)
        self.uvarint(size)
        self.line(f"{stop} = p + {size}")
        self.line(f"if {stop} > e: raise ProtocolError(f'tagged field {{{tag}}} of {{{size}}} bytes is cut short')")
        for index, field in enumerate(fields):
            self.line(f"{'elif' if index else 'if'} {tag} == {field.tag}:")
            self.depth += 1
            self.value(field, version, f"{target}.{field.name}")
            self.flush()
            self.line(f"if p != {stop}: raise ProtocolError('tagged field {field.name} has another size')")
            self.depth -= 1
        self.line(f"p = {stop}")
        self.depth -= 1

    def value(self, field: Field, version: int, target: str) -> None:
        if field.kind in FIXED:
            self.fixed(FIXED[field.kind], target)
        elif field.kind == "struct":
            self.nested(field, version, target)
        elif field.kind == "array":
            self.array(field, version, target)
        else:
            self.bytes(field, version, target)

    def length(self, code: str, field: Field, version: int, target: str) -> str:
        """Lines that read a length or count into a variable, and open the branch in which it is not null."""
        size = self.name("n")
        if self.flexible:
            self.uvarint(size)
            self.line(f"{size} -= 1")
        else:
            self.fixed(code, size)
            self.flush()
        self.line(f"if {size} < 0:")
        if field.nullable(version):
            self.line(f"    {target} = None")
        else:
            self.line(f"    raise ProtocolError('{field.name or 'an element'} is null')")
        self.line("else:")
        self.depth += 1
        return size

    def bytes(self, field: Field, version: int, target: str) -> None:
        size = self.length("h" if field.kind == "string" else "i", field, version, target)
        stop = self.name("q")
        self.line(f"{stop} = p + {size}")
        self.line(f"if {stop} > e: raise ProtocolError(f'{field.name} of {{{size}}} bytes is cut short')")
        read = {"string": "m[p:{}].tobytes().decode()", "bytes": "m[p:{}].tobytes()", "records": "m[p:{}]"}[field.kind]
        self.line(f"{target} = {read.format(stop)}")
        self.line(f"p = {stop}")
        self.depth -= 1

    def nested(self, field: Field, version: int, target: str) -> None:
        assert isinstance(field.of, type)
        inner = self.name("o")
        if field.nullable(version):
            mark = self.name("n")
            self.fixed("b", mark)
            self.flush()
            self.line(f"if {mark} < 0: {target} = None")
            self.line("else:")
            self.depth += 1
        self.struct(field.of, version, inner)
        self.flush()
        self.line(f"{target} = {inner}")
        if field.nullable(version):
            self.depth -= 1

    def array(self, field: Field, version: int, target: str) -> None:
        count = self.length("i", field, version, target)
        element = field.of
        if isinstance(element, Field) and element.kind in FIXED and element.kind != "uuid":
            code = FIXED[element.kind]
            width = struct.calcsize(">" + code)
            self.line(f"if {count} * {width} > e - p: raise ProtocolError(f'{{{count}}} elements are cut short')")
            self.line(f"{target} = list(unpack(f'>{{{count}}}{code}', m, p))")
            self.line(f"p += {count} * {width}")
        else:
            items, item = self.name("l"), self.name("v")
            self.line(f"if {count} > e - p: raise ProtocolError(f'{field.name}: {{{count}}} elements are cut short')")
            if field.by_column:
                assert isinstance(element, type)
                read = self.bind("R", Layout(element, version, flexible=self.flexible).read)
                self.line(f"{target}, p = {read}(m, p, {count}) if {count} >= {MANY} else (None, p)")
                self.line(f"if {target} is None:")
                self.depth += 1
            self.line(f"{target} = {items} = []")
            self.line(f"for _ in range({count}):")
            self.depth += 1
            if isinstance(element, Field):
                self.value(element, version, item)
            else:
                assert element is not None
                self.struct(element, version, item)
            self.flush()
            self.line(f"{items}.append({item})")
            self.depth -= 2 if field.by_column else 1
        self.depth -= 1


class _EncoderSource(_Source):
    def flush(self, behind: str = "") -> None:
        """Write the run; `behind` is what more goes into the same part."""
        if not self.run:
            return
        layout = struct.Struct(">" + "".join(code for code, _ in self.run))
        values = ", ".join(value for _, value in self.run if value)
        if values:
            self.line(f"a({self.bind('S', layout.pack)}({values}){behind})")
        else:
            self.line(f"a({bytes(layout.size)!r}{behind})")
        self.run.clear()

    def fixed(self, code: str, value: str) -> None:
        self.run.append((code, value))

    def uvarint(self, value: str, behind: str = "") -> None:
        """Write a varint behind the run; `behind` as in `flush`."""
        written = f"(U[{value}] if {value} < 256 else to_uvarint({value})){behind}"
        if self.run:
            self.flush(f" + {written}")
        else:
            self.line(f"a({written})")

    def struct(self, kind: type[Struct], version: int, source: str) -> None:
        inline, tagged = _present(kind, version)
        for field in inline:
            self.value(field, version, f"{source}.{field.name}")
        if self.flexible and not tagged:
            self.fixed("x", "")
        elif self.flexible:
            self.tagged(tagged, version, source)

    def tagged(self, fields: list[Field], version: int, source: str) -> None:
        self.flush()
        found, parts, body, keep = (self.name(prefix) for prefix in ("g", "l", "b", "k"))
        self.line(f"{found} = []")
        for field in fields:
            value = f"{source}.{field.name}"
            self.line(f"if {self.differs_from_default(field, value)}:")
            self.depth += 1
            self.line(f"{parts} = []; {keep} = a; a = {parts}.append")
            self.value(field, version, value)
            self.flush()
            self.line(f"a = {keep}; {body} = b''.join({parts})")
            self.line(f"{found} += (to_uvarint({field.tag}), to_uvarint(len({body})), {body})")
            self.depth -= 1
        self.line(f"if {found}: a(to_uvarint(len({found}) // 3)); a(b''.join({found}))")
        self.line("else: a(b'\\x00')")

    def differs_from_default(self, field: Field, value: str) -> str:
        """The condition under which a tagged field is written; an empty array is one whatever its type."""
        if field.kind == "array" and field.absent_value is not None:
            return f"{value} is None or len({value})"
        default = self.bind("D", field.absent_value)
        return f"{value} is not {default} and {value} != {default}"

    def value(self, field: Field, version: int, source: str) -> None:
        if field.kind in FIXED:
            self.fixed(FIXED[field.kind], source)
        elif field.kind == "struct":
            self.nested(field, version, source)
        elif field.kind == "array":
            self.array(field, version, source)
        else:
            self.bytes(field, version, source)

    def bytes(self, field: Field, version: int, source: str) -> None:
        """A length and what it counts; text, which is short, in one part with its length."""
        value, size = self.name("v"), self.name("n")
        is_text = field.kind == "string"
        read = f"{source}.encode()" if is_text else source
        if field.nullable(version):
            self.line(f"if {source} is None: {value} = b''; {size} = -1")
            self.line(f"else: {value} = {read}; {size} = len({value})")
        else:
            self.line(f"{value} = {read}; {size} = len({value})")
        behind = f" + {value}" if is_text else ""
        if self.flexible:
            self.line(f"{size} += 1")
            self.uvarint(size, behind)
        else:
            self.fixed("h" if is_text else "i", size)
            self.flush(behind)
        if not is_text:
            self.line(f"if {size} > {int(self.flexible)}: a({value})")

    def nested(self, field: Field, version: int, source: str) -> None:
        assert isinstance(field.of, type)
        inner = self.name("o")
        self.line(f"{inner} = {source}")
        if field.nullable(version):
            self.flush()
            self.line(f"if {inner} is None: a(b'\\xff')")
            self.line("else:")
            self.depth += 1
            self.fixed("b", "1")
        self.struct(field.of, version, inner)
        if field.nullable(version):
            self.flush()
            self.depth -= 1

    def array(self, field: Field, version: int, source: str) -> None:
        items, count, item = self.name("l"), self.name("n"), self.name("v")
        self.line(f"{items} = {source}")
        if field.nullable(version):
            self.line(f"if {items} is None: {count} = -1; {items} = ()")
            self.line(f"else: {count} = len({items})")
        else:
            self.line(f"{count} = len({items})")
        if self.flexible:
            self.line(f"{count} += 1")
            self.uvarint(count)
        else:
            self.fixed("i", count)
            self.flush()
        element = field.of
        if isinstance(element, Field) and element.kind in FIXED and element.kind != "uuid":
            self.line(f"a(pack(f'>{{len({items})}}{FIXED[element.kind]}', *{items}))")
            return
        if field.by_column:
            assert isinstance(element, type)
            layout = Layout(element, version, flexible=self.flexible)
            if layout.is_fixed:
                self.line(f"if type({items}) is {self.bind('C', Columns)}:")
                self.line(f"    a({self.bind('W', layout.write)}({items})); {items} = ()")
        self.line(f"for {item} in {items}:")
        self.depth += 1
        if isinstance(element, Field):
            self.value(element, version, item)
        else:
            assert element is not None
            self.struct(element, version, item)
        self.flush()
        self.line("pass")
        self.depth -= 1
