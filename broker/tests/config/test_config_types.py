"""How text becomes a value; the wording is that of Kafka's ConfigDef."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.config import ConfigError
from odradek.config.config_types import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    ConfigType,
    format_double,
)


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (BOOLEAN, "true", True),
        (BOOLEAN, " FALSE ", False),
        (STRING, " a b ", "a b"),
        (INT, "2147483647", 2147483647),
        (INT, "-2147483648", -2147483648),
        (INT, " +5 ", 5),
        (SHORT, "32767", 32767),
        (SHORT, "-32768", -32768),
        (LONG, "9223372036854775807", 9223372036854775807),
        (LONG, "-9223372036854775808", -9223372036854775808),
        (DOUBLE, "1e3", 1000.0),
        (DOUBLE, " .5", 0.5),
        (DOUBLE, "1d", 1.0),
        (LIST, "a, b ,c", ["a", "b", "c"]),
        (LIST, "a,,b", ["a", "", "b"]),
        (LIST, " ", []),
        (CLASS, "java.lang.String", "java.lang.String"),
        (PASSWORD, "p", "p"),
    ],
)
def test_parse(type_: ConfigType, text: str, value: object) -> None:
    assert type_.parse("k", text) == value


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (BOOLEAN, "yes", "Expected value to be either true or false"),
        (BOOLEAN, "", "Expected value to be either true or false"),
        (INT, "2147483648", "Not a number of type INT"),
        (INT, "-2147483649", "Not a number of type INT"),
        (INT, "1_000", "Not a number of type INT"),
        (INT, "", "Not a number of type INT"),
        (INT, "1.0", "Not a number of type INT"),
        (INT, "٣", "Not a number of type INT"),
        (INT, "9" * 10_000, "Not a number of type INT"),
        (SHORT, "32768", "Not a number of type SHORT"),
        (SHORT, "-32769", "Not a number of type SHORT"),
        (LONG, "9223372036854775808", "Not a number of type LONG"),
        (LONG, "-9223372036854775809", "Not a number of type LONG"),
        (LONG, "abc", "Not a number of type LONG"),
        (DOUBLE, "x", "Not a number of type DOUBLE"),
        (DOUBLE, "1_0", "Not a number of type DOUBLE"),
        (DOUBLE, "", "Not a number of type DOUBLE"),
    ],
)
def test_what_is_no_value_is_named(type_: ConfigType, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        type_.parse("some.key", text)
    assert str(caught.value) == f"Invalid value {text} for configuration some.key: {expected}"
    assert (caught.value.key, caught.value.value, caught.value.expected) == ("some.key", text, expected)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.5, "0.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (0.00025, "2.5E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (-2.5e10, "-2.5E10"),
        (1e21, "1.0E21"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_doubles_are_written_as_java_does(value: float, text: str) -> None:
    assert format_double(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_double_is_read_back(value: float) -> None:
    assert DOUBLE.parse("k", format_double(value)) == value


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [(STRING, None, None), (STRING, "a", "a"), (BOOLEAN, True, "true"), (LIST, ["a", "b"], "a,b"), (INT, 7, "7")],
)
def test_format(type_: ConfigType, value: object, text: str | None) -> None:
    assert type_.format(value) == text
