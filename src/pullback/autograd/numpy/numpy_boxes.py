"""``ArrayBox``, the class of traced arrays for ``isinstance``."""

from __future__ import annotations

from pullback.autograd.tracer import BoxType


class ArrayBox(metaclass=BoxType):
    """The class of traced arrays for ``isinstance``; ``x._value`` is what a traced array stands for."""
