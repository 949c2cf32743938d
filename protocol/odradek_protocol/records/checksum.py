"""CRC-32C (Castagnoli, RFC 3720 B.4), by the package crc32c: what guards record batches and producers' snapshots.

Its extension module is loaded by itself, where it can be found. The package around it looks up its own version first,
and the modules that this takes (`importlib.metadata`, `email`, `zipfile`) are a twentieth of a broker's start.
"""

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

__all__ = ["crc32c"]


def _load() -> Any:
    """crc32c's function of that name."""
    package = find_spec("crc32c")
    spec = PathFinder.find_spec("_crc32c", package.submodule_search_locations) if package is not None else None
    if spec is None or spec.loader is None:
        from crc32c import crc32c as whole  # noqa: PLC0415 - see above

        return whole
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.crc32c


if TYPE_CHECKING:
    from crc32c import crc32c
else:
    crc32c = _load()
