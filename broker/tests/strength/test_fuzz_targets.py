"""The invariants of the fuzz targets, for their seeds and small changes to them: what needs no atheris."""

import pytest
from fuzzing import connection, records, recovery
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TARGETS = {"connection": connection, "records": records, "recovery": recovery}
CHANGES = {"connection": 300, "records": 150, "recovery": 60}
"""How many inputs, by what one costs."""


@pytest.mark.parametrize("name", TARGETS)
def test_seeds(name: str) -> None:
    for seed in TARGETS[name].seeds():
        TARGETS[name].check(seed)


@pytest.mark.parametrize("name", TARGETS)
def test_changed_seeds(name: str) -> None:
    """One seed's beginning, noise, and the rest of another."""
    target = TARGETS[name]
    seeds = list(target.seeds())

    @settings(max_examples=CHANGES[name], derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(seeds), st.sampled_from(seeds), st.binary(max_size=8), st.floats(0, 1), st.floats(0, 1))
    def check(first: bytes, second: bytes, noise: bytes, end: float, start: float) -> None:
        target.check(first[: int(end * len(first))] + noise + second[int(start * len(second)) :])

    check()
