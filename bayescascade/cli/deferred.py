"""Modules that dependencies import and commands seldom use: loaded when a name of theirs is used.

`sklearn.base` imports `scipy.stats`, and SciPy imports `numpy.f2py`. Together they take more than a
third of the start of a command, for functions that few commands call.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ClassVar


class _Deferred(ModuleType):
    """Stands for a module in `sys.modules` until one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        # Other names of this kind are asked of every module, as by `inspect`, and load nothing.
        if name.startswith("__") and name not in ("__path__", "__all__"):
            raise AttributeError(name)
        _Finder.names.discard(self.__name__)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


class _Finder(MetaPathFinder, Loader):
    names: ClassVar = set[str]()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        return ModuleSpec(fullname, self) if fullname in self.names else None

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _Deferred  # nothing runs until a name is used


def defer(*names: str) -> None:
    """Load the modules `names` when a name of theirs is first used; loaded ones stay."""
    _Finder.names.update(names)
    sys.meta_path.insert(0, _Finder())
