"""kafka-python, the library that ours is held against.

It is imported here alone, because doing so raises a DeprecationWarning: it reads its definitions in an old way.
"""

import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.errors
    from kafka.protocol import admin, consumer, metadata, producer, sasl


def message_class(name: str) -> Any:
    """kafka-python's class of the message `name`, None where it has none."""
    modules = (admin, consumer, metadata, producer, sasl)
    return next((getattr(module, name) for module in modules if hasattr(module, name)), None)


def error_classes() -> dict[int, Any]:
    """kafka-python's error classes by code."""
    classes: list[Any] = [kind for kind in vars(kafka.errors).values() if isinstance(kind, type)]
    return {kind.errno: kind for kind in classes if isinstance(getattr(kind, "errno", None), int)}
