"""A log folder in which one file holds something else.

The first byte of an input says which file of a stopped or a crashed broker's folder, the others are what it holds.
Invariant: that of `support.damage`. Every record is there that lies before the first changed byte.
"""

import shutil
from collections.abc import Iterator
from functools import cache

from support.damage import Template, check_start, first_lost, make_template

from fuzzing.folders import folder


@cache
def targets() -> list[tuple[Template, str]]:
    """The files, with the folder that each belongs to."""
    found = []
    for name in ("stopped", "crashed"):
        place = folder("recovery") / name
        place.mkdir()
        template = make_template(place, crash=name == "crashed")
        found += [(template, file) for file in template.files]
    assert len(found) <= 256
    return found


def seeds() -> Iterator[bytes]:
    """Each file as it was."""
    for number, (template, file) in enumerate(targets()):
        yield bytes([number]) + (template.folder / file).read_bytes()


def check(data: bytes) -> None:
    """Hold the invariant for one input."""
    if not data:
        return
    template, file = targets()[data[0] % len(targets())]
    content = data[1:]
    before = (template.folder / file).read_bytes()
    same = next(
        (at for at, (old, new) in enumerate(zip(before, content, strict=False)) if old != new),
        min(len(before), len(content)),
    )
    damaged = folder("recovery") / "damaged"
    shutil.copytree(template.folder, damaged)
    try:
        (damaged / file).write_bytes(content)
        check_start(template, damaged, file, first_lost(template, file, same))
    finally:
        shutil.rmtree(damaged)
