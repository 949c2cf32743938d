"""Any damage to any file of a log folder, and what a start makes of it: see `support.damage` for the invariants."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.damage import Template, check_append, check_start, fill, first_lost, make_template, open_store, read

from odradek_protocol.records.batch import iter_batches


@dataclass(frozen=True)
class Damage:
    """What happens to a file: it is cut at a place, or some bytes there become others; or it is gone.

    `file` and `place` are shares of what there is, so that one strategy fits all folders.
    """

    file: float
    place: float
    kind: str
    noise: bytes

    def apply(self, folder: Path, name: str) -> int:
        """Damage the file; the first position that is no longer as it was."""
        path = folder / name
        data = path.read_bytes()
        position = int(self.place * len(data))
        if self.kind == "gone":
            path.unlink()
            return 0
        if self.kind == "cut":
            path.write_bytes(data[:position])
        elif self.kind == "zeros":
            path.write_bytes(data[:position] + bytes(len(data) - position))
        elif self.kind == "longer":
            position = len(data)
            path.write_bytes(data + self.noise)
        else:
            path.write_bytes(data[:position] + self.noise + data[position + len(self.noise) :])
        return position


shares = st.floats(0, 1, exclude_max=True)
damages = st.builds(
    Damage,
    file=shares,
    place=shares,
    kind=st.sampled_from(["cut", "zeros", "noise", "noise", "longer", "gone"]),
    noise=st.binary(min_size=1, max_size=40),
)
often = settings(max_examples=200, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", params=["stop", "crash"])
def template(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Template:
    return make_template(tmp_path_factory.mktemp(request.param), crash=request.param == "crash")


def test_any_damage(template: Template) -> None:
    @often
    @given(damages)
    def check(damage: Damage) -> None:
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory) / "data"
            shutil.copytree(template.folder, folder)
            names = template.files
            name = names[int(damage.file * len(names))]
            lost = first_lost(template, name, damage.apply(folder, name))
            check_start(template, folder, name, lost)

    check()


def test_zeros_at_the_end_of_the_last_segment_after_a_clean_stop(tmp_path: Path) -> None:
    """Blocks that were never written, as a machine leaves them that lost power: they are cut off, and only they."""
    store = open_store(tmp_path)
    fill(store)
    log = store.logs["t", 0]
    values, end_offset, last = dict(read(log)), log.log_end_offset, Path(log.active.path)
    store.close({("t", 0): end_offset})
    data = last.read_bytes()
    starts = [position for position, _ in iter_batches(memoryview(data))]
    for keep in range(len(starts)):
        folder = tmp_path.with_name(f"zeroed-{keep}")
        shutil.copytree(tmp_path, folder)
        (folder / "t-0" / last.name).write_bytes(data[: starts[keep]] + bytes(len(data) - starts[keep]))
        again = open_store(folder)
        found = again.logs["t", 0]
        lost = len(starts) - keep
        assert found.log_end_offset == end_offset - lost
        assert dict(read(found)) == {offset: value for offset, value in values.items() if offset < end_offset - lost}
        check_append(folder, again, found)
