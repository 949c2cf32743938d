"""Patterns that consumers subscribe to topics with (SubscribedTopicRegex), matched against whole topic names.

Kafka matches them with RE2/J, whose time grows with the length of a name and never exponentially; Python's `re` has no
such promise, and a pattern is a stranger's. So a pattern becomes a nondeterministic automaton, whose sets of states are
the states of a deterministic one, made as names ask for them.

    pattern     branch ("|" branch)*
    branch      (atom ("*" | "+" | "?" | "{n}" | "{n,}" | "{n,m}") "?"?)*
    atom        a character, ".", "^", "$", \\d \\D \\w \\W \\s \\S \\A \\z, \\x7F, an escaped mark, [a-z] [^a-z] with
                [:alpha:] and its like, (pattern), (?:pattern), (?P<name>pattern), (?i) at the start of the pattern

As in RE2, there are no back references and no looking around. What RE2/J has and this has not: Unicode classes (names
of topics are ASCII), word boundaries, and flags other than (?i), which are INVALID_REGULAR_EXPRESSION here.
"""

import re
import string
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["PatternError", "TopicPattern"]

MOST_REPEATS = 1000
"""RE2's limit on counted repetition."""

MOST_STATES = 10_000
"""A pattern with more states is refused: repeats within repeats multiply."""

MOST_NESTED = 100
"""How deep groups may nest."""

MOST_SETS_KEPT = 2000
"""Sets of states that are remembered; behind that the automaton forgets them and starts again."""

COUNT = re.compile(r"\{([0-9]{1,9})(,?)([0-9]{0,9})\}")
"""A brace that counts."""

EVERY = frozenset(map(chr, range(128)))
DIGITS = frozenset(string.digits)
WORD = frozenset(string.ascii_letters + string.digits + "_")
SPACE = frozenset("\t\n\f\r ")
ESCAPED_SETS = {"d": DIGITS, "D": EVERY - DIGITS, "w": WORD, "W": EVERY - WORD, "s": SPACE, "S": EVERY - SPACE}
ESCAPED_CHARACTERS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
NAMED_SETS = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "blank": frozenset(" \t"),
    "digit": DIGITS,
    "lower": frozenset(string.ascii_lowercase),
    "punct": frozenset(string.punctuation),
    "space": SPACE | {"\v"},
    "upper": frozenset(string.ascii_uppercase),
    "word": WORD,
    "xdigit": frozenset(string.hexdigits),
}

Characters = frozenset[str]


class PatternError(ValueError):
    """What is no pattern; the text says why."""


@dataclass(slots=True)
class _State:
    """A step of the automaton: over one of `characters`, or (None) over nothing, at an edge of the name if `edge`."""

    characters: Characters | None = None
    edge: str = ""
    following: list[int] = field(default_factory=list)


Fragment = tuple[int, int]
"""The first and the last state of a part; the last one is open."""


class TopicPattern:
    """A compiled pattern. Raises PatternError when the text is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        compiler = _Compiler(text)
        self._states = compiler.states
        start, self._end = compiler.compile()
        self._start = self._closure([start], at_start=True)
        self._moves: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def matches(self, name: str) -> bool:
        """Whether the pattern stands for the whole name."""
        current = self._start
        for character in name:
            found = self._moves.get((current, character))
            if found is None:
                found = self._move(current, character)
            if not found:
                return False
            current = found
        return self._end in self._closure(current, at_start=not name, at_end=True)

    def _move(self, current: frozenset[int], character: str) -> frozenset[int]:
        if len(self._moves) >= MOST_SETS_KEPT:
            self._moves.clear()
        reached: list[int] = []
        for number in current:
            state = self._states[number]
            if state.characters is not None and character in state.characters:
                reached += state.following
        found = self._moves[current, character] = self._closure(reached)
        return found

    def _closure(
        self, numbers: "list[int] | frozenset[int]", *, at_start: bool = False, at_end: bool = False
    ) -> frozenset[int]:
        """The states that are reached without a character."""
        seen, waiting = set(numbers), list(numbers)
        while waiting:
            state = self._states[waiting.pop()]
            if (
                state.characters is not None
                or (state.edge == "^" and not at_start)
                or (state.edge == "$" and not at_end)
            ):
                continue
            for number in state.following:
                if number not in seen:
                    seen.add(number)
                    waiting.append(number)
        return frozenset(seen)


class _Compiler:
    """Reads a pattern from left to right and makes states of it."""

    def __init__(self, text: str) -> None:
        self.states: list[_State] = []
        self._ignore_case = text.startswith("(?i)")
        self._text = text
        self._at = 4 if self._ignore_case else 0
        self._depth = 0

    def compile(self) -> Fragment:
        fragment = self._alternatives()
        if self._at < len(self._text):
            raise PatternError("unexpected )")
        return fragment

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else ""

    def _take(self) -> str:
        character = self._peek()
        if not character:
            raise PatternError("missing argument at the end")
        self._at += 1
        return character

    def _accept(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _add(self, characters: Characters | None = None, edge: str = "") -> int:
        if len(self.states) >= MOST_STATES:
            raise PatternError("expression too large")
        if characters is not None and self._ignore_case:
            characters = frozenset(each for one in characters for each in (one.lower(), one.upper()))
        self.states.append(_State(characters, edge))
        return len(self.states) - 1

    def _link(self, source: int, target: int) -> None:
        self.states[source].following.append(target)

    def _step(self, characters: Characters | None = None, edge: str = "") -> Fragment:
        first, last = self._add(characters, edge), self._add()
        self._link(first, last)
        return first, last

    def _alternatives(self) -> Fragment:
        first, last = self._add(), self._add()
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise PatternError("expression nests too deeply")
        while True:
            start, end = self._sequence()
            self._link(first, start)
            self._link(end, last)
            if not self._accept("|"):
                self._depth -= 1
                return first, last

    def _sequence(self) -> Fragment:
        first = last = self._add()
        while self._peek() not in ("", "|", ")"):
            make = self._atom()
            if self._peek() and self._peek() in "*+?{":
                start, end = self._repeated(make)
            else:
                start, end = make()
            self._link(last, start)
            last = end
        return first, last

    def _repeated(self, make: Callable[[], Fragment]) -> Fragment:
        fewest, most = self._count()
        if fewest is None:
            # A brace that counts nothing stands for itself.
            return make()
        self._accept("?")
        if (self._peek() and self._peek() in "*+?") or COUNT.match(self._text, self._at):
            raise PatternError("invalid nested repetition operator")
        first = last = self._add()
        for _ in range(fewest):
            start, end = make()
            self._link(last, start)
            last = end
        if most is None:
            start, end = make()
            loop = self._add()
            self._link(last, loop)
            self._link(loop, start)
            self._link(end, loop)
            return first, loop
        stop = self._add()
        for _ in range(most - fewest):
            self._link(last, stop)
            start, end = make()
            self._link(last, start)
            last = end
        self._link(last, stop)
        return first, stop

    def _count(self) -> tuple[int | None, int | None]:
        counted = COUNT.match(self._text, self._at)
        if counted is None:
            mark = self._peek()
            self._at += mark != "{"
            return {"*": (0, None), "+": (1, None), "?": (0, 1), "{": (None, None)}[mark]
        self._at = counted.end()
        low, comma, high = counted.groups()
        fewest = int(low)
        most = (int(high) if high else None) if comma else fewest
        if max(fewest, most or 0) > MOST_REPEATS or (most is not None and most < fewest):
            raise PatternError("bad repetition operator")
        return fewest, most

    def _atom(self) -> Callable[[], Fragment]:
        """How to make the next part; more than once where it is repeated."""
        character = self._take()
        if character in "*+?":
            raise PatternError("missing argument to repetition operator")
        if character == "(":
            return self._group()
        if character == "^" or (character == "\\" and self._accept("A")):
            return lambda: self._step(edge="^")
        if character == "$" or (character == "\\" and self._accept("z")):
            return lambda: self._step(edge="$")
        if character == ".":
            characters = EVERY - {"\n"}
        elif character == "[":
            characters = self._class()
        elif character == "\\":
            characters = self._escape()
        else:
            characters = frozenset(character)
        return lambda: self._step(characters)

    def _group(self) -> Callable[[], Fragment]:
        if self._accept("?"):
            if self._accept("P<") or (
                self._peek() == "<" and self._text[self._at + 1 : self._at + 2] not in ("=", "!")
            ):
                name, bracket, _ = self._text[self._at :].lstrip("<").partition(">")
                if not bracket or not name or not set(name) <= WORD:
                    raise PatternError("invalid named capture")
                self._at = self._text.index(">", self._at) + 1
            elif not self._accept(":"):
                raise PatternError("invalid or unsupported Perl syntax")
        start = self._at

        def make() -> Fragment:
            self._at = start
            fragment = self._alternatives()
            if not self._accept(")"):
                raise PatternError("missing closing )")
            return fragment

        made = [make()]

        def again() -> Fragment:
            if made:
                return made.pop()
            resume = self._at
            fragment = make()
            self._at = resume
            return fragment

        return again

    def _escape(self) -> Characters:
        character = self._take()
        if character in ESCAPED_SETS:
            return ESCAPED_SETS[character]
        if character in ESCAPED_CHARACTERS:
            return frozenset(ESCAPED_CHARACTERS[character])
        if character == "x":
            digits = self._text[self._at : self._at + 2]
            if len(digits) == 2 and set(digits) <= set(string.hexdigits):
                self._at += 2
                return frozenset(chr(int(digits, 16)))
        if character == "Q":
            raise PatternError("quoting is not supported")
        if character in string.punctuation:
            return frozenset(character)
        raise PatternError("invalid escape sequence")

    def _class(self) -> Characters:
        inverted = self._accept("^")
        found: set[str] = set()
        first = True
        while first or self._peek() != "]":
            if not self._peek():
                raise PatternError("missing closing ]")
            first = False
            if self._accept("[:"):
                found |= self._named_set()
                continue
            low = self._member()
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("", "]") and len(low) == 1:
                self._at += 1
                high = self._member()
                if len(high) != 1 or min(low) > min(high):
                    raise PatternError("invalid character class range")
                found.update(map(chr, range(ord(min(low)), ord(min(high)) + 1)))
            else:
                found |= low
        self._at += 1
        return EVERY - found if inverted else frozenset(found)

    def _member(self) -> Characters:
        character = self._take()
        return self._escape() if character == "\\" else frozenset(character)

    def _named_set(self) -> Characters:
        close = self._text.find(":]", self._at)
        name = self._text[self._at : max(close, self._at)]
        inverted = name.startswith("^")
        if name.removeprefix("^") not in NAMED_SETS:
            raise PatternError("invalid character class range")
        self._at = close + 2
        named = NAMED_SETS[name.removeprefix("^")]
        return EVERY - named if inverted else named
