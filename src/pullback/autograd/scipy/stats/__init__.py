"""Distributions as modules, as autograd has them: ``import pullback.autograd.scipy.stats.norm as norm``."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from pullback.scipy import stats as _stats


class _Distribution(ModuleType):
    """A distribution of ``pullback.scipy.stats`` that can be imported."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(getattr(_stats, self.__name__.rpartition(".")[2]), name)


for _name in ("beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"):
    _full = f"{__name__}.{_name}"
    globals()[_name] = sys.modules[_full] = _Distribution(_full, f"The distribution {_name}.")


def __getattr__(name: str) -> Any:
    return getattr(_stats, name)
