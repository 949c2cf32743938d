"""The syntax of server.properties; the expected values were read by java.util.Properties."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.config import ConfigError
from odradek.config.properties import decode, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b=c", {"a": "b=c"}),
        ("a = b ", {"a": "b "}),
        ("\ta\f=\tb", {"a": "b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=v", {"": "v"}),
        ("k==v", {"k": "=v"}),
        ("k = = v", {"k": "= v"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("  ! x\n#y\n\n \t\na=b", {"a": "b"}),
        ("#x\\\na=b", {"a": "b"}),
        ("\\#a=1", {"#a": "1"}),
        ("a\\=b=c\\:d", {"a=b": "c:d"}),
        ("k\\ 1=v", {"k 1": "v"}),
        ("a=\\ b", {"a": " b"}),
        ("k=\\u00e9\\t\\q\\\\", {"k": "é\tq\\"}),
        ("k=\\uD83D\\uDE00", {"k": "😀"}),
        ("a=b\\\n  c\n", {"a": "bc"}),
        ("a\\\n b=c", {"ab": "c"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a\\\n#b=c", {"a#b": "c"}),
        ("a=1\\\n\\\n2", {"a": "12"}),
        ("a=x\\", {"a": "x"}),
        ("a=x\\\\\nb=1", {"a": "x\\", "b": "1"}),
    ],
)
def test_parse(text: str, expected: dict[str, str]) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["k=\\u12", "k=\\u12zz", "k=\\u", "\\uzzzz=v"])
def test_a_malformed_escape_is_told_with_its_line(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"a=b\n{text}")
    assert text in str(caught.value)


def test_a_file_is_utf_8_or_latin_1() -> None:
    assert decode("a=é".encode()) == "a=é"
    assert decode("a=é".encode("latin-1")) == "a=é"


def escaped(text: str) -> str:
    """`text` as java.util.Properties.store writes it."""
    names = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
    written = []
    for character in text:
        if character in names:
            written.append(names[character])
        elif character in " =:#!\\":
            written.append("\\" + character)
        elif not 0x20 <= ord(character) <= 0x7E:
            units = character.encode("utf-16-be")
            written.extend(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
        else:
            written.append(character)
    return "".join(written)


@given(st.dictionaries(st.text(), st.text()))
def test_what_java_stores_is_read_back(settings: dict[str, str]) -> None:
    lines = [f"{escaped(key)}={escaped(value)}" for key, value in settings.items()]
    assert parse("\n".join(lines)) == settings


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ConfigError):
        parse(text)
