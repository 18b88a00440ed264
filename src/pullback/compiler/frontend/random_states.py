"""The states of NumPy's random generators, by which it is found that a function draws from them while it is traced."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import contextmanager, suppress
from ctypes import string_at
from inspect import unwrap
from types import FunctionType
from typing import TYPE_CHECKING, Any

from pullback.errors import TracedDrawWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["warn_of_draws"]

STATE_BYTES = 2500  # of the Mersenne Twister: 624 words and a position
FRESH = (623).to_bytes(4, sys.byteorder)  # its position before the first number


@contextmanager
def warn_of_draws(f: Callable[..., Any]) -> Iterator[None]:
    """Warn if the block, which traces ``f``, draws from NumPy's global generator or one that ``f`` has by name."""
    before = _read_states(f)
    yield
    after = _read_states(f)
    if before != after and (before or after[0][-4:] != FRESH):
        name = getattr(f, "__name__", "f")
        warnings.warn(
            TracedDrawWarning(
                f"compile({name}): NumPy's random numbers were drawn while the function was traced, so they are the "
                "same in every call. Draw them by pb.random, such as pb.random.normal, or give them as an argument."
            ),
            stacklevel=3,
        )


def _read_states(f: Callable[..., Any]) -> list[Any]:
    """Return the states of the generators; an empty list if NumPy's package of them was never imported."""
    package = sys.modules.get("numpy.random")
    if package is None:
        return []
    bits = package.get_bit_generator()
    is_usual = type(bits) is package.MT19937
    states = [string_at(bits.ctypes.state_address, STATE_BYTES) if is_usual else str(bits.state)]
    f = unwrap(f)
    if not isinstance(f, FunctionType):
        return states
    held = [f.__globals__.get(name) for name in f.__code__.co_names]
    for cell in f.__closure__ or ():
        with suppress(ValueError):  # it is empty
            held.append(cell.cell_contents)
    return states + [str(x.bit_generator.state) for x in held if isinstance(x, package.Generator)]
