"""Modules that dependencies import and commands seldom use: loaded when a name of theirs is used.

`sklearn.base` imports `scipy.stats`, and SciPy imports `numpy.f2py`. Together they take more than a
third of the start of a command, for functions that few commands call.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, ClassVar


class _Deferred(ModuleType):
    """Stands for a module in `sys.modules` until one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        # Other names of this kind are asked of every module, as by `inspect`, and load nothing.
        if name.startswith("__") and name not in ("__path__", "__all__"):
            raise AttributeError(name)
        if f"{self.__name__}.{name}" in _Finder.functions:
            return lambda *args, **named: getattr(_loaded(self.__name__), name)(*args, **named)
        return getattr(_loaded(self.__name__), name)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if self.__name__ not in _Finder.names:  # a submodule was imported, which loads the package
            setattr(_loaded(self.__name__), name, value)


def _loaded(name: str) -> ModuleType:
    """Return a module itself, instead of what stands for it."""
    package = name.rpartition(".")[0]
    if isinstance(sys.modules.get(package), _Deferred):
        _loaded(package)
    _Finder.names.discard(name)
    if isinstance(sys.modules.get(name), _Deferred):
        del sys.modules[name]
    return importlib.import_module(name)


class _Finder(MetaPathFinder, Loader):
    names: ClassVar = set[str]()
    functions: ClassVar = set[str]()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname in self.names:
            # a package with a path is not asked for it by ``from package import function``
            is_package = any(name.startswith(f"{fullname}.") for name in self.functions)
            return ModuleSpec(fullname, self, is_package=is_package)
        package = fullname.rpartition(".")[0]
        if not isinstance(sys.modules.get(package), _Deferred):
            return None
        return PathFinder.find_spec(fullname, _loaded(package).__path__)

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _Deferred  # nothing runs until a name is used


def defer(*names: str, functions: Sequence[str] = ()) -> None:
    """Load the modules `names` when a name of theirs is first used; loaded ones stay.

    Those of `functions`, such as ``module.function``, may be imported by name, and load it when
    they are called.
    """
    _Finder.names.update(names)
    _Finder.functions.update(functions)
    sys.meta_path.insert(0, _Finder())
