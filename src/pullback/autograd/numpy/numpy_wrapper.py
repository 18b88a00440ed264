"""The functions of ``autograd.numpy`` under the name of the module that defines them in autograd."""

from __future__ import annotations

import typing as _typing
from collections.abc import Mapping as _Mapping

from pullback.autograd import numpy as _face
from pullback.autograd.arrays import array as array
from pullback.autograd.arrays import make_diagonal as make_diagonal
from pullback.autograd.arrays import metadata as metadata
from pullback.autograd.arrays import where as where


def wrap_namespace(old: _Mapping[str, _typing.Any], new: dict[str, _typing.Any]) -> None:
    """Enter the functions and numbers of a namespace in another; NumPy's take traced arrays as they are.

    old: the namespace, such as ``numpy.__dict__``.
    new: where they are entered.
    """
    kinds = (float, int, type(None), type)
    new.update({name: x for name, x in old.items() if callable(x) or isinstance(x, kinds)})


def __getattr__(name: str) -> _typing.Any:
    return getattr(_face, name)
