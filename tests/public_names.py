"""The public classes and functions of geomdp, for tests that go through all of them."""

import importlib
import inspect
import pkgutil
from functools import cache

import geomdp


@cache
def public_objects() -> dict[str, object]:
    """Exported classes and functions by dotted name below `geomdp`, such as ``bodies.Ball``.

    An object that several packages export has the name from the first of them. `geomdp` comes last.
    """
    found: dict[str, object] = {}
    walked = pkgutil.walk_packages(geomdp.__path__, "geomdp.")
    for package in [*(entry.name for entry in walked if entry.ispkg), "geomdp"]:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            exported = getattr(module, name)
            is_code = inspect.isroutine(exported) or inspect.isclass(exported)
            if is_code and not any(exported is other for other in found.values()):
                found[f"{package}.{name}".removeprefix("geomdp.")] = exported
    return found
