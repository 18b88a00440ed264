"""The states of NumPy's random generators, by which it is found that a function draws from them while it is traced."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import contextmanager, suppress
from inspect import unwrap
from types import FunctionType
from typing import TYPE_CHECKING, Any

from pullback.errors import TracedDrawWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

FRESH = 623  # the position of NumPy's global generator, a Mersenne Twister, before its first number


@contextmanager
def warn_of_draws(f: Callable[..., Any]) -> Iterator[None]:
    """Warn if the block, which traces ``f``, draws from NumPy's global generator or one that ``f`` has by name."""
    before = _read_states(f)
    yield
    after = _read_states(f)
    if before != after and (before or after[0][1] != FRESH):
        name = getattr(f, "__name__", "f")
        warnings.warn(
            TracedDrawWarning(
                f"compile({name}): NumPy's random numbers were drawn while the function was traced, so they are the "
                "same in every call. Draw them by pb.random, such as pb.random.normal, or give them as an argument."
            ),
            stacklevel=8,  # the line that calls the compiled function
        )


def _read_states(f: Callable[..., Any]) -> list[Any]:
    """Return the states of the generators; an empty list if NumPy's package of them was never imported."""
    package = sys.modules.get("numpy.random")
    if package is None:
        return []
    state = package.get_bit_generator().state
    if state["bit_generator"] == "MT19937":  # its words as bytes, since NumPy's text of long arrays leaves numbers out
        states: list[Any] = [(state["state"]["key"].tobytes(), state["state"]["pos"])]
    else:
        states = [str(state)]
    f = unwrap(f)
    if not isinstance(f, FunctionType):
        return states
    held = [f.__globals__.get(name) for name in f.__code__.co_names]
    for cell in f.__closure__ or ():
        with suppress(ValueError):  # it is empty
            held.append(cell.cell_contents)
    return states + [str(x.bit_generator.state) for x in held if isinstance(x, package.Generator)]
