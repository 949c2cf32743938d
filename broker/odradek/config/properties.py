r"""`server.properties` files: the syntax of java.util.Properties.

A natural line ends in \n, \r or \r\n. A line whose first character after blanks is # or ! is a comment, and a blank
one is nothing. A line that ends in an odd number of backslashes goes on in the next one, whose leading blanks do not
count. Key and value are parted by blanks with at most one = or : among them. Escapes: \t \n \r \f \uXXXX; any other
escaped character is itself. A later line with the same key wins.
"""

import re
from collections.abc import Iterator

from odradek.config.errors import ConfigError

__all__ = ["decode", "parse"]

BLANKS = " \t\f"
NATURAL_LINE_END = re.compile(r"\r\n|\n|\r")
CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
PARTS = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def decode(data: bytes) -> str:
    """The text of a file: UTF-8, or ISO-8859-1 (which Java reads) where it is not."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def parse(text: str) -> dict[str, str]:
    """The settings of a properties file. ConfigError on a malformed \\uXXXX."""
    settings = {}
    for line in _logical_lines(text):
        match = PARTS.match(line)
        assert match is not None
        key = _unescape(match[1], line)
        settings[key] = _unescape(match[2], line)
    return settings


def _logical_lines(text: str) -> Iterator[str]:
    lines = iter(NATURAL_LINE_END.split(text))
    for line in lines:
        whole = line.lstrip(BLANKS)
        if not whole or whole[0] in "#!":
            continue
        while CONTINUED.search(whole):
            whole = whole[:-1] + next(lines, "").lstrip(BLANKS)
        yield whole


def _unescape(text: str, line: str) -> str:
    if "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        escaped = match[1]
        if len(escaped) > 1:
            return chr(int(escaped[1:], 16))
        if escaped == "u":
            raise ConfigError(text, line, r"four hexadecimal digits after \u", text=rf"Malformed \uXXXX in: {line}")
        return CONTROL.get(escaped, escaped)

    plain = ESCAPE.sub(replace, text)
    # A character beyond U+FFFF is written as two escapes, the halves of its UTF-16 pair.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
