"""The states of NumPy's random generators, by which it is found that a function draws from them while it is traced."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import contextmanager, suppress
from inspect import unwrap
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from pullback.errors import TracedDrawWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

FRESH = 623  # the position of NumPy's global generator, a Mersenne Twister, before its first number


@contextmanager
def warn_of_draws(f: Callable[..., Any]) -> Iterator[None]:
    """Warn if the block, which traces ``f``, draws from NumPy's global generator or one that ``f`` reaches by name."""
    generators = _find_generators(f)
    before = _read_states(generators)
    yield
    after = _read_states(generators)
    if before != after and (before or after[0][1] != FRESH):
        name = getattr(f, "__name__", "f")
        warnings.warn(
            TracedDrawWarning(
                f"compile({name}): NumPy's random numbers were drawn while the function was traced, so they are the "
                "same in every call. Draw them by pb.random, such as pb.random.normal, or give them as an argument."
            ),
            stacklevel=8,  # the line that calls the compiled function
        )


def _read_states(generators: list[Any]) -> list[Any]:
    """Return the states of NumPy's own generator and of others; an empty list if their package was never imported."""
    package = sys.modules.get("numpy.random")
    if package is None:
        return []
    state = package.get_bit_generator().state
    if state["bit_generator"] == "MT19937":  # its words as bytes, since NumPy's text of long arrays leaves numbers out
        states: list[Any] = [(state["state"]["key"].tobytes(), state["state"]["pos"])]
    else:
        states = [str(state)]
    return states + [str(x.bit_generator.state) for x in generators]


def _find_generators(f: Callable[..., Any]) -> list[Any]:
    """Return the generators that ``f`` has by name, or that functions inside it and of the same module have."""
    package = sys.modules.get("numpy.random")
    found: dict[int, Any] = {}
    waiting, seen = [unwrap(f)], set()
    while waiting and package is not None:
        g = waiting.pop()
        if not isinstance(g, FunctionType) or id(g.__code__) in seen:
            continue
        seen.add(id(g.__code__))
        for x in _list_held(g):
            if isinstance(x, package.Generator):
                found[id(x)] = x
            elif isinstance(x, FunctionType) and x.__module__ == g.__module__:
                waiting.append(x)
    return list(found.values())


def _list_held(f: FunctionType) -> list[Any]:
    """Return what a function, and the functions defined inside it, find by global names and in its closure."""
    codes = [f.__code__]
    for code in codes:
        codes += [x for x in code.co_consts if isinstance(x, CodeType)]
    held = [f.__globals__.get(name) for code in codes for name in code.co_names]
    for cell in f.__closure__ or ():
        with suppress(ValueError):  # it is empty
            held.append(cell.cell_contents)
    return held
