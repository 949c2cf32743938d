"""Any damage to any file of a log folder, and what a start makes of it: see `support.damage` for the invariants."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.damage import Template, check_start, first_lost, make_template


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
often = settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


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
