"""Patterns against Python's own, and what is no pattern."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.groups.pattern import PatternError, TopicPattern

ATOMS = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", "[a-c]", r"\d", r"\w", r"\.", "(?:ab)", "(a|b)", "^", "$", "(?P<x>b)"]
)
REPEATS = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,}", "{0,2}", "*?"])
PARTS = st.tuples(ATOMS, REPEATS).map(lambda part: part[0] if part[0] in "^$" else "".join(part))
PATTERNS = st.lists(PARTS, max_size=5).map("".join)
NAMES = st.text("ab.1-", max_size=6)


@given(pattern=st.lists(PATTERNS, min_size=1, max_size=2).map("|".join), names=st.lists(NAMES, min_size=1, max_size=5))
def test_a_pattern_matches_whole_names_as_python_does(pattern: str, names: list[str]) -> None:
    if pattern.count("?P<x>") > 1:
        pattern = pattern.replace("?P<x>", "?:")
    compiled = TopicPattern(pattern)
    for name in names:
        assert compiled.matches(name) == bool(re.fullmatch(pattern, name, re.ASCII)), (pattern, name)


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("foo.*", ["foo", "foo-1", "foo.bar"], ["fo", "afoo", "FOO"]),
        ("(?i)foo[-.]\\w+", ["FOO-a", "foo.B"], ["foo-", "foo"]),
        ("[[:alpha:]]+[^[:alpha:]]", ["ab1", "a."], ["abc", "1"]),
        ("[]a-]{2}", ["]a", "--"], ["b]", "a"]),
        (r"\Aa\z", ["a"], ["aa"]),
        (r"a\x2eb", ["a.b"], ["acb"]),
        ("a{,2}", ["a{,2}"], ["a", "aa"]),
        ("", [""], ["a"]),
        ("(?<n>a)b", ["ab"], ["b"]),
    ],
)
def test_what_re2_has(pattern: str, names: list[str], others: list[str]) -> None:
    compiled = TopicPattern(pattern)
    assert all(map(compiled.matches, names))
    assert not any(map(compiled.matches, others))


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", "a)", "*a", "a**", "a+{2}", "[a", "\\", "[z-a]", "(?P<>a)", "(?P<n", "[[:nope:]]", "a{2,1}", "a{1001}"),
        *("(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"\1", r"\Qa\E", "(?s)a", r"\pL", r"\b", "(((a{100}){100}){100})"),
        "(" * 200 + "a" + ")" * 200,
    ],
)
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(PatternError):
        TopicPattern(pattern)


def test_time_grows_with_the_length_of_a_name_only() -> None:
    pattern = TopicPattern("((a+)+|b)+c")
    started = time.perf_counter()
    assert not pattern.matches("a" * 249)
    assert time.perf_counter() - started < 1
