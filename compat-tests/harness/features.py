"""What a test says of a client: which feature it proves, and what the client cannot do.

- `@pytest.mark.feature("groups: static members")` names the row of the report card; `{codec}` in the name stands for
  the test's parameter of that name. A test without it is of the row `OWN`.
- The column is the folder under `clients/`, or the value of a parameter that begins with that folder's name, which is
  how one test file runs several releases of a client ("kafka-python-2").
- `MISSING` of a test class maps the name of a test function, "function[parameter value]" or the whole name of a test
  to the reason why the client cannot do it. Such tests are skipped with it, before anything is started for them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CLIENTS: Final = Path(__file__).parent.parent / "clients"
OWN: Final = "what only this client has"


def parameters(item: pytest.Function) -> Mapping[str, object]:
    """Return the parameters of a test, those of its fixtures too."""
    return item.callspec.params if hasattr(item, "callspec") else {}


def names_of(item: pytest.Function) -> list[str]:
    """Return the names by which a table may mean a test: the function's, with one parameter's value, with all."""
    return [item.originalname, *(f"{item.originalname}[{value}]" for value in parameters(item).values()), item.name]


def feature_of(item: pytest.Function) -> str:
    """Return the row of the report card that a test belongs to."""
    marker = item.get_closest_marker("feature")
    if marker is None:
        return OWN
    return str(marker.args[0]).format(
        **{name: "none" if value is None else value for name, value in parameters(item).items()}
    )


def client_of_test(item: pytest.Function) -> str | None:
    """Return the column of the report card; None for a test that is of no client."""
    if CLIENTS not in item.path.parents:
        return None
    folder = item.path.relative_to(CLIENTS).parts[0]
    values = (value for value in parameters(item).values() if isinstance(value, str))
    return next((value for value in values if value.startswith(f"{folder}-")), folder)


def skip_what_is_missing(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that `MISSING` of their class names; UsageError for a name that the class does not have."""
    for item in items:
        if not isinstance(item, pytest.Function) or not (missing := getattr(item.cls, "MISSING", None)):
            continue
        for name in missing:
            if not hasattr(item.cls, name.partition("[")[0]):
                raise pytest.UsageError(f"{item.cls.__name__}.MISSING names {name}, which is no test of the class")
        for name in names_of(item):
            if name in missing:
                item.add_marker(pytest.mark.skip(reason=missing[name]))
