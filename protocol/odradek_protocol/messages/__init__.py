"""One module for each API: its request, its reply and the versions that are served.

`load_all` imports every module here, so that `schema.apis` knows them; nothing else lists them.
"""

import importlib
import pkgutil

__all__ = ["load_all"]


def load_all() -> None:
    """Import every message module."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
